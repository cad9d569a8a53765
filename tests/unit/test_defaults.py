"""Defaults of columns: which texts are values of which types, what is said of the others, what changes."""

import math
import uuid
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any

import pytest
from dbt.artifacts.resources import ColumnInfo
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.conversions import from_json, to_json
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
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from dbt.adapters.sparkevolve.evolution import record
from dbt.adapters.sparkevolve.evolution.changes import (
    AddColumn,
    RemoveDefault,
    RenameField,
    SetDefault,
    WidenType,
)
from dbt.adapters.sparkevolve.evolution.defaults import (
    DefaultValue,
    LocalTime,
    UnsupportedDefault,
    local_time,
    read_default,
    same_default,
    shown_default,
)
from dbt.adapters.sparkevolve.evolution.history import schema_changes
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan, plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Policy, TableFacts
from dbt.adapters.sparkevolve.evolution.projection import Pad
from dbt.adapters.sparkevolve.evolution.types import column_type, type_text
from dbt.adapters.sparkevolve.load.batch_plan import defaults_of_new
from dbt.adapters.sparkevolve.settings import IncrementalSettings, all_defaults
from tests.unit.helpers import columns

STRING, INT, LONG, BOOL = StringType(), IntegerType(), LongType(), BooleanType()
FLOAT, DOUBLE, DATE, TIME = FloatType(), DoubleType(), DateType(), TimeType()
NTZ, TZ, UUID = TimestampType(), TimestamptzType(), UUIDType()
AN_ID = "123e4567-e89b-12d3-a456-426614174000"
UTC = timezone.utc
WANTED = (
    "a text in single quotes, a number, true, false, or DATE, TIME, TIMESTAMP, JSON or UUID before a text in "
    "single quotes"
)
EVERY_TYPE: list[IcebergType] = [
    *(STRING, INT, LONG, BOOL, FLOAT, DOUBLE, DATE, TIME, NTZ, TZ, UUID),
    *(DecimalType(9, 2), DecimalType(38, 38), BinaryType(), FixedType(3), ListType(1, INT), StructType()),
]


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("'pending'", STRING, "pending"),
        ("  'it''s'  ", STRING, "it's"),
        (r"'it\'s'", STRING, "it's"),
        ("''", STRING, ""),
        ("' '", STRING, " "),
        (r"'a\\b\n\t\0\u00e9\101\%\_\q'", STRING, "a\\b\n\t\0é" + "A\\%\\_q"),
        (r"'\U0001F600 \ud83d\ude00 😀'", STRING, "😀 😀 😀"),
        ("'two\nlines -- no comment; $x ${y}'", STRING, "two\nlines -- no comment; $x ${y}"),
        ("'" + "x" * 100_000 + "'", STRING, "x" * 100_000),
        ('\'{"a": [1, "x"]}\'', STRING, '{"a": [1, "x"]}'),
        ("JSON '{}'", STRING, "{}"),
        (f"UUID '{AN_ID}'", STRING, AN_ID),
        ("TIME '10:00:00'", STRING, "10:00:00"),
        ("time'10:00:00.500'", STRING, "10:00:00.5"),
        (f"'{AN_ID.upper()}'", UUID, uuid.UUID(AN_ID)),
        (f"uuid '{AN_ID}'", UUID, uuid.UUID(AN_ID)),
        ("300", INT, 300),
        ("-2147483648", INT, -(2**31)),
        ("+ 7", INT, 7),
        ("007", INT, 7),
        ("1.00", INT, 1),
        (0, INT, 0),
        (1.0, INT, 1),
        ("9223372036854775807", LONG, 2**63 - 1),
        ("1.00500", DecimalType(9, 3), Decimal("1.005")),
        ("1.5", DecimalType(9, 2), Decimal("1.50")),
        ("-.5", DecimalType(2, 2), Decimal("-0.50")),
        ("0.00", DecimalType(2, 0), Decimal(0)),
        (1.5, DecimalType(9, 2), Decimal("1.50")),
        ("9" * 38, DecimalType(38, 0), Decimal("9" * 38)),
        ("0.1", DOUBLE, 0.1),
        ("0.1", FLOAT, 0.1),
        ("-0", DOUBLE, 0.0),
        ("16777216", FLOAT, 16777216.0),
        (2, DOUBLE, 2.0),
        ("TRUE", BOOL, True),
        (False, BOOL, False),
        ("DATE '2024-02-29'", DATE, date(2024, 2, 29)),
        ("date'0001-01-01'", DATE, date(1, 1, 1)),
        ("'9999-12-31'", DATE, date(9999, 12, 31)),
        ("2024-01-01", DATE, date(2024, 1, 1)),
        (date(2024, 1, 1), DATE, date(2024, 1, 1)),
        ("TIME '23:59:59.999999'", TIME, time(23, 59, 59, 999999)),
        ("TIMESTAMP '2024-01-31 12:00:00'", NTZ, datetime(2024, 1, 31, 12)),
        ("TIMESTAMP_NTZ '2024-01-31T12:00:00.000001'", NTZ, datetime(2024, 1, 31, 12, 0, 0, 1)),
        ("'2024-01-31 12:00'", NTZ, datetime(2024, 1, 31, 12)),
        ("DATE '2024-01-31'", NTZ, datetime(2024, 1, 31)),
        ("2024-01-31 12:00:00", NTZ, datetime(2024, 1, 31, 12)),
        (datetime(2024, 1, 31, 12), NTZ, datetime(2024, 1, 31, 12)),
        ("TIMESTAMP '2024-01-31 12:00:00+01:00'", TZ, datetime(2024, 1, 31, 11, tzinfo=UTC)),
        ("TIMESTAMP_LTZ '2024-01-31 12:00:00.5 -08:30'", TZ, datetime(2024, 1, 31, 20, 30, 0, 500000, UTC)),
        ("'2024-01-31T12:00:00Z'", TZ, datetime(2024, 1, 31, 12, tzinfo=UTC)),
        ("TIMESTAMP '2024-01-31 12:00:00 UTC'", TZ, datetime(2024, 1, 31, 12, tzinfo=UTC)),
        (datetime(2024, 1, 31, 12, tzinfo=UTC), TZ, datetime(2024, 1, 31, 12, tzinfo=UTC)),
    ],
)
def test_a_literal_is_a_value_of_its_columns_type(text: object, type_: IcebergType, value: object) -> None:
    found = read_default(text, type_)
    assert found is not None
    assert found.value == value
    assert type(found.value) is type(value)
    assert same_default(from_json(type_, to_json(type_, found.value)), value, type_)


