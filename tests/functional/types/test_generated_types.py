"""Names and types of all kinds, as Spark writes them: each is read as what it is, or Spark refuses it."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import AnalysisException

from dbt.adapters.sparkevolve.evolution.names import fold, quote
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from dbt.adapters.sparkevolve.spark.session import SESSIONS
from dbt.adapters.sparkevolve.sql.spark_types import (
    Array,
    Leaf,
    Map,
    SparkType,
    Struct,
    UnreadableType,
    columns_from_json,
    no_rows,
    parse_type,
    types_query,
)
from dbt.adapters.sparkevolve.sql.storable import storable_query

# How a type is written in DDL, and what Spark calls it: char and varchar are strings in a query.
LEAVES = {
    **{
        name: name
        for name in ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string")
    },
    **{name: name for name in ("binary", "date", "timestamp_ntz", "decimal(38,0)", "decimal(5,2)", "void")},
    **{name: name for name in ("variant", "interval day to second", "interval year to month")},
    **{name: name for name in ("interval hour", "interval minute to second", "interval month")},
    **{name: name for name in ("string collate UTF8_LCASE", "string collate UNICODE_CI_AI")},
    "timestamp_ltz": "timestamp",
    "char(3)": "string",
    "varchar(4)": "string",
}
# Parts of names: all that separates something in a type's text, and words that it has.
PARTS = (
    *(
        "a",
        "A",
        "b",
        "é",
        "ß",
        "İ",
        "名前",
        "😀",
        " ",
        ".",
        "`",
        "'",
        '"',
        ",",
        ":",
        "<",
        ">",
        "(",
        ")",
        "\\",
    ),
    *(
        "\n",
        "\t",
        "#",
        "--",
        "/*",
        ";",
        "%s",
        "{{",
        "int",
        "void",
        ":int,",
        ":void,a",
        ">,a:",
        "struct<a:",
        "array<",
    ),
    *("decimal(1,2)", "string collate UTF8_LCASE", "variant"),
)
NAMES = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map("".join)
TYPES: st.SearchStrategy[SparkType] = st.recursive(
    st.sampled_from(sorted(LEAVES)).map(Leaf),
    lambda inner: st.one_of(
        inner.map(Array),
        st.builds(Map, st.sampled_from(["string", "int", "binary"]).map(Leaf), inner),
        st.lists(st.tuples(NAMES, inner), min_size=1, max_size=3, unique_by=lambda f: fold(f[0])).map(
            lambda fields: Struct(tuple(fields))
        ),
    ),
    max_leaves=5,
)
COLUMNS = st.lists(st.tuples(NAMES, TYPES), min_size=10, max_size=14, unique_by=lambda c: fold(c[0]))


def ddl(type_: SparkType) -> str:
    if isinstance(type_, Leaf):
        return type_.text
    if isinstance(type_, Array):
        return f"array<{ddl(type_.element)}>"
    if isinstance(type_, Map):
        return f"map<{ddl(type_.key)},{ddl(type_.value)}>"
    return f"struct<{','.join(f'{quote(name)}: {ddl(inner)}' for name, inner in type_.fields)}>"


def in_spark(type_: SparkType) -> SparkType:
    if isinstance(type_, Leaf):
        return Leaf(LEAVES[type_.text])
    if isinstance(type_, Array):
        return Array(in_spark(type_.element))
    if isinstance(type_, Map):
        return Map(in_spark(type_.key), in_spark(type_.value))
    return Struct(tuple((name, in_spark(inner)) for name, inner in type_.fields))


@pytest.fixture(scope="session")
def session(method: str, profile_target: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A session in dbt's Spark: its schemas are the only ones that are written without ambiguity."""
    if method != "session":
        pytest.skip("needs Spark in this process")
    folder: Path = tmp_path_factory.mktemp("types")
    lake = resolve("lake", profile_target["catalog_properties"], folder)
    return SESSIONS.get(lake, {**profile_target["spark_config"], "spark.sql.test.types": "true"}, {}, folder)


@settings(
    max_examples=6,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(columns=COLUMNS)
def test_columns_are_read_as_what_they_are(session: Any, columns: list[tuple[str, SparkType]]) -> None:
    sql = "select " + ", ".join(f"cast(null as {ddl(type_)}) as {quote(name)}" for name, type_ in columns)
    frame = session.sql(no_rows(sql))
    expected = Struct(tuple((name, in_spark(type_)) for name, type_ in columns))
    assert columns_from_json(str(frame._jdf.schema().json())) == expected
    # Over Thrift: the names as they are, and the type of each column as text.
    names = list(frame.columns)
    assert names == [name for name, _ in columns]
    (row,) = session.sql(types_query(sql, names)).collect()
    for (name, type_), text in zip(expected.fields, row, strict=True):
        try:
            read = parse_type(text)
        except UnreadableType:
            continue
        if read != type_:
            refused(session, sql, name, type_, read)


def refused(session: Any, sql: str, name: str, type_: SparkType, read: SparkType) -> None:
    """See that Spark refuses what follows from a misread type, unless nothing or the same follows from it."""
    real, wrong = (storable_query(sql, Struct(((name, found),))).sql for found in (type_, read))
    if wrong in (sql, real):
        return
    # The last one of a misread name with a backtick that has no other.
    refusals = r"FIELD_NOT_FOUND|AMBIGUOUS_REFERENCE_TO_FIELDS|INVALID_ATTRIBUTE_NAME_SYNTAX"
    with pytest.raises(AnalysisException, match=refusals):
        session.sql(no_rows(wrong))
