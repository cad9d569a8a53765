"""Lets PyIceberg read what other writers put into metadata, and what it does not know.

Types such as `variant`, `geometry(srid:4326)` as Iceberg's Java library spells it, or one of a later version;
defaults of types that it has no default of; statistics of a kind of their own, such as Hive's. All of it is
kept as it is in the file, and written so again. Whoever else uses PyIceberg in this process gets it too,
where there was an error.
"""

from collections.abc import Callable
from typing import Any, Literal

from pydantic import ValidatorFunctionWrapHandler, model_validator
from pyiceberg.catalog.rest import TableResponse
from pyiceberg.conversions import from_json, to_json
from pyiceberg.exceptions import ValidationError
from pyiceberg.table import CommitTableResponse
from pyiceberg.table.metadata import TableMetadataV1, TableMetadataV2, TableMetadataV3, TableMetadataWrapper
from pyiceberg.table.statistics import BlobMetadata, StatisticsFile
from pyiceberg.types import (
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    TimestampNanoType,
    TimestamptzNanoType,
    UnknownType,
)

from dbt.adapters.sparkevolve.evolution.types import VARIANT, VariantType


class ForeignType(PrimitiveType):
    """A type that PyIceberg does not know, such as one of a later Iceberg.

    Attributes:
        root: its text in the metadata.
    """

    root: str

    def __init__(self, text: str) -> None:
        super().__init__(root=text)

    @model_validator(mode="wrap")  # type: ignore[misc]
    @classmethod
    def handle_primitive_type(cls, v: Any, handler: ValidatorFunctionWrapHandler) -> IcebergType:
        """Take any text: PyIceberg's own types look here for the type that a text is the name of."""
        made: IcebergType = handler(v)
        return made

    def __repr__(self) -> str:
        """Return what makes it."""
        return f"ForeignType({self.root!r})"

    def __hash__(self) -> int:
        """Return the same for the same text."""
        return hash(self.root)

    def __getnewargs__(self) -> tuple[str]:
        """Return what makes it, for a copy."""
        return (self.root,)

    def minimum_format_version(self) -> Literal[3]:
        """Return the first format version that has types beside those that PyIceberg knows."""
        return 3


# Types of which PyIceberg reads no default.
_WITHOUT_DEFAULTS = (
    *(TimestampNanoType, TimestamptzNanoType, GeometryType, GeographyType, UnknownType),
    *(VariantType, ForeignType),
)
# All that has statistics in it, the innermost first: each has its own copy of how the others are read.
_WITH_STATISTICS = (
    *(BlobMetadata, StatisticsFile),
    *(TableMetadataV1, TableMetadataV2, TableMetadataV3, TableMetadataWrapper),
    *(CommitTableResponse, TableResponse),
)


def let_pyiceberg_read_foreign_metadata() -> None:
    """Let it read them from now on in this process, if it does not already."""
    if BlobMetadata.model_fields["type"].annotation is str:
        return
    _read_types()
    _read_defaults()
    _read_statistics()


def _read_types() -> None:
    kind: Any = IcebergType
    read: Callable[..., IcebergType] = kind.handle_primitive_type.__func__

    def read_type(cls: type[IcebergType], v: Any, handler: Any) -> IcebergType:
        if v == VARIANT:
            return VariantType()
        try:
            return read(cls, v, handler)
        except (ValueError, ValidationError):
            if isinstance(v, str):
                return ForeignType(v)
            raise

    kind.handle_primitive_type = classmethod(read_type)
    # What is in a list or a map does not come by there.
    _convert(ListType, ("element",))
    _convert(MapType, ("key", "value"))


def _convert(kind: Any, parts: tuple[str, ...]) -> None:
    init = kind.__init__
    types: Any = IcebergType

    def init_with_types(self: Any, *args: Any, **data: Any) -> None:
        texts = {part: data[part] for part in parts if isinstance(data.get(part), str)}
        found = {part: types.handle_primitive_type(text, None) for part, text in texts.items()}
        init(self, *args, **(data | found))

    kind.__init__ = init_with_types


def _read_defaults() -> None:
    def as_it_is(_: IcebergType, value: Any) -> Any:
        return value

    def refuse(type_: IcebergType, value: Any) -> Any:
        # Iceberg's Java library cannot read such a table either; PyIceberg says it by another class of error.
        raise ValueError(f"a field of the type {type_} has the default {value}")

    for nested in (StructType, ListType, MapType):
        from_json.register(nested, refuse)
    for kind in _WITHOUT_DEFAULTS:
        from_json.register(kind, as_it_is)
        to_json.register(kind, as_it_is)


def _read_statistics() -> None:
    BlobMetadata.model_fields["type"].annotation = str
    for kind in _WITH_STATISTICS:
        kind.model_rebuild(force=True)
