"""The arguments of run-operations, and the node that one is about."""

from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from dbt.adapters.sparkevolve.errors import OperationError, SettingsConflictError, VariableError
from dbt.adapters.sparkevolve.operations import OPERATIONS as OPERATIONS_KNOWN
from dbt.adapters.sparkevolve.operations import Operations


def node(name: str, package: str = "shop", kind: str = "model", **other: Any) -> dict[str, Any]:
    version = other.get("version")
    suffix = "" if version is None else f".v{version}"
    return {
        "unique_id": f"{kind}.{package}.{name}{suffix}",
        "name": name,
        "package_name": package,
        "resource_type": kind,
        "database": "lake",
        "schema": "sales",
        "alias": name if version is None else f"{name}_v{version}",
        "version": None,
        "latest_version": None,
        "config": {"materialized": "incremental"},
        "columns": {},
        **other,
    }


def graph(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"nodes": {node["unique_id"]: node for node in nodes}}


PROJECT = graph(
    node("orders"),
    node("customers", kind="snapshot"),
    node("countries", kind="seed"),
    node("items"),
    node("items", package="other"),
    node("prices", version=1, latest_version=2),
    node("prices", version=2, latest_version=2),
    node("prices", version=3, latest_version=2),
    node("recent", config={"materialized": "view"}),
    node("inner", config={"materialized": "ephemeral"}),
    node("is_there", kind="test"),
)
OPERATIONS = Operations("lake", {})
SQL = (
    "an SQL expression over the columns of a row, as text: what is no text in YAML goes in quotes, as in "
    "\"date '2024-01-15'\""
)
MESSAGE_IDS = (
    "a messageId as the dead letters have it, as text or as a mapping, or a list of them; what YAML writes "
    "otherwise than its text has it, as that text: '{\"price\":1.0E20}'"
)


@pytest.mark.parametrize(
    ("name", "unique_id"),
    [
        ("orders", "model.shop.orders"),
        ("shop.orders", "model.shop.orders"),
        ("model.shop.orders", "model.shop.orders"),
        ("customers", "snapshot.shop.customers"),
        ("countries", "seed.shop.countries"),
        ("other.items", "model.other.items"),
        ("prices", "model.shop.prices.v2"),
        ("prices.v1", "model.shop.prices.v1"),
        ("shop.prices.v3", "model.shop.prices.v3"),
        ("model.shop.prices.v3", "model.shop.prices.v3"),
    ],
)
def test_a_node_is_found_by_each_of_its_names(name: str, unique_id: str) -> None:
    assert OPERATIONS.node_named(PROJECT, name).unique_id == unique_id


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "order",
            "There is no model, snapshot or seed named 'order' in this project. Did you mean `orders`?",
        ),
        (
            "Orders",
            "There is no model, snapshot or seed named 'Orders' in this project. Did you mean `orders`?",
        ),
        ("nothing", "There is no model, snapshot or seed named 'nothing' in this project."),
        ("is_there", "There is no model, snapshot or seed named 'is_there' in this project."),
        ("prices.v7", None),
        (
            "items",
            "Several nodes of this project are named 'items'. Say which one is meant: `other.items`, "
            "`shop.items`.",
        ),
        (
            "recent",
            "model.shop.recent is a view, and views have no rows or history of their own. Name a node that "
            "is built as a table.",
        ),
        (
            "inner",
            "model.shop.inner is ephemeral, so it has no table. Name a node that is built as a table.",
        ),
    ],
)
def test_what_is_no_table_of_the_project_is_refused(name: str, message: str | None) -> None:
    with pytest.raises(OperationError) as error:
        OPERATIONS.node_named(PROJECT, name)
    if message is None:
        assert str(error.value.msg).startswith("There is no model, snapshot or seed named 'prices.v7'")
    else:
        assert error.value.msg == message


def test_a_disabled_node_is_named() -> None:
    old = SimpleNamespace(**node("old", kind="snapshot"))
    operations = Operations("lake", {"snapshot.shop.old": [old]})
    for name in ("old", "shop.old", "snapshot.shop.old"):
        with pytest.raises(OperationError, match=r"snapshot.shop.old is disabled \(`enabled: false`\)"):
            operations.node_named(PROJECT, name)


