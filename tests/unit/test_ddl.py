"""Names, types and words of a configuration do not become SQL of their own."""

import pytest

from dbt.adapters.sparkevolve.sql.ddl import describe, is_type, is_word, name_sql, partition_sql


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("a", "`a`"),
        (" Day ", "`Day`"),
        ("`a b`", "`a b`"),
        ("`a``b`", "`a``b`"),
        ("a.b", "`a`.`b`"),
        ("a.`b.c`", "`a`.`b.c`"),
        ("a b", "`a b`"),
        ("größe", "`größe`"),
        ("a) location 'x' --", "`a) location 'x' --`"),
        ("a`) --", "`a``) --`"),
        ("a.", "`a.`"),
    ],
)
def test_a_name_is_quoted_whatever_it_is(text: str, sql: str) -> None:
    assert name_sql(text) == sql


@pytest.mark.parametrize(
    ("partition_by", "terms"),
    [
        ("a", ["`a`"]),
        (["a", "b.c"], ["`a`", "`b`.`c`"]),
        ("a, days(ts)", ["`a`", "days(`ts`)"]),
        (["bucket(16, `my id`)", "truncate(name, 4)"], ["bucket(16, `my id`)", "truncate(`name`, 4)"]),
        ("days( ts ) comment 'x", ["`days( ts ) comment 'x`"]),
        ("days(ts) ) tblproperties (x)", ["days(`ts) ) tblproperties (x`)"]),
        ("`a,b`", ["`a,b`"]),
    ],
)
def test_a_partition_is_a_name_or_a_transform_of_one(partition_by: str | list[str], terms: list[str]) -> None:
    assert partition_sql(partition_by) == terms


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("int", True),
        ("decimal(10, 2)", True),
        ("struct<a: int, `b c`: array<string>>", True),
        ("struct<a: int comment 'it\\'s, > fine'>", True),
        ("string collate UTF8_LCASE", True),
        ("map<string,decimal(3,1)>", True),
        ("", False),
        ("int, b string", False),
        ("int) using parquet --", False),
        ("int; drop table t", False),
        ("int /* x */", False),
        ("int -- x", False),
        ("struct<a: int", False),
        ("int comment 'x", False),
        ("int comment `x", False),
        ("decimal(3>,1)", False),
    ],
)
def test_a_type_is_one_type(text: str, is_one: bool) -> None:
    assert is_type(text) is is_one


@pytest.mark.parametrize(
    ("text", "is_one"), [("iceberg", True), ("a.b_c", True), ("", False), ("x y", False), ("x'--", False)]
)
def test_a_format_is_a_word(text: str, is_one: bool) -> None:
    assert is_word(text) is is_one


def test_descriptions_are_given_by_statements_of_their_own() -> None:
    assert describe("t", "'a'", {"x `y`": "'b'", "c.d": "'c'"}) == [
        "ALTER TABLE t SET TBLPROPERTIES ('comment' = 'a')",
        "ALTER TABLE t ALTER COLUMN `x ``y``` COMMENT 'b'",
        "ALTER TABLE t ALTER COLUMN `c.d` COMMENT 'c'",
    ]
    assert describe("t", "''", {}) == ["ALTER TABLE t SET TBLPROPERTIES ('comment' = '')"]
    assert describe("t", None, {"x": "''"}) == ["ALTER TABLE t ALTER COLUMN `x` COMMENT ''"]