@pytest.mark.parametrize("text", [None, "null", " NULL "])
@pytest.mark.parametrize("type_", EVERY_TYPE)
def test_null_is_no_default(text: object, type_: IcebergType) -> None:
    assert read_default(text, type_) is None


EXPRESSION = f"it is a function or an expression. A default is {WANTED}"
NO_LITERAL = f"it is no literal. A default is {WANTED}"
A_NAME = (
    "it is a name and no literal. A text stands in single quotes of its own, which YAML leaves only inside "
    "of double ones: "
)
DOUBLE_QUOTES = "double quotes are those of a name or of a text, as the session is set: use single quotes"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("now()", EXPRESSION),
        ("random()", EXPRESSION),
        ("current_timestamp()", EXPRESSION),
        ("nextval('s')", EXPRESSION),
        ("next value for s", NO_LITERAL),
        ("cast('1' as int)", EXPRESSION),
        ("'1'::int", NO_LITERAL),
        ("cast(now() as date)", EXPRESSION),
        ("interval '1' day", NO_LITERAL),
        ("INTERVAL 1 DAY", NO_LITERAL),
        ("array(1, 2)", EXPRESSION),
        ("[1, 2]", NO_LITERAL),
        ("ARRAY[1]", NO_LITERAL),
        ("map('a', 1)", EXPRESSION),
        ("1e6", "a number has to be written out, without an exponent"),
        ("-1.5E-3", "a number has to be written out, without an exponent"),
        ("(select 1)", NO_LITERAL),
        ("(select max(id) from t)", NO_LITERAL),
        ("'a' || 'b'", NO_LITERAL),
        ("concat('a', 'b')", EXPRESSION),
        ("'a' 'b'", NO_LITERAL),
        ("1 + 1", NO_LITERAL),
        ("--1", NO_LITERAL),
        ("1 -- one", NO_LITERAL),
        ("('a')", NO_LITERAL),
        ("'a", NO_LITERAL),
        ("'a\\'", NO_LITERAL),
        ("X'1F'", NO_LITERAL),
        ("r'a'", NO_LITERAL),
        ("1L", NO_LITERAL),
        ("1_000", NO_LITERAL),
        ("١", NO_LITERAL),
        ("", "it is empty: write '' in single quotes for an empty text"),
        (
            '"pending"',
            "double quotes are those of a name or of a text, as the session is set: use single quotes",
        ),
        ("pending", f"{A_NAME}\"'pending'\""),
        (
            "current_user",
            f"{A_NAME}\"'current_user'\"",
        ),
        (
            "current_date",
            f"{A_NAME}\"'current_date'\"",
        ),
        ([1], f"it is a list of YAML. A default is {WANTED}"),
        ({"a": 1}, f"it is a dict of YAML. A default is {WANTED}"),
        (math.inf, "it is not a finite number"),
        (math.nan, "it is not a finite number"),
    ],
)
@pytest.mark.parametrize("type_", [STRING, INT, DATE, TZ, BOOL])
def test_what_is_no_literal_is_not_supported(text: object, why: str, type_: IcebergType) -> None:
    with pytest.raises(UnsupportedDefault) as error:
        read_default(text, type_)
    assert str(error.value) == why


