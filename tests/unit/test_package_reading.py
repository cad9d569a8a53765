"""What the package reads of a table, from Spark's texts, and how it tells that a load is what was sent."""

import json
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
import pytz
from dbt_common.exceptions import CompilationError
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.sparkevolve.evolution import refusals
from dbt.adapters.sparkevolve.evolution.partition_sources import partition_refusals
from dbt.adapters.sparkevolve.evolution.partitions import parse_partitions, same_partitions
from dbt.adapters.sparkevolve.sql.ddl import name_sql, partition_sql
from dbt.adapters.sparkevolve.sql.spark_types import (
    columns_from_types,
    paths_and_types,
    spelled_paths,
    stored_as,
)
from tests.unit.package_macros import PURE, PackageMacros

TOKEN = "0123456789ab"
GONE = (
    f"[TABLE_OR_VIEW_NOT_FOUND] The table or view `db`.`Orders__dbt_tmp_{TOKEN}` cannot be found. Verify the"
)


@pytest.mark.parametrize(
    ("message", "is_lost"),
    [
        (f"Runtime Error in model orders\n  {GONE} spelling", True),
        (f"File does not exist: file:/lake/db/orders__dbt_tmp_{TOKEN}/data/0.parquet", True),
        (f"NotFoundException: /lake/db/orders__dbt_tmp_{TOKEN}/metadata/v1.metadata.json", True),
        (f"AlreadyExistsException: Table db.orders__dbt_tmp_{TOKEN} already exists", False),
        (f"[TABLE_OR_VIEW_NOT_FOUND] `db`.`src`\ncreate table db.orders__dbt_tmp_{TOKEN}", False),
        (f"[TABLE_OR_VIEW_NOT_FOUND] `db`.`others_orders__dbt_tmp_{TOKEN[:-1]}` cannot be found", False),
        ("", False),
    ],
)
def test_a_batch_that_an_error_does_not_find_is_known_by_its_name(message: str, is_lost: bool) -> None:
    assert PURE.lost_batch("Orders", message) == (f"Orders__dbt_tmp_{TOKEN}" if is_lost else None)


@pytest.mark.parametrize(
    ("message", "meaning"),
    [
        (
            "[MERGE_CARDINALITY_VIOLATION] The ON search condition of the MERGE statement matched a row",
            "the batch has several rows with one key, and MERGE cannot take two of them for one row of the "
            "table. It has changed no row. Let the model return each `unique_key` once, such as by "
            "`row_number() over (partition by … order by …) = 1`.",
        ),
        (
            "Cannot fast-forward: main is not an ancestor of sparkevolve_dbt_1_a",
            "another writer has committed to the table in the moment in which the batch was to be published. "
            "None of its rows is visible. Run the model again, or `dbt retry`.",
        ),
        (
            "org.apache.iceberg.exceptions.CommitFailedException: Requirement failed: current schema changed",
            "another writer has committed at the same time as a statement of this run, which has had no "
            "effect. Run the model again, or `dbt retry`: it begins from the table as it is then.",
        ),
        ("[DIVIDE_BY_ZERO] Division by zero.", ""),
    ],
)
def test_what_some_errors_mean(message: str, meaning: str) -> None:
    assert PURE.meaning_of_error(message) == meaning


# As Spark 4.1 and Iceberg 1.11 write it.
DDL = """CREATE TABLE lake.db.t (
  id BIGINT NOT NULL COMMENT 'it\\'s,
  name STRING NOT NULL',
  `a b.c` STRUCT<x: INT NOT NULL COMMENT 'in, y: INT NOT NULL', \
`y z`: ARRAY<STRUCT<q: INT NOT NULL>>, m: MAP<STRING, INT>>,
  name DECIMAL(10,2),
  `NOT NULL` TIMESTAMP_NTZ)
USING iceberg
PARTITIONED BY (days(ts), truncate(4, `a,b`))
CLUSTERED BY (id)
INTO 16 BUCKETS
COMMENT 'PARTITIONED BY (no)'
LOCATION 'file:///x'
TBLPROPERTIES (
  'format-version' = '2',
  'identifier-fields' = '[id,a b.c.x]',
  'odd\\'s' = 'a \\\\ b')
"""
FIELDS = (
    ("id", "bigint"),
    ("a b.c", "struct<x:int,y z:array<struct<q:int>>,m:map<string,int>>"),
    ("name", "decimal(10,2)"),
    ("NOT NULL", "timestamp_ntz"),
)


