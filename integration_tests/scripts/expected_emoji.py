"""Work out what the emoji table must look like, without dbt and without Spark.

This is a model of the rule in plain Python. It reads the five seed files
``emoji_<release>.csv`` and nothing else, and shares no code with the adapter
or with the script which derives the seeds.

The rule: an incremental table with the unique key ``unified`` is loaded with
the five releases in order, by delete and insert.

* Rows of the table whose key is in the batch are replaced by those of the
  batch. Other rows stay.
* A column is never dropped. A new column is appended at the end, in the order
  of the batch.
* A column of the table which the batch lacks is NULL in the rows of the batch.
  A column which is new in the batch is NULL in the rows which stay.
* Names of columns are the same if their ``str.lower()`` is the same. The table
  keeps its own spelling.
* An empty field of a seed is NULL.

The model of dbt under test is ``select '<release>' as release, * from <seed>``,
so the first column of each batch is ``release``.

In the result, ``releases`` has for each release: ``added`` (columns which the
release adds to the existing table; none for the first release, which creates
it), ``padded`` (columns of the table which the batch lacks), ``rows`` and
``batch_rows``, and the ``columns`` and ``null_counts`` of the whole table
after the release. ``final_columns`` has the columns of the table at the end
with the field ids they get if those of the first batch are numbered from 1 and
each later column takes the next number. ``null_counts_by_release`` counts the
rows of the table at the end, and their NULLs, by the ``release`` which wrote
them last.

Needs Python 3.10 or newer (standard library only)::

    python integration_tests/scripts/expected_emoji.py
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

RELEASES = ("2.4.4", "3.0.0", "4.0.4", "5.0.1", "6.1.1")
KEY = "unified"
RELEASE_COLUMN = "release"
PROJECT = Path(__file__).resolve().parent.parent

# A row is keyed by the lower-case name of the column; a NULL is None.
Row = dict[str, str | None]


def read_batch(path: Path, release: str) -> tuple[list[str], list[Row]]:
    """Read a seed; return the names of the batch and its rows."""
    with path.open(encoding="utf-8", newline="") as stream:
        lines = list(csv.reader(stream, strict=True))
    names = [RELEASE_COLUMN, *lines[0]]
    folded = [name.lower() for name in names]
    if len(set(folded)) != len(folded):
        raise SystemExit(f"{path.name}: two columns have the same name")
    rows: list[Row] = []
    for line in lines[1:]:
        if len(line) != len(lines[0]):
            raise SystemExit(f"{path.name}: a row has {len(line)} fields: {line[:2]}")
        values = [release, *(field or None for field in line)]
        rows.append(dict(zip(folded, values, strict=True)))
    keys = {row[KEY] for row in rows}
    if None in keys or len(keys) != len(rows):
        raise SystemExit(f"{path.name}: {KEY} is not a unique key")
    return names, rows


class Table:
    """The incremental table: its columns in order, and its rows by key."""

    def __init__(self) -> None:
        """Start without columns and without rows."""
        self.columns: list[str] = []
        self.rows: dict[str, Row] = {}

    def load(self, names: list[str], batch: list[Row]) -> tuple[list[str], list[str]]:
        """Load a batch; return the columns it added and those it lacked."""
        first = not self.columns
        known = {column.lower() for column in self.columns}
        given = {name.lower() for name in names}
        padded = [column for column in self.columns if column.lower() not in given]
        added = [name for name in names if name.lower() not in known]
        self.columns.extend(added)
        for row in batch:
            key = row[KEY]
            assert key is not None
            self.rows[key] = row
        return ([] if first else added), padded

    def null_counts(self, release: str | None = None) -> dict[str, int]:
        """Count the NULLs of each column, of all rows or of those of a release."""
        rows = self.rows_of(release)
        return {column: sum(row.get(column.lower()) is None for row in rows) for column in self.columns}

    def rows_of(self, release: str | None = None) -> list[Row]:
        """Return all rows, or the rows which a release wrote last."""
        rows = self.rows.values()
        return [row for row in rows if release is None or row[RELEASE_COLUMN] == release]


def expect(seeds: Path) -> dict[str, Any]:
    """Load the releases in order; return all that is expected of the table."""
    table = Table()
    releases = []
    for release in RELEASES:
        path = seeds / f"emoji_{release.replace('.', '_')}.csv"
        names, batch = read_batch(path, release)
        added, padded = table.load(names, batch)
        releases.append(
            {
                "release": release,
                "added": added,
                "padded": padded,
                "batch_rows": len(batch),
                "rows": len(table.rows),
                "columns": list(table.columns),
                "null_counts": table.null_counts(),
            }
        )
    return {
        "key": KEY,
        "releases": releases,
        "final_columns": [
            {"id": number, "name": column} for number, column in enumerate(table.columns, start=1)
        ],
        "null_counts_by_release": {
            release: {
                "rows": len(table.rows_of(release)),
                "null_counts": table.null_counts(release),
            }
            for release in RELEASES
        },
    }


def main(arguments: list[str] | None = None) -> int:
    """Read the seeds and write the expectation."""
    parser = argparse.ArgumentParser(description="Work out the expected emoji table.")
    parser.add_argument("--seeds", type=Path, default=PROJECT / "seeds", help="folder of the seeds")
    parser.add_argument("--out", type=Path, default=PROJECT / "expected" / "emoji.json", help="file to write")
    options = parser.parse_args(arguments)
    text = json.dumps(expect(options.seeds), indent=2, ensure_ascii=False) + "\n"
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_bytes(text.encode("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