@pytest.mark.parametrize(
    ("text", "type_", "why"),
    [
        ("1", STRING, "it is a number, and the column is string"),
        ("true", STRING, "it is a boolean, and the column is string"),
        ("DATE '2024-01-01'", STRING, "it is a date, and the column is string"),
        (r"'\ud800'", STRING, "it has half of a character in it, which no table can store"),
        (r"'\UFFFFFFFF'", STRING, "it has an escape that is no character"),
        ("JSON '{'", STRING, "its text is no JSON"),
        ("UUID 'x'", STRING, "its text is no uuid"),
        ("'x'", UUID, "its text is no uuid"),
        ("'5'", INT, "it is a text, and the column is int"),
        ("2147483648", INT, "it is out of the range of int"),
        ("9" * 5000, LONG, "it is out of the range of bigint"),
        ("1.5", INT, "it has a fraction, and the column is int"),
        ("true", INT, "it is a boolean, and the column is int"),
        ("1.005", DecimalType(9, 2), "it has more decimal places than decimal(9,2)"),
        ("12345678", DecimalType(9, 2), "it is out of the range of decimal(9,2)"),
        ("1" + "0" * 400, DOUBLE, "it is out of the range of double"),
        ("0." + "0" * 400 + "1", DOUBLE, "it is out of the range of double"),
        ("1" + "0" * 39, FLOAT, "it is out of the range of float"),
        ("16777217", FLOAT, "float has no such whole number"),
        ("9007199254740993", DOUBLE, "double has no such whole number"),
        ("1", BOOL, "it is a number, and the column is boolean"),
        ("'true'", BOOL, "it is a text, and the column is boolean"),
        ("DATE '2024-02-30'", DATE, "2024-02-30 is no date such as 2024-01-31"),
        ("'now'", DATE, "now is no date such as 2024-01-31"),
        ("DATE '2024-1-1'", DATE, "2024-1-1 is no date such as 2024-01-31"),
        ("TIMESTAMP '2024-01-01 00:00:00'", DATE, "it is a timestamp, and the column is date"),
        ("'24:00:00'", TIME, "24:00:00 is no time such as 23:59:59"),
        ("'10:00:00.0000001'", TIME, "it is more exact than a microsecond"),
        (
            "TIMESTAMP '2024-01-31 12:00:00+01:00'",
            NTZ,
            "it has a time zone, and the column is timestamp_ntz: leave it out",
        ),
        (
            "TIMESTAMP '2024-01-31 12:00:00'",
            TZ,
            "it names no time zone, and which instant it is in the session's is not known: add one, as in "
            "TIMESTAMP '2024-01-31 12:00:00+00:00'",
        ),
        (
            "TIMESTAMP '2024-01-31 12:00:00 Europe/Berlin'",
            TZ,
            "2024-01-31 12:00:00 Europe/Berlin is no timestamp such as 2024-01-31 23:59:59 or 2024-01-31 "
            "23:59:59+01:00",
        ),
        ("'2024-01-31 12:00:00+19:00'", TZ, "+19:00 is no offset of a time zone"),
        ("'0001-01-01 00:00:00+01:00'", TZ, "it is out of the range of timestamp"),
        ("TIMESTAMP_NTZ '2024-01-31 12:00:00'", TZ, "it is a timestamp_ntz, and the column is timestamp"),
        ("'x'", BinaryType(), "a column of the type binary cannot have one"),
        ("'x'", ListType(1, INT), "a column of the type array<int> cannot have one"),
        ("1", StructType(NestedField(1, "a", INT)), "a column of the type struct<`a`:int> cannot have one"),
    ],
)
def test_a_literal_that_is_no_value_of_its_columns_type_is_not_supported(
    text: str, type_: IcebergType, why: str
) -> None:
    with pytest.raises(UnsupportedDefault) as error:
        read_default(text, type_)
    assert str(error.value) == why


