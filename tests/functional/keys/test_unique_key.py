"""The unique key, and what the DELETE matches."""

import datetime

import pytest

from tests.functional.harness import Scenario

MONDAY = datetime.date(2024, 1, 1)


def assert_settled(scenario: Scenario, *names: str) -> None:
    """Run again: the rows stay what they are, and there is nothing left to do to any schema."""
    chosen = names or ("t",)
    before = {name: (scenario.rows(name), scenario.schemas(name)) for name in chosen}
    scenario.run()
    assert {name: (scenario.rows(name), scenario.schemas(name)) for name in chosen} == before
    assert scenario.tables() == sorted(chosen)


@pytest.mark.core
def test_null_in_part_of_a_composite_key(scenario: Scenario) -> None:
    scenario.model("select 'x' as a, 1 as b, 1 as v union all select 'y', null, 1", unique_key=["a", "b"])
    scenario.run()
    ids = scenario.field_ids()
    assert scenario.rows() == [("x", 1, 1), ("y", None, 1)]
    scenario.model(
        "select 'x' as a, 1 as b, 2 as v, 'new' as n union all select 'y', null, 2, 'new'",
        unique_key=["a", "b"],
    )
    scenario.run()
    assert scenario.rows() == [("x", 1, 2, "new"), ("y", None, 2, "new")]
    assert scenario.field_ids() == {**ids, "n": 4}
    assert scenario.schemas() == 2
    assert_settled(scenario)


def test_null_key_matches_nothing_but_null(scenario: Scenario) -> None:
    """A NULL in the batch is compared NULL-safely; rows whose key merely lacks one part stay."""
    scenario.model(
        "select 1 as a, 1 as b, 'o' as v union all select 1, null, 'o' union all select null, 1, 'o' "
        "union all select null, null, 'o'",
        unique_key=["a", "b"],
    )
    scenario.run()
    scenario.model("select cast(null as int) as a, 1 as b, 'n' as v", unique_key=["a", "b"])
    scenario.run()
    assert scenario.rows() == [(None, None, "o"), (None, 1, "n"), (1, None, "o"), (1, 1, "o")]
    assert scenario.schemas() == 1


@pytest.mark.core
def test_composite_key_is_not_a_cross_product(scenario: Scenario) -> None:
    scenario.model(
        "select a, b, 'o' as v from values (1, 1), (1, 2), (2, 1), (2, 2) as x(a, b)", unique_key=["a", "b"]
    )
    scenario.run()
    scenario.model("select 1 as a, 2 as b, 'n' as v union all select 2, 1, 'n'", unique_key=["a", "b"])
    scenario.run()
    assert scenario.rows() == [(1, 1, "o"), (1, 2, "n"), (2, 1, "n"), (2, 2, "o")]
    assert scenario.schemas() == 1
    assert_settled(scenario)


def test_unique_key_as_string_and_as_list(scenario: Scenario) -> None:
    """A string, a list of one, a list of two, lists from YAML, other case and quotes: one result."""
    python_keys = {
        "t1": "id",
        "t2": ["id"],
        "t3": ["id", "day"],
        "t4": "ID",
        "t5": "`id`",
        "t6": ["`Id`", "DAY"],
    }
    yaml_keys = {"t7": ["id"], "t8": ["id", "day"], "t9": "id"}
    names = [*python_keys, *yaml_keys]
    scenario.file(
        "models/keys.yml",
        "models:\n"
        + "".join(
            f"  - name: {name}\n    config: {{unique_key: {key}}}\n" for name, key in yaml_keys.items()
        ),
    )

    def write(sql: str) -> None:
        for name in names:
            scenario.model(sql, name=name, unique_key=python_keys.get(name))

    write("select 1 as id, 1 as day")
    scenario.run()
    write("select 1 as id, 1 as day, 2 as n")
    scenario.run()
    assert {name: scenario.rows(name) for name in names} == {name: [(1, 1, 2)] for name in names}
    assert {name: scenario.schemas(name) for name in names} == dict.fromkeys(names, 2)
    assert {name: scenario.columns(name) for name in names} == {name: ["id", "day", "n"] for name in names}
    assert_settled(scenario, *names)


