"""What the suites of dbt-tests-adapter do not ask, or ask of Postgres only; read back by PyIceberg."""

import csv
import datetime
import io
import re
from collections.abc import Callable
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.functional.harness import Run, Scenario, SqlRunner

MERGE_ON_READ = {f"write.{kind}.mode": "merge-on-read" for kind in ("delete", "update", "merge")}

# Whatever a quote, an escape, a template, a parameter or a comment might be taken for.
TEXTS = [
    "it's",
    "''",
    '"double"',
    "back\\slash \\n \\' \\\\",
    "line\nbreak\n\n\ttab",
    "comma, semicolon; -- dashes /* comment */",
    "100% %s ? :name {{ jinja }} ${env:HOME} $1",
    "grüße, 日本語, 🎉, e\u0301",
    " spaces around ",
    "007",
    "`ticks`",
]


def csv_text(header: list[str], rows: list[list[Any]]) -> str:
    """A CSV file's text; an empty cell is NULL."""
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_MINIMAL, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def seed(scenario: Scenario, *arguments: str) -> Run:
    """``dbt seed``, which has to succeed."""
    run = scenario.dbt("seed", *arguments)
    assert run.success, run.message or run.log
    return run


def test_seed_of_awkward_texts(scenario: Scenario) -> None:
    rows = [[number, text] for number, text in enumerate(TEXTS)]
    scenario.file("seeds/texts.csv", csv_text(["id", "value"], [*rows, [len(rows), ""]]))
    expected = [*((number, text) for number, text in enumerate(TEXTS)), (len(TEXTS), None)]
    seed(scenario)
    assert scenario.rows("texts") == expected
    seed(scenario)
    assert scenario.rows("texts") == expected


def test_seed_of_inferred_types(scenario: Scenario) -> None:
    stamps = ["2020-02-29 23:59:59", "1969-12-31 00:00:01"]
    columns: dict[str, list[Any]] = {
        "id": [1, 2, 3],
        "big": [2**63 - 1, -(2**63), ""],
        "ratio": ["0.1", "-1234567.875", ""],
        "flag": ["true", "False", ""],
        "day": ["2020-02-29", "0001-01-01", ""],
        "at": [*stamps, ""],
        "text": ["a", "b", ""],
    }
    scenario.file(
        "seeds/kinds.csv", csv_text(list(columns), [list(row) for row in zip(*columns.values(), strict=True)])
    )
    seed(scenario)
    assert scenario.types("kinds") == {
        "id": "long",
        "big": "long",
        "ratio": "double",
        "flag": "boolean",
        "day": "date",
        "at": "timestamptz",
        "text": "string",
    }
    moments = [datetime.datetime.fromisoformat(stamp).astimezone(datetime.timezone.utc) for stamp in stamps]
    date = datetime.date
    assert scenario.rows("kinds") == [
        (1, 2**63 - 1, 0.1, True, date(2020, 2, 29), moments[0], "a"),
        (2, -(2**63), -1234567.875, False, date(1, 1, 1), moments[1], "b"),
        (3, None, None, None, None, None, None),
    ]


def test_seed_of_chosen_types(scenario: Scenario) -> None:
    """What dbt infers would lose zeros, digits or microseconds; ``column_types`` keeps them."""
    types = {
        "code": "string",
        "amount": "decimal(38,10)",
        "small": "int",
        "real": "float",
        "at": "timestamp_ntz",
        "flag": "string",
    }
    rows = [
        [
            "007",
            "1234567890123456789012345678.0123456789",
            "-2147483648",
            "1.5",
            "2020-02-29 23:59:59.123456",
            "true",
        ],
        ["", "-0.0000000001", "2147483647", "", "", "NO"],
    ]
    scenario.write_project(seeds={"+column_types": types, "+quote_columns": True})
    scenario.file("seeds/chosen.csv", csv_text(list(types), rows))
    seed(scenario)
    assert scenario.types("chosen") == {
        "code": "string",
        "amount": "decimal(38, 10)",
        "small": "int",
        "real": "float",
        "at": "timestamp",
        "flag": "string",
    }
    at = datetime.datetime(2020, 2, 29, 23, 59, 59, 123456)
    first = ("007", Decimal("1234567890123456789012345678.0123456789"), -(2**31), 1.5, at, "true")
    second = (None, Decimal("-0.0000000001"), 2**31 - 1, None, None, "NO")
    assert sorted(scenario.rows("chosen"), key=str) == sorted([first, second], key=str)