FRAGMENTS = st.sampled_from(
    [
        *"'\\\"-+.:() \n0123456789eEtTZ",
        *("''", "\\'", "\\u", "DATE '", "TIMESTAMP '", "TIME '", "JSON '", "UUID '", "2024-02-30"),
        *("12:00:00", "+01:00", "true", "null", AN_ID, "{}", "\ud800", "\0", "${x}"),
    ]
)
YAML = st.none() | st.booleans() | st.integers() | st.floats() | st.dates() | st.datetimes() | st.text()
ANYTHING = YAML | st.lists(YAML) | st.dictionaries(st.text(), YAML) | st.lists(FRAGMENTS).map("".join)


@given(ANYTHING, st.sampled_from(EVERY_TYPE))
def test_whatever_is_given_is_a_value_or_has_a_reason_why_not(default: object, type_: IcebergType) -> None:
    try:
        found = read_default(default, type_)
    except UnsupportedDefault:
        return
    if found is not None:
        assert same_default(from_json(type_, to_json(type_, found.value)), found.value, type_)
        if not isinstance(type_, TimeType):
            assert found.sql
        assert "\n" not in str(found)
        assert len(str(found)) <= 60


TEXTS = st.text(st.characters(blacklist_categories=("Cs",)))


@given(TEXTS)
def test_any_text_can_be_written_as_a_literal(text: str) -> None:
    doubled = text.replace("\\", "\\\\").replace("'", "''")
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    for literal in (f"'{doubled}'", f"'{escaped}'"):
        assert read_default(literal, STRING) == DefaultValue(STRING, text)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**7), max_value=10**7))
def test_a_number_of_a_decimals_scale_is_one(number: Decimal) -> None:
    fits = abs(number) < 10**7
    try:
        found = read_default(format(number, "f"), DecimalType(9, 2))
    except UnsupportedDefault:
        assert not fits
    else:
        assert fits
        assert found is not None
        assert found.value == number
        assert found.value.as_tuple().exponent == -2


@pytest.mark.parametrize(
    ("value", "sql", "text"),
    [
        (DefaultValue(STRING, "it's"), "CAST(X'69742773' AS STRING)", "'it\\'s'"),
        (DefaultValue(STRING, "x"), "'x'", "'x'"),
        (DefaultValue(STRING, "x" * 100), f"'{'x' * 100}'", "'" + "x" * 58 + "…"),
        (DefaultValue(UUID, uuid.UUID(AN_ID)), f"'{AN_ID}'", f"'{AN_ID}'"),
        (DefaultValue(BOOL, True), "CAST('true' AS boolean)", "true"),
        (DefaultValue(LONG, -5), "CAST('-5' AS bigint)", "-5"),
        (DefaultValue(FLOAT, 0.1), "CAST('0.1' AS float)", "0.1"),
        (DefaultValue(DOUBLE, 1e22), "CAST('1e+22' AS double)", "1e+22"),
        (DefaultValue(DecimalType(9, 2), Decimal("1.50")), "CAST('1.50' AS decimal(9,2))", "1.50"),
        (DefaultValue(BinaryType(), b"\x01'\xff"), "X'0127FF'", "X'0127FF'"),
        (DefaultValue(BinaryType(), b""), "X''", "X''"),
        (DefaultValue(FixedType(2), b"\x00\xfe"), "X'00FE'", "X'00FE'"),
        (DefaultValue(BinaryType(), b"\xab" * 40), f"X'{'AB' * 40}'", "X'" + "AB" * 28 + "A…"),
        (DefaultValue(DATE, date(1, 1, 1)), "CAST('0001-01-01' AS date)", "'0001-01-01'"),
        (
            DefaultValue(NTZ, datetime(2024, 1, 1)),
            "CAST('2024-01-01 00:00:00' AS timestamp_ntz)",
            "'2024-01-01 00:00:00'",
        ),
        (
            DefaultValue(TZ, datetime(2024, 1, 1, 1, 2, 3, 4, UTC)),
            "CAST('2024-01-01 01:02:03.000004+00:00' AS timestamp_ltz)",
            "'2024-01-01 01:02:03.000004+00:00'",
        ),
    ],
)
def test_a_value_is_sql_that_no_setting_changes_and_a_text_for_people(
    value: DefaultValue, sql: str, text: str
) -> None:
    assert value.sql == sql
    assert str(value) == text


# What changes


OWN = {"sparkevolve.defaults": "[1, 2]"}


def field(number: int, name: str, type_: IcebergType, default: Any = None, **more: Any) -> NestedField:
    return NestedField(number, name, type_, write_default=default, **more)


def plan(target: Schema, source: str, defaults: dict[str, object], **policy: Any) -> EvolutionPlan:
    facts = policy.pop("facts", TableFacts(format_version=3))
    return plan_evolution(target, columns(source), Policy(defaults=defaults, facts=facts, **policy))


