"""Load five releases of a data set whose columns come and go, and check what the table then holds.

Run from any folder: ``python integration_tests/demo.py``. It runs ``dbt seed``, five times ``dbt run`` and
``dbt test`` on the project beside it, reads the table back with PyIceberg after each, prints what it found,
compares it with ``expected/emoji.json``, and exits with 1 if anything differs.
"""

import argparse
import csv
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table

PROJECT = Path(__file__).resolve().parent
RELEASES = ("2.4.4", "3.0.0", "4.0.4", "5.0.1", "6.1.1")
TABLE = ("emoji_history", "emoji")


def open_catalog(target: str, project: Path) -> Catalog:
    """Open the catalog of the profile's output ``target`` with PyIceberg, beside the adapter."""
    if target == "thrift":
        uri, warehouse = os.environ["CATALOG_URI"], os.environ["CATALOG_WAREHOUSE"]
    else:
        uri = f"sqlite:///{project}/.sparkevolve/catalog.db"
        warehouse = f"file://{project}/.sparkevolve/warehouse"
    return load_catalog("lake", type="sql", uri=uri, warehouse=warehouse)


def dbt(project: Path, target: str, *arguments: str) -> None:
    """Run a dbt command on the project; end the program if it fails."""
    where = ["--project-dir", str(project), "--profiles-dir", str(project), "--target", target]
    result = dbtRunner().invoke(["--quiet", *arguments, *where])
    if not result.success:
        sys.exit(f"dbt {' '.join(arguments)} failed: {result.exception or 'see above'}")


def null_counts(table: Table) -> dict[str, int]:
    """Return the number of NULLs of each column, in table order."""
    rows = table.scan().to_arrow()
    return {name: rows.column(name).null_count for name in rows.column_names}


def seed_columns(project: Path, release: str) -> list[str]:
    """Return the columns of a release, as its file has them."""
    name = f"emoji_{release.replace('.', '_')}.csv"
    with (project / "seeds" / name).open(encoding="utf-8", newline="") as file:
        return next(csv.reader(file))


def observe(table: Table, release: str, before: Sequence[str], project: Path) -> dict[str, Any]:
    """Return what the table holds after a release, in the form of ``expected/emoji.json``."""
    columns = [field.name for field in table.schema().fields]
    batch = {name.lower() for name in ("release", *seed_columns(project, release))}
    rows = table.scan(row_filter=f"release = '{release}'").to_arrow()
    return {
        "release": release,
        "added": [name for name in columns if name not in before] if before else [],
        "padded": [name for name in columns if name.lower() not in batch],
        "batch_rows": rows.num_rows,
        "rows": table.scan().to_arrow().num_rows,
        "columns": columns,
        "null_counts": null_counts(table),
    }


def final_state(table: Table) -> dict[str, Any]:
    """Return the columns with their field ids, and rows and NULL counts by release."""
    rows = table.scan().to_arrow()
    by_release = {}
    for release in RELEASES:
        part = rows.filter([value == release for value in rows.column("release").to_pylist()])
        by_release[release] = {
            "rows": part.num_rows,
            "null_counts": {name: part.column(name).null_count for name in part.column_names},
        }
    return {
        "final_columns": [{"id": field.field_id, "name": field.name} for field in table.schema().fields],
        "null_counts_by_release": by_release,
    }


def print_final(state: dict[str, Any]) -> None:
    """Print the table's columns with field ids, and the NULLs in each by release."""
    releases = state["null_counts_by_release"]
    print("\nThe table in the end: NULLs of each column, by the release that wrote the row")
    print(f"  {'id':>3}  {'column':<18}" + "".join(f"{release:>8}" for release in RELEASES))
    for column in state["final_columns"]:
        counts = "".join(f"{releases[r]['null_counts'][column['name']]:>8}" for r in RELEASES)
        print(f"  {column['id']:>3}  {column['name']:<18}{counts}")
    print(f"  {'':>3}  {'(rows)':<18}" + "".join(f"{releases[r]['rows']:>8}" for r in RELEASES))


def differences(path: str, expected: Any, found: Any) -> list[str]:
    """Return where two values differ, each with its path in them."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return [
            text
            for key in {**expected, **found}
            for text in differences(f"{path}.{key}", expected.get(key), found.get(key))
        ]
    return [] if expected == found else [f"{path}: expected {expected}, found {found}"]


def load(project: Path, target: str) -> dict[str, Any]:
    """Load the five releases into an empty table; return what was observed."""
    dbt(project, target, "seed")
    catalog = open_catalog(target, project)
    try:
        catalog.purge_table(TABLE)
    except (NoSuchTableError, NoSuchNamespaceError):
        pass
    observed: list[dict[str, Any]] = []
    columns: list[str] = []
    for release in RELEASES:
        dbt(project, target, "run", "--vars", f"release: {release}")
        found = observe(catalog.load_table(TABLE), release, columns, project)
        columns = found["columns"]
        observed.append(found)
        print(f"\n{release}: {found['batch_rows']} rows loaded, {found['rows']} in the table")
        print(f"  added:  {', '.join(found['added']) or 'none'}")
        print(f"  padded: {', '.join(found['padded']) or 'none'}")
    dbt(project, target, "test")
    return {"releases": observed, **final_state(catalog.load_table(TABLE))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return 0 if everything is as expected, else 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=("session", "thrift"), default="session")
    parser.add_argument("--project-dir", type=Path, default=PROJECT)
    chosen = parser.parse_args(arguments)
    project: Path = chosen.project_dir.resolve()
    found = load(project, chosen.target)
    print_final(found)

    expected = json.loads((project / "expected" / "emoji.json").read_text(encoding="utf-8"))
    wrong = differences("final_columns", expected["final_columns"], found["final_columns"])
    wrong += differences("nulls", expected["null_counts_by_release"], found["null_counts_by_release"])
    for should, is_ in zip(expected["releases"], found["releases"], strict=True):
        wrong += differences(should["release"], should, is_)
    print(f"\n{len(wrong)} differences from expected/emoji.json" if wrong else "\nAll as expected.")
    for text in wrong:
        print(f"  {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
