"""Shapes that are known: what is recorded of them, and when nothing of them is planned."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType

from dbt.adapters.sparkevolve.evolution import record, shapes
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan, plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Policy
from dbt.adapters.sparkevolve.evolution.shapes import Shape
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.load import runner
from dbt.adapters.sparkevolve.load.batch_plan import plan_batch
from dbt.adapters.sparkevolve.load.load import Load
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from tests.unit.conftest import MakeTable
from tests.unit.helpers import columns, model_settings
from tests.unit.strategies import loads, rule
from tests.unit.test_incremental import STAGED, TARGET, Run, by_name, cut, insert


@rule
@given(loads())
def test_a_plain_plan_is_the_one_that_would_be_made(pair: tuple[Schema, Schema]) -> None:
    target, source = pair
    for batch in (source, target, Schema(*target.fields[: max(1, len(target.fields) // 2)])):
        plan = plan_evolution(target, batch, Policy())
        if shapes.is_plain(plan, target, batch, ()):
            assert shapes.plain_plan(target, batch, ()) == plan
            assert [*plan.changes, *plan.warnings, *plan.refusals, *plan.ignored] == []
        if batch is target and not plan.refusals and not plan.changes:
            assert shapes.is_plain(plan, target, batch, ())


def test_what_says_more_than_names_is_not_plain() -> None:
    target = columns("id int, v bigint")
    for batch in ("id int, v int", "id int, v bigint, n int", "id string, v bigint"):
        plan = plan_evolution(target, columns(batch), Policy(add_columns=False))
        assert not shapes.is_plain(plan, target, columns(batch), ())
    plan = plan_evolution(target, columns("ID int"), Policy(unique_key=("Id",)))
    assert shapes.is_plain(plan, target, columns("ID int"), ("Id",))
    warned = replace(plan, warnings=("mind",))
    assert not shapes.is_plain(warned, target, columns("ID int"), ("Id",))
    required = Schema(*(replace_required(f) for f in target.fields))
    assert not shapes.is_plain(plan_evolution(required, required, Policy()), required, required, ())


def replace_required(field: Any) -> Any:
    return field.model_copy(update={"required": True})


# In the record


def test_a_shape_is_read_as_it_was_written_and_spoiled_ones_are_left_out() -> None:
    shape = Shape("ab12", 3, "2026-01-02T03:04:05+00:00", "run-1", "d")
    spoiled = {
        f"{shapes.PREFIX}{n}": text for n, text in enumerate(["", "[]", "{}", '{"schema_id": "x"}', "1"])
    }
    assert shapes.read({**shape.properties, **spoiled, "other": "1"}) == {"ab12": shape}


def test_the_record_of_shapes_is_bounded_and_the_oldest_go() -> None:
    properties: dict[str, str] = {}
    for number in range(30):
        shape = Shape(f"s{number}", 0, f"2026-01-{number + 1:02}")
        for name in shapes.outdated_properties(properties, shape.source):
            del properties[name]
        properties |= shape.properties
    assert list(shapes.read(properties)) == [f"s{number}" for number in range(10, 30)]
    assert shapes.outdated_properties(properties, "s10") == ()


OLD, NEW = columns("id int, x int"), columns("id int, x int, y int")


def numbered(schema: Schema, schema_id: int) -> Schema:
    return schema.model_copy(update={"schema_id": schema_id})


def test_the_record_of_a_new_table_can_be_a_literal_under_any_setting() -> None:
    name = "it's ${x} \\ `q`"
    made = record.creation_properties([(name, "int")], "run 1", "2026-01-01", is_replacing=False)
    text = made["sparkevolve.schema.0"]
    assert "'" not in text
    assert "$" not in text
    assert record.read(made)[0].changes == {"created": ("`it's ${x} \\ ``q```",)}


def test_a_batch_of_an_older_shape_is_recognised() -> None:
    both = [numbered(OLD, 0), numbered(NEW, 1)]
    print_of = record.fingerprint
    made = record.creation_properties(
        [("id", "int"), ("x", "int")], "run-1", "2026-01-01", is_replacing=False
    )
    assert shapes.older(print_of(OLD), both[1], both, made) == (0, "2026-01-01")
    # Of a table that others have made the columns tell.
    assert shapes.older(print_of(OLD), both[1], both, {}) == (0, "")
    assert shapes.older(print_of(NEW), both[1], both, made) is None
    assert shapes.older(print_of(columns("id int")), both[1], both, made) is None
    seen = Shape(print_of(columns("id int")), 0, "2026-01-02").properties
    assert shapes.older(print_of(columns("id int")), both[1], both, seen) == (0, "2026-01-02")
    assert shapes.older(print_of(columns("id int")), both[0], both, seen) is None


@pytest.mark.parametrize(
    ("padded", "kept", "end"),
    [
        (["`x`"], [], ": `x` is padded"),
        (["`x`", "`y`"], [], ": `x`, `y` are padded"),
        ([], ["`x`"], ": `x` is kept in rows that are replaced"),
        ([], [], ", and the table has schema 5"),
    ],
)
def test_what_is_said_of_it(padded: list[str], kept: list[str], end: str) -> None:
    begin = "the model returns the columns of schema 3"
    assert shapes.older_text(3, "2026-01-01", padded, kept, 5) == f"{begin} of 2026-01-01{end}"
    assert shapes.older_text(3, "", padded, kept, 5) == f"{begin}{end}"


# In a load


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[IncrementalSettings]:
    """Count the plans that are made."""
    found: list[IncrementalSettings] = []

    def counting(batch: Any, settings: IncrementalSettings, *args: Any, **kwargs: Any) -> EvolutionPlan:
        found.append(settings)
        return plan_batch(batch, settings, *args, **kwargs)

    monkeypatch.setattr(runner, "plan_batch", counting)
    return found


LoadAgain = Callable[..., Load]


@pytest.fixture
def load_again(lake: IcebergCatalog, other: Catalog, make_table: MakeTable) -> LoadAgain:
    """Load a batch into a table that is made before, each time in a run of its own."""
    make_table(columns("id int, x int"), [{"id": 1, "x": 1}])
    make_table(columns("ID int, x int"), [{"ID": 1, "x": 2}], name=str(STAGED.identifier))

    def load(docs: dict[str, str] | None = None, **settings: Any) -> Load:
        run = Run(lake)
        base = run.runner.begin_load(TARGET)
        chosen = model_settings(**{"unique_key": ("Id",), **settings})
        load = run.runner.evolve(base, TARGET, STAGED, chosen, docs or {}, by_name(base, "ID int, x int"))
        if load.branch is not None:
            cut(other, load)
            insert(other, load)
        assert run.runner.publish(load, is_last=True)
        run.runner.note_shape(load)
        return load

    return load


def commits(lake: IcebergCatalog) -> int:
    return len(lake.load(TARGET).metadata.metadata_log)


def test_a_known_shape_takes_no_plan_and_no_commit(
    lake: IcebergCatalog, load_again: LoadAgain, planned: list[Any]
) -> None:
    start = commits(lake)
    first = load_again()
    assert len(planned) == 1
    (known,) = shapes.read(lake.load(TARGET).properties).values()
    assert (known.schema_id, known.source) == (0, record.fingerprint(columns("ID int, x int")))
    before = commits(lake)
    second, third = load_again(), load_again()
    assert len(planned) == 1
    assert second.plan == third.plan == first.plan
    assert second.statements == [s.replace(str(first.branch), str(second.branch)) for s in first.statements]
    # As many as of the first one: its branch, its rows, and the publication with what is recorded.
    assert commits(lake) - before == 2 * (before - start)
    assert shapes.read(lake.load(TARGET).properties) == {known.source: known}


def test_of_a_direct_load_a_shape_is_one_commit_once(
    lake: IcebergCatalog, load_again: LoadAgain, planned: list[Any]
) -> None:
    before = commits(lake)
    for _ in range(3):
        load_again(publish="direct")
    assert (commits(lake) - before, len(planned)) == (1, 1)


@pytest.mark.parametrize(
    "given_",
    [
        {"type_widening": False},
        {"add_columns": False},
        {"frozen_for": "model.case.t"},
        {"column_renames": {"y": "z"}},
        {"unique_key": ()},
        {"docs": {"x": ""}},
        {"tblproperties": {"write.delete.mode": "copy-on-write"}},
    ],
)
def test_other_settings_are_planned(
    load_again: LoadAgain, planned: list[Any], given_: dict[str, Any]
) -> None:
    load_again()
    load_again(**given_)
    assert len(planned) == 2


def test_another_table_is_planned_for(
    lake: IcebergCatalog, load_again: LoadAgain, other: Catalog, planned: list[Any]
) -> None:
    """Changed there and back, it has the same columns and another history, of which a plan may warn."""
    load_again()
    with other.load_table("db.t").update_schema() as change:
        change.add_column("y", LongType())
    with other.load_table("db.t").update_schema() as change:
        change.delete_column("y")
    load_again()
    assert len(planned) == 2
    with other.load_table("db.t").transaction() as transaction:
        transaction.set_properties({"write.delete.mode": "merge-on-read"})
    load_again()
    assert len(planned) == 3
    load_again()
    assert len(planned) == 3
    assert [s.schema_id for s in shapes.read(lake.load(TARGET).properties).values()] == [0]
