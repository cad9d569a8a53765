"""What a node tells dbt that it has done."""

from dbt.adapters.contracts.connection import AdapterResponse
from pyiceberg.types import IntegerType, LongType, StringType

from dbt.adapters.sparkevolve.evolution.changes import (
    AddColumn,
    AddField,
    RelaxNotNull,
    RenameField,
    SetDoc,
    WidenType,
)
from dbt.adapters.sparkevolve.load.letters import Letters
from dbt.adapters.sparkevolve.load.plan_report import columns_of, not_returned
from dbt.adapters.sparkevolve.load.results import NodeResult, Response, Rows, together
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation

CHANGES = [
    AddColumn(("a",), StringType()),
    AddField(("s", "b"), StringType()),
    WidenType(("n",), IntegerType(), LongType()),
    RenameField(("old",), "new"),
    RelaxNotNull(("r",)),
    SetDoc(("a",), "text"),
]
REMOVED = {
    "`p`": "padded with NULL",
    "`d`": "padded with 'x'",
    "`k`": "rows that are replaced keep its value, new ones get NULL",
}


def test_no_warning_that_is_told_has_a_secret() -> None:
    result = NodeResult(warnings=["see https://me:hunter2@host", "see https://host"])
    assert result.response(AdapterResponse("OK"), None).warnings == ["see https://host"]


def test_all_that_is_told() -> None:
    result = NodeResult(
        Rows(28258, None, 3),
        28258,
        columns_of(CHANGES) | not_returned(REMOVED) | {"columns_left_out": []},
        2,
        7711512303338456790,
        ["`t`: w", "`t`: w"],
    )
    response = result.response(AdapterResponse("OK", code="OK"), None)
    assert str(response) == "OK 28,258 rows, +2 columns, 1 widened, 1 renamed, 2 padded, 1 kept"
    assert response.data() == {
        "rows_affected": 28258,
        "rows_inserted": 28258,
        "rows_deleted": 3,
        "columns_added": ["`a`", "`s`.`b`"],
        "columns_widened": ["`n`"],
        "columns_relaxed": ["`r`"],
        "columns_renamed": {"`old`": "`new`"},
        "columns_padded": ["`p`", "`d`"],
        "columns_kept": ["`k`"],
        "columns_left_out": [],
        "columns_lost": [],
        "schema_id": 2,
        "snapshot_id": "7711512303338456790",
        "warnings": ["`t`: w"],
    }


def test_rows_that_were_set_aside_are_told() -> None:
    name = SparkEvolveRelation.create("lake", "s", "t")
    letters = Letters(name, name, name, name, "t", rows=10, bad=1)
    response = NodeResult(Rows(9), 9).response(AdapterResponse("OK"), letters)
    assert str(response) == "OK 9 rows, 1 row set aside"
    assert response.dead_letters == {"table": "`lake`.`s`.`t`", "rows": 1, "of": 10, "reasons": []}


def test_what_is_no_load_is_said_as_before() -> None:
    planned = NodeResult().response(AdapterResponse("planned, nothing was changed", rows_affected=0), None)
    assert (str(planned), planned.rows_affected) == ("planned, nothing was changed", 0)
    assert str(NodeResult(Rows(0, None, 0), 0).response(AdapterResponse("OK, an empty batch"), None)) == (
        "OK, an empty batch"
    )


def test_the_sum_of_batches_has_what_is_known_of_each() -> None:
    first = Response(
        "OK",
        rows_affected=2,
        rows_inserted=2,
        columns_added=["`a`"],
        columns_padded=["`p`"],
        columns_renamed={"`o`": "`n`"},
        schema_id=1,
        snapshot_id="7",
        warnings=["w"],
        dead_letters={"table": "`t`", "rows": 3, "of": 5, "reasons": []},
    )
    second = Response(
        "OK",
        rows_affected=1000,
        rows_inserted=1000,
        rows_deleted=4,
        columns_padded=["`p`", "`q`"],
        warnings=["w"],
        dead_letters={"table": "`t`", "rows": 1, "of": 1001, "reasons": []},
    )
    total = together([first, second])
    assert str(total) == "OK 1,002 rows, +1 column, 1 renamed, 2 padded, 4 rows set aside"
    assert total.data() == {
        "rows_affected": 1002,
        "rows_inserted": 1002,
        "columns_added": ["`a`"],
        "columns_widened": [],
        "columns_relaxed": [],
        "columns_renamed": {"`o`": "`n`"},
        "columns_padded": ["`p`", "`q`"],
        "columns_kept": [],
        "columns_left_out": [],
        "columns_lost": [],
        "warnings": ["w"],
        "dead_letters": {"table": "`t`", "rows": 4},
    }
    assert together([second, second]).rows_deleted == 8
    unknown = Response("OK", rows_inserted=None)
    assert (str(together([first, unknown])), together([first, unknown]).rows_inserted) == (
        "OK +1 column, 1 renamed, 1 padded, 3 rows set aside",
        None,
    )
