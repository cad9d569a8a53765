"""By which names Iceberg finds no rows in a branch, of a real table."""

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.types import IntegerType

from dbt.adapters.sparkevolve.evolution.changes import AddColumn, AddField, RenameField, SetDoc
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.iceberg.base import Base
from dbt.adapters.sparkevolve.iceberg.branch_names import refused_names
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from dbt.adapters.sparkevolve.load.planned_texts import not_found_in_branch
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from tests.unit.conftest import MakeTable
from tests.unit.helpers import columns, loaded, relation, struct

INT = IntegerType()
WAP = {"write.wap.enabled": "true"}


def test_names_that_a_branch_does_not_have_for_a_field(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    schema = columns("a int, b int, c int, s", s=struct(10, x=INT))
    target = make_table(schema, [{"a": 1}], properties=WAP)
    table = other.load_table("db.t")
    table.append(pa.table({"a": pa.array([2], pa.int32())}), branch="audit")
    table = other.load_table("db.t")
    with table.update_schema() as update:
        # The branch has another column that is called as this one now.
        update.rename_column("b", "d").rename_column("a", "B").rename_column("c", "C")
        update.rename_column("s.x", "y").add_column("n", INT)
    names = [("`where`", (name,)) for name in ("a", "b", "c", "d", "n", "later", "s")]
    names += [("`where`", ("s", name)) for name in ("x", "y", "z")]
    changes = [
        *(
            AddColumn(("later",), INT),
            AddField(("s", "z"), INT),
            RenameField(("C",), "c"),
            SetDoc(("d",), "x"),
        ),
        RenameField(("d",), "a"),
    ]

    def refused(branch: str) -> list[tuple[tuple[str, ...], bool]]:
        base = lake.base(target, lambda: branch)
        found = refused_names(base, str(target), names, changes)
        return [(refusal.columns, "Change the column" not in refusal.remedy) for refusal in found]

    there, later = ("B", "d", "s.y", "n"), ("later", "s.z", "a")
    assert refused("audit") == [((n,), True) for n in there] + [((n,), False) for n in later]
    assert refused("new") == []
    assert refused_names(lake.base(target, lambda: None), str(target), names, changes) == []
    loaded(other, "audit", 3)
    assert refused("audit") == [((name,), False) for name in later]


def branch_and_batch(lake: IcebergCatalog, other: Catalog, make_table: MakeTable) -> tuple[Base, StagedBatch]:
    """Return a table that goes on in another branch than `main`, and a batch."""
    target = make_table(columns("id int"), [{"id": 1}], properties=WAP)
    loaded(other, "audit", 2)
    staged = make_table(columns("id int, n int, price double"), name="staged")
    return lake.base(target, lambda: "audit"), lake.staged_batch(staged)


@pytest.mark.parametrize(
    ("key", "strategy", "is_refused"),
    [
        *(("n", "delete+insert", True), ("price", "delete+insert", False)),
        # Spark asks for what is not NULL in the key of a MERGE.
        *(("n", "merge", True), ("price", "merge", True)),
    ],
)
def test_a_key_is_refused_by_which_iceberg_is_asked_for_rows(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable, key: str, strategy: str, is_refused: bool
) -> None:
    base, batch = branch_and_batch(lake, other, make_table)
    plan = EvolutionPlan(changes=(AddColumn((key,), INT),))
    config = {"unique_key": key.upper(), "incremental_strategy": strategy}
    settings = IncrementalSettings.from_config(config, "model.p.t")
    found = not_found_in_branch(base, relation("t"), batch, plan, settings)
    assert [refusal.columns for refusal in found] == ([(key,)] if is_refused else [])


def test_a_word_that_may_be_no_column_is_not_refused(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    base, batch = branch_and_batch(lake, other, make_table)
    target, plan = relation("t"), EvolutionPlan(changes=(AddColumn(("n",), INT),))
    for strategy in ("delete+insert", "merge", "append"):
        for text, is_refused in (("n > 0", True), ("id in (select n from o)", False), ("f(x -> n)", False)):
            config = {"unique_key": "id", "incremental_predicates": [text], "incremental_strategy": strategy}
            if strategy == "append":
                del config["unique_key"]
            settings = IncrementalSettings.from_config(config, "model.p.t")
            found = not_found_in_branch(base, target, batch, plan, settings)
            assert [refusal.columns for refusal in found] == (
                [("n",)] if is_refused and strategy != "append" else []
            )
