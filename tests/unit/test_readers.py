"""Who reads a column under a name that means another one from now on."""

from typing import Any

import pytest
from pyiceberg.types import IntegerType

from dbt.adapters.sparkevolve.evolution.changes import AddColumn, AddField, RenameField
from dbt.adapters.sparkevolve.evolution.defaults import DefaultValue
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.load.readers import replaced_warnings

PLAN = EvolutionPlan(changes=(RenameField(("amount",), "amount_old"), AddColumn(("Amount",), IntegerType())))
REST = (
    "What reads these in turn, and what reads the table from outside of this project, is not known. Old rows "
    'are NULL in it: see "Backfill a column" in the docs of dbt-sparkevolve.'
)
BEGIN = "`Amount` is a new column of the type int, and the old one is `amount_old` from now on. "


def graph(**code: str) -> dict[str, Any]:
    nodes = {
        f"model.p.{name}": {
            "unique_id": f"model.p.{name}",
            "resource_type": "model",
            "raw_code": text,
            "depends_on": {"nodes": ["model.p.t"]},
        }
        for name, text in code.items()
    }
    return {"nodes": nodes}


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("select AMOUNT from x", "These read the table and name `Amount`: model.p.r. "),
        ("select `amount`*2 from x", "These read the table and name `Amount`: model.p.r. "),
        ("select amount_old, the_amount from x", "No node of this project that reads it names `Amount`. "),
        ("select\n*, 1 from x", "These read all its columns: model.p.r. "),
        ("select x.* from x", "These read all its columns: model.p.r. "),
        ("select {{ dbt_utils.star(ref('t')) }} from x", "These read all its columns: model.p.r. "),
        ("select a * b from x", "No node of this project that reads it names `Amount`. "),
        ("select *, amount from x", "These read the table and name `Amount`: model.p.r. "),
    ],
)
def test_a_reader_is_known_by_its_text(code: str, text: str) -> None:
    rest = REST
    if text.startswith("No node"):
        rest = REST.replace("What reads these in turn, and what", "What").replace("project, is", "project is")
    assert replaced_warnings(PLAN, "model.p.t", graph(r=code)) == [f"{BEGIN}{text}{rest}"]


def test_tests_and_exposures_of_the_table_and_of_no_other() -> None:
    found = graph(b="select amount", a="select amount, *", c="select *")
    found["nodes"]["model.p.far"] = {
        "unique_id": "model.p.far",
        "raw_code": "select amount",
        "depends_on": {"nodes": ["model.p.a"]},
    }
    found["nodes"]["test.p.n"] = {
        "unique_id": "test.p.n",
        "raw_code": "{{ test_not_null(**_dbt_generic_test_kwargs) }}",
        "column_name": "amount",
        "depends_on": {"nodes": ["model.p.t"]},
    }
    found["exposures"] = {
        "exposure.p.page": {
            "unique_id": "exposure.p.page",
            "resource_type": "exposure",
            "depends_on": {"nodes": ["model.p.t"]},
        }
    }
    assert replaced_warnings(PLAN, "model.p.t", found) == [
        f"{BEGIN}These read the table and name `Amount`: model.p.a, model.p.b, test.p.n. These read all its "
        f"columns: exposure.p.page, model.p.c. {REST}"
    ]


def test_old_rows_have_the_default_of_the_new_column() -> None:
    default = DefaultValue(IntegerType(), 42)
    added = AddColumn(("Amount",), IntegerType(), default=default)
    plan = EvolutionPlan(changes=(RenameField(("amount",), "amount_old"), added))
    (text,) = replaced_warnings(plan, "model.p.t", graph(r="select 1"))
    assert text.endswith(
        " is not known. Old rows have its default 42 in it, which takes `only_null: false` to be replaced: "
        'see "Backfill a column" in the docs of dbt-sparkevolve.'
    )


def test_a_full_refresh_leaves_no_old_rows() -> None:
    (text,) = replaced_warnings(PLAN, "model.p.t", graph(r="select 1"), replaces_all_rows=True)
    assert text.endswith("What reads the table from outside of this project is not known.")


def test_each_replaced_field_has_a_text_and_another_rename_none() -> None:
    plan = EvolutionPlan(
        changes=(
            RenameField(("s", "zip"), "zip_old"),
            RenameField(("a",), "b"),
            AddField(("s", "ZIP"), IntegerType()),
            AddColumn(("c",), IntegerType()),
        )
    )
    (text,) = replaced_warnings(plan, "model.p.t", graph(r="select s.zip"))
    assert text.startswith(
        "`s`.`ZIP` is a new field of the type int, and the old one is `zip_old` from now on. These read the "
        "table and name `ZIP`: model.p.r. "
    )
    assert replaced_warnings(EvolutionPlan(), "model.p.t", graph(r="select a")) == []
