"""How loaded rows are checked."""

import pytest

from dbt.adapters.sparkevolve.evolution.projection import (
    Cast,
    Keep,
    Pad,
    ProjectedColumn,
    RebuildStruct,
    StructMember,
)
from dbt.adapters.sparkevolve.sql.audit_queries import count_violations, loaded_rows, some_violations
from dbt.adapters.sparkevolve.sql.dml import (
    Key,
    delete_statement,
    delete_where,
    merge_statement,
)

TARGET, STAGED = "`lake`.`db`.`t`", "`lake`.`db`.`t__dbt_tmp_1`"

PADDED = [
    ProjectedColumn("Id", "ID", Cast("bigint")),
    ProjectedColumn("gone", None, Pad("string")),
    ProjectedColumn(
        "s", "S", RebuildStruct((StructMember("x", "X", Keep()), StructMember("y", None, Pad("int"))))
    ),
    ProjectedColumn("q`q", "q`q", Keep()),
]


def test_loaded_rows_are_those_in_the_files_of_the_load() -> None:
    rows = loaded_rows("`t`.`branch_b`", ["file:/a b/it's.parquet", "s3://x/2.parquet"], STAGED, None)
    assert rows == (
        "SELECT *\nFROM `t`.`branch_b` AS DBT_INTERNAL_DEST\n"
        "WHERE `_file` IN (CAST(X'66696c653a2f6120622f697427732e70617271756574' AS STRING), 's3://x/2.parquet')"
    )


@pytest.mark.parametrize("predicates", [(), ("DBT_INTERNAL_DEST.day = DBT_INTERNAL_SOURCE.day",)])
def test_of_a_merge_all_rows_with_a_key_of_the_batch_were_loaded(predicates: tuple[str, ...]) -> None:
    """What a MERGE inserts need not meet its predicates, and these may be about a row of the batch."""
    assert loaded_rows("b", ["f"], "s", Key(("Id",), True, predicates)) == (
        "SELECT *\nFROM b AS DBT_INTERNAL_DEST\nWHERE `_file` IN ('f')\n"
        "  AND EXISTS (SELECT 1 FROM (SELECT DBT_INTERNAL_SOURCE.`Id` AS key_0 "
        "FROM s AS DBT_INTERNAL_SOURCE) AS DBT_INTERNAL_SOURCE "
        "WHERE DBT_INTERNAL_SOURCE.key_0 <=> DBT_INTERNAL_DEST.`Id`)"
    )


def test_a_comment_at_the_end_of_a_condition_does_not_take_the_parenthesis() -> None:
    key = Key(("Id",), predicates=("d > 1 -- recent", "e"))
    assert delete_statement("t", "s", key) == (
        "DELETE FROM t AS DBT_INTERNAL_DEST\n"
        "WHERE DBT_INTERNAL_DEST.`Id` IN (SELECT DBT_INTERNAL_SOURCE.`Id` FROM s AS DBT_INTERNAL_SOURCE)\n"
        "  AND (d > 1 -- recent\n)\n"
        "  AND (e)"
    )
    assert "\n  AND (d > 1 -- recent\n)\n  AND (e)\nWHEN" in merge_statement("t", "s", PADDED, key, [])
    assert delete_where("t", ["a -- b"]) == "DELETE FROM t AS DBT_INTERNAL_DEST\nWHERE (a -- b\n)"
    unmet = "((a --\n) AND true) IS NOT TRUE"
    counted = f"  count_if({unmet}) AS `audit_0`\n"
    assert counted in count_violations("select 1", ["a --"])
    assert f"WHERE {unmet}\n" in some_violations("select 1", "a --", ["x"], 3)


def test_violations_are_counted_for_all_audits_at_once() -> None:
    assert count_violations("SELECT 1", ["a > 0 OR b", "c is not null"]) == (
        "SELECT\n"
        "  count_if(((a > 0 OR b) AND true) IS NOT TRUE) AS `audit_0`,\n"
        "  count_if(((c is not null) AND true) IS NOT TRUE) AS `audit_1`\n"
        "FROM (\nSELECT 1\n) AS DBT_INTERNAL_DEST"
    )


def test_some_violations_are_shown_as_texts_in_order() -> None:
    assert some_violations("SELECT 1", "a > 0 OR b", ["Id", "q`q"], 3) == (
        "SELECT DISTINCT CAST(DBT_INTERNAL_DEST.`Id` AS STRING) AS `text_0`, "
        "CAST(DBT_INTERNAL_DEST.`q``q` AS STRING) AS `text_1`\n"
        "FROM (\nSELECT 1\n) AS DBT_INTERNAL_DEST\n"
        "WHERE ((a > 0 OR b) AND true) IS NOT TRUE\n"
        "ORDER BY `text_0`, `text_1`\nLIMIT 3"
    )