def test_the_table_of_a_node_is_in_the_catalog_of_the_profile() -> None:
    project = graph(node("orders", database=None, alias="o"), node("far", database="elsewhere"))
    assert str(OPERATIONS.node_named(project, "orders").relation) == "`lake`.`sales`.`o`"
    assert str(OPERATIONS.node_named(project, "far").relation) == "`elsewhere`.`sales`.`far`"


def test_the_settings_of_a_node_are_checked_when_they_are_asked_for() -> None:
    config = {
        "materialized": "incremental",
        "unique_key": "id",
        "commit_retries": 7,
        "publish": "direct",
        "partition_by": ["day"],
    }
    found = OPERATIONS.node_named(graph(node("orders", config=config)), "orders")
    assert (found.settings.commit_retries, found.settings.publish) == (7, "direct")
    assert (found.settings.unique_key, found.settings.partition_by) == (("id",), ("day",))
    batches = {"incremental_strategy": "microbatch", "event_time": "at"}
    assert OPERATIONS.node_named(graph(node("b", config=batches)), "b").settings.event_time == "at"
    columns = {
        "status": {"name": "status", "meta": {}, "default": "'new'"},
        "state": {"name": "state", "meta": {"default": 7}},
        "note": {"name": "note"},
    }
    of_columns = node("c", config={"column_defaults": {"note": None}}) | {"columns": columns}
    settings = OPERATIONS.node_named(graph(of_columns), "c", "true").settings
    assert settings.defaults == {"status": "'new'", "state": 7, "note": None}
    assert settings.frozen_for == "model.shop.c"
    with pytest.raises(VariableError, match="sparkevolve_freeze_schema"):
        _ = OPERATIONS.node_named(graph(of_columns), "c", "perhaps").settings
    dropping = {"on_schema_change": "sync_all_columns"}
    found = OPERATIONS.node_named(graph(node("wrong", config=dropping)), "wrong")
    assert str(found.relation) == "`lake`.`sales`.`wrong`"
    with pytest.raises(SettingsConflictError, match="never drops"):
        _ = found.settings


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Name a model, snapshot or seed: --args '{model: orders}'."),
        ({"model": None}, "Name a model, snapshot or seed: --args '{model: orders}'."),
        (
            {"models": "orders", "model": None},
            "`schema_history` has no argument `models`. Did you mean `model`? Its arguments are: model.",
        ),
        (
            {"model": "orders", "since": 1},
            "`schema_history` has no argument `since`. Its arguments are: model.",
        ),
        (
            {"model": ["a"]},
            "The argument `model` of `schema_history` is ['a'], and has to be the name of a model, snapshot "
            "or seed.",
        ),
        (
            {"model": True},
            "The argument `model` of `schema_history` is True, and has to be the name of a model, snapshot "
            "or seed.",
        ),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OperationError) as error:
        OPERATIONS.arguments("schema_history", given)
    assert error.value.msg == message


def test_arguments_are_read() -> None:
    assert OPERATIONS.arguments("schema_history", {"model": "orders"}) == {"model": "orders"}
    assert OPERATIONS.arguments("schema_history", {"model": 2020}) == {"model": "2020"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("[{id: WX006, day: 2024-01-15}]", '{"id":"WX006","day":"2024-01-15"}'),
        ("{at: 2024-01-15 12:00:00}", '{"at":"2024-01-15 12:00:00"}'),
        ("{at: 2024-01-15T12:00:00.120Z}", '{"at":"2024-01-15 12:00:00.12Z"}'),
        ("{at: 2024-01-15T12:00:00+02:00}", '{"at":"2024-01-15 10:00:00Z"}'),
        (
            "{s: {2024-01-15: é, n: null}, l: [true, 1.25, 17]}",
            '{"s":{"2024-01-15":"é","n":null},"l":[true,1.25,17]}',
        ),
        ("{price: 9999999.5, least: 0.001, none: 0.0}", '{"price":9999999.5,"least":0.001,"none":0.0}'),
        ("""'{"price":1.0E20}'""", '{"price":1.0E20}'),
    ],
)
def test_keys_are_what_the_json_of_dead_letters_has(given: str, expected: str) -> None:
    arguments = yaml.safe_load(f"{{model: orders, message_ids: {given}}}")
    assert OPERATIONS.arguments("replay_dead_letters", arguments)["message_ids"] == (expected,)


