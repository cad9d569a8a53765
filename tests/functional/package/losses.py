"""What functional tests of the adapter ask for and the dbt package does not do, by its README's table.

``pytest --mode package`` runs the modules of ``TRIED`` on stock dbt-spark. Those of the folders in ``LOST``
test what the package does without; the others have not been tried with it.
"""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[3] / "dbt_package/README.md"

TRIED = ("columns/test_added_and_removed.py",)

_REFUSED = "`column_defaults` and `default` of a column, `pad_with: default`, `on_bad_rows: dead_letter`"
_BUILT_IN = "snapshots, seeds, tables, views"
_RECORD = "record, `schema_history`, `restore_column`, `backfill_column`"

LOST = {"dead_letters": _REFUSED, "backfill": _RECORD, "snapshots": _BUILT_IN, "seeds": _BUILT_IN}


def documented() -> set[str]:
    """Return the first cells of the README's table of losses."""
    table = README.read_text(encoding="utf-8").partition("## What is lost")[2].partition("\n## ")[0]
    return {cell.strip() for cell in re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)}


def why_skipped(node_id: str) -> str | None:
    """Return why a test is not run with the package, None if it is."""
    module = node_id.partition("::")[0].removeprefix("tests/functional/")
    folder = module.partition("/")[0]
    if folder == "package" or module in TRIED:
        return None
    loss = LOST.get(folder)
    return f"lost with the dbt package: {loss}" if loss else "not tried with the dbt package"