def fields() -> list[dict[str, Any]]:
    return list(PURE.numbered([PURE.field(name, PURE.parse_type(type_)) for name, type_ in FIELDS]))


def required(listed: list[dict[str, Any]], parent: str = "") -> list[str]:
    found = []
    for field in listed:
        path = f"{parent}{field['name']}"
        found += [path] if field["required"] and field["name"] != "key" else []
        found += required(field["type"]["fields"], f"{path}/")
    return found


def test_the_ddl_tells_what_is_not_null_and_how_the_table_is_partitioned() -> None:
    listed = fields()
    ddl = PURE.read_ddl(DDL, listed)
    assert required(listed) == ["id", "a b.c/x", "a b.c/y z/element/q"]
    assert ddl["partitions"] == ["days(ts)", "truncate(4, `a,b`)"]
    assert ddl["has_buckets"] is True
    assert PURE.read_ddl(DDL.replace("CLUSTERED", "CLUSTER"), fields())["has_buckets"] is False
    assert ddl["properties"]["format-version"] == "2"
    assert (ddl["location"], ddl["is_lost"]) == ("file:///x", False)
    ids = PURE.identifier_ids(listed, ddl["properties"])
    assert ids == [listed[0]["id"], listed[1]["type"]["fields"][0]["id"]]
    listed[0]["name"] = "k, 2"
    assert PURE.identifier_ids(listed, {"identifier-fields": "[k, 2]"}) == [listed[0]["id"]]


# As Spark 3.5 writes it of a table that is partitioned as below: of two buckets the first one is missing.
DDL_OF_BUCKETS = """CREATE TABLE lake.db.t (
  id INT NOT NULL,
  `# Partitioning` TIMESTAMP,
  `Part 9` STRING COMMENT 'Part 9')
USING iceberg
PARTITIONED BY (days(`# Partitioning`))
CLUSTERED BY (Part 9)
INTO 2 BUCKETS
LOCATION 'file:///x'
"""
DESCRIBED = [
    ("id", "int", None),
    ("# Partitioning", "timestamp", None),
    ("Part 9", "string", "Part 9"),
    ("", "", ""),
    ("# Partitioning", "", ""),
    ("Part 0", "bucket(4, id)", ""),
    ("Part 1", "days(`# Partitioning`)", ""),
    ("Part 2", "bucket(2, `Part 9`)", ""),
]


# dbt makes NULL of a text that is empty.
@pytest.mark.parametrize("empty", ["", None])
def test_of_several_buckets_each_is_read(empty: str | None) -> None:
    asked: list[str] = []

    def rows(sql: str) -> list[tuple[str | None, ...]]:
        asked.append(sql)
        if sql.startswith("describe query"):
            return DESCRIBED[:3]
        if sql.startswith("show create table"):
            return [(DDL_OF_BUCKETS,)]
        if sql == "describe table db.t":
            return [tuple(text or empty for text in row) for row in DESCRIBED]
        return [("main", "BRANCH", "1", "0", "lake")]

    macros = PackageMacros({"statement": lambda name, caller: ""})
    vars(macros)["rows"] = rows
    table = macros.read_table("db.t")
    assert table["partitions"] == ["bucket(4, id)", "days(`# Partitioning`)", "bucket(2, `Part 9`)"]
    assert PURE.partition_sources(table) == [field["id"] for field in table["fields"]]
    wanted = PURE.parse_partitions(["bucket(4, id)", "day(`# Partitioning`)", "bucket(2, `part 9`)"])
    assert PURE.same_partitions(wanted, PURE.parse_partitions(table["partitions"]), {})
    assert len(asked) == 4