def test_key_that_is_not_unique_replaces_all_its_rows(scenario: Scenario) -> None:
    scenario.model(
        "select date'2024-01-01' as day, 1 as seq union all select date'2024-01-01', 2", unique_key="day"
    )
    scenario.run()
    scenario.model(
        "select date'2024-01-01' as day, 5 as seq union all select date'2024-01-01', 6 "
        "union all select date'2024-01-01', 7",
        unique_key="day",
    )
    scenario.run()
    assert scenario.rows() == [(MONDAY, 5), (MONDAY, 6), (MONDAY, 7)]
    assert scenario.schemas() == 1
    assert_settled(scenario)


def test_key_column_removed_from_the_model(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'c' as code, 1 as v")
    scenario.run()
    before = scenario.state()
    scenario.model("select 'c' as code, 2 as v, 3 as n")
    run = scenario.fail()
    assert "The unique_key `id` is not produced by the model, which returns `code`, `v`, `n`." in run.message
    assert "Return it from the model, or change the `unique_key`." in run.message
    assert scenario.state() == before
    assert scenario.tables() == ["t"]


def test_key_column_is_new(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 1 as v")
    scenario.run()
    ids = scenario.field_ids()
    scenario.model("select 1 as id, 2 as v, 'web' as src", unique_key=["id", "src"])
    run = scenario.run()
    assert scenario.rows() == [(1, 1, None), (1, 2, "web")]
    assert scenario.field_ids() == {**ids, "src": 3}
    assert scenario.schemas() == 2
    warning = f"{scenario.relation()}: the unique_key column `src` is new. It is NULL in all older rows"
    assert warning in run.log
    assert_settled(scenario)


def test_key_column_is_new_and_ignored(scenario: Scenario) -> None:
    """Without leave to add columns the key would be no column of the table: refused, nothing written."""
    scenario.model("select 1 as id, 1 as v", on_schema_change="ignore")
    scenario.run()
    before = scenario.state()
    scenario.model(
        "select 1 as id, 2 as v, 'web' as src", unique_key=["id", "src"], on_schema_change="ignore"
    )
    run = scenario.fail()
    assert "The unique_key `src` is not a column of the table." in run.message
    assert "Set `on_schema_change: append_new_columns_preserve` to add it" in run.message
    assert scenario.state() == before
    assert scenario.tables() == ["t"]


@pytest.mark.core
def test_no_unique_key_appends_and_pads(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'kept' as note", unique_key=None)
    scenario.run()
    scenario.model("select 1 as id, 2 as n", unique_key=None)
    run = scenario.run()
    assert scenario.rows() == [(1, None, 2), (1, "kept", None)]
    assert "delete from" not in run.log.lower()
    operations = [s.summary.operation.value for s in scenario.table().metadata.snapshots if s.summary]
    assert operations == ["append", "append"]
    assert scenario.schemas() == 2


def test_delete_insert_without_a_key_appends(scenario: Scenario) -> None:
    """The strategy delete+insert without a key appends: there is no DELETE without a WHERE."""
    scenario.model("select 1 as id", unique_key=None, incremental_strategy="delete+insert")
    scenario.run()
    scenario.model("select 1 as id, 2 as n", unique_key=None, incremental_strategy="delete+insert")
    run = scenario.run()
    assert scenario.rows() == [(1, None), (1, 2)]
    assert "delete from" not in run.log.lower()


def test_first_run_does_not_deduplicate(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 1 as v union all select 1, 2")
    scenario.run()
    assert scenario.rows() == [(1, 1), (1, 2)]
    scenario.model("select 1 as id, 3 as v")
    scenario.run()
    assert scenario.rows() == [(1, 3)]
    assert scenario.schemas() == 1
    assert_settled(scenario)


def test_quoted_and_non_ascii_key(scenario: Scenario) -> None:
    keys = {"t": ["客户 id", "select"], "ticks": ["`客户 id`", "`select`"], "odd": "`a``b.c`"}

    def write(v: int) -> None:
        for name in ("t", "ticks"):
            scenario.model(
                f"select 1 as `客户 id`, 1 as `select`, {v} as v", name=name, unique_key=keys[name]
            )
        scenario.model(f"select 1 as `a``b.c`, 1 as `select`, {v} as v", name="odd", unique_key=keys["odd"])

    write(1)
    scenario.run()
    write(2)
    scenario.run()
    assert {name: scenario.rows(name) for name in keys} == {name: [(1, 1, 2)] for name in keys}
    assert scenario.columns() == ["客户 id", "select", "v"]
    assert scenario.columns("odd") == ["a`b.c", "select", "v"]
    assert_settled(scenario, *keys)