def v3() -> TableFacts:
    return TableFacts(format_version=3, properties=OWN)


def test_a_new_column_comes_with_its_default_and_an_old_one_gets_it_for_rows_to_come() -> None:
    evolution = plan(
        Schema(field(1, "Id", INT), field(2, "Status", STRING)),
        "id int, status string, new decimal(9,2), other string",
        {"STATUS": "'pending'", "`new`": 1.5, "other": "now()", "none": "1"},
    )
    assert evolution.changes == (
        SetDefault(("Status",), DefaultValue(STRING, "pending")),
        AddColumn(("new",), DecimalType(9, 2), default=DefaultValue(DecimalType(9, 2), Decimal("1.50"))),
        AddColumn(("other",), STRING),
    )
    assert [str(change) for change in evolution.changes] == [
        "set default of `Status` to 'pending'",
        "add column `new` decimal(9,2) default 1.50",
        "add column `other` string",
    ]
    assert evolution.warnings == ()
    assert evolution.reminders == (
        f"The default now() of `other` is skipped: {EXPRESSION}.",
        "The default of `none` is skipped: neither the table nor the model has such a column.",
    )


def test_what_the_table_has_already_is_no_change() -> None:
    table = Schema(
        field(1, "f", FLOAT, 0.10000000149011612),
        field(2, "d", DecimalType(9, 2), Decimal("1.50")),
        field(3, "t", TZ, datetime(2024, 1, 1, tzinfo=UTC)),
        field(4, "u", UUID, uuid.UUID(AN_ID)),
        field(5, "s", STRING, ""),
        field(6, "b", BOOL, False),
        field(7, "foreign", INT, 0),
    )
    defaults = {"f": "0.1", "d": "1.5", "t": "'2024-01-01 01:00:00+01:00'", "u": f"'{AN_ID}'", "s": "''"}
    batch = "f float, d decimal(9,2), t timestamp, u string, s string, b boolean, foreign int"
    evolution = plan(table, batch, {**defaults, "b": False})
    assert evolution.changes == ()
    assert evolution.reminders == ()


def test_a_default_is_changed_and_an_own_one_removed() -> None:
    table = Schema(
        field(1, "a", STRING, "old"), field(2, "b", INT, 5), field(3, "c", INT, 6), field(4, "d", INT, 7)
    )
    evolution = plan(table, "a string, b int, c int, d int", {"a": "'new'", "d": None}, facts=v3())
    assert evolution.changes == (
        SetDefault(("a",), DefaultValue(STRING, "new"), DefaultValue(STRING, "old")),
        RemoveDefault(("b",), DefaultValue(INT, 5)),
        RemoveDefault(("d",), DefaultValue(INT, 7)),
    )
    assert [str(change) for change in evolution.changes] == [
        "change default of `a` from 'old' to 'new'",
        "remove default 5 of `b`",
        "remove default 7 of `d`",
    ]
    assert evolution.warnings == evolution.reminders == ()


def test_one_that_becomes_unsupported_is_removed_if_it_is_our_own() -> None:
    table = Schema(field(1, "a", STRING, "old"), field(3, "c", INT, 6))
    evolution = plan(table, "a string, c int", {"a": "now()", "c": "1.5"}, facts=v3())
    assert evolution.changes == (RemoveDefault(("a",), DefaultValue(STRING, "old"), is_warned_of=True),)
    assert evolution.warnings == ("`c` keeps the default 6, which no run of this model has set.",)
    assert evolution.reminders == (
        f"The default now() of `a` is skipped: {EXPRESSION}. The default that it had, 'old', is removed.",
        "The default 1.5 of `c` is skipped: it has a fraction, and the column is int.",
    )


def test_a_not_null_column_keeps_its_default() -> None:
    table = Schema(field(1, "a", STRING, "old", required=True))
    evolution = plan(table, "a string", {}, facts=v3(), columns_without_null=frozenset({"a"}))
    assert evolution.changes == ()
    assert evolution.warnings == (
        "`a` keeps the default 'old': the column is NOT NULL, and a writer that leaves it out would have no "
        "value for it.",
    )


def test_a_renamed_and_a_widened_column_have_the_default_of_their_new_name_and_type() -> None:
    table = Schema(field(1, "a", INT, 5), field(2, "n", INT, 7))
    evolution = plan(table, "b int, n bigint", {"b": "6", "n": "5000000000"}, facts=v3(), renames={"a": "b"})
    assert evolution.changes == (
        RenameField(("a",), "b"),
        SetDefault(("a",), DefaultValue(INT, 6), DefaultValue(INT, 5)),
        WidenType(("n",), INT, LONG),
        SetDefault(("n",), DefaultValue(LONG, 5000000000), DefaultValue(LONG, 7)),
    )
    assert [str(change) for change in evolution.changes[:2]] == [
        "rename `a` to `b`",
        "change default of `b` from 5 to 6",
    ]
    # So it is where another column takes the old name.
    removed = plan(Schema(field(1, "a", INT, 5)), "b int", {"b": None}, facts=v3(), renames={"a": "b"})
    assert [str(change) for change in removed.changes] == ["rename `a` to `b`", "remove default 5 of `b`"]