def test_seed_of_awkward_column_names(scenario: Scenario) -> None:
    names = ["order", "with space", "d.o.t", "q`uote", "grüße"]
    scenario.file("seeds/names.csv", csv_text(names, [[1, 2, 3, 4, 5]]))
    seed(scenario)
    assert scenario.columns("names") == names
    assert scenario.rows("names") == [(1, 2, 3, 4, 5)]


def test_seed_of_many_rows(scenario: Scenario) -> None:
    """More than one statement takes, in a time that grows with the rows and not with their square."""
    rows = [[number, f"it's {number}", number % 7 == 0] for number in range(12_000)]
    scenario.file("seeds/many.csv", csv_text(["id", "text", "flag"], rows))
    seed(scenario)
    arrow = scenario.table("many").scan().to_arrow().sort_by("id")
    assert [list(row.values()) for row in arrow.to_pylist()] == rows


def kind(scenario: Scenario, name: str = "t") -> str:
    """What Spark and Iceberg's catalog say that ``name`` is."""
    views = [row[1] for row in scenario.sql(f"show views in `lake`.`{scenario.schema}`")]
    tables = scenario.tables()
    assert (name in views) != (name in tables)
    return "view" if name in views else "table"


TRANSITIONS = [
    ("view", "table", "incremental", "view", "incremental", "table", "view"),
    ("incremental", "view", "table", "incremental"),
]


@pytest.mark.parametrize("materializations", TRANSITIONS)
def test_model_changes_its_materialization(scenario: Scenario, materializations: tuple[str, ...]) -> None:
    before: str | None = None
    for number, materialized in enumerate(materializations):
        loaded = "{% if is_incremental() %}" + str(number) + "{% else %}0{% endif %}"
        key = {"unique_key": "id"} if materialized == "incremental" else {"unique_key": None}
        sql = f"select {number} as id, {loaded} as loaded"
        scenario.model(sql, materialized=materialized, on_schema_change=None, **key)
        scenario.run()
        assert kind(scenario) == ("view" if materialized == "view" else "table")
        # A table is read by PyIceberg: another connection to a Thrift server may still have it as it was.
        in_view = materialized == "view"
        rows = scenario.sql(f"select * from {scenario.relation()}") if in_view else scenario.rows()
        if (before, materialized) == ("table", "incremental"):
            # A table that is there is what the incremental model goes on with.
            assert rows == [(number - 1, 0), (number, number)]
        else:
            assert rows == [(number, 0)]
        assert set(scenario.tables()) <= {"t"}
        before = materialized


def test_view_that_the_incremental_model_reads_becomes_its_table(scenario: Scenario) -> None:
    scenario.model(
        "select 1 as id, 'old' as note", materialized="view", unique_key=None, on_schema_change=None
    )
    scenario.run()
    scenario.model(f"select id, note from {scenario.relation()} union all select 2, 'new'")
    scenario.run()
    assert scenario.rows() == [(1, "old"), (2, "new")]
    assert scenario.tables() == ["t"]


def snapshot(scenario: Scenario, **config: Any) -> None:
    """Write and run a snapshot named ``snap`` of the model ``source``."""
    settings = {"strategy": "check", "check_cols": "all", "unique_key": "id", **config}
    scenario.model(
        "select 1 as id, 'a' as note", "source", materialized="table", unique_key=None, on_schema_change=None
    )
    scenario.file(
        "snapshots/snap.sql",
        "{% snapshot snap %}{{ config(**"
        + repr(settings)
        + ") }}select * from {{ ref('source') }}{% endsnapshot %}",
    )
    run = scenario.dbt("build", "--select", "source", "snap")
    assert run.success, run.message or run.log


