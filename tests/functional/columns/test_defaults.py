"""Defaults of columns, as metadata of a table of format version 3: set, changed, removed and read back."""

import base64
import datetime as dt
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)
from pyspark.sql import SparkSession

from dbt.adapters.sparkevolve.evolution.defaults import UnsupportedDefault, read_default
from dbt.adapters.sparkevolve.evolution.types import spark_type
from dbt.adapters.sparkevolve.load.local_times import with_instants
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from tests.functional.duckdb_reader import duckdb_rows
from tests.functional.harness import Run, Scenario, SqlRunner
from tests.functional.snapshots.taking import snapshot, take

V3 = {"format-version": "3"}
AN_ID = "123e4567-e89b-12d3-a456-426614174000"
UTC = dt.timezone.utc
NOON = dt.datetime(2024, 7, 1, 12, 0, 5).timestamp()
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
    # In the session's time zone, which is this machine's.
    (
        "here",
        "TIMESTAMP '2024-07-01 12:00:05'",
        "timestamp_ltz",
        dt.datetime(2024, 7, 1, 12, 0, 5).astimezone(UTC),
    ),
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


# All changes of a run are one line.
_NEXT = re.compile("; (?=(?:add|set|change|remove|widen|let|rename|columns?) )")


def said(run: Run, words: str) -> list[str]:
    """What a run's log has with these words, without the name of the table; of a line the parts that do."""
    return [
        part
        for line in run.log.splitlines()
        for part in _NEXT.split(line.partition(".`t`: ")[2])
        if words in part
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
    assert "change default of `c` from 'x' to 'z'" in run.log
    assert scenario.schemas() == 3
    run = scenario.run()
    assert said(run, "default") == [
        "change default of `c` from 'x' to 'z'",
        "remove default 'second' of `made`",
        "change default of `b` from 3 to 4",
        "The default now() of `n` is skipped: it is a function or an expression. A default is a text in "
        "single "
        "quotes, a number, true, false, or DATE, TIME, TIMESTAMP, JSON or UUID before a text in single "
        "quotes. The default that it had, 7, is removed.",
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
        "    `b` (6) int default 4",
        "    `made` (4) string",
    ):
        assert text in history.splitlines() or f"    {text}" in history.splitlines()
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


def test_older_rows_keep_what_they_have_when_a_column_is_widened(
    scenario: Scenario, in_session: None
) -> None:
    """0.1 is another number as a double than as a float, and a default has the digits only."""
    scenario.model("select 1 as id", tblproperties=V3)
    scenario.run()
    narrow = "cast(2 as float) as f, 2 as i, cast(2 as decimal(5, 2)) as d, cast(2 as float) as other"
    given = {"f": 0.1, "i": 7, "d": 1.5, "other": 0.1}
    scenario.model(f"select 2 as id, {narrow}", tblproperties=V3, column_defaults=given)
    scenario.run()
    names = "f, i, d, other"

    def read() -> list[list[tuple[Any, ...]]]:
        scenario.sql(f"refresh table {scenario.relation()}")
        spark = scenario.sql(f"select id, {names} from {scenario.relation()} order by id")
        return [spark, scenario.rows(), duckdb_rows(scenario.table(), f"id, {names}", "id")]

    single = 0.10000000149011612
    old, two = (1, single, 7, Decimal("1.50"), single), (2, 2.0, 2, Decimal("2.00"), 2.0)
    assert read() == [[old, two]] * 3
    wide = "cast(3 as double) as f, 3L as i, cast(3 as decimal(9, 2)) as d, cast(3 as float) as other"
    scenario.model(f"select 3 as id, {wide}", tblproperties=V3, column_defaults=given)
    assert "change default" not in scenario.run().log
    assert scenario.types() == {
        "id": "int",
        "f": "double",
        "i": "long",
        "d": "decimal(9, 2)",
        "other": "float",
    }
    three = (3, 3.0, 3, Decimal("3.00"), 3.0)
    assert read() == [[old, two, three]] * 3
    # From here on, the default is a double.
    scenario.sql(f"insert into {scenario.relation()} (id) values (4)")
    assert read() == [[old, two, three, (4, 0.1, 7, Decimal("1.50"), single)]] * 3


def test_a_default_that_comes_with_a_wider_type_is_stored_whole(scenario: Scenario, in_session: None) -> None:
    scenario.model("select 1 as id", tblproperties=V3)
    scenario.run()
    scenario.model("select 2 as id, 2 as n", tblproperties=V3, column_defaults={"n": 7})
    scenario.run()
    config: dict[str, Any] = {"column_renames": {"n": "big"}, "column_defaults": {"big": 9_000_000_000}}
    scenario.model("select 3 as id, 3L as big", tblproperties=V3, **config)
    scenario.run()
    assert (scenario.types()["big"], defaults(scenario, "big")) == ("long", (7, 9_000_000_000))
    scenario.sql(f"refresh table {scenario.relation()}")
    scenario.sql(f"insert into {scenario.relation()} (id) values (4)")
    rows = [(1, 7), (2, 2), (3, 3), (4, 9_000_000_000)]
    spark = scenario.sql(f"select * from {scenario.relation()} order by id")
    assert spark == scenario.rows() == duckdb_rows(scenario.table()) == rows


STRATEGIES: list[dict[str, Any]] = [
    {"incremental_strategy": "append", "unique_key": None},
    {},
    {"removed_columns": "keep"},
    {"incremental_strategy": "merge"},
    {"incremental_strategy": "insert_overwrite", "unique_key": None, "partition_by": "p"},
    {
        "incremental_strategy": "microbatch",
        "unique_key": None,
        "event_time": "ts",
        "begin": "2024-01-01",
        "batch_size": "day",
    },
]


def test_padding_writes_the_default_in_every_strategy(scenario: Scenario, method: str) -> None:
    names = [f"m{n}" for n in range(len(STRATEGIES))]
    # On both versions: what padding writes is the same.
    properties = [{"format-version": "3" if n % 2 else "2"} for n in range(len(STRATEGIES))]
    sql = "select id, 'p' as p, {} as s, timestamp'2024-01-0{} 05:00:00' as ts from values {} as v(id)"
    first = sql.format("'old' as gone, named_struct('a', id, 'b', 'old')", 1, "(1), (2)")
    then = sql.format("named_struct('a', id)", 2, "(2), (3)")
    describe(scenario, *names, gone="'pending'", no="now()")
    for day, text in enumerate((first, then), start=1):
        for name, strategy, version in zip(names, STRATEGIES, properties, strict=True):
            scenario.model(text, name, tblproperties=version, pad_with="default", **strategy)
        times = (f"2024-01-0{day}", f"2024-01-0{day + 1}")
        run = scenario.run("--event-time-start", times[0], "--event-time-end", times[1])
    kept, new = (2, "p", "old", {"a": 2, "b": "old"}), (3, "p", "pending", {"a": 3, "b": None})
    one, two = (1, "p", "old", {"a": 1, "b": "old"}), (2, "p", "pending", {"a": 2, "b": None})
    assert {name: [row[:4] for row in scenario.rows(name)] for name in names} == {
        "m0": [one, kept, two, new],
        "m1": [one, two, new],
        "m2": [one, kept, new],
        "m3": [one, kept, new],
        "m4": [two, new],
        "m5": [one, kept, two, new],
    }
    assert "column `gone` is not in the model, padded with 'pending'" in run.log
    kept_text = "rows that are replaced keep its value, new ones get 'pending'"
    assert f"column `gone` is not in the model, {kept_text}" in run.log
    stored = method == "session"
    assert defaults(scenario, "gone", "m0") == (None, None)
    assert defaults(scenario, "gone", "m1") == (None, "pending" if stored else None)
    warnings = [line for line in run.log.splitlines() if "The default of `gone` is not stored" in line]
    of_format = [line for line in warnings if "version 2, and defaults come with version 3" in line]
    assert len(of_format) == 3
    # It was told when the tables were made; from then on it is in the log file only.
    shown = [event for event in run.warnings if "The default of `gone` is not stored" in event]
    assert len(shown) == (0 if stored else 3)
    assert len([line for line in warnings if "over a Thrift server" in line]) == (0 if stored else 3)
    assert len(warnings) == (3 if stored else 6)


def test_a_full_refresh_and_a_snapshot_have_defaults_too(scenario: Scenario, in_session: None) -> None:
    sql = "select 1 as id, 'x' as s"
    describe(scenario, "t", "replaced", s="'pending'")
    scenario.model(sql, tblproperties=V3)
    scenario.model(sql, "replaced", tblproperties=V3, full_refresh_schema="replace")
    snapshot(scenario, sql, tblproperties=V3, column_defaults={"S": "'snapped'", "n": "5"})
    assert (
        "The default of `n` is skipped: neither the table nor the model has such a column."
        in take(scenario).log
    )
    for name in ("t", "replaced"):
        assert defaults(scenario, "s", name) == (None, "pending")
    assert defaults(scenario, "s", "snap") == (None, "snapped")
    # The refresh gives the models' tables their defaults again; the snapshot's source has a column more.
    snapshot(scenario, f"{sql}, 7 as n", tblproperties=V3, column_defaults={"S": "'snapped'", "n": "5"})
    scenario.model("select 2 as id, 1 as m", tblproperties=V3, pad_with="default", column_defaults={"m": "9"})
    take(scenario)
    assert scenario.rows() == [(2, "pending", 1)]
    assert defaults(scenario, "m") == (9, 9)
    assert defaults(scenario, "s", "replaced") == (None, "pending")
    assert defaults(scenario, "n", "snap") == (5, 5)


def test_an_orc_file_is_never_asked_for_a_default(scenario: Scenario, in_session: None) -> None:
    """Iceberg's Java library cannot read one that lacks a column with a default for older rows."""
    orc = {**V3, "write.format.default": "orc"}
    scenario.model("select 1 as id", tblproperties=orc)
    scenario.run()
    scenario.model("select 2 as id, 'x' as s", tblproperties=V3, column_defaults={"s": "'pending'"})
    run = scenario.run()
    assert "add column `s` string; " in run.log
    assert said(run, "default") == [
        "set default of `s` to 'pending'",
        "Rows that are older than `s` have NULL in it, and not its default: the table has ORC files, which "
        "Iceberg's Java library could not read any more.",
    ]
    assert defaults(scenario, "s") == (None, "pending")
    scenario.sql(f"refresh table {scenario.relation()}")
    assert scenario.sql(f"select * from {scenario.relation()} order by id") == [(1, None), (2, "x")]
    state = scenario.schemas()
    scenario.run()
    assert scenario.schemas() == state


def test_bytes_are_a_default_that_only_others_set(scenario: Scenario, in_session: None) -> None:
    """Neither Spark's statements nor a model have one of a binary or fixed column; Iceberg's library does."""
    letters = {"on_bad_rows": "dead_letter", "tblproperties": V3}
    scenario.model("select 1 as id, 10 as n", **letters)
    scenario.run()
    scenario.model("select * from values (1, 'x'), (2, '2') as q(id, n)", **letters)
    scenario.run()
    spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    jvm, java = spark._jvm, spark._jsparkSession
    levels = spark.sparkContext._gateway.new_array(jvm.java.lang.String, 2)
    levels[0], levels[1] = scenario.schema, "t"
    name = jvm.org.apache.iceberg.catalog.TableIdentifier.of(levels)
    table = java.sessionState().catalogManager().catalog("lake").icebergCatalog().loadTable(name)
    types, literal = jvm.org.apache.iceberg.types.Types, jvm.org.apache.iceberg.expressions.Literal
    two = types.FixedType.ofLength(2)
    some = literal.of(jvm.java.nio.ByteBuffer.wrap(bytearray(b"\x01'\xff")))
    pair = literal.of(jvm.java.nio.ByteBuffer.wrap(bytearray(b"\x00\xfe"))).to(two)
    update = table.updateSchema().addColumn("b", types.BinaryType.get(), "doc", some)
    update.addColumn("f", two, "doc", pair).commit()

    scenario.model("select 3 as id, 3 as n", pad_with="default", **letters)
    scenario.run()
    values = (b"\x01'\xff", b"\x00\xfe")
    assert [row[2:] for row in scenario.rows()] == [values] * len(scenario.rows())
    assert (3, 3, *values) in scenario.rows()

    # A replay compares with what older rows read.
    payload = base64.b64encode(b'{"id":1,"n":"11"}').decode()
    scenario.sql(f"update {scenario.relation('t_dlt')} set payload = '{payload}'")
    done = scenario.dbt("run-operation", "replay_dead_letters", "--args", "{model: t}")
    assert done.success, done.message
    assert {row[:2] for row in scenario.rows()} == {(1, 11), (2, 2), (3, 3)}
    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}").log
    assert "added `b` (3) binary default X'0127FF'" in history
    assert "default X'00FE'" in history


