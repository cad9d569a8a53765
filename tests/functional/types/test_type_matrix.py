"""Every Iceberg primitive type as a column's, with every Spark SQL type as the model's, on real Spark.

The decisions are written down in ``docs/types.md``, which has to be what this module finds. Pairs that are
not refused are loaded by dbt, and what PyIceberg then reads is compared with the value.
"""

import os
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
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
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from dbt.adapters.sparkevolve.evolution.changes import WidenType
from dbt.adapters.sparkevolve.evolution.plan import plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Policy
from dbt.adapters.sparkevolve.evolution.projection import AsFixed, AsUuid, Cast
from tests.functional.harness import Scenario

DOC = Path(__file__).parents[3] / "docs" / "types.md"

TARGETS: dict[str, IcebergType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "decimal(9,2)": DecimalType(9, 2),
    "decimal(22,2)": DecimalType(22, 2),
    "date": DateType(),
    "time": TimeType(),
    "timestamp": TimestampType(),
    "timestamptz": TimestamptzType(),
    "string": StringType(),
    "uuid": UUIDType(),
    "fixed(4)": FixedType(4),
    "binary": BinaryType(),
}

# Spark's type -> an expression of it, and the value that has to come out of the table.
SOURCES: dict[str, tuple[str, Any]] = {
    "boolean": ("true", True),
    "tinyint": ("cast(7 as tinyint)", 7),
    "smallint": ("cast(7 as smallint)", 7),
    "int": ("7", 7),
    "bigint": ("cast(7 as bigint)", 7),
    "float": ("cast(1.5 as float)", 1.5),
    "double": ("1.5D", 1.5),
    "decimal(9,2)": ("cast(7.25 as decimal(9,2))", Decimal("7.25")),
    "decimal(12,2)": ("cast(7.25 as decimal(12,2))", Decimal("7.25")),
    "decimal(9,4)": ("cast(7.25 as decimal(9,4))", Decimal("7.25")),
    "string": ("'abc'", "abc"),
    "varchar(5)": ("cast('abc' as varchar(5))", "abc"),
    "char(4)": ("cast('abc' as char(4))", "abc"),
    "binary": ("X'61626364'", b"abcd"),
    "date": ("date'2024-01-02'", date(2024, 1, 2)),
    "timestamp": (
        "timestamp'2024-01-02 03:04:05 UTC'",
        datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc),
    ),
    "timestamp_ntz": ("timestamp_ntz'2024-01-02 03:04:05'", datetime(2024, 1, 2, 3, 4, 5)),
    "interval day": ("interval '2' day", "INTERVAL '2' DAY"),
    "interval month": ("interval '2' month", "INTERVAL '2' MONTH"),
    "void": ("null", None),
}

HEAD = """# What happens to types

A row is the type of a column in the Iceberg table, a column is the type that the model returns.
`tests/functional/types/test_type_matrix.py` runs every pair on a real Spark and compares what it finds with
this page (with `WRITE_TYPES_PAGE=1` it writes it).

* **kept**: the two are the same.
* **cast**: the table's type is wider; each value is cast up without loss.
* **widened**: the model's type is wider, and the column becomes it; no data file is rewritten
  (`type_widening`).
* **as string**: Iceberg lacks the model's type; the value is stored as its text (`unmappable_types`).
* **checked**: each value has to be what the table's type is a text of, or as long as it is, or the run fails
  before anything is visible.
* **padded**: the model returns a bare NULL, and NULL is written.
* refused: before anything is written.

| table \\ model |"""