def make_all(scenario: Scenario, **config: Any) -> list[str]:
    """Make a relation of each kind that is a table, and return their names."""
    plain: dict[str, Any] = {"unique_key": None, "on_schema_change": None}
    scenario.write_project(seeds={f"+{key}": value for key, value in config.items()})
    scenario.file("seeds/seeded.csv", "id,note\n1,a\n")
    scenario.model("select 1 as id, 'a' as note", "made", materialized="table", **plain, **config)
    scenario.model("select 1 as id, 'a' as note", "loaded", **config)
    seed(scenario)
    scenario.run()
    snapshot(scenario, **config)
    return ["made", "loaded", "seeded", "snap"]


def test_tables_are_iceberg_and_merge_on_read(scenario: Scenario) -> None:
    """Without ``file_format`` and ``tblproperties``."""
    for name in make_all(scenario):
        table = scenario.table(name)
        assert table.metadata.format_version == 2, name
        assert {key: table.properties.get(key) for key in MERGE_ON_READ} == MERGE_ON_READ, name


def test_tblproperties_win(scenario: Scenario) -> None:
    cleaned = "write.metadata.delete-after-commit.enabled"
    given = {"write.delete.mode": "copy-on-write", "it's": "a \\ b", cleaned: True}
    for name in make_all(scenario, tblproperties=given):
        properties = scenario.table(name).properties
        assert {key: properties.get(key) for key in MERGE_ON_READ} == {
            **MERGE_ON_READ,
            "write.delete.mode": "copy-on-write",
        }, name
        assert properties["it's"] == "a \\ b", name
        assert properties[cleaned] == "true", name


def test_incremental_model_of_another_file_format_is_refused(scenario: Scenario) -> None:
    scenario.model("select 1 as id", file_format="parquet")
    assert 'file_format is "parquet" in model.case.t. Allowed are: iceberg.' in scenario.fail().message
    assert not scenario.sql(f"show tables in `lake`.`{scenario.schema}`")


def test_snapshot_follows_its_source(scenario: Scenario) -> None:
    """Rows that change, and a column that is new, whose staged rows leave nothing behind."""
    snapshot(scenario)
    assert [row[:2] for row in scenario.rows("snap")] == [(1, "a")]
    scenario.model(
        "select 1 as id, 'b' as note, 2 as extra",
        "source",
        materialized="table",
        unique_key=None,
        on_schema_change=None,
    )
    run = scenario.dbt("build", "--select", "source", "snap")
    assert run.success, run.message or run.log
    records = scenario.table("snap").scan().to_arrow().to_pylist()
    found = {(row["id"], row["note"], row["extra"], row["dbt_valid_to"] is None) for row in records}
    assert found == {(1, "a", None, False), (1, "b", 2, True)}
    assert scenario.tables() == ["snap", "source"]
    assert not scenario.sql(f"show views in `lake`.`{scenario.schema}`")


def test_snapshots_of_one_name_in_two_schemas(scenario: Scenario, lake: Any) -> None:
    """Their staged rows do not meet, though both run at once."""
    other = f"{scenario.schema}_other"
    for number, schema in enumerate((scenario.schema, other)):
        scenario.model(
            f"select {number} as id, '{{{{ var('note', 'a') }}}}' as note",
            f"source_{number}",
            materialized="table",
            unique_key=None,
            on_schema_change=None,
        )
        config = {
            "strategy": "check",
            "check_cols": "all",
            "unique_key": "id",
            "schema": None,
            "alias": "snap",
        }
        config["target_schema"] = schema
        scenario.file(
            f"snapshots/snap_{number}.sql",
            f"{{% snapshot snap_{number} %}}{{{{ config(**{config!r}) }}}}"
            f"select * from {{{{ ref('source_{number}') }}}}{{% endsnapshot %}}",
        )
    try:
        for note in ("a", "b"):
            run = scenario.dbt("build", "--vars", f"note: {note}")
            assert run.success, run.message or run.log
        for number, schema in enumerate((scenario.schema, other)):
            records = lake.load_table((schema, "snap")).scan().to_arrow().to_pylist()
            found = {(row["id"], row["note"], row["dbt_valid_to"] is None) for row in records}
            assert found == {(number, "a", False), (number, "b", True)}
    finally:
        scenario.sql(f"drop table if exists `lake`.`{other}`.`snap`")
        scenario.sql(f"drop schema if exists `lake`.`{other}`")


