"""The SQL of dbt's snapshots, whole."""

import pytest

from dbt.adapters.sparkevolve.evolution.projection import (
    Cast,
    Keep,
    Pad,
    ProjectedColumn,
    RebuildStruct,
    StructMember,
)
from dbt.adapters.sparkevolve.sql.snapshots import conforming_query, snapshot_row_changed, snapshot_statement

TARGET, STAGED = "`lake`.`db`.`t`", "`lake`.`db`.`t__dbt_tmp_1`"


@pytest.mark.parametrize(
    ("current", "is_open"),
    [
        (None, "DBT_INTERNAL_DEST.`to``` IS NULL"),
        (
            "to_date('9999-12-31')",
            "(DBT_INTERNAL_DEST.`to``` IS NULL OR DBT_INTERNAL_DEST.`to``` = to_date('9999-12-31'))",
        ),
    ],
)
def test_a_snapshot_closes_versions_and_adds_others(current: str | None, is_open: str) -> None:
    columns = [ProjectedColumn("id", "ID", Keep()), ProjectedColumn("gone", None, Pad("int"))]
    statement = snapshot_statement(
        TARGET, STAGED, columns, scd_id="my id", valid_to="to`", valid_to_current=current
    )
    assert statement == (
        "MERGE INTO `lake`.`db`.`t` AS DBT_INTERNAL_DEST\n"
        "USING `lake`.`db`.`t__dbt_tmp_1` AS DBT_INTERNAL_SOURCE\n"
        "ON DBT_INTERNAL_SOURCE.`my id` = DBT_INTERNAL_DEST.`my id`\n"
        f"WHEN MATCHED AND {is_open} AND DBT_INTERNAL_SOURCE.dbt_change_type IN ('update', 'delete')\n"
        "  THEN UPDATE SET DBT_INTERNAL_DEST.`to``` = DBT_INTERNAL_SOURCE.`to```\n"
        "WHEN NOT MATCHED AND DBT_INTERNAL_SOURCE.dbt_change_type = 'insert'\n"
        "  THEN INSERT (`id`, `gone`)\n"
        "VALUES (\n  DBT_INTERNAL_SOURCE.`ID`,\n  CAST(NULL AS int)\n)"
    )


def test_a_snapshot_s_query_returns_what_the_table_has_in_its_order() -> None:
    member = StructMember("x", "X", Keep())
    listed = [
        ProjectedColumn("s", "S", RebuildStruct((member,))),
        ProjectedColumn("id", "ID", Cast("bigint")),
        ProjectedColumn("gone", None, Pad("int")),
        ProjectedColumn("new", "new", Keep()),
    ]
    rebuilt = listed[0].render("DBT_INTERNAL_SOURCE")
    assert "`S`.`X`" in rebuilt
    assert conforming_query("select 1 -- all", ["ID", "S", "new", "o`dd"], listed) == (
        f"select DBT_INTERNAL_SOURCE.`ID` AS `id`, {rebuilt} AS `s`, DBT_INTERNAL_SOURCE.`new` AS `new`, "
        "DBT_INTERNAL_SOURCE.`o``dd` AS `o``dd` from (\nselect 1 -- all\n) as DBT_INTERNAL_SOURCE"
    )
    assert snapshot_row_changed(["a", "b`"]) == (
        "(not (snapshotted_data.`a` <=> source_data.`a` and snapshotted_data.`b``` <=> source_data.`b```))"
    )
