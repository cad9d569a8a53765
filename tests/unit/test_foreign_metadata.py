"""Metadata of other writers: what PyIceberg does not know is kept; what is wrong is said with its place."""

import json
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import TableResponse

from dbt.adapters.sparkevolve.errors import UnreadableTableError
from dbt.adapters.sparkevolve.evolution.types import type_text
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from tests.unit.conftest import MakeTable
from tests.unit.helpers import columns


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            '"type":"string"',
            '"type":{"type":"struct","fields":[]},"initial-default":{}',
            "a field of the type struct<> has the default {}",
        ),
        ('"type":"string"', '"type":"uuid","initial-default":"x"', "badly formed hexadecimal UUID string"),
        (
            '"type":"string"',
            '"type":{"type":"future"}',
            "schemas.0.fields.1.type.id: Input should be a valid int",
        ),
        ('"sort-orders":[', '"sort-orders":[7,', "sort-orders.0: Input should be an object"),
        ('"schemas":[', '"schemas":[[],', "schemas.0: Input should be an object"),
        ("{", "\xff", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
    ],
)
def test_what_is_wrong_in_metadata_is_said_with_its_place(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable, old: str, new: str, reason: str
) -> None:
    target = make_table(columns("id int, v string"))
    metadata = Path(other.load_table("db.t").metadata_location.removeprefix("file://"))
    text = metadata.read_text().replace('"format-version":2', '"format-version":3')
    assert old in text
    metadata.write_text(text.replace(old, new, 1), encoding="latin-1")
    with pytest.raises(UnreadableTableError) as caught:
        lake.load(target)
    assert caught.value.reason.startswith(reason)


BLOB = {"type": "ColumnStatisticsObj", "snapshot-id": 1, "sequence-number": 1, "fields": [1]}
STATISTICS = {
    "snapshot-id": 1,
    "statistics-path": "s",
    "file-size-in-bytes": 9,
    "file-footer-size-in-bytes": 4,
    "blob-metadata": [BLOB],
}


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("timestamp_ns", "2024-01-01T00:00:00.123456789"),
        ("timestamptz_ns", "2024-01-01T00:00:00.123456789+00:00"),
        ("geometry", "POINT (1 1)"),
        ("geometry(srid:4326)", None),
        ("geography(OGC:CRS84, spherical)", "POINT (1 1)"),
        ("future(1, x)", "text"),
        ("variant", None),
        ("fixed[x]", None),
    ],
)
def test_what_others_write_into_metadata_is_kept(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable, type_: str, default: str | None
) -> None:
    """A type anywhere in a schema, a default, and statistics: as REST catalogs send them, too."""
    target = make_table(columns("id int, v string"))
    metadata = Path(other.load_table("db.t").metadata_location.removeprefix("file://"))
    found = json.loads(metadata.read_text())
    odd = {"id": 2, "name": "v", "required": False, "type": type_}
    nested = {
        "type": "map",
        "key-id": 4,
        "key": type_,
        "value-id": 5,
        "value-required": False,
        "value": {"type": "list", "element-id": 6, "element": type_, "element-required": False},
    }
    fields = [
        {"id": 1, "name": "id", "required": False, "type": "int"},
        {**odd, **({"initial-default": default, "write-default": default} if default else {})},
        {"id": 3, "name": "m", "required": False, "type": nested},
    ]
    found["schemas"][0]["fields"] = fields
    found |= {"format-version": 3, "next-row-id": 0, "statistics": [STATISTICS]}
    metadata.write_text(json.dumps(found))
    table = lake.load(target)
    assert [type_text(f.field_type) for f in table.schema().fields][:2] == ["int", type_]
    assert json.loads(table.schema().model_dump_json())["fields"] == fields
    assert [blob.type for file in table.metadata.statistics for blob in file.blob_metadata] == [
        "ColumnStatisticsObj"
    ]
    answer = json.dumps({"metadata-location": "m", "metadata": found, "config": {}})
    assert TableResponse.model_validate_json(answer).metadata == table.metadata
