"""A table that goes between the compilation of its model and the run, in the adapter and in the package."""

from types import SimpleNamespace
from typing import cast

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.sparkevolve.errors import TableGoneError
from dbt.adapters.sparkevolve.load.checks import Checks, own_words
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.spark.interface import Spark
from tests.unit.package_macros import PURE, PackageMacros

SURE = (
    "was there when dbt compiled the model, and is not a table any more: a hook of this run, or another "
    "writer, has dropped or replaced it since. The model asks `is_incremental()`, so what it returns now are "
    "the rows for a table that has the others already, and a table made from them would lack those. No table "
    "was made. Run the model again: dbt then compiles it for a first run. If a pre-hook drops the table in "
    "every run, make the model `materialized: table`."
)
ASKS = "{% if is_incremental() %}where id > 1{% endif %}"
HOOK = (
    "{% if is_incremental() and load_relation(this) and adapter.get_relation(this) %}{{ late() }}{% endif %}"
)
OWN = ("macro.dbt.is_incremental", "macro.dbt.load_relation", "macro.case.late")
MACROS = {
    **dict.fromkeys(OWN[:2], ("", ())),
    "macro.case.late": ("", OWN[:1]),
    "macro.case.deep": ("", ("macro.case.finds",)),
    "macro.case.finds": ("{{ adapter.get_relation(this.database, this.schema, this.name) }}", ()),
    "macro.dbt.concat": ("adapter.get_relation", ()),
    "macro.case.none": ("", ("macro.dbt.concat",)),
}


def adapter_says(code: str, called: tuple[str, ...], *hooks: str) -> str:
    macros = {
        name: SimpleNamespace(macro_sql=text, depends_on=SimpleNamespace(macros=list(calls)))
        for name, (text, calls) in MACROS.items()
    }
    relation = cast("SparkEvolveRelation", "db.t")
    try:
        Checks(cast("Spark", None), macros).compiled_without_table(relation, called, code, hooks)
    except TableGoneError as exc:
        return str(exc)
    return ""


def package_says(code: str, called: tuple[str, ...], *hooks: str, version: str = "1.11.0") -> str:
    model = SimpleNamespace(raw_code=code, depends_on=SimpleNamespace(macros=list(called)))
    macros = PackageMacros({"model": model, "dbt_version": version})
    try:
        macros.check_compiled_without_table("db.t", [{"sql": hook, "transaction": True} for hook in hooks])
    except CompilationError as exc:
        return str(exc)
    return ""


@pytest.mark.parametrize(
    ("code", "called", "hooks", "adapter", "package"),
    [
        (ASKS, OWN[:1], (), SURE, SURE),
        (ASKS + HOOK, OWN, (HOOK,), SURE, SURE),
        # What only a hook asks, in the model's text or elsewhere, changes nothing of its rows.
        ("{{ config(pre_hook='" + HOOK + "') }}select 1", OWN, (HOOK,), "", ""),
        ("select 1", OWN, (HOOK, HOOK), "", ""),
        # A hook that cannot be told from the model.
        ("{{ config(pre_hook='it' ~ is_incremental()) }}select 1", OWN, ("itTrue",), SURE, SURE),
        (
            "select 1 {{ late() }}",
            OWN[2:],
            (),
            SURE,
            "may ask `is_incremental()` in a macro that it calls (`late`), so what it returns now may be",
        ),
        (
            "{% if load_relation(this) %}",
            OWN[1:2],
            (),
            "may ask for its table by `load_relation`, so what it returns now may be the rows for a table",
            "may ask for its table by `load_relation`, so what it returns now may be the rows for a table",
        ),
        (
            "{% if adapter.get_relation(this.database, this.schema, this.name) %}",
            (),
            (),
            "may ask for its table by `get_relation`, so what it returns now may be the rows for a table",
            "may ask for its table by `get_relation`, so what it returns now may be the rows for a table",
        ),
        (
            "{{ deep() }}",
            ("macro.case.deep",),
            (),
            "may ask for its table by `get_relation`",
            "may ask `is_incremental()` in a macro that it calls (`deep`)",
        ),
        ("{{ none() }}", ("macro.case.none",), (), "", "in a macro that it calls (`none`)"),
        ("{{ dbt.concat(['a']) }}", ("macro.dbt.concat",), (), "", ""),
        ("{{ context['la' ~ 'te']() }}", OWN[2:], (), SURE, "in a macro that it calls (`late`)"),
        ("{{ adapter.dispatch('late')() }}", OWN[2:], (), SURE, "in a macro that it calls (`late`)"),
    ],
)
def test_a_model_that_asks_for_its_table_is_refused_once_that_has_gone(
    code: str, called: tuple[str, ...], hooks: tuple[str, ...], adapter: str, package: str
) -> None:
    said = adapter_says(code, called, *hooks), package_says(code, called, *hooks)
    assert [bool(text) for text in said] == [bool(adapter), bool(package)]
    assert adapter in said[0]
    assert package in said[1]
    assert own_words(code, hooks) == set(PURE.own_words(code, [{"sql": hook} for hook in hooks]))


def test_all_macros_count_where_the_text_of_a_model_may_not_be_there() -> None:
    assert "(`late`)" in package_says("--placeholder--", OWN[2:], HOOK, version="2.0.0")
    assert SURE in package_says("--placeholder--", OWN, HOOK, version="2.0.0")