def test_under_fail_the_table_keeps_its_defaults_and_that_is_said() -> None:
    table = Schema(field(1, "a", STRING, "old"), field(2, "b", INT))
    evolution = plan(table, "a string, b int", {"b": "1"}, facts=v3(), keep_defaults=True)
    assert evolution.changes == ()
    assert evolution.reminders == (
        "The table's default of `a`, `b` is not what the model says, and stays, since on_schema_change is "
        "'fail'.",
    )


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (
            TableFacts(format_version=2),
            "The default of `a`, `b` is not stored: the table has Iceberg's format version 2, and defaults "
            "come "
            "with version 3. Rows that are older than a column, and rows of writers that leave it out, have "
            "NULL "
            "in it. To have defaults stored, upgrade the table with ALTER TABLE ... SET TBLPROPERTIES "
            "('format-version' = '3'), which cannot be undone; all its readers have to know that version.",
        ),
        (
            TableFacts(format_version=3, is_atomic=False),
            "The default of `a`, `b` is not stored: over a Thrift server, with a catalog of this type, the "
            "table is changed by statements of Spark, which has none for it. A run with `method: session`, "
            "or "
            "one on a REST catalog, stores it.",
        ),
    ],
)
def test_where_defaults_cannot_be_stored_one_warning_says_which_and_what_to_do(
    facts: TableFacts, said: str
) -> None:
    table = Schema(field(1, "a", INT), field(2, "b", LONG))
    evolution = plan(table, "a int, b bigint", {"a": "1", "b": "2"}, facts=facts)
    assert evolution.changes == ()
    assert evolution.reminders == (said,)
    # Once, where it stays so; a run with another method stores what this one cannot.
    assert evolution.notes == ((said,) if facts.format_version == 2 else ())
    assert plan(Schema(field(1, "a", INT)), "a int", {}, facts=facts).reminders == ()


def test_what_is_padded_with_a_default_that_is_not_stored_is_said_once() -> None:
    table = Schema(field(1, "a", INT), field(2, "b", LONG))
    policy = Policy(defaults={"b": "2"}, pad_with_default=True, facts=TableFacts(format_version=2))
    evolution = plan_evolution(table, table, policy)
    (note,) = evolution.notes
    assert evolution.reminders == (note,)
    assert note.startswith("The default of `b` is not stored: the table has Iceberg's format version 2")
    assert "its rows get the default, as `pad_with` says." in note
    # What was said is kept, and is said again if it changes.
    (told,) = record.told([note], {}).items()
    assert told[0] == "sparkevolve.told"
    properties = {told[0]: str(told[1])}
    assert record.told([note], properties) == {}
    assert record.told([f"{note} more"], properties) != {}
    assert record.told([], properties) == {"sparkevolve.told": None}
    assert record.told([], {}) == {}


def test_a_default_of_a_field_in_a_column_is_skipped() -> None:
    table = Schema(field(1, "s", StructType(NestedField(2, "x", INT))), field(3, "a.b", INT))
    evolution = plan_evolution(
        table, table, Policy(defaults={"s.x": "1", "a.b": "2", "s": "1"}, facts=TableFacts(format_version=3))
    )
    assert evolution.changes == (SetDefault(("a.b",), DefaultValue(INT, 2)),)
    assert evolution.reminders == (
        "The default 1 of `s` is skipped: a column of the type struct<`x`:int> cannot have one.",
        "The default of `s`.`x` is skipped: it is a field in a column, and only whole columns have one.",
    )


def test_columns_that_are_left_out_are_not_warned_of() -> None:
    evolution = plan(Schema(field(1, "a", INT)), "a int, b int", {"b": "1"}, add_columns=False)
    assert evolution.changes == evolution.reminders == ()


# What is written into columns that the model does not return


PAD = {"pad_with_default": True}


def padded(evolution: EvolutionPlan) -> dict[str, str | None]:
    return {c.name: c.projection.default for c in evolution.columns if isinstance(c.projection, Pad)}


