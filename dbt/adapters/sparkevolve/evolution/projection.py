"""How each column of the refreshed list gets its value from the staged batch.

A projection is a small tree that mirrors the type. Nested values are rebuilt by name: Spark would write the
fields of a struct by position, and so swap them without an error.
"""

from dataclasses import dataclass
from typing import Union

from dbt.adapters.sparkevolve.evolution.names import quote, string_literal


@dataclass(frozen=True)
class Keep:
    """Take the value as it is."""

    def render(self, value: str, previous: str | None = None, depth: int = 0) -> str:
        """Return a Spark SQL expression.

        Args:
            value: the expression of the staged value.
            previous: the expression of the value that the table's row has, or None to forget it.
            depth: how many lambdas enclose it; keeps their variables apart.
        """
        return value


@dataclass(frozen=True)
class Cast:
    """Cast the value up to the wider Spark SQL type ``type``."""

    type: str

    def render(self, value: str, previous: str | None = None, depth: int = 0) -> str:
        """Return a Spark SQL expression; see ``Keep.render``."""
        return f"CAST({value} AS {self.type})"


@dataclass(frozen=True)
class AsUuid:
    """Take a text that is a uuid, as Spark reads it from a column of Iceberg's type; fail on another.

    Attributes:
        path: where it is, for the message.
    """

    path: str

    def render(self, value: str, previous: str | None = None, depth: int = 0) -> str:
        """Return a Spark SQL expression; see ``Keep.render``."""
        text = string_literal(f"Column {self.path} is uuid in the table, and the model returns: ")
        return (
            f"IF({value} IS NULL OR length({value}) = 36 AND {value} RLIKE "
            "'^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}', "
            f"lower({value}), raise_error(concat({text}, {value})))"
        )


@dataclass(frozen=True)
class AsFixed:
    """Take bytes that are as many as the column has; fail on another number.

    Attributes:
        path: where they are, for the message.
        length: their number.
    """

    path: str
    length: int

    def render(self, value: str, previous: str | None = None, depth: int = 0) -> str:
        """Return a Spark SQL expression; see ``Keep.render``."""
        text = string_literal(
            f"Column {self.path} is fixed[{self.length}] in the table, and the model returns: "
        )
        return (
            f"IF({value} IS NULL OR octet_length({value}) = {self.length}, {value}, "
            f"raise_error(concat({text}, octet_length({value}), ' bytes')))"
        )


@dataclass(frozen=True)
class Pad:
    """Write the row's previous value, or a constant: the model has none.

    Attributes:
        type: the Spark SQL type.
        default: the SQL of the constant; None for NULL.
    """

    type: str
    default: str | None = None

    def render(self, value: str, previous: str | None = None, depth: int = 0) -> str:
        """Return a Spark SQL expression; the staged value is not needed for it."""
        if previous is not None:
            return previous
        return f"CAST(NULL AS {self.type})" if self.default is None else self.default


@dataclass(frozen=True)
class StructMember:
    """A field of a rebuilt struct.

    Attributes:
        name: its name in the table.
        source: its name in the staged struct, or None where that has no such field.
        projection: how its value is made.
    """

    name: str
    source: str | None
    projection: "Projection"


@dataclass(frozen=True)
class RebuildStruct:
    """Rebuild the struct, field by field and by name; NULL stays NULL."""

    members: tuple[StructMember, ...]

    def render(self, value: str, previous: str | None = None, depth: int = 0) -> str:
        """Return a Spark SQL expression; see ``Keep.render``."""
        parts = []
        for member in self.members:
            inner = value if member.source is None else f"{value}.{quote(member.source)}"
            before = None if previous is None else f"{previous}.{quote(member.name)}"
            parts.append(f"{string_literal(member.name)}, {member.projection.render(inner, before, depth)}")
        return f"IF({value} IS NULL, NULL, named_struct({', '.join(parts)}))"


@dataclass(frozen=True)
class RebuildList:
    """Rebuild each element; order and NULL elements stay.

    An element has no identity, so there is no telling which previous one it replaces.
    """

    element: "Projection"

    def render(self, value: str, previous: str | None = None, depth: int = 0) -> str:
        """Return a Spark SQL expression; see ``Keep.render``."""
        variable = f"element_{depth}"
        return f"transform({value}, {variable} -> {self.element.render(variable, None, depth + 1)})"


@dataclass(frozen=True)
class RebuildMap:
    """Rebuild each value of a map; keys stay."""

    value: "Projection"

    def render(self, value: str, previous: str | None = None, depth: int = 0) -> str:
        """Return a Spark SQL expression; see ``Keep.render``."""
        key, variable = f"key_{depth}", f"value_{depth}"
        inner = self.value.render(variable, None, depth + 1)
        return f"transform_values({value}, ({key}, {variable}) -> {inner})"


Projection = Union[Keep, Cast, AsUuid, AsFixed, Pad, RebuildStruct, RebuildList, RebuildMap]


@dataclass(frozen=True)
class ProjectedColumn:
    """A column of the refreshed list and where its value comes from.

    Attributes:
        name: its name in the table after the evolution.
        source: its name in the staged batch, or None if it is padded.
        projection: how its value is made.
    """

    name: str
    source: str | None
    projection: Projection

    @property
    def may_keep(self) -> bool:
        """Whether something in it is not returned by the model, and could keep its previous value."""
        return _may_keep(self.projection)

    @property
    def pads_with_default(self) -> bool:
        """Whether something in it that could keep its previous value is a default where there is none."""
        return _pads_with_default(self.projection)

    def render(self, alias: str, previous_alias: str | None = None) -> str:
        """Return the SELECT expression.

        Args:
            alias: names the staged table.
            previous_alias: names the row that is replaced, to keep what the model does not return; without
                it that is NULL.
        """
        value = alias if self.source is None else f"{alias}.{quote(self.source)}"
        previous = None if previous_alias is None else f"{previous_alias}.{quote(self.name)}"
        return self.projection.render(value, previous)


def _pads_with_default(projection: Projection) -> bool:
    if isinstance(projection, RebuildStruct):
        return any(_pads_with_default(member.projection) for member in projection.members)
    return isinstance(projection, Pad) and projection.default is not None


def _may_keep(projection: Projection) -> bool:
    if isinstance(projection, RebuildStruct):
        return any(_may_keep(member.projection) for member in projection.members)
    return isinstance(projection, Pad)
