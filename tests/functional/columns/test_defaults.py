"""Defaults of columns, as metadata of a table of format version 3: set, changed, removed and read back."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
import yaml
from pyiceberg.types import NestedField

from tests.functional.duckdb_reader import duckdb_rows
from tests.functional.harness import Run, Scenario

V3 = {"format-version": "3"}
AN_ID = "123e4567-e89b-12d3-a456-426614174000"
UTC = dt.timezone.utc
# Six kinds of literals, some as YAML itself has them: what is written, the type, and the value of older rows.
LITERALS: list[tuple[str, object, str, Any]] = [
    ("text", "'it''s \\u00e9\\\\'", "string", "it's é\\"),
    ("empty", "''", "string", ""),
    ("json", "JSON '{\"a\": [1]}'", "string", '{"a": [1]}'),
    ("id_text", f"UUID '{AN_ID}'", "string", AN_ID),
    ("i", "-300", "int", -300),
    ("zero", 0, "int", 0),
    ("big", "9223372036854775807", "bigint", 2**63 - 1),
    ("price", 1.5, "decimal(9,2)", Decimal("1.50")),
    ("f", "0.5", "float", 0.5),
    ("g", "0.1", "double", 0.1),
    ("yes", True, "boolean", True),
    ("no", "FALSE", "boolean", False),
    ("day", dt.date(2024, 1, 1), "date", dt.date(2024, 1, 1)),
    ("quoted_day", "DATE '0001-01-01'", "date", dt.date(1, 1, 1)),
    ("local", "TIMESTAMP '2024-01-31 12:00:05'", "timestamp_ntz", dt.datetime(2024, 1, 31, 12, 0, 5)),
    ("yaml_local", dt.datetime(2024, 1, 31, 12), "timestamp_ntz", dt.datetime(2024, 1, 31, 12)),
    ("moment", "'2024-01-31 12:00:00+01:00'", "timestamp_ltz", dt.datetime(2024, 1, 31, 11, tzinfo=UTC)),
]
# The kinds of expressions that are skipped, on a column of a type that their value would have.
EXPRESSIONS: list[tuple[str, str]] = [
    ("now()", "timestamp_ltz"),
    ("current_timestamp", "timestamp_ltz"),
    ("current_date()", "date"),
    ("random()", "double"),
    ("uuid()", "string"),
    ("nextval('orders_seq')", "bigint"),
    ("NEXT VALUE FOR orders_seq", "bigint"),
    ("CAST('5' AS int)", "int"),
    ("'2024-01-01'::date", "date"),
    ("CAST(now() AS date)", "date"),
    ("INTERVAL '1' DAY", "string"),
    ("ARRAY(1, 2)", "array<int>"),
    ("['a', 'b']", "array<string>"),
    ("1e6", "double"),
    ("(SELECT max(id) FROM orders)", "int"),
    ("current_user", "string"),
    ("'a' || 'b'", "string"),
    ("1 + 1", "int"),
]


def describe(scenario: Scenario, *names: str, **defaults: object) -> None:
    columns = [{"name": name, "default": default} for name, default in defaults.items()]
    models = [{"name": name, "columns": columns} for name in names or ("t",)]
    scenario.file("models/schema.yml", yaml.safe_dump({"version": 2, "models": models}))


def field(scenario: Scenario, name: str, table: str = "t") -> NestedField:
    return scenario.table(table).schema().find_field(name)


def defaults(scenario: Scenario, name: str, table: str = "t") -> tuple[Any, Any]:
    """What older rows have in a column, and what later writers write."""
    found = field(scenario, name, table)
    return found.initial_default, found.write_default


def said(run: Run, words: str) -> list[str]:
    """The lines of a run's log that have these words, without the name of the table."""
    return [
        line.partition(".`t`: ")[2] for line in run.log.splitlines() if words in line and ".`t`: " in line
    ]


@pytest.fixture
def in_session(method: str) -> None:
    if method != "session":
        pytest.skip("over Thrift only a REST catalog stores defaults")