@pytest.mark.parametrize("facts", [TableFacts(), TableFacts(format_version=3), v3()])
def test_without_pad_with_a_removed_column_gets_null(facts: TableFacts) -> None:
    evolution = plan(Schema(field(1, "id", INT), field(2, "a", INT, 5)), "id int", {"a": "7"}, facts=facts)
    assert padded(evolution) == {"a": None}
    assert evolution.padded_with == {}


def test_padded_with_what_the_model_says_or_else_with_what_the_table_has() -> None:
    inner = StructType(field(10, "y", STRING, "deep"), field(11, "z", INT))
    table = Schema(
        *(field(1, "id", INT), field(2, "a", INT, 5), field(3, "b", INT, 6), field(4, "c", INT)),
        *(field(5, "s", inner), field(6, "no", INT)),
    )
    batch = Schema(field(1, "id", INT), field(2, "s", StructType(field(3, "z", INT))))
    policy = Policy(defaults={"c": "8", "b": "7"}, facts=v3(), pad_with_default=True)
    evolution = plan_evolution(table, batch, policy)
    # The default of `a` is our own, and the model has none any more: it is removed in this run.
    assert padded(evolution) == {
        "a": None,
        "b": "CAST('7' AS int)",
        "c": "CAST('8' AS int)",
        "no": None,
    }
    (struct,) = (c for c in evolution.columns if c.name == "s")
    assert struct.render("src") == ("IF(src.`s` IS NULL, NULL, named_struct('y', 'deep', 'z', src.`s`.`z`))")
    assert evolution.padded_with == {
        ("b",): DefaultValue(INT, 7),
        ("c",): DefaultValue(INT, 8),
        ("s", "y"): DefaultValue(STRING, "deep"),
    }
    foreign = plan_evolution(table, batch, Policy(facts=TableFacts(format_version=3), pad_with_default=True))
    assert padded(foreign)["a"] == "CAST('5' AS int)"


def test_on_format_version_2_it_is_what_the_model_says() -> None:
    table = Schema(field(1, "id", INT), field(2, "a", INT))
    evolution = plan(table, "id int", {"a": "7"}, facts=TableFacts(), **PAD)
    assert padded(evolution) == {"a": "CAST('7' AS int)"}
    assert evolution.changes == ()
    assert "its rows get the default, as `pad_with` says" in evolution.reminders[0]


def test_a_not_null_column_that_is_padded_with_a_default_stays_not_null() -> None:
    table = Schema(field(1, "id", INT), field(2, "a", INT, required=True))
    evolution = plan(table, "id int", {"a": "7"}, facts=TableFacts(), relax_not_null=False, **PAD)
    assert evolution.refusals == ()
    assert padded(evolution) == {"a": "CAST('7' AS int)"}


# What is kept of it


def test_the_columns_whose_default_is_ours_are_kept_by_their_ids() -> None:
    old = Schema(field(1, "a", INT, 1), field(2, "b", INT, 2), field(3, "c", INT), field(5, "f", INT, 9))
    new = Schema(
        *(field(1, "renamed", INT, 1), field(2, "b", INT), field(3, "c", INT, 3), field(4, "d", INT, 4)),
        field(5, "f", INT, 9),
    )
    assert record.changed_defaults({"sparkevolve.defaults": "[1, 2]"}, old, new) == "[1, 3, 4]"
    assert record.changed_defaults({"sparkevolve.defaults": "[1, 3, 4]"}, new, new) is None
    assert record.changed_defaults({}, old, old) is None
    # One that was dropped is ours again once it is restored, whatever a run has changed meanwhile.
    without = Schema(field(2, "b", INT, 2), field(3, "c", INT, 3))
    assert record.changed_defaults({"sparkevolve.defaults": "[1, 2]"}, old, without) == "[1, 2, 3]"


@pytest.mark.parametrize("text", ["", "{", "{}", "null", '"x"', '["x"]'])
def test_a_spoiled_list_of_them_is_an_empty_one(text: str) -> None:
    assert record.own_defaults({"sparkevolve.defaults": text}) == frozenset()


def test_the_history_has_defaults() -> None:
    old = Schema(field(1, "a", INT, 1), field(2, "b", INT, 2), field(3, "f", FLOAT, 0.1))
    new = Schema(
        field(1, "a", INT, 5), field(2, "b", INT), field(3, "f", FLOAT, 0.1), field(4, "c", STRING, "x")
    )
    assert schema_changes(old, new) == (
        "set default of `a` (1) to 5",
        "removed default of `b` (2)",
        "added `c` (4) string default 'x'",
    )


# Where a model says it


