"""What is said of a model whose table was made otherwise."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from dbt.adapters.sparkevolve.load.shared import SharedByThreads
from dbt.adapters.sparkevolve.load.table_differences import differences, is_same_location
from tests.unit.helpers import columns, model_settings


@pytest.mark.parametrize(
    ("one", "other", "answer"),
    [
        ("file:///a/b", "file:/a/b/", True),
        ("/a//b", "file:/a/b", True),
        ("/a/b", "hdfs://node:8020/a/b", True),
        ("s3a://bucket/a", "s3://bucket/a/", True),
        ("abfs://c@acc/a", "ABFSS://c@acc/a", True),
        ("s3://bucket/a", "s3://bucket/A", False),
        ("s3://bucket/a", "s3://other/a", False),
        ("gs://bucket/a", "s3://bucket/a", False),
        ("/a/b c?#", "file:/a/b c?#", True),
        ("/a/b", "/a", False),
    ],
)
def test_a_location_is_the_same_as_another_client_writes_it(one: str, other: str, answer: bool) -> None:
    assert is_same_location(one, other) == answer
    assert is_same_location(other, one) == answer


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"location": None}, []),
        ({"location": "file://{folder}/t/"}, []),
        (
            {"location": "/else/t"},
            [
                "`location_root` of the model says /else/t, and the table stays in {folder}/t. "
                "Take `location_root` out, or make it what the table has."
            ],
        ),
        ({"options": {"a": 1, "b": True}}, []),
        (
            {"options": {"a": 2, "b": True, "c": "it's"}},
            [
                "`options` of the model reach a table when it is made, and this one lacks a = 2, c = it's. "
                "Use `tblproperties`, which reach it later too."
            ],
        ),
        # Without a number of buckets it means nothing anywhere.
        ({"clustered_by": "id"}, []),
        (
            {"clustered_by": "id", "buckets": 4, "strategy": "append"},
            [
                "The model is partitioned by bucket(4, id) and the table by nothing. The rows are written "
                "as the table is partitioned: change it with `ALTER TABLE`, or make `clustered_by` what "
                "the table has."
            ],
        ),
        (
            {"partition_by": "p", "clustered_by": ["Id"], "buckets": 4, "strategy": "full_refresh"},
            [
                "The model is partitioned by p, bucket(4, id) and the table by nothing. A full refresh "
                "leaves that as it is: change it with `ALTER TABLE`, or set `full_refresh_schema: replace`."
            ],
        ),
    ],
)
def test_what_a_table_cannot_take_any_more_is_said(
    tmp_path: Path, given: dict[str, Any], said: list[str]
) -> None:
    catalog = load_catalog("c", type="sql", uri="sqlite:///:memory:", warehouse=str(tmp_path))
    catalog.create_namespace("n")
    table = catalog.create_table(
        "n.t", columns("id int"), location=f"{tmp_path}/t", properties={"a": "1", "b": "true"}
    )
    folder = str(tmp_path)
    given = {k: v.format(folder=folder) if isinstance(v, str) else v for k, v in given.items()}
    assert differences(table, model_settings(**given)) == [text.format(folder=folder) for text in said]


def test_of_several_threads_one_tells() -> None:
    """Also if another asks while it notes that."""

    class Slow(set[tuple[str, str]]):
        def __contains__(self, of: object) -> bool:
            found = super().__contains__(of)
            time.sleep(0.05)
            return found

    shared, told, firsts = SharedByThreads(), Slow(), []
    threads = [
        threading.Thread(target=lambda: firsts.append(shared.is_first(told, ("run", "t")))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(firsts) == [False, False, True]
    assert shared.is_first(told, ("run", "u"))
    assert shared.is_first(told, ("next", "t"))