def literals() -> Iterator[tuple[str, IcebergType]]:
    """Literals of each type, many of them at its bounds; the same in each run."""
    random = Random(10)
    # Escapes that Spark knows, some that it does not, and what else is special somewhere.
    pieces = [r"\\", r"\'", r"\n", r"\t", r"\0", r"\%", r"\_", r"\x", r"\101", r"\u00e9", r"\U0001F600"]
    pieces += [r"\Z", r"\b", r"\r", r"\8", r"\u12", r"\ud83d\ude00", "''", '"', "$", "a", "é", "😀", " "]
    pieces += ["\n", "--", "/*", ";"]
    for _ in range(60):
        yield "'" + "".join(random.choices(pieces, k=random.randrange(6))) + "'", StringType()
    for _ in range(20):
        for type_, bits in ((IntegerType(), 31), (LongType(), 63)):
            yield str(random.choice([-1, 1]) * random.randrange(2 ** random.randrange(1, bits))), type_
        digits = f"{random.choice(['', '-', '+'])}{random.randrange(10**7)}.{random.randrange(100):02}"
        yield digits, DecimalType(9, 2)
        for float_ in (FloatType(), DoubleType()):
            yield f"{random.choice(['', '-'])}{random.randrange(10**6)}.{random.randrange(10**9)}1", float_
        date = f"{random.randrange(1, 10000):04}-{random.randrange(1, 13):02}-{random.randrange(1, 29):02}"
        time = f"{random.randrange(24):02}:{random.randrange(60):02}:{random.randrange(60):02}"
        time += random.choice(["", ".5", ".000001", ".123456000"])
        zone = random.choice(["Z", "+00:00", "-08:00", "+05:30", " UTC", "+18:00", " -03:15"])
        yield f"DATE '{date}'", DateType()
        yield f"'{date}'", DateType()
        yield f"TIMESTAMP_NTZ '{date} {time}'", TimestampType()
        yield f"'{date}T{time}'", TimestampType()
        yield f"TIMESTAMP '{date} {time}{zone}'", TimestamptzType()
        yield f"'{date} {time}{zone}'", TimestamptzType()
        yield f"TIMESTAMP '{date} {time}'", TimestamptzType()
        yield f"TIMESTAMP_LTZ '{date}'", TimestamptzType()
    # An hour that there is twice, and one that there is not.
    yield from (
        (f"TIMESTAMP '2024-{when}'", TimestamptzType()) for when in ("11-03 01:30:00", "03-10 02:30:00")
    )
    yield from (("true", BooleanType()), ("FALSE", BooleanType()))
    yield from ((str(bound), IntegerType()) for bound in (-(2**31), 2**31 - 1))
    yield from ((str(bound), LongType()) for bound in (-(2**63), 2**63 - 1))


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_literal_says_what_it_says_to_spark(spark_sql: SqlRunner, zone: str) -> None:
    (before,) = spark_sql("set spark.sql.session.timeZone")
    spark_sql(f"set spark.sql.session.timeZone={zone}")
    try:
        written = list(literals())
        settings = replace(
            IncrementalSettings.from_config({}, "model.shop.t"),
            defaults={str(n): text for n, (text, _) in enumerate(written)},
        )
        given = with_instants(settings, SimpleNamespace(rows=spark_sql)).defaults
        read = []
        for n, (text, type_) in enumerate(written):
            with suppress(UnsupportedDefault):
                read.append((text, spark_type(type_), read_default(given[str(n)], type_)))
        assert len(read) > 320
        rows = ",\n".join(
            f"({n}, CAST({text} AS {type_}) <=> {value.sql}, CAST({text} AS {type_}) IS NULL)"
            for n, (text, type_, value) in enumerate(read)
            if value is not None
        )
        found = spark_sql(f"select * from values {rows} as v(n, same, missing) where not same or missing")
    finally:
        spark_sql(f"set spark.sql.session.timeZone={before[1]}")
    assert [read[n] for n, *_ in found] == []