@pytest.mark.parametrize(
    ("operation", "argument", "given", "shown", "wanted"),
    [
        ("replay_dead_letters", "message_ids", "[{price: 1.0e+20}]", "[{'price': 1e+20}]", MESSAGE_IDS),
        ("replay_dead_letters", "message_ids", "{price: .nan}", "{'price': nan}", MESSAGE_IDS),
        ("replay_dead_letters", "message_ids", "{l: [!!binary YQ==]}", "{'l': [b'a']}", MESSAGE_IDS),
        ("replay_dead_letters", "message_ids", "{on: 1}", "{True: 1}", MESSAGE_IDS),
        ("replay_dead_letters", "message_ids", "2024-01-15", "2024-01-15", MESSAGE_IDS),
        ("backfill_column", "value", "2024-01-15", "2024-01-15", SQL),
        ("backfill_column", "where", "2024-01-15 12:00:00", "2024-01-15 12:00:00", SQL),
        ("restore_column", "column", "2024-01-15", "2024-01-15", "the name of a column"),
    ],
)
def test_what_yaml_makes_of_a_value_is_said(
    operation: str, argument: str, given: str, shown: str, wanted: str
) -> None:
    asked = {"model": "orders", "column": "c", "value": "1"}
    known = {a.name for a in OPERATIONS_KNOWN[operation]}
    arguments = {name: value for name, value in asked.items() if name in known}
    with pytest.raises(OperationError) as error:
        OPERATIONS.arguments(operation, arguments | yaml.safe_load(f"{{{argument}: {given}}}"))
    assert error.value.msg == (
        f"The argument `{argument}` of `{operation}` is {shown}, and has to be {wanted}."
    )


def test_a_variable_makes_a_plan_of_whatever_can_be_one() -> None:
    operations = Operations("lake", {})
    asked = {"model": "m", "column": "c"}
    for operation, given in (
        ("restore_column", asked),
        ("backfill_column", {**asked, "value": "1"}),
        ("replay_dead_letters", {"model": "m"}),
    ):
        assert operations.arguments(operation, given)["plan_only"] is False
        assert operations.arguments(operation, given, True)["plan_only"] is True
    assert operations.arguments("schema_history", {"model": "m"}, True) == {"model": "m"}


@pytest.mark.parametrize(
    ("text", "means"),
    [("false", False), ("no", False), ("off", False), (0, False), (1, True), (" True ", True)],
)
def test_a_text_for_a_switch_is_read_as_what_it_says(text: object, means: bool) -> None:
    given = {"model": "m", "column": "c", "plan_only": text}
    assert Operations("lake", {}).arguments("restore_column", given)["plan_only"] is means


def test_a_text_is_read_as_the_number_that_it_says() -> None:
    given = {"rows_per_batch": "1000", "pause_seconds": "0.5", "max_batches": " 2 "}
    found = Operations("lake", {}).arguments(
        "backfill_column", {"model": "m", "column": "c", "value": 1, **given}
    )
    assert [found[name] for name in given] == [1000, 0.5, 2]


@pytest.mark.parametrize("text", ["flase_", 2, "", "null"])
def test_another_text_for_a_switch_is_refused(text: object) -> None:
    with pytest.raises(OperationError) as raised:
        Operations("lake", {}).arguments("restore_column", {"model": "m", "column": "c", "plan_only": text})
    assert raised.value.msg == (
        f"The argument `plan_only` of `restore_column` is {text!r}, and has to be true or false."
    )


def test_without_names_a_page_is_of_all_whose_tables_evolve() -> None:
    ids = [found.unique_id for found in OPERATIONS.nodes_named(PROJECT, ())]
    assert ids == [
        "model.other.items",
        "model.shop.items",
        "model.shop.orders",
        "model.shop.prices.v1",
        "model.shop.prices.v2",
        "model.shop.prices.v3",
        "snapshot.shop.customers",
    ]
    named = OPERATIONS.nodes_named(PROJECT, ("countries", "orders", "countries"))
    assert [found.unique_id for found in named] == ["seed.shop.countries", "model.shop.orders"]
    assert OPERATIONS.arguments("schema_page", {}) == {"models": (), "path": ""}
    assert OPERATIONS.arguments("schema_page", {"models": "orders"})["models"] == ("orders",)
    with pytest.raises(OperationError) as error:
        OPERATIONS.arguments("schema_page", {"models": []})
    assert error.value.msg == (
        "The argument `models` of `schema_page` is [], and has to be the name of a model, snapshot or seed, "
        "or a list of names."
    )
