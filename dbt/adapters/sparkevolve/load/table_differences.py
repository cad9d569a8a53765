"""What of a model's configuration takes effect only when its table is made, and what else stays there."""

import re
from collections.abc import Mapping
from typing import Any

from pyiceberg.table import Table

from dbt.adapters.sparkevolve.evolution.partitions import same_partitions
from dbt.adapters.sparkevolve.evolution.renames import begun_warnings
from dbt.adapters.sparkevolve.evolution.table_properties import property_text
from dbt.adapters.sparkevolve.iceberg.base import partitions
from dbt.adapters.sparkevolve.load.batch_plan import wanted_partitions
from dbt.adapters.sparkevolve.settings import IncrementalSettings, Strategy

_LOCATION = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://(?P<host>[^/]*))?(?P<path>.*)", re.DOTALL
)
# Names of one store to different clients.
_SCHEMES = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "wasb": "wasbs"}


def differences(table: Table, settings: IncrementalSettings) -> list[str]:
    """Return what to say of each part of the model's configuration that no run brings into its table.

    Also of each change of a name's case that has not ended, and cannot be taken back.

    Args:
        table: the table.
        settings: the model's.
    """
    return [
        *begun_warnings(table.schema().as_struct()),
        *_of_partitions(table, settings),
        *_of_location(table, settings.location),
        *_of_options(table, settings.options),
    ]


def _of_partitions(table: Table, settings: IncrementalSettings) -> list[str]:
    wanted, actual = wanted_partitions(settings), partitions(table)
    if not wanted or same_partitions(wanted, actual, settings.column_renames):
        return []
    name = "`partition_by`" if settings.partition_by else "`clustered_by`"
    what_to_do = (
        "A full refresh leaves that as it is: change it with `ALTER TABLE`, or set "
        "`full_refresh_schema: replace`."
        if settings.strategy == Strategy.FULL_REFRESH
        else "The rows are written as the table is partitioned: change it with `ALTER TABLE`, or make "
        f"{name} what the table has."
    )
    return [
        f"The model is partitioned by {', '.join(map(str, wanted))} and the table by "
        f"{', '.join(map(str, actual)) or 'nothing'}. {what_to_do}"
    ]


def _of_location(table: Table, wanted: str | None) -> list[str]:
    if wanted is None or is_same_location(wanted, table.location()):
        return []
    return [
        f"`location_root` of the model says {wanted}, and the table stays in {table.location()}. "
        "Take `location_root` out, or make it what the table has."
    ]


def _of_options(table: Table, options: Mapping[str, Any]) -> list[str]:
    lacking = [
        f"{name} = {property_text(value)}"
        for name, value in options.items()
        if table.properties.get(name) != property_text(value)
    ]
    if not lacking:
        return []
    return [
        f"`options` of the model reach a table when it is made, and this one lacks {', '.join(lacking)}. "
        "Use `tblproperties`, which reach it later too."
    ]


def is_same_location(one: str, other: str) -> bool:
    """Tell whether two texts may name one folder, as different clients write them.

    A text without a scheme is a path on the file system that Spark takes by default, so only paths count.
    """
    scheme, host, path = _parts(one)
    other_scheme, other_host, other_path = _parts(other)
    if not (scheme and other_scheme):
        return path == other_path
    return (scheme, host, path) == (other_scheme, other_host, other_path)


def _parts(location: str) -> tuple[str, str, str]:
    match = _LOCATION.fullmatch(location)
    assert match is not None  # each part of it may be empty
    scheme = (match["scheme"] or "").lower()
    path = re.sub("/+", "/", match["path"]).rstrip("/")
    return _SCHEMES.get(scheme, scheme), match["host"] or "", path
