"""Columns that are NOT NULL, and batches that bring no value for them."""

import pytest

from tests.functional.harness import Scenario
from tests.functional.precreated import precreate


@pytest.mark.core
def test_a_removed_not_null_column_is_made_optional(scenario: Scenario) -> None:
    precreate(scenario, "id int, v string not null, o int", "(1, 'a', 1)")
    scenario.model("select 2 as id, 2 as o")
    run = scenario.run()
    assert f"{scenario.relation()}: let `v` be NULL" in run.log
    assert scenario.rows() == [(1, "a", 1), (2, None, 2)]
    assert scenario.schemas() == 2
    scenario.run()
    assert scenario.schemas() == 2


def test_relaxing_can_be_refused(scenario: Scenario) -> None:
    precreate(scenario, "id int, v string not null, o int", "(1, 'a', 1)")
    before = scenario.state()
    scenario.model("select 1 as id, 2 as o", relax_not_null=False)
    run = scenario.fail()
    assert (
        "Column `v` is NOT NULL in the table, and the model no longer returns it, so it cannot be padded "
        "with NULL. Return it from the model again, or set `relax_not_null: true` to make it optional."
        in run.message
    )
    assert scenario.state() == before


def test_a_null_in_a_not_null_column_makes_it_optional_and_no_null_leaves_it(scenario: Scenario) -> None:
    precreate(
        scenario,
        "id int not null, v string not null, s struct<x: int not null>",
        "(1, 'a', named_struct('x', 1))",
    )
    scenario.model("select 1 as id, cast(null as string) as v, named_struct('x', cast(null as int)) as s")
    scenario.run()
    fields = {f.name: f.required for f in scenario.table().schema().fields}
    assert fields == {"id": True, "v": False, "s": False}
    assert scenario.rows() == [(1, None, {"x": None})]


def test_not_null_structs_lists_and_maps_are_counted(scenario: Scenario) -> None:
    """Iceberg keeps no counts of NULL for them, so the staged rows are asked; only for these columns."""
    types = "struct<x: int>", "array<int>", "map<string, int>", "struct<x: int>"
    columns = ", ".join(f"`C {n}` {type_} not null" for n, type_ in enumerate(types))
    values = "named_struct('x', {0})", "array({0}, null)", "map('k', {0})", "named_struct('x', {0})"
    precreate(scenario, f"id int, {columns}", f"(1, {', '.join(v.format(1) for v in values)})")
    items = [f"{value.format(2)} as `c {n}`" for n, value in enumerate(values)]
    scenario.model(f"select 2 as id, {', '.join(items)}", relax_not_null=False)
    run = scenario.run()
    counted = [f"count_if(DBT_INTERNAL_SOURCE.`c {n}` IS NULL)" for n in range(4)]
    assert f"SELECT {', '.join(counted)}" in run.log
    assert scenario.schemas() == 1
    assert [row[0] for row in scenario.rows()] == [1, 2]
    before = scenario.state()
    scenario.model(
        f"select id, {', '.join(f'if(id = 3, null, `c {n}`) as `c {n}`' for n in range(3))}, `c 3`\n"
        f"from (select explode(array(2, 3)) as id, {', '.join(items)})",
        relax_not_null=False,
    )
    run = scenario.fail()
    assert [f"Column `C {n}` is NOT NULL in the table" in run.message for n in range(4)] == [True] * 3 + [
        False
    ]
    assert scenario.state() == before
    scenario.file("models/t.sql", (scenario.folder / "models/t.sql").read_text().replace("False", "True"))
    scenario.run()
    required = {f.name: f.required for f in scenario.table().schema().fields}
    assert required == {"id": False, "C 0": False, "C 1": False, "C 2": False, "C 3": True}
    assert [row[1] for row in scenario.rows()] == [{"x": 1}, {"x": 2}, None]


def test_an_identifier_field_cannot_be_padded(scenario: Scenario) -> None:
    precreate(scenario, "id int not null, v string", "(1, 'a')")
    scenario.sql(f"alter table {scenario.relation()} set identifier fields id")
    before = scenario.state()
    scenario.model("select 'b' as v", unique_key="v")
    run = scenario.fail()
    assert "Column `id` is an identifier field of the table, which cannot be NULL" in run.message
    assert scenario.state() == before


def test_a_new_column_is_optional_whatever_the_contract_says(scenario: Scenario) -> None:
    contract = {"enforced": True}
    properties = """
version: 2
models:
  - name: t
    columns:
      - {name: id, data_type: int}
      - {name: n, data_type: int, constraints: [{type: check, expression: n > 0}, {type: not_null}]}
    constraints:
      - {type: not_null, columns: [id]}
"""
    scenario.model("select 1 as id")
    scenario.run()
    scenario.file("models/t.yml", properties)
    scenario.model("select 2 as id, 5 as n", contract=contract, on_schema_change="append_new_columns")
    said = (
        f"{scenario.relation()}: the contract's not_null of `id`, `n` is not applied: in the table such a "
        "column stays optional, so that it can be padded once the model no longer returns it. dbt's test "
        "`not_null` checks it, and so do `audits` before rows are visible."
    )
    assert scenario.run().log.count(said) == 1
    assert scenario.rows() == [(1, None), (2, 5)]
    assert [f.required for f in scenario.table().schema().fields] == [False, False]
