"""Short ways to write a schema, a table and its rows in a test."""

from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update import RemoveSnapshotRefUpdate, SetPropertiesUpdate
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.guards import commit
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import SETTINGS, IncrementalSettings, Strategy

TYPES: dict[str, IcebergType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "date": DateType(),
    "time": TimeType(),
    "timestamp": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
    "string": StringType(),
    "uuid": UUIDType(),
    "fixed": FixedType(16),
    "binary": BinaryType(),
}


def struct(first_id: int, **fields: IcebergType) -> StructType:
    """Return a struct of optional fields, whose ids count up from ``first_id``."""
    return StructType(*(NestedField(first_id + i, name, t) for i, (name, t) in enumerate(fields.items())))


def array(element_id: int, element: IcebergType, *, required: bool = False) -> ListType:
    """Return a list type."""
    return ListType(element_id, element, element_required=required)


def mapping(key_id: int, key: IcebergType, value: IcebergType) -> MapType:
    """Return a map type, whose value has the id after the key's."""
    return MapType(key_id, key, key_id + 1, value, value_required=False)


def columns(text: str, **nested: IcebergType) -> Schema:
    """Return the schema that a text such as ``id int not null, Last Name string, s`` describes.

    Columns are parted by a comma and a space. The type is the last word, and all before it is the name.
    A single word is the name of a column whose type is in ``nested``.
    """
    ids = count(1)
    fields = []
    for part in text.split(", ") if text else ():
        required = part.endswith(" not null")
        spec = part.removesuffix(" not null")
        name, _, word = spec.rpartition(" ")
        if spec in nested:
            name, column_type = spec, nested[spec]
        elif word.startswith("decimal("):
            precision, scale = word[len("decimal(") : -1].split(",")
            column_type = DecimalType(int(precision), int(scale))
        else:
            column_type = TYPES[word]
        fields.append(NestedField(next(ids), name, column_type, required=required))
    return Schema(*fields)


def relation(identifier: str, schema: str = "db", database: str | None = "lake") -> SparkEvolveRelation:
    """Return a table's relation in the catalog of these tests."""
    return SparkEvolveRelation.create(  # type: ignore[return-value]
        database=database, schema=schema, identifier=identifier, type="table"
    )


def append(table: Table, rows: list[dict[str, object]], branch: str = "main") -> None:
    """Append rows; a branch stays what it is, which PyIceberg 0.12 by itself forgets: how long it is kept."""
    before = table.metadata.refs.get(branch)
    table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()), branch=branch)
    if before is not None and before.max_ref_age_ms is not None:
        head = table.metadata.refs[branch].snapshot_id
        with table.manage_snapshots() as manage:
            manage.create_branch(head, branch, max_ref_age_ms=before.max_ref_age_ms)


def written_at(table: Table, moment_ms: int) -> None:
    """Let somebody commit to a table at a time."""
    commit(table, (), (SetPropertiesUpdate(updates={"written": str(moment_ms)}),), seen_ms=moment_ms)


def answering(lake: IcebergCatalog, monkeypatch: pytest.MonkeyPatch, *answers: Exception | str) -> list[str]:
    """Let commits of the gateway's real catalog go wrong, one answer each; return what was called.

    ``"ok"`` commits, an exception is raised instead of the commit, and one whose text begins with ``lost``
    after it.
    """
    catalog = lake.access.opened
    real, waiting, calls = catalog.commit_table, list(answers), []

    def commit_table(*args: object, **kwargs: object) -> object:
        answer = waiting.pop(0) if waiting else "ok"
        calls.append(str(answer))
        if isinstance(answer, Exception) and not str(answer).startswith("lost"):
            raise answer
        response = real(*args, **kwargs)  # type: ignore[arg-type]
        if isinstance(answer, Exception):
            raise answer
        return response

    monkeypatch.setattr(catalog, "commit_table", commit_table)
    return calls


HOUR = 3_600_000


def no_wap() -> str | None:
    raise AssertionError("asked although the table has no writes of that kind")


def loaded(other: Catalog, branch: str, *rows: int, identifier: str = "db.t", **retention: int | None) -> int:
    """Cut a branch off, as a run does, append each row to it in a commit of its own; return its head."""
    table = other.load_table(identifier)
    assert table.metadata.current_snapshot_id is not None
    with table.manage_snapshots() as manage:
        manage.create_branch(
            table.metadata.current_snapshot_id, branch, **{"max_ref_age_ms": HOUR, **retention}
        )
    for row in rows:
        append(table, [{"id": row}], branch)
    return table.metadata.refs[branch].snapshot_id


def without_main(other: Catalog) -> None:
    """Leave a table with a branch alone: as Spark does when it cuts one off an empty table."""
    table = other.load_table("db.t")
    gone = RemoveSnapshotRefUpdate.model_validate({"ref-name": "main"})
    other.commit_table(table, (), (gone,))
    assert "main" not in other.load_table("db.t").metadata.refs


def ids(lake: IcebergCatalog, branch: str = "main") -> list[int]:
    table = lake.load(relation("t"))
    return sorted(row["id"] for row in table.scan().use_ref(branch).to_arrow().to_pylist())


def model_settings(base: IncrementalSettings | None = None, **given: Any) -> IncrementalSettings:
    """Return the settings of a model that replaces rows by its key, if it has one, and preserves columns.

    Args:
        base: other settings to begin with.
        given: fields that differ; what a user can set is given as in the configuration.
    """
    read = {
        name: SETTINGS[name].kind.read(value) if name in SETTINGS else value for name, value in given.items()
    }
    return replace(base if base is not None else DEFAULTS, **read)


DEFAULTS = IncrementalSettings(
    strategy=Strategy.DELETE_INSERT, on_schema_change="append_new_columns_preserve", add_columns=True
)
