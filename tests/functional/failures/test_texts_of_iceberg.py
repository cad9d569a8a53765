"""The texts by which Iceberg's errors are known stand in the Iceberg that Spark runs with."""

import zipfile
from collections.abc import Callable

from dbt.adapters.sparkevolve import messages
from tests.functional.harness import SqlRunner
from tests.functional.thrift_server import iceberg_packages, local_jar

TEXTS: list[tuple[str, str, Callable[[str], object]]] = [
    ("BaseMetastoreTableOperations", "Cannot commit: stale table metadata", messages.is_conflict_in_spark),
    (
        "BaseTransaction$TransactionTableOperations",
        "Table metadata refresh is required",
        messages.is_conflict_in_spark,
    ),
    (
        "jdbc/JdbcTableOperations",
        "Cannot commit %s: metadata location %s has changed from %s",
        messages.is_conflict_in_spark,
    ),
    ("jdbc/JdbcTableOperations", "Failed to update table %s from catalog %s", messages.is_conflict_in_spark),
    (
        "exceptions/CommitStateUnknownException",
        "Cannot determine whether the commit was successful or not",
        messages.is_conflict_in_spark,
    ),
    ("rest/ErrorHandlers$CommitErrorHandler", "Commit failed: %s", messages.is_conflict_in_spark),
    ("spark/source/SparkTable", "Cannot use branch (does not exist): %s", messages.is_conflict_in_spark),
    (
        "MergingSnapshotProducer",
        "Found conflicting files that can contain records matching %s: %s",
        messages.is_conflict_in_spark,
    ),
    (
        "MergingSnapshotProducer",
        "Found new conflicting delete files that can apply to records matching %s: %s",
        messages.is_conflict_in_spark,
    ),
    ("MergingSnapshotProducer", "Cannot commit, missing data files: %s", messages.is_conflict_in_spark),
    ("ManifestFilterManager", "Missing required files to delete: %s", messages.is_conflict_in_spark),
    ("TableMetadata$Builder", "Cannot set %s to unknown snapshot: %s", messages.is_snapshot_gone),
    ("SnapshotScan", "Cannot find snapshot with ID %s", messages.is_snapshot_gone),
    ("expressions/NamedReference", "Cannot find field '%s' in struct: %s", messages.is_name_not_found),
    (
        "TableMetadata",
        "Invalid update timestamp %s: before last snapshot log entry at %s",
        messages.clocks_that_differ,
    ),
    (
        "TableMetadata",
        "Invalid update timestamp %s: before the latest metadata log entry timestamp %s",
        messages.clocks_that_differ,
    ),
    ("TableMetadata", "[BUG] Expected sorted snapshot log entries.", messages.is_log_unsorted),
    (
        "exceptions/CommitStateUnknownException",
        "org/apache/iceberg/exceptions/CommitStateUnknownException",
        messages.is_commit_unknown,
    ),
    (
        "rest/HTTPClient",
        "Error occurred while processing %s request",
        lambda text: messages.is_commit_unknown(text.replace("1764345600000", "POST")),
    ),
    ("jdbc/JdbcTableOperations", "Database Connection failed", messages.is_commit_unknown),
    ("jdbc/JdbcTableOperations", "Database Connection timeout", messages.is_commit_unknown),
    ("jdbc/JdbcTableOperations", "Unknown failure", messages.is_commit_unknown),
    ("TableMetadata", "[BUG] Expected sorted previous metadata log entries.", messages.is_log_unsorted),
]


def test_iceberg_says_what_it_is_known_by(spark_sql: SqlRunner) -> None:
    spark_sql("select 1")  # Spark has downloaded the jar, then.
    jar = local_jar(iceberg_packages()[0])
    assert jar is not None
    with zipfile.ZipFile(jar) as classes:
        for where, text, tells in TEXTS:
            assert text.encode() in classes.read(f"org/apache/iceberg/{where}.class"), (where, text)
            assert tells(text.replace("%s", "1764345600000")), text