@pytest.mark.core
def test_literals_are_read_by_older_rows_and_expressions_are_skipped(
    scenario: Scenario, in_session: None
) -> None:
    nulls = ", ".join(f"cast(null as {type_}) as `{name}`" for name, _, type_, _ in LITERALS)
    skipped = ", ".join(f"cast(null as {type_}) as `x{n}`" for n, (_, type_) in enumerate(EXPRESSIONS))
    scenario.model("select 1 as id", tblproperties=V3)
    scenario.run()
    describe(
        scenario,
        **{name: literal for name, literal, _, _ in LITERALS},
        **{f"x{n}": text for n, (text, _) in enumerate(EXPRESSIONS)},
    )
    scenario.model(f"select 2 as id, {nulls}, {skipped}", tblproperties=V3)
    before = scenario.table().metadata
    run = scenario.run()
    for n, (text, _) in enumerate(EXPRESSIONS):
        assert len(said(run, f"The default {text} of `x{n}` is skipped: ")) == 1, text
        assert defaults(scenario, f"x{n}") == (None, None)
    assert len(said(run, "skipped")) == len(EXPRESSIONS) == 18
    assert len(scenario.table().metadata.schemas) == len(before.schemas) + 1
    for name, _, _, value in LITERALS:
        assert defaults(scenario, name) == (value, value), name
    # No file is rewritten for it, and a NULL of the model is one.
    values = tuple(value for *_, value in LITERALS)
    columns = ", ".join(name for name, *_ in LITERALS)
    nothing = (None,) * len(LITERALS)
    assert [row[: len(values) + 1] for row in scenario.rows()] == [(1, *values), (2, *nothing)]
    # The same run again changes nothing of the schema.
    schemas = scenario.table().metadata.schemas
    scenario.run()
    assert scenario.table().metadata.schemas == schemas
    scenario.sql(f"refresh table {scenario.relation()}")
    scenario.sql(f"insert into {scenario.relation()} (id) values (3)")
    spark = [(1, *values), (2, *nothing), (3, *values)]
    naive = [tuple(v.replace(tzinfo=None) if isinstance(v, dt.datetime) else v for v in row) for row in spark]
    assert scenario.sql(f"select id, {columns} from {scenario.relation()} order by id") == naive
    assert [row[: len(values) + 1] for row in scenario.rows()] == spark
    assert duckdb_rows(scenario.table(), f"id, {columns}", "id") == spark