@pytest.mark.parametrize("asked_before", range(4))
def test_a_column_that_comes_while_a_table_is_read_is_read_or_is_after_the_base(asked_before: int) -> None:
    """One that is neither would be NULL in rows that are to keep what the others have."""
    asked: list[str] = []

    def rows(sql: str) -> list[tuple[str | None, ...]]:
        has_come = len(asked) >= asked_before
        asked.append(sql)
        if sql.startswith("describe query"):
            return [("id", "int", None), *([("c", "int", None)] if has_come else [])]
        if sql.startswith("show create table"):
            column = ",\n  c INT" if has_come else ""
            return [(f"CREATE TABLE lake.db.t (\n  id INT{column})\nUSING iceberg\nLOCATION 'x'\n",)]
        return [("main", "BRANCH", "2" if has_come else "1", "0", "lake")]

    macros = PackageMacros({"statement": lambda name, caller: ""})
    vars(macros)["rows"] = rows
    table = macros.read_table("db.t")
    assert len(asked) == 3
    names = [field["name"] for field in table["fields"]]
    assert names == ["id", "c"] or table["base"] == "1"


def test_a_text_that_cannot_be_gone_along_leaves_columns_optional() -> None:
    listed = fields()
    ddl = PURE.read_ddl(DDL.replace("`a b.c` STRUCT<x", "`a b.c` STRUCT<w"), listed)
    assert ddl["is_lost"] is True
    assert required(listed) == ["id"]
    assert ddl["properties"]["identifier-fields"] == "[id,a b.c.x]"
    assert PURE.read_ddl("CREATE VIEW x", fields())["is_lost"] is True


PARTITIONS = (
    *(
        "a",
        "`A`",
        "days(ts)",
        "DAY( ts )",
        "date(`ts`)",
        "bucket(4, id)",
        "bucket(id, 4)",
        "truncate(4, s.x)",
    ),
    *("s.x", "`s`.`x`", "hours(a),b", "years(a, b)", "`a,b`"),
)


@given(
    st.lists(st.sampled_from(PARTITIONS), max_size=3),
    st.lists(st.sampled_from(PARTITIONS), max_size=3),
    st.sampled_from(({}, {"a": "b"}, {"s.x": "Y", "s": "r"}, {"ts": "AT", "`a,b`": "id"})),
)
def test_partitions_are_compared_as_the_adapter_does(
    one: list[str], other: list[str], renames: dict[str, str]
) -> None:
    assert PURE.parse_partitions(one) == [str(part) for part in parse_partitions(one)]
    assert PURE.same_partitions(
        PURE.parse_partitions(one), PURE.parse_partitions(other), renames
    ) == same_partitions(parse_partitions(one), parse_partitions(other), renames)


SOURCES = {
    "id": "int",
    "V": "string",
    "ts": "timestamp",
    "wall": "timestamp_ntz",
    "d": "date",
    "x": "double",
    "p": "decimal(10,2)",
    "b": "binary",
    "flag": "boolean",
    "s": "struct<A:int,deep:struct<ts:timestamp>,l:array<int>>",
    "l": "array<int>",
    "m": "map<string,int>",
    "q`q": "int",
}


@pytest.mark.parametrize(
    "transform", ["{}", "days({})", "Month({})", "hour({})", "bucket(4, {})", "truncate({}, 2)"]
)
@pytest.mark.parametrize(
    "column", [*SOURCES, "s.a", "s.deep.ts", "s.nope", "l.element", "nope", "`V`", "`q``q`"]
)
def test_a_new_table_is_refused_its_partitions_as_by_the_adapter(transform: str, column: str) -> None:
    term = transform.format(column)
    columns = columns_from_types(list(SOURCES), list(SOURCES.values()))
    returned = [(name, stored_as(type_)) for name, type_ in columns.fields]
    found = partition_refusals(
        "partition_by", parse_partitions(term), dict(paths_and_types(columns)), returned
    )
    fields = [{"name": name, "type": PURE.parse_type(text)} for name, text in SOURCES.items()]
    settings = {"partition_by": [term], "clustered_by": [], "buckets": None}
    assert PURE.partition_refusals(fields, settings) == [str(refusal) for refusal in found]


def test_buckets_are_looked_at_too() -> None:
    fields = [{"name": "x", "type": PURE.parse_type("double")}]
    settings = {"partition_by": [], "clustered_by": ["x"], "buckets": 4}
    assert PURE.partition_refusals(fields, settings) == [
        "`clustered_by` has bucket(4, x), and `x` is of type double: `bucket` takes a whole number, a "
        "decimal, a string, a binary, a date or a timestamp. Change `clustered_by`, or cast the column in "
        "the model."
    ]
    several = PURE.partition_refusals(fields, {**settings, "clustered_by": ["x", "y"]})
    assert several == [str(refusals.several_in_a_bucket(["x", "y"], "4"))]
    assert several == [
        "`clustered_by` has 2 columns, `x`, `y`, and a bucket of Iceberg's is of one column. Name one, or "
        "set `partition_by: [bucket(4, x), bucket(4, y)]` instead, by which a partition is a bucket of each."
    ]