def test_a_default_stands_in_the_column_in_its_meta_or_in_the_configuration() -> None:
    found, said = all_defaults(
        {"Status": "'new'", "n": 0, "same": "1"},
        {
            "status": ColumnInfo("status", _extra={"default": "'pending'"}, meta={"default": "'old'"}),
            "m": ColumnInfo("m", meta={"default": True}),
            "none": ColumnInfo("none", _extra={"default": None}),
            "`same`": ColumnInfo("`same`", _extra={"default": "1"}),
            "plain": ColumnInfo("plain", _extra={"other": "1"}),
        },
    )
    assert found == {"status": "'pending'", "m": True, "none": None, "`same`": "1", "n": 0}
    assert said == (
        "`status` has two defaults: 'pending' in `default` of the column, which is taken, and 'old' in "
        "`meta` of "
        "the column.",
        "`Status` has two defaults: 'pending' in `default` of the column, which is taken, and 'new' in "
        "`column_defaults`.",
    )


def test_where_older_rows_may_not_read_it_a_new_column_has_it_for_rows_to_come() -> None:
    facts = TableFacts(format_version=3, fills_older_rows=False)
    evolution = plan(Schema(field(1, "a", INT)), "a int, b int, c int", {"b": "1"}, facts=facts)
    assert evolution.changes == (
        AddColumn(("b",), INT),
        SetDefault(("b",), DefaultValue(INT, 1)),
        AddColumn(("c",), INT),
    )
    assert evolution.warnings == (
        "Rows that are older than `b` have NULL in it, and not its default: the table has ORC files, which "
        "Iceberg's Java library could not read any more.",
    )


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("TIMESTAMP '2024-01-31 12:00:05.25'", datetime(2024, 1, 31, 12, 0, 5, 250000)),
        (" timestamp_ltz'2024-01-31T12:00'", datetime(2024, 1, 31, 12)),
        ("'2024-01-31'", datetime(2024, 1, 31)),
        ("DATE '2024-01-31'", datetime(2024, 1, 31)),
        (datetime(2024, 1, 31, 12), datetime(2024, 1, 31, 12)),
        ("TIMESTAMP '2024-01-31 12:00:05Z'", None),
        ("TIMESTAMP_NTZ '2024-01-31 12:00:05'", None),
        ("TIME '12:00:05'", None),
        ("'pending'", None),
        ("now()", None),
        ("null", None),
        (None, None),
        (5, None),
    ],
)
def test_a_time_without_a_zone_is_an_instant_in_the_session_of_the_run(
    given: object, named: datetime | None
) -> None:
    assert local_time(given) == named
    if named is not None:
        instant = datetime(2024, 1, 31, 17, tzinfo=UTC)
        read = LocalTime(given, instant)
        found = read_default(read, TZ)
        assert found is not None
        assert found.value == instant
        assert found.sql == "CAST('2024-01-31 17:00:00+00:00' AS timestamp_ltz)"
        assert shown_default(read) == shown_default(given)
        # For a column of another type it is what is written.
        assert _read(read, NTZ) == _read(given, NTZ)
        assert _read(read, DATE) == _read(given, DATE)


def _read(given: object, type_: IcebergType) -> object:
    try:
        return read_default(given, type_)
    except UnsupportedDefault as exc:
        return str(exc)


def test_what_a_new_table_skips_is_known_before_it_is_made() -> None:
    columns = [
        ("id", "int"),
        ("At", "timestamp"),
        ("d", "decimal(5,2)"),
        ("s", "struct<`x`:int>"),
        ("n", "string"),
    ]
    wanted = {
        "id": "'x'",
        "at": "TIMESTAMP '2024-01-01 00:00:00Z'",
        "d": "1.234",
        "s": "1",
        "n": "'ok'",
        "x": "1",
    }
    settings = IncrementalSettings(defaults=wanted)
    planned = defaults_of_new(columns, settings, 3)
    assert [change.path for change in planned.changes] == [("At",), ("n",)]
    skipped = planned.reminders
    assert [text.partition(" is skipped")[0] for text in skipped] == [
        "The default 'x' of `id`",
        "The default 1.234 of `d`",
        "The default 1 of `s`",
        "The default of `x`",
    ]
    planned = defaults_of_new(columns, settings, 2)
    assert planned.changes == ()
    *same, not_stored = planned.reminders
    assert tuple(same) == skipped
    assert not_stored.startswith(
        "The default of `At`, `n` is not stored: the table has Iceberg's format version 2"
    )


@pytest.mark.parametrize(
    "type_",
    [BooleanType(), INT, LongType(), DoubleType(), DateType(), TimestampType(), TimestamptzType(), STRING],
)
def test_a_column_has_the_type_that_is_said_of_it(type_: IcebergType) -> None:
    assert column_type(type_text(type_)) == type_
