"""What functional tests of the adapter ask for and the dbt package does not do, by its README's table.

``pytest --mode package`` runs the folders of ``TRIED`` on stock dbt-spark, but for the tests, modules and
folders of ``LOST``: they are about what the package does without. Other folders have not been tried with it.
"""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[3] / "dbt_package/README.md"

TRIED = ("columns", "keys", "nested", "publication", "strategies", "types")

_REFUSED = "`column_defaults` and `default` of a column, `pad_with: default`, `on_bad_rows: dead_letter`"
_BUILT_IN = "snapshots, seeds, tables, views, `dbt clone`"
_RECORD = "record, `schema_history`, `restore_column`, `backfill_column`"
_COMMITS = "changes of a schema"
_DROPPED = "columns that somebody has dropped or renamed"
_FORMER = "renames that were made long ago, [a type that is retired](../docs/replace-a-type.md)"
_TYPES = "uuid, fixed and time columns"
_REPEATED = "repeated keys in `merge`"
_TEXTS = "statements, and what is logged on the way"
_WAP = "`spark.wap.branch` and `spark.wap.id`, for a table with `write.wap.enabled`"
# Their writers come between two steps of the adapter's own code; those of test_faults.py between statements.
_PUBLICATION = "publication"

# By folder, by module, or of single tests of a module.
_FOLDERS = {"backfill": _RECORD, "dead_letters": _REFUSED, "seeds": _BUILT_IN, "snapshots": _BUILT_IN}
_MODULES = {
    "columns/test_defaults.py": _REFUSED,
    "columns/test_history.py": _RECORD,
    "columns/test_restore.py": _RECORD,
    "columns/test_shapes.py": _RECORD,
    **{
        f"publication/test_{name}.py": _PUBLICATION
        for name in (
            *("clocks", "maintenance", "other_writers", "parallel_runs", "replaced_relations", "rollbacks"),
            "writers_in_any_order",
        )
    },
    "types/test_foreign_types.py": _TYPES,
    "types/test_hostile_types.py": "names of nested fields that look like types, such as `x:int,y`",
}
_TESTS = {
    "columns/test_detection.py": {"test_what_is_detected_is_in_the_log_of_every_mode": _BUILT_IN},
    "columns/test_dropped_elsewhere.py": {
        "test_a_column_that_somebody_dropped_comes_back_new_and_with_a_warning": _DROPPED,
        "test_what_somebody_else_dropped_or_renamed_is_warned_of_at_every_level": _DROPPED,
        "test_a_column_that_we_added_and_somebody_dropped_is_warned_of": _DROPPED,
        "test_names_that_others_have_given_to_other_fields_are_told_of_once": _DROPPED,
    },
    "columns/test_not_null.py": {"test_not_null_structs_lists_and_maps_are_counted": _TEXTS},
    "columns/test_renames.py": {"test_a_rename_keeps_id_and_values": _COMMITS},
    "columns/test_replaced.py": {
        "test_every_strategy_retires_and_replaces_in_one_commit": "readers of a column that was replaced",
        "test_what_would_lose_rows_or_a_column_is_refused": _FORMER,
    },
    "keys/test_by_value.py": {
        "test_structs_inside_a_list_in_a_composite_key_are_compared_by_name": _REPEATED
    },
    "nested/test_fields.py": {"test_fields_are_added_and_padded_at_every_level": _COMMITS},
    "publication/test_branches.py": {
        "test_a_reserved_branch_gets_the_rows": _WAP,
        "test_rows_that_are_kept_apart_are_refused": _WAP,
    },
    "strategies/test_statements.py": {
        "test_a_staged_batch_that_is_gone_is_no_batch_without_columns": _TEXTS,
        "test_one_statement_in_one_call": _TEXTS,
    },
    "types/test_format_v3.py": {
        "test_descriptions_of_a_table_that_pyiceberg_cannot_commit_to_are_stored": _BUILT_IN,
        "test_a_table_that_was_upgraded_keeps_its_format_version": _BUILT_IN,
        "test_what_else_a_run_commits": _BUILT_IN,
    },
    "types/test_format_v3_commits.py": {
        "test_all_that_a_batch_changes_is_changed": _COMMITS,
        "test_other_writers_are_met_at_each_commit": _PUBLICATION,
    },
    "strategies/test_rows.py": {"test_statements_of_a_load": _TEXTS},
    "strategies/test_merge.py": {"test_a_merge_of_repeated_keys_says_which": _REPEATED},
    "types/test_bare_nulls.py": {"test_a_bare_null_in_a_snapshot_is_a_new_version": _BUILT_IN},
    "types/test_variants.py": {
        "test_a_column_without_a_type_gets_one": "a column without a type (`unknown`, format version 3)",
        "test_a_snapshot_of_variants_is_of_their_json": _BUILT_IN,
    },
}
LOST = {
    **_FOLDERS,
    **_MODULES,
    **{f"{module}::{test}": loss for module, tests in _TESTS.items() for test, loss in tests.items()},
}
"""The row of the README's table by folder, module or test."""


def documented() -> set[str]:
    """Return the first cells of the README's table of losses."""
    table = README.read_text(encoding="utf-8").partition("## What is lost")[2].partition("\n## ")[0]
    return {cell.strip() for cell in re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)}


def why_skipped(node_id: str) -> str | None:
    """Return why a test is not run with the package, None if it is."""
    test = node_id.removeprefix("tests/functional/").partition("[")[0]
    module = test.partition("::")[0]
    folder = module.partition("/")[0]
    if folder == "package":
        return None
    loss = LOST.get(test) or LOST.get(module) or LOST.get(folder)
    if loss:
        return f"lost with the dbt package: {loss}"
    return None if folder in TRIED else "not tried with the dbt package"