@pytest.mark.parametrize("text", ["a", "a b", "a.b", "`a.b`.c", "a..b", "x; drop table t", "`a` b", "1x", ""])
def test_names_in_ddl_are_quoted_as_the_adapter_does(text: str) -> None:
    assert PURE.name_sql(text) == name_sql(text)


@pytest.mark.parametrize("terms", [["days(ts)", "a b"], ["bucket(4, `x`), y"], ["s.x"], ["a); drop table t"]])
def test_a_partitioning_is_written_as_the_adapter_does(terms: list[str]) -> None:
    found = PURE.partition_clause({"partition_by": terms, "clustered_by": [], "buckets": None})
    assert found == f"partitioned by ({', '.join(partition_sql(terms))})"


@pytest.mark.parametrize(
    ("term", "sql"),
    [
        ("v", "`V`"),
        ("days(TS)", "days(`ts`)"),
        ("Bucket(4, `v`)", "Bucket(4, `V`)"),
        ("truncate(S.a, 2)", "truncate(`s`.`A`, 2)"),
        ("hours(s.DEEP.ts)", "hours(`s`.`deep`.`ts`)"),
        ("bucket(4, q`Q)", "bucket(4, `q``q`)"),
        ("bucket(4, l.element)", "bucket(4, `l`.`element`)"),
        # Two of them may be meant.
        ("bucket(4, D.E)", "bucket(4, `D`.`E`)"),
    ],
)
def test_a_partitioning_names_columns_as_the_model_returns_them(term: str, sql: str) -> None:
    """Spark finds no column by a name in another case in a transform."""
    types = {**SOURCES, "d.e": "int", "d": "struct<e:int>"}
    fields = [{"name": name, "type": PURE.parse_type(text)} for name, text in types.items()]
    found = PURE.partition_clause({"partition_by": [term], "clustered_by": [], "buckets": None}, fields)
    assert found == f"partitioned by ({sql})"
    columns = columns_from_types(list(types), list(types.values()))
    assert partition_sql(term, spelled_paths(columns)) == [sql]


def test_a_table_without_partitions_has_no_clause() -> None:
    assert PURE.partition_clause({"partition_by": [], "clustered_by": ["a`b"], "buckets": None}) == ""
    assert (
        PURE.partition_clause({"partition_by": [], "clustered_by": ["a`b"], "buckets": 4})
        == "clustered by (`a``b`) into 4 buckets"
    )


def test_the_time_of_a_window_is_in_utc() -> None:
    macros = PackageMacros({"modules": SimpleNamespace(pytz=pytz)})
    assert macros.utc_text(datetime(2024, 1, 2, 3)) == "2024-01-02 03:00:00"
    at = datetime(2024, 1, 2, 3, 0, 0, 5, timezone(timedelta(hours=2)))
    assert macros.utc_text(at) == "2024-01-02 01:00:00.000005"


# What is on the branch


def load(
    base: str | None = "1", rows: int = 2, strategy: str = "delete+insert", **more: Any
) -> dict[str, Any]:
    return {
        "branch": "b",
        "table": {"base": base},
        "batch": {"rows": rows},
        "settings": {"strategy": strategy},
        "plan": {"unique_key": ["id"]},
        "deleted": None,
        **more,
    }


def snapshot(
    parent: str | None, added: int, operation: str = "append", replaces_partitions: bool = False
) -> dict[str, Any]:
    return {
        "parent": parent,
        "operation": operation,
        "added": added,
        "replaces_partitions": replaces_partitions,
    }


def compared(loaded: dict[str, Any], sent: int, **snapshots: dict[str, Any]) -> str:
    """Return what is wrong with a branch whose last snapshot is the last of these."""
    known = {name.removeprefix("s"): values for name, values in snapshots.items()}
    refs = {"b": {"snapshot": list(known)[-1]}, "main": {"snapshot": "1"}}
    return str(PURE.compare_with_sent(loaded, sent, refs, known))


