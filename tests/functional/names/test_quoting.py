"""Names that need quotes, and what may stand in them."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from dbt.cli.main import dbtRunner
from dbt_common.events.base_types import EventMsg

from tests.functional.harness import Run, Scenario

DOCS: dict[str, Any] = {"persist_docs": {"relation": True, "columns": True}}


def assert_settled(scenario: Scenario) -> None:
    """Another run of the same model changes neither rows nor columns and commits no schema."""
    before = (scenario.rows(), scenario.field_ids(), scenario.schemas())
    scenario.run()
    assert (scenario.rows(), scenario.field_ids(), scenario.schemas()) == before
    assert scenario.tables() == ["t"]


def describe(scenario: Scenario, description: str, columns: list[dict[str, Any]]) -> None:
    """Write the properties file of the model ``t``."""
    properties = {"models": [{"name": "t", "description": description, "columns": columns}]}
    scenario.file("models/t.yml", yaml.safe_dump(properties, allow_unicode=True))


def statements_of_a_run(scenario: Scenario) -> list[str]:
    """Run the project and return the SQL that it sent, without the comment that dbt puts before it."""
    sent: list[str] = []

    def keep(event: EventMsg) -> None:
        if event.info.name == "SQLQuery":
            sent.append(re.sub(r"/\*.*?\*/", "", event.data.sql, flags=re.DOTALL).strip())

    folder = ("--project-dir", str(scenario.folder), "--profiles-dir", str(scenario.folder))
    result = dbtRunner(callbacks=[keep]).invoke(["run", *folder])
    assert result.success, result.exception or result.result
    return sent


# By model: what it returns at first, what with new columns, and what when they are gone again; what its table
# then has, by column, and its rows after each of the last two.
NEW_NAMES: dict[str, tuple[str, str, str, dict[str, str], list[Any], list[Any]]] = {
    "hyphen": (
        "select 1 as id",
        "select 2 as id, 3 as `net-price`",
        "select 2 as id",
        {"id": "int", "net-price": "int"},
        [(1, None), (2, 3)],
        [(1, None), (2, None)],
    ),
    "reserved_words": (
        "select 1 as id, 1 as `order`",
        "select 1 as id, 2 as `order`, 3 as `default`, 4 as `select`, 5 as `null`, 6 as `table`",
        "select 1 as id, 8 as `default`",
        dict.fromkeys(["id", "order", "default", "select", "null", "table"], "int"),
        [(1, 2, 3, 4, 5, 6)],
        [(1, None, 8, None, None, None)],
    ),
    "spaces_percent_and_parentheses": (
        "select 1 as id, 5 as `unit price`",
        "select 1 as id, 6 as `unit price`, 7 as `unit price `, 8 as `rate (%)`, 9 as `a,b;c`",
        "select 1 as id, 17 as `unit price `",
        dict.fromkeys(["id", "unit price", "unit price ", "rate (%)", "a,b;c"], "int"),
        [(1, 6, 7, 8, 9)],
        [(1, None, 17, None, None)],
    ),
    "dot": (
        "select 1 as id",
        "select 2 as id, 3 as `geo.lat`",
        "select 2 as id",
        {"id": "int", "geo.lat": "int"},
        [(1, None), (2, 3)],
        [(1, None), (2, None)],
    ),
    "backtick": (
        "select 1 as id",
        "select 1 as id, 2 as `we``ird`",
        "select 1 as id",
        {"id": "int", "we`ird": "int"},
        [(1, 2)],
        [(1, None)],
    ),
    "partition": (
        "select 1 as id",
        "select 1 as id, 'p' as `partition`",
        "select 1 as id",
        {"id": "int", "partition": "string"},
        [(1, "p")],
        [(1, None)],
    ),
}


@pytest.mark.core
def test_names_that_need_quotes_are_added_and_padded(scenario: Scenario) -> None:
    docs = {"name": "backtick", "columns": [{"name": "we`ird", "description": "a ` in it"}]}
    scenario.file("models/docs.yml", yaml.safe_dump({"models": [docs]}))

    def run(step: int) -> Run:
        for name, queries in NEW_NAMES.items():
            scenario.model(queries[step], name, **DOCS)
        return scenario.run()

    def state() -> dict[str, Any]:
        return {n: (scenario.rows(n), scenario.field_ids(n), scenario.schemas(n)) for n in NEW_NAMES}

    run(0)
    log = run(1).log
    settled = state()
    for name, (*_, types, rows, _) in NEW_NAMES.items():
        assert scenario.types(name) == types
        ids = {column: number for number, column in enumerate(types, 1)}
        assert (name, settled[name]) == (name, (rows, ids, 2))
    assert f"{scenario.relation('backtick')}: add column `we``ird` int" in log
    assert scenario.docs("backtick") == {"id": None, "we`ird": "a ` in it"}
    # Another run of the same models changes neither rows nor columns and commits no schema.
    run(1)
    assert state() == settled
    run(2)
    for name, (*_, types, _, rows) in NEW_NAMES.items():
        ids = {column: number for number, column in enumerate(types, 1)}
        assert (name, state()[name]) == (name, (rows, ids, 2))
    assert scenario.sql(f"select `geo.lat` from {scenario.relation('dot')} where id = 2") == [(None,)]
    assert scenario.tables() == sorted(NEW_NAMES)


def test_slash_in_a_name_that_is_key_and_documented(scenario: Scenario) -> None:
    keys: dict[str, Any] = {"listed": ["/src/id"], "text": "/src/id", "quoted": ["`/src/id`"]}
    for name, key in keys.items():
        scenario.model("select 1 as `/src/id`", name, unique_key=key)
    scenario.run()
    text = "it's the `id`"
    columns = [{"name": "/src/id", "description": text}, {"name": "/src/val", "description": '100 % \\ "v"'}]
    models = [{"name": name, "description": f"where {text} is", "columns": columns} for name in keys]
    scenario.file("models/docs.yml", yaml.safe_dump({"models": models}))
    for name, key in keys.items():
        scenario.model("select 1 as `/src/id`, 2 as `/src/val`", name, unique_key=key, **DOCS)
    for _ in ("new", "settled"):
        scenario.run()
        for name in keys:
            assert scenario.field_ids(name) == {"/src/id": 1, "/src/val": 2}
            assert scenario.rows(name) == [(1, 2)]
            assert scenario.docs(name) == {"/src/id": text, "/src/val": '100 % \\ "v"'}
            assert scenario.table(name).properties["comment"] == f"where {text} is"
            # The new column and the changed description are one commit.
            assert scenario.schemas(name) == 2
        assert scenario.tables() == sorted(keys)


def test_a_description_is_stored_by_the_run_that_makes_the_table(scenario: Scenario) -> None:
    describe(scenario, "a \\ and 'b'", [{"name": "/src/id", "description": "it's the `id`"}])
    scenario.model("select 1 as `/src/id`", unique_key="/src/id", **DOCS)
    scenario.run()
    assert scenario.docs() == {"/src/id": "it's the `id`"}
    assert scenario.table().properties["comment"] == "a \\ and 'b'"
    assert_settled(scenario)


def test_a_dotted_name_is_described_and_is_no_path_into_a_struct(scenario: Scenario) -> None:
    describe(scenario, "", [{"name": "geo.lat", "description": "north"}])
    scenario.model("select 1 as id, named_struct('lon', 7) as geo", **DOCS)
    scenario.run()
    scenario.model("select 1 as id, named_struct('lon', 7) as geo, 3 as `geo.lat`", **DOCS)
    scenario.run()
    assert scenario.types() == {"id": "int", "geo": "struct<3: lon: optional int>", "geo.lat": "int"}
    assert scenario.rows() == [(1, {"lon": 7}, 3)]
    assert scenario.docs() == {"id": None, "geo": None, "geo.lat": "north"}
    describe(scenario, "", [{"name": "geo.lat", "description": "degrees north"}])
    scenario.run()
    assert scenario.docs() == {"id": None, "geo": None, "geo.lat": "degrees north"}
    # A name that is the path of a field would be two fields in one.
    state = scenario.state()
    scenario.model("select 1 as id, named_struct('lon', 7) as geo, 4 as `geo.LON`", **DOCS)
    run = scenario.fail()
    assert (
        "The model returns the new column `geo.LON`, but the table has the field `geo`.`lon`, and "
        "Iceberg cannot hold both. Give the column another name in the model." in run.message
    )
    assert scenario.state() == state
    assert scenario.tables() == ["t"]


def test_quote_true(scenario: Scenario) -> None:
    column = {"name": "group", "quote": True, "description": "which group"}
    describe(scenario, "", [column])
    scenario.model("select 1 as id", **DOCS)
    scenario.run()
    scenario.model("select 1 as id, 2 as `group`", **DOCS)
    scenario.run()
    assert scenario.columns() == ["id", "group"]
    assert scenario.rows() == [(1, 2)]
    assert scenario.docs() == {"id": None, "group": "which group"}
    assert scenario.field_ids() == {"id": 1, "group": 2}
    assert scenario.schemas() == 2
    assert_settled(scenario)


@pytest.mark.parametrize("quotes_name", ["false", "true"], ids=["literal", "identifier"])
def test_no_statement_quotes_a_name_with_double_quotes(
    scenario_factory: Callable[..., Scenario], quotes_name: str
) -> None:
    # The setting needs ANSI mode, which dbt-spark's credentials turn off whatever the profile says.
    scenario = scenario_factory(
        server_side_parameters={"spark.sql.ansi.doubleQuotedIdentifiers": quotes_name}
    )
    scenario.write_project(models={"+pre-hook": "set spark.sql.ansi.enabled = true"})
    column = {"name": "city", "quote": True, "description": "where it's at"}
    describe(scenario, "towns", [column])
    plain: dict[str, Any] = {"unique_key": None, "on_schema_change": None}
    scenario.model("select * from {{ ref('t') }}", name="v", materialized="view", **plain)
    # Double quotes in a model's own SQL mean what the setting says, so it is in force.
    own = 'select distinct "city" as c'
    scenario.model(f"{own} from {{{{ ref('t') }}}}", name="w", materialized="table", **plain)
    scenario.model("select 1 as id, 'Rome' as city", **DOCS)
    sent = statements_of_a_run(scenario)
    scenario.model("select 2 as id, 'Bari' as city, 3 as `how many`", **DOCS)
    sent += statements_of_a_run(scenario)
    assert scenario.rows() == [(1, "Rome", None), (2, "Bari", 3)]
    assert scenario.sql(f"select city from {scenario.relation('v')} order by id") == [("Rome",), ("Bari",)]
    assert scenario.rows("w") == ([("Bari",), ("Rome",)] if quotes_name == "true" else [("city",)])
    kinds = {sql.split(maxsplit=1)[0].lower() for sql in sent}
    assert {"create", "delete", "insert", "refresh", "set", "show"} <= kinds
    # In texts, which stand in single quotes, they are only characters.
    assert [sql for sql in sent if '"' in re.sub("'[^']*'", "", sql.replace(own, ""))] == []


@pytest.mark.parametrize("key", ["id", "partition"])
def test_a_table_partitioned_by_a_column_called_partition(scenario: Scenario, key: str) -> None:
    config: dict[str, Any] = {"unique_key": key, "partition_by": "`partition`"}
    scenario.model("select 1 as id, 'p' as `partition` union all select 2, 'q'", **config)
    scenario.run()
    assert [field.name for field in scenario.table().spec().fields] == ["partition"]
    ids = scenario.field_ids()
    scenario.model("select 'q' as `partition`, 7 as n, 3 as id union all select null, 8, 4", **config)
    scenario.run()
    kept = [(1, "p", None)] if key == "partition" else [(1, "p", None), (2, "q", None)]
    assert scenario.rows() == [*kept, (3, "q", 7), (4, None, 8)]
    assert scenario.field_ids() == {**ids, "n": 3}
    assert scenario.schemas() == 2
    assert_settled(scenario)
    if key == "id":
        scenario.model("select 1 as id, 9 as n", **config)
        run = scenario.run()
        assert (
            f"{scenario.relation()}: The table is partitioned by `partition`, which the model no longer "
            "returns: the rows of this run go to the partition NULL."
        ) in run.log
        assert scenario.rows() == [(1, None, 9), (2, "q", None), (3, "q", 7), (4, None, 8)]
        assert scenario.schemas() == 2


HOSTILE = [
    "net-price",
    "order",
    "default",
    "/src/id",
    "unit price",
    "unit price ",
    "rate (%)",
    "a,b;c",
    "geo.lat",
    "we`ird",
    "it's",
    'say "x"',
    "back\\slash",
    "#tag",
    "1st",
    "*",
    "{x}",
    "?",
    "%s",
    ":p",
    "${x}",
    "two\nlines",
    "ключ",
    "🔑",
]


def select(values: dict[str, str]) -> str:
    """Return a SELECT of these literals under these names."""
    items = (f"{value} as `{name.replace('`', '``')}`" for name, value in values.items())
    return f"select {', '.join(items)}"


def test_hostile_names_make_a_composite_key(scenario: Scenario) -> None:
    one = {name: str(n) for n, name in enumerate(HOSTILE)}
    values = tuple(range(len(HOSTILE)))
    scenario.model(
        f"{select({**one, 'v': '1'})} union all {select({**one, '*': '-1', 'v': '1'})}", unique_key=HOSTILE
    )
    scenario.run()
    ids = scenario.field_ids()
    assert list(ids) == [*HOSTILE, "v"]
    scenario.model(select({**one, "v": "2", "new": "3"}), unique_key=[f"`{HOSTILE[0]}`", *HOSTILE[1:]])
    scenario.run()
    other = tuple(-1 if name == "*" else n for n, name in enumerate(HOSTILE))
    assert sorted(scenario.rows()) == sorted([(*values, 2, 3), (*other, 1, None)])
    assert scenario.field_ids() == {**ids, "new": len(HOSTILE) + 2}
    assert scenario.schemas() == 2
    assert_settled(scenario)
    # With a NULL in the key the other form of the DELETE is used.
    scenario.model(select({**one, "we`ird": "cast(null as int)", "v": "4"}), unique_key=HOSTILE)
    scenario.run()
    assert_settled(scenario)
    assert len(scenario.rows()) == 3
    assert scenario.schemas() == 2


def test_hostile_names_are_added_and_padded(scenario: Scenario) -> None:
    scenario.model("select 1 as id")
    scenario.run()
    new = {name: str(n) for n, name in enumerate(HOSTILE)}
    scenario.model(select({"id": "1", **new}))
    scenario.run()
    assert scenario.columns() == ["id", *HOSTILE]
    assert scenario.rows() == [(1, *range(len(HOSTILE)))]
    assert scenario.schemas() == 2
    assert_settled(scenario)
    scenario.model("select 1 as id")
    scenario.run()
    assert scenario.rows() == [(1, *[None] * len(HOSTILE))]
    assert scenario.schemas() == 2


def test_a_hostile_name_is_the_key(scenario: Scenario) -> None:
    models = {"ticks": "we`ird", "dots": "geo.lat", "spaces": "unit price "}
    for name, key in models.items():
        scenario.model(select({key: "1", "v": "1"}), name, unique_key=key)
    scenario.run()
    for name, key in models.items():
        scenario.model(select({"v": "2", key: "1"}), name, unique_key=key)
    scenario.run()
    for name, key in models.items():
        assert scenario.rows(name) == [(1, 2)], key
        assert scenario.columns(name) == [key, "v"]
        assert scenario.schemas(name) == 1
