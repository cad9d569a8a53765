"""The columns of a table as rows are looked for by: under the schema of today, or of an earlier commit."""

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, PrimitiveType

from dbt.adapters.sparkevolve.evolution.defaults import DefaultValue
from dbt.adapters.sparkevolve.evolution.names import quote
from dbt.adapters.sparkevolve.evolution.types import is_widening, spark_type
from dbt.adapters.sparkevolve.sql.replay import ComparedColumn


def compared(schema: Schema, before: Schema | None = None) -> list[ComparedColumn]:
    """Return the columns of a table as its rows have them, or as they had them under an earlier schema.

    Args:
        schema: the schema of the table.
        before: the earlier one. What that has not is what rows from then have in it now.
    """
    olds = {f.field_id: f for f in (before or schema).fields}
    return [_compared_column(f, olds.get(f.field_id)) for f in schema.fields]


def _compared_column(f: NestedField, old: NestedField | None) -> ComparedColumn:
    if old is None:
        type_, default = f.field_type, f.initial_default
        value = "NULL"
        if default is not None and isinstance(type_, PrimitiveType):
            value = DefaultValue(type_, default).sql
        return ComparedColumn(f.name, f"CAST({value} AS {spark_type(type_)})", type_)
    value = quote(old.name)
    if is_widening(old.field_type, f.field_type):
        # As what is read now: 1.1 of single precision is another number in double precision.
        return ComparedColumn(f.name, f"CAST({value} AS {spark_type(f.field_type)})", f.field_type)
    return ComparedColumn(f.name, value, old.field_type)