def test_a_branch_with_what_was_sent_is_published() -> None:
    assert compared(load(), 2, s1=snapshot(None, 9), s2=snapshot("1", 0, "delete"), s3=snapshot("2", 2)) == ""
    # The DELETE has found nothing, so there is no snapshot of it.
    assert compared(load(), 2, s3=snapshot("1", 2)) == ""
    assert compared(load(strategy="merge"), 1, s3=snapshot("1", 7, "overwrite")) == ""
    # Spark has cut it off an empty table.
    assert compared(load(base=None), 2, s2=snapshot(None, 0), s3=snapshot("2", 2)) == ""


def test_a_delete_alone_may_add_the_rows_that_stay_in_its_files() -> None:
    empty = {"rows": 0, "strategy": "microbatch", "plan": {"unique_key": ["at"]}}
    assert compared(load(**empty), 1, s2=snapshot("1", 7, "overwrite")) == ""
    assert compared(load(**empty), 1, s2=snapshot("1", 7)) == "7 rows are on its branch, and the batch has 0"
    overwritten = load(rows=0, strategy="full_refresh")
    said = compared(overwritten, 1, s2=snapshot("1", 7, "overwrite"))
    assert said == "7 rows are on its branch, and the batch has 0"


def test_a_statement_that_ran_twice_is_not_published() -> None:
    twice = {"s2": snapshot("1", 2), "s3": snapshot("2", 2)}
    assert compared(load(strategy="append", plan={"unique_key": []}), 1, **twice) == (
        "2 commits are on its branch, and 1 statements were sent"
    )
    assert compared(load(), 2, s2=snapshot("1", 0, "delete"), s3=snapshot("2", 2), s4=snapshot("3", 2)) == (
        "3 commits are on its branch, and 2 statements were sent"
    )


def test_an_insert_that_ran_twice_beside_a_delete_of_nothing_is_not_published() -> None:
    # As many snapshots as statements.
    assert compared(load(), 2, s2=snapshot("1", 2), s3=snapshot("2", 2)) == (
        "2 times rows were added on its branch, and one INSERT was sent"
    )


@pytest.mark.parametrize("partition_by", [[], ["day"]])
@pytest.mark.parametrize("replaces_partitions", [False, True])
def test_an_overwrite_in_the_mode_of_another_model_is_not_published(
    partition_by: list[str], replaces_partitions: bool
) -> None:
    """The models of a session share it: all rows would go where those of a few partitions were meant."""
    loaded = load(settings={"strategy": "insert_overwrite", "partition_by": partition_by})
    found = compared(loaded, 1, s3=snapshot("1", 2, "overwrite", replaces_partitions))
    other = "another model has changed how its session overwrites partitions"
    assert found == ("" if replaces_partitions == bool(partition_by) else other)


def test_a_branch_that_is_not_ours_is_not_published() -> None:
    assert compared(load(), 2, s3=snapshot("other", 2)) == (
        "its branch does not come from what the run has read"
    )
    assert PURE.compare_with_sent(load(), 2, {}, {}) == "the branch of this run is gone"


def test_a_branch_that_was_dropped_and_made_again_is_not_published() -> None:
    """The INSERT makes it again from `main`, without what the DELETE had taken away."""
    deleted = {"s2": snapshot("1", 0, "delete"), "s3": snapshot("1", 2)}
    said = "somebody has dropped the branch of this run meanwhile"
    assert compared(load(deleted="2"), 2, **deleted) == said
    assert compared(load(deleted="gone"), 2, s3=snapshot("1", 2)) == said
    # It was not, and the DELETE has found something, or nothing.
    assert compared(load(deleted="2"), 2, **{**deleted, "s3": snapshot("2", 2)}) == ""
    assert compared(load(deleted="1"), 2, s3=snapshot("1", 2)) == ""


def test_rows_that_are_missing_are_not_published() -> None:
    assert compared(load(), 2, s2=snapshot("1", 0, "delete")) == (
        "0 rows are on its branch, and the batch has 2"
    )