def test_awkward_name_of_a_model(scenario: Scenario) -> None:
    kinds = ("table", "incremental", "view")
    for kind in kinds:
        keyed = (
            {"unique_key": "id"} if kind == "incremental" else {"unique_key": None, "on_schema_change": None}
        )
        scenario.model("select 1 as id", kind, materialized=kind, alias=f"Ünd `{kind}`, spaces", **keyed)
    scenario.run()
    scenario.run()
    for kind in kinds:
        quoted = f"`lake`.`{scenario.schema}`.`Ünd ``{kind}``, spaces`"
        assert scenario.sql(f"select * from {quoted}") == [(1,)]
        scenario.sql(f"drop {'view' if kind == 'view' else 'table'} {quoted}")


def test_get_relation_and_drop(scenario: Scenario) -> None:
    """A macro of the user's finds, renames and drops relations of both kinds."""
    scenario.model("select 1 as id", "tab", materialized="table", unique_key=None, on_schema_change=None)
    scenario.model("select 1 as id", "vue", materialized="view", unique_key=None, on_schema_change=None)
    scenario.run()
    scenario.file(
        "macros/shuffle.sql",
        """
        {% macro shuffle() %}
          {% for name in ['tab', 'vue'] %}
            {% set found = adapter.get_relation(target.database, target.schema, name) %}
            {% set without = adapter.get_relation(none, target.schema, name) %}
            {% if found != without or found.type != ('table' if name == 'tab' else 'view') %}
              {% do exceptions.raise_compiler_error(found ~ ' is not ' ~ without) %}
            {% endif %}
            {% do adapter.rename_relation(found, found.incorporate(path={'identifier': name ~ '_2'})) %}
          {% endfor %}
          {% do adapter.drop_relation(adapter.get_relation(target.database, target.schema, 'vue_2')) %}
          {% if adapter.get_relation(target.database, target.schema, 'absent') is not none %}
            {% do exceptions.raise_compiler_error('found what is not there') %}
          {% endif %}
        {% endmacro %}
        """,
    )
    run = scenario.dbt("run-operation", "shuffle")
    assert run.success, run.message or run.log
    assert [row[1] for row in scenario.sql(f"show tables in `lake`.`{scenario.schema}`")] == ["tab_2"]


@pytest.mark.parametrize("materialized", ["table", "view"])
def test_columns_under_the_empty_flag(scenario: Scenario, materialized: str) -> None:
    """A relation from ``ref()`` renders as a subquery then, which cannot be described."""
    plain = {"unique_key": None, "on_schema_change": None}
    scenario.model("select 1 as id, 'a' as note", "source", materialized=materialized, **plain)
    columns = "{{ adapter.get_columns_in_relation(ref('source')) | map(attribute='quoted') | join(', ') }}"
    scenario.model(f"select {columns} from {{{{ ref('source') }}}}", materialized="table", **plain)
    scenario.run("--select", "source")
    scenario.run("--empty", "--select", "t")
    assert (scenario.columns(), scenario.rows()) == (["id", "note"], [])
    scenario.run("--select", "t")
    assert scenario.rows() == [(1, "a")]


