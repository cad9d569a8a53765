"""How many rows of a data file are left, as far as metadata tell."""

from typing import Any

import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry
from pyiceberg.typedef import Record

from dbt.adapters.sparkevolve.iceberg.deleted_rows import DeletedRows


def file(
    rows: int, content: DataFileContent = DataFileContent.DATA, *, day: int = 1, **more: Any
) -> DataFile:
    found = DataFile.from_args(
        content=content,
        file_path=more.pop("path", "a"),
        file_format=FileFormat.PARQUET,
        partition=more.pop("partition", Record(day)),
        record_count=rows,
        file_size_in_bytes=1,
        **more,
    )
    found.spec_id = 0
    return found


def positions(rows: int, path: str | None = "a", *, day: int = 1) -> DataFile:
    bounds = None if path is None else {2147483546: path.encode()}
    return file(rows, DataFileContent.POSITION_DELETES, day=day, lower_bounds=bounds, upper_bounds=bounds)


def equal(*, day: int = 1, partition: Record | None = None) -> DataFile:
    more = {} if partition is None else {"partition": partition}
    return file(1, DataFileContent.EQUALITY_DELETES, day=day, **more)


DATA = ManifestEntry.from_args(sequence_number=5, data_file=file(10))


@pytest.mark.parametrize(
    ("deletes", "left"),
    [
        ([], (10, True)),
        ([(positions(3), 6)], (7, True)),
        ([(positions(3, "b"), 6)], (10, True)),
        # The same rows may be in both.
        ([(positions(3), 6), (positions(4), 7)], (6, False)),
        # Of a whole partition, of a deletion vector, whose metadata name no file, and by values.
        ([(positions(3, None), 5)], (10, False)),
        ([(positions(3, None), 4)], (10, True)),
        ([(positions(3, None, day=2), 6)], (10, True)),
        ([(equal(), 6)], (10, False)),
        ([(equal(), 5)], (10, True)),
        ([(equal(day=2), 6)], (10, True)),
        ([(equal(partition=Record()), 6)], (10, False)),
    ],
)
def test_rows_that_are_left_of_ten(deletes: list[tuple[DataFile, int]], left: tuple[int, bool]) -> None:
    found = DeletedRows()
    for delete, number in deletes:
        found.add(delete, number)
    assert found.rows_left(DATA) == left