# What is no ancestor of the table's snapshot any more has an x.
@pytest.mark.parametrize(
    ("base", "history", "said"),
    [
        ("1", ["1", "3"], None),
        ("1", ["0", "1", "3"], None),
        # Of an empty table there is nothing before.
        (None, ["3"], None),
        # Other writers go on from there.
        ("1", ["1", "3", "4"], None),
        # What was before cannot be told.
        ("1", ["3"], None),
        ("1", ["0", "1", "0", "3"], "rolled the table back to snapshot 0 in the moment before"),
        ("1", ["0", "3", "4"], "rolled the table back to snapshot 0 in the moment before"),
        # It moved nothing, or it is undone.
        ("1", [], "its snapshot 3 is not in what readers of the table have seen since"),
        ("1", ["1", "4"], "its snapshot 3 is not in what readers of the table have seen since"),
        ("1", ["1", "3x", "1"], "somebody has rolled the table back to another one since"),
    ],
)
def test_what_was_published_is_looked_for(base: str | None, history: list[str], said: str | None) -> None:
    dropped: list[str] = []
    macros = PackageMacros({"statement": lambda name, caller: dropped.append(caller().strip()) or ""})
    loaded = {**load(base), "target": "db.t", "staged": "db.s"}
    seen = [{"id": text[0], "has": not text.endswith("x")} for text in history]
    if said is None:
        macros.check_published(loaded, "3", seen)
        return
    with pytest.raises(CompilationError, match=said):
        macros.check_published(loaded, "3", seen)
    assert dropped == ["drop table if exists db.s purge"]


def entry(number: int, *called: str, inside: tuple[Any, ...] = ()) -> dict[str, Any]:
    return {"field-id": number, "names": list(called), **({"fields": list(inside)} if inside else {})}


MAPPING = json.dumps(
    [
        entry(1, "id"),
        entry(2, "a", "a2"),
        entry(3, "l", inside=(entry(5, "element", inside=(entry(6, "m"),)),)),
        entry(7, "s", inside=(entry(8, "x"),)),
        {"field-id": 4, "names": []},
    ]
)


@pytest.mark.parametrize(
    ("change", "is_taken", "may_be_own"),
    [
        ({"verb": "added", "path": ["a"]}, True, False),
        ({"verb": "added", "path": ["a2"]}, True, False),
        # Names of files are told apart by their case.
        ({"verb": "added", "path": ["A2"]}, False, False),
        ({"verb": "added", "path": ["b"]}, False, False),
        ({"verb": "added", "path": ["m"]}, False, False),
        ({"verb": "added", "path": ["l", "element", "m"]}, True, False),
        ({"verb": "added", "path": ["l", "element", "x"]}, False, False),
        # The mapping has the struct under another name than the table: any of its entries may be it.
        ({"verb": "added", "path": ["S", "x"]}, True, False),
        ({"verb": "added", "path": ["L", "element", "m"]}, True, False),
        ({"verb": "added", "path": ["S", "m"]}, False, False),
        ({"verb": "renamed", "path": ["id"], "new_name": "a"}, True, False),
        ({"verb": "renamed", "path": ["b"], "new_name": "a"}, True, True),
        ({"verb": "renamed", "path": ["s", "x"], "new_name": "y"}, False, False),
        ({"verb": "renamed", "path": ["a2"], "new_name": "a"}, False, False),
        ({"verb": "renamed", "path": ["a"], "new_name": "c"}, False, False),
        ({"verb": "widened", "path": ["a"]}, False, False),
    ],
)
def test_names_that_files_without_ids_have_for_another_column(
    change: dict[str, Any], is_taken: bool, may_be_own: bool
) -> None:
    change = {**change, "path": PURE.path_of(change["path"])}
    names = PURE.names_of_others(PURE.read_name_mapping(MAPPING), [change])
    assert names == ([{"change": change, "may_be_own": may_be_own}] if is_taken else [])
    assert PURE.names_of_others(PURE.read_name_mapping(None), [change]) == []


@pytest.mark.parametrize("text", ["*********(redacted)", "", "7", '"a"'])
def test_any_name_may_be_taken_where_the_mapping_is_hidden(text: str) -> None:
    mapping = PURE.read_name_mapping(text)
    change = {"verb": "added", "path": PURE.path_of(["a"])}
    described = {"verb": "described", "path": PURE.path_of(["a"])}
    assert [found["change"] for found in PURE.names_of_others(mapping, [change, described])] == [change]