def test_a_default_is_set_changed_and_removed(scenario: Scenario, in_session: None) -> None:
    sql = "select 1 as id, 'x' as a, 5 as n, cast(null as string) as made, 'f' as foreign"
    describe(scenario, made="'first'")
    scenario.model(sql, tblproperties=V3)
    run = scenario.run()
    assert said(run, "default") == ["set default of `made` to 'first'"]
    assert defaults(scenario, "made") == (None, "first")
    # Both places at once: the column's goes first. Several changes are one commit.
    describe(scenario, made="'second'", a="'x'")
    scenario.model(f"{sql}, 1 as b", tblproperties=V3, column_defaults={"A": "'y'", "n": "7", "b": 3})
    run = scenario.run()
    assert said(run, "default") == [
        "set default of `a` to 'x'",
        "set default of `n` to 7",
        "change default of `made` from 'first' to 'second'",
        "add column `b` int default 3",
        "`A` has two defaults: 'x' in `default` of the column, which is taken, and 'y' in `column_defaults`.",
    ]
    assert scenario.schemas() == 3
    # One becomes unsupported, one goes, one changes its column's name, another its type.
    describe(scenario, b="4")
    scenario.model(
        "select 2 as id, 'x' as c, 5L as n, 'new' as made, 'f' as foreign, 1 as b",
        tblproperties=V3,
        column_defaults={"c": "'z'", "n": "now()"},
        column_renames={"a": "c"},
    )
    run = scenario.run("--vars", "{sparkevolve_plan_only: true}")
    assert "change default of `a` from 'x' to 'z'" in run.log
    assert scenario.schemas() == 3
    run = scenario.run()
    assert said(run, "default") == [
        "change default of `a` from 'x' to 'z'",
        "remove default 7 of `n`",
        "remove default 'second' of `made`",
        "change default of `b` from 3 to 4",
        "The default now() of `n` is skipped: it is a function or an expression. A default is a text in "
        "single "
        "quotes, a number, true, false, or DATE, TIME, TIMESTAMP, JSON or UUID before a text in single "
        "quotes.",
    ]
    assert {name: defaults(scenario, name) for name in ("c", "n", "made", "b")} == {
        "c": (None, "z"),
        "n": (None, None),
        "made": (None, None),
        # What older rows read was fixed when the column was added.
        "b": (3, 4),
    }
    assert scenario.schemas() == 4
    assert scenario.types()["n"] == "long"
    assert '"default_removed": ["`n`", "`made`"]' in scenario.table().properties["sparkevolve.schema.3"]
    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}").log
    for text in (
        "removed default of `made` (4)",
        "set default of `b` (6) to 4",
        "added `b` (6) int default 3",
    ):
        assert text in history
    # What the model never had a default for is left alone, also under `ignore`, which does set defaults.
    scenario.sql(f"refresh table {scenario.relation()}")
    describe(scenario, made="'third'")
    scenario.model("select 3 as id, 'q' as left_out", tblproperties=V3, on_schema_change="ignore")
    run = scenario.run()
    assert said(run, "default") == [
        "remove default 'z' of `c`",
        "set default of `made` to 'third'",
        "remove default 4 of `b`",
    ]
    describe(scenario)
    every = "select 3 as id, 'x' as c, 5L as n, 'new' as made, 'f' as foreign, 1 as b"
    scenario.model(every, tblproperties=V3, on_schema_change="fail")
    run = scenario.run()
    assert defaults(scenario, "made") == (None, "third")
    assert said(run, "default") == [
        "The table's default of `made` is not what the model says, and stays, since on_schema_change is "
        "'fail'."
    ]


STRATEGIES: list[dict[str, Any]] = [
    {"incremental_strategy": "append", "unique_key": None},
    {},
    {"removed_columns": "keep"},
    {"incremental_strategy": "merge"},
    {"incremental_strategy": "insert_overwrite", "unique_key": None, "partition_by": "p"},
]


@pytest.mark.parametrize("version", ["2", "3"])
def test_padding_writes_the_default_in_every_strategy(scenario: Scenario, method: str, version: str) -> None:
    names = [f"m{n}" for n in range(len(STRATEGIES))]
    properties = {"format-version": version}
    sql = "select id, 'p' as p, {} as s from values {} as v(id)"
    first = sql.format("'old' as gone, named_struct('a', id, 'b', 'old')", "(1), (2)")
    then = sql.format("named_struct('a', id)", "(2), (3)")
    describe(scenario, *names, gone="'pending'", no="now()")
    for sql in (first, then):
        for name, strategy in zip(names, STRATEGIES, strict=True):
            scenario.model(sql, name, tblproperties=properties, pad_with="default", **strategy)
        run = scenario.run()
    kept, new = (2, "p", "old", {"a": 2, "b": "old"}), (3, "p", "pending", {"a": 3, "b": None})
    one, two = (1, "p", "old", {"a": 1, "b": "old"}), (2, "p", "pending", {"a": 2, "b": None})
    assert {name: scenario.rows(name) for name in names} == {
        "m0": [one, kept, two, new],
        "m1": [one, two, new],
        "m2": [one, kept, new],
        "m3": [one, kept, new],
        "m4": [two, new],
    }
    assert "column `gone` is not in the model, padded with 'pending'" in run.log
    assert (
        "column `gone` is not in the model, rows that are replaced keep its value, new ones get 'pending'"
        in run.log
    )
    stored = version == "3" and method == "session"
    assert defaults(scenario, "gone", "m0") == (None, "pending" if stored else None)
    why = {"2": "version 2, and defaults come with version 3", "3": "over a Thrift server"}[version]
    warnings = [line for line in run.log.splitlines() if "The default of `gone` is not stored" in line]
    assert len([line for line in warnings if why in line]) == (0 if stored else len(names))