TAIL = """
`time`, `uuid` and `fixed` do not come from Spark: another engine has made such a column. Spark cannot read or
write `time` at all, so a table with such a column is refused as a whole. Into a `uuid` column go texts of 36
characters that are one, in upper or lower case, and into `fixed` as many bytes as it has.

A new column gets the type that this page shows as **kept**: `tinyint` and `smallint` become `int`, `varchar`
and `char` become `string`. `decimal(22,2)` shows that an `int` or `bigint` is cast to a decimal that holds
all its digits.

On Spark 4.1 TIME is stored **as string**, as intervals are, and VARIANT as JSON text. A table of
[format version 3](format-v3.md) keeps a VARIANT as itself, at the top and in structs.

A new column that is a bare NULL, or a struct without fields, has no type to store: it is left out, with a
warning, and so is such a part of a struct, list or map.

The same table holds for fields inside structs, and for elements of lists and values of maps
(`nested_evolution`); a difference in the keys of a map is refused.
"""


@pytest.fixture
def staged(scenario: Scenario) -> dict[str, IcebergType | None]:
    """Return the Iceberg type as which a new column of each Spark type is stored; None if it is left out."""
    columns = ", ".join(f"{expression} as `{name}`" for name, (expression, _) in SOURCES.items())
    scenario.model(f"select 1 as id, {columns}", "staged")
    scenario.run()
    types = {f.name: f.field_type for f in scenario.table("staged").schema().fields}
    return {name: types.get(name) for name in SOURCES}


def decide(table: IcebergType, model: IcebergType | None, spark: str) -> str:
    target = Schema(NestedField(1, "c", table, required=False), NestedField(2, "k", IntegerType()))
    fields = [NestedField(2, "k", IntegerType())]
    if model is not None:
        fields.insert(0, NestedField(1, "c", model, required=False))
    plan = plan_evolution(target, Schema(*fields), Policy())
    if plan.refusals:
        return "refused"
    if model is None:
        return "padded"
    if any(isinstance(change, WidenType) for change in plan.changes):
        return "widened"
    if isinstance(plan.columns[0].projection, Cast):
        return "cast"
    if isinstance(plan.columns[0].projection, AsUuid | AsFixed):
        return "checked"
    return "as string" if spark.startswith("interval") else "kept"


def page(matrix: dict[str, dict[str, str]]) -> str:
    head = HEAD + "".join(f" `{name}` |" for name in SOURCES) + "\n" + "|---" * (len(SOURCES) + 1) + "|\n"
    rows = []
    for target, decisions in matrix.items():
        cells = " | ".join(d if d == "refused" else f"**{d}**" for d in decisions.values())
        rows.append(f"| `{target}` | {cells} |\n")
    return head + "".join(rows) + TAIL


def test_the_page_says_what_is_decided(staged: dict[str, IcebergType | None]) -> None:
    matrix = {
        name: {spark: decide(table, staged[spark], spark) for spark in SOURCES}
        for name, table in TARGETS.items()
    }
    found = page(matrix)
    if os.environ.get("WRITE_TYPES_PAGE"):
        DOC.write_text(found, encoding="utf-8")
    assert found == DOC.read_text(encoding="utf-8")


@pytest.mark.core
def test_what_is_not_refused_comes_out_of_the_table(
    scenario: Scenario, staged: dict[str, IcebergType | None], lake: Catalog
) -> None:
    pairs = [
        (target, spark)
        for target, table in TARGETS.items()
        for spark in SOURCES
        if decide(table, staged[spark], spark) != "refused"
        and not isinstance(table, UUIDType | FixedType | TimeType)
    ]
    fields = [NestedField(1, "id", IntegerType(), required=False)]
    for number, (target, _) in enumerate(pairs, start=2):
        fields.append(NestedField(number, f"c{number}", TARGETS[target], required=False))
    lake.create_table((scenario.schema, "t"), Schema(*fields))
    values = [f"{SOURCES[spark][0]} as c{number}" for number, (_, spark) in enumerate(pairs, start=2)]
    scenario.model(f"select 1 as id, {', '.join(values)}")
    scenario.run("--select", "t")
    (row,) = scenario.rows()
    for value, (target, spark) in zip(row[1:], pairs, strict=True):
        assert value == SOURCES[spark][1], f"{spark} into {target}"
