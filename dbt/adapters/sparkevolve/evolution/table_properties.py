"""What of a model's ``tblproperties`` its table does not have yet."""

from collections.abc import Mapping
from typing import Any

from dbt.adapters.sparkevolve.evolution import refusals
from dbt.adapters.sparkevolve.evolution.changes import SetProperty
from dbt.adapters.sparkevolve.evolution.column_properties import NAME_MAPPING
from dbt.adapters.sparkevolve.evolution.refusals import Refusal

FORMAT_VERSION = "format-version"
FIRST_WITH_VARIANTS = 3
# What Spark shows as the comment of a table.
COMMENT_PROPERTY = "comment"
# What Iceberg makes of a new table, unless it is told.
VERSION_OF_NEW_TABLES = 2
# PyIceberg 0.12 reads newer tables, and refuses to commit to them.
NEWEST_FORMAT_TO_COMMIT = 2
DELETE_MODE, MERGE_MODE, UPDATE_MODE = "write.delete.mode", "write.merge.mode", "write.update.mode"
_MERGE_ON_READ = "merge-on-read"
ACCEPT_ANY_SCHEMA = "write.spark.accept-any-schema"
# Spark and Iceberg keep these elsewhere, so that a value beside them would mean nothing.
_RESERVED = frozenset(
    {
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
        "location",
        "provider",
        "owner",
        "external",
    }
)


def property_text(value: Any) -> str:
    """Return the value of a property as the text that a table keeps."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def property_changes(configured: Mapping[str, str], actual: Mapping[str, str]) -> tuple[SetProperty, ...]:
    """Return what has to be set; what the model does not name stays as it is.

    Args:
        configured: the model's properties.
        actual: the table's.
    """
    return tuple(
        SetProperty(name, value)
        for name, value in configured.items()
        if name != FORMAT_VERSION
        and name not in _RESERVED
        and actual.get(name) != value
        # It follows the table's columns since.
        and not (name == NAME_MAPPING and name in actual)
    )


def refused_properties(
    configured: Mapping[str, str], actual: Mapping[str, str], format_version: int
) -> tuple[Refusal, ...]:
    """Return what is wrong with properties that no run sets: the table has another value than the model.

    Args:
        configured: the model's properties.
        actual: the table's.
        format_version: of the table.
    """
    found = []
    version = configured.get(FORMAT_VERSION)
    if version is not None and version.strip() != str(format_version):
        found.append(refusals.other_format_version(version, format_version))
    found += [
        refusals.reserved_property(name, value)
        for name, value in configured.items()
        if name in _RESERVED and actual.get(name) != value
    ]
    return tuple(found)


def allows_mode(name: str, properties: Mapping[str, str], format_version: int) -> bool:
    """Tell whether Spark can delete rows, or merge, in the way that a property says.

    Args:
        name: the property's.
        properties: the table's.
        format_version: of the table: the first has no files of deleted rows.
    """
    return format_version > 1 or properties.get(name, "").lower() != _MERGE_ON_READ


def allows_merge(properties: Mapping[str, str]) -> bool:
    """Tell whether Spark can run a MERGE into a table with these properties."""
    return properties.get(ACCEPT_ANY_SCHEMA, "").lower() != "true"
