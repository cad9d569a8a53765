"""Lets PyIceberg read schemas that have a `variant` in them, a type that it does not know.

Whoever else uses PyIceberg in this process gets the type too, where there was an error.
"""

from collections.abc import Callable
from typing import Any

from pyiceberg.types import IcebergType, ListType, MapType

from dbt.adapters.sparkevolve.evolution.types import VARIANT, VariantType


def let_pyiceberg_read_variants() -> None:
    """Let it read them from now on in this process, if it does not already."""
    kind: Any = IcebergType
    try:
        kind.handle_primitive_type(VARIANT, None)
        return
    except ValueError:
        read: Callable[..., IcebergType] = kind.handle_primitive_type.__func__

    def read_type(cls: type[IcebergType], v: Any, handler: Any) -> IcebergType:
        return VariantType() if v == VARIANT else read(cls, v, handler)

    kind.handle_primitive_type = classmethod(read_type)
    # What is in a list or a map does not come by there.
    _convert(ListType, ("element",))
    _convert(MapType, ("key", "value"))


def _convert(kind: Any, parts: tuple[str, ...]) -> None:
    init = kind.__init__

    def init_with_types(self: Any, *args: Any, **data: Any) -> None:
        found = {part: VariantType() for part in parts if data.get(part) == VARIANT}
        init(self, *args, **(data | found))

    kind.__init__ = init_with_types
