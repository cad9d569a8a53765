"""What is asked of a staged batch."""

from dbt.adapters.sparkevolve.evolution.projection import (
    Keep,
    ProjectedColumn,
    RebuildStruct,
    StructMember,
)
from dbt.adapters.sparkevolve.sql.batch_queries import count_nulls, limited_rows, repeated_keys
from dbt.adapters.sparkevolve.sql.dml import Key

TARGET, STAGED = "`lake`.`db`.`t`", "`lake`.`db`.`t__dbt_tmp_1`"


def test_nulls_are_counted_for_all_columns_at_once() -> None:
    assert count_nulls("s", ["A.b", "c`"]) == (
        "SELECT count_if(DBT_INTERNAL_SOURCE.`A.b` IS NULL), count_if(DBT_INTERNAL_SOURCE.`c``` IS NULL)\n"
        "FROM s AS DBT_INTERNAL_SOURCE"
    )


def test_repeated_keys_are_told_with_their_number() -> None:
    assert repeated_keys(STAGED, Key(("Id", "a.b"), rebuilt=(REORDERED,)), 3) == (
        "SELECT CAST(DBT_INTERNAL_SOURCE.`Id` AS STRING), CAST(DBT_INTERNAL_SOURCE.`a.b` AS STRING), "
        "count(*)\nFROM (SELECT DBT_INTERNAL_SOURCE.`Id` AS `Id`, "
        "IF(DBT_INTERNAL_SOURCE.`A.B` IS NULL, NULL, named_struct('x', DBT_INTERNAL_SOURCE.`A.B`.`X`)) "
        "AS `a.b` FROM `lake`.`db`.`t__dbt_tmp_1` AS DBT_INTERNAL_SOURCE) AS DBT_INTERNAL_SOURCE\n"
        "GROUP BY DBT_INTERNAL_SOURCE.`Id`, DBT_INTERNAL_SOURCE.`a.b`\n"
        "HAVING count(*) > 1\n"
        "ORDER BY CAST(DBT_INTERNAL_SOURCE.`Id` AS STRING), CAST(DBT_INTERNAL_SOURCE.`a.b` AS STRING)\n"
        "LIMIT 3"
    )


def test_predicates_are_asked_of_as_a_load_reads_them() -> None:
    """What is not deterministic is refused in a join alone, and some queries are in one, too."""
    texts = ["a > rand()", "b in (select 1)"]
    assert limited_rows("SELECT 1", STAGED, texts, with_source=False) == (
        "SELECT 1 AS found\nFROM (SELECT 1 AS `sparkevolve_row`)\nJOIN (\nSELECT 1\n) AS DBT_INTERNAL_DEST\n"
        "ON (a > rand())\nWHERE (a > rand())\n  AND (b in (select 1))"
    )
    assert limited_rows("SELECT 1", STAGED, texts[1:], with_source=True) == (
        f"SELECT 1 AS found\nFROM {STAGED} AS DBT_INTERNAL_SOURCE\nJOIN (\nSELECT 1\n) AS DBT_INTERNAL_DEST\n"
        "ON (true)\nWHERE (b in (select 1))"
    )


REORDERED = ProjectedColumn("a.b", "A.B", RebuildStruct((StructMember("x", "X", Keep()),)))