def test_source_freshness(scenario: Scenario) -> None:
    """By a column, and by the metadata of Iceberg's tables."""
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    for name in ("events", "bare"):
        scenario.sql(
            f"create table {scenario.relation(name)} using iceberg as select timestamp'2020-01-01' as at"
        )
    scenario.sql(f"create table {scenario.relation('empty')} (id int) using iceberg")
    scenario.sql(f"create view {scenario.relation('seen')} as select 1 as id")
    tables = [{"name": "events", "loaded_at_field": "at"}]
    tables += [{"name": name} for name in ("bare", "empty", "seen", "missing")]
    source = {"name": "raw", "database": "lake", "schema": scenario.schema, "tables": tables}
    source["config"] = {"freshness": {"error_after": {"count": 1, "period": "hour"}}}
    scenario.file("models/sources.yml", yaml.safe_dump({"sources": [source]}))

    run = scenario.dbt("source", "freshness")
    results = {result.node.name: result for result in run.result.result}  # type: ignore[union-attr]
    status = {name: str(result.status) for name, result in results.items()}
    fails = dict.fromkeys(("seen", "missing"), "runtime error")
    assert status == {"events": "error", "bare": "pass", "empty": "error", **fails}
    made = scenario.table("bare").current_snapshot()
    assert made is not None
    assert results["bare"].max_loaded_at.timestamp() * 1000 == pytest.approx(made.timestamp_ms, abs=0.5)
    assert results["bare"].age < 3600
    assert results["empty"].max_loaded_at.year == 1
    for name in fails:
        assert " ".join(str(results[name].message).split()) == (
            f"Runtime Error in source {name} (models/sources.yml) How fresh {scenario.relation(name)} is "
            "cannot be told from metadata: it is not an Iceberg table of `lake`. Set `loaded_at_field` or "
            "`loaded_at_query` of the source."
        )


def test_debug(scenario: Scenario, catalog_properties: dict[str, str]) -> None:
    run = scenario.dbt("debug")
    assert run.success, run.log
    numbers = [rf"{name} \d[.\d]+" for name in ("Spark", "Java", "Iceberg", "PyIceberg")]
    (told,) = re.findall(rf"  ({', '.join(numbers)})$", run.log, re.MULTILINE)
    iceberg = scenario.sql("select lake.system.iceberg_version()")[0][0]
    assert told.split(", ")[2:] == [f"Iceberg {iceberg}", f"PyIceberg {version('pyiceberg')}"]
    (place,) = re.findall("  catalog `lake`: .*", run.log)
    assert place.endswith(f", warehouse {catalog_properties['warehouse']}") or "REST" in place
    assert "Connection test: [OK connection ok]" in run.log.replace("\x1b[32m", "").replace("\x1b[0m", "")
    assert not [row for row in scenario.sql("show schemas in lake") if row[0].startswith("sparkevolve_debug")]


def test_debug_finds_that_the_catalogs_differ(
    method: str,
    catalog_properties: dict[str, str],
    profile_target: dict[str, Any],
    scenario_factory: Callable[..., Scenario],
    spark_sql: SqlRunner,
    tmp_path: Path,
) -> None:
    """PyIceberg is given another database than Spark."""
    elsewhere = {**catalog_properties, "uri": f"sqlite:///{tmp_path}/other.db"}
    profile: dict[str, Any] = {"catalog_properties": elsewhere}
    if method == "session":
        uri = catalog_properties["uri"].replace("sqlite:///", "jdbc:sqlite:")
        profile["spark_config"] = {**profile_target["spark_config"], "spark.sql.catalog.lake.uri": uri}
    run = scenario_factory(**profile).dbt("debug")
    assert not run.success
    assert (
        "Spark's catalog `lake` is not the one that `catalog_properties` of the profile describe" in run.log
    )
    assert not [row for row in spark_sql("show schemas in lake") if row[0].startswith("sparkevolve_debug")]


def test_debug_without_a_catalog_that_can_be_reached(
    scenario_factory: Callable[..., Scenario], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    uri = f"sqlite:///{tmp_path}/file/catalog.db"
    run = scenario_factory(catalog_properties={"type": "sql", "uri": uri, "warehouse": str(tmp_path)}).dbt(
        "debug"
    )
    assert not run.success
    assert "Traceback" not in run.log
