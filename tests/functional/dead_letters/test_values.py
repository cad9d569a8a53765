"""Which values convert, whatever the session is set to, and that a letter has each value as it was."""

import base64
import hashlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
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
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from dbt.adapters.sparkevolve.evolution.conversions import instant_text, lossless
from dbt.adapters.sparkevolve.sql.dead_letters import same_row
from tests.functional.dead_letters.reading import letters
from tests.functional.harness import Scenario

TEXT, INT, LONG, FLOAT, DOUBLE = StringType(), IntegerType(), LongType(), FloatType(), DoubleType()
DATE, LOCAL, INSTANT, BOOL, BYTES = (
    DateType(),
    TimestampType(),
    TimestamptzType(),
    BooleanType(),
    BinaryType(),
)
MONEY = DecimalType(4, 2)
UUID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"

# A value, its type and another, and what it is there, as text; None if it is no value there.
CASES: list[tuple[str, IcebergType, IcebergType, str | None]] = [
    ("'5'", TEXT, INT, "5"),
    ("'-5'", TEXT, LONG, "-5"),
    ("'2147483647'", TEXT, INT, "2147483647"),
    ("'2147483648'", TEXT, INT, None),
    ("'05'", TEXT, INT, None),
    ("'+5'", TEXT, INT, None),
    ("' 5'", TEXT, INT, None),
    ("concat('5', char(10))", TEXT, INT, None),
    ("'5.0'", TEXT, INT, None),
    ("'1e3'", TEXT, INT, None),
    ("''", TEXT, INT, None),
    ("'1.5'", TEXT, MONEY, "1.50"),
    ("'1.500'", TEXT, MONEY, "1.50"),
    ("'1.505'", TEXT, MONEY, None),
    ("'100'", TEXT, MONEY, None),
    ("'-0.5'", TEXT, DecimalType(2, 2), "-0.50"),
    ("'1,5'", TEXT, MONEY, None),
    ("'7'", TEXT, DecimalType(3, 0), "7"),
    ("'7.00'", TEXT, DecimalType(3, 0), "7"),
    ("'7.01'", TEXT, DecimalType(3, 0), None),
    ("'0.1'", TEXT, DOUBLE, "0.1"),
    ("'1e3'", TEXT, DOUBLE, "1000.0"),
    ("'0.30000000000000004'", TEXT, DOUBLE, "0.30000000000000004"),
    ("'0.300000000000000041'", TEXT, DOUBLE, None),
    ("'1e400'", TEXT, DOUBLE, None),
    ("'1e-400'", TEXT, DOUBLE, None),
    ("'0e5'", TEXT, DOUBLE, "0.0"),
    ("'4.9E-324'", TEXT, DOUBLE, "4.9E-324"),
    ("'NaN'", TEXT, DOUBLE, "NaN"),
    ("'nan'", TEXT, DOUBLE, None),
    ("'1d'", TEXT, DOUBLE, None),
    ("'16777217'", TEXT, FLOAT, None),
    ("'0.1'", TEXT, FLOAT, "0.1"),
    ("'1.4E-45'", TEXT, FLOAT, "1.4E-45"),
    ("'1.5E-45'", TEXT, FLOAT, None),
    ("'true'", TEXT, BOOL, "true"),
    ("'TRUE'", TEXT, BOOL, None),
    ("'t'", TEXT, BOOL, None),
    ("'1'", TEXT, BOOL, None),
    ("'2024-02-29'", TEXT, DATE, "2024-02-29"),
    ("'2023-02-29'", TEXT, DATE, None),
    ("'2024-2-1'", TEXT, DATE, None),
    ("'2024-02-29 10:00:00'", TEXT, DATE, None),
    ("'2024-02-29 10:00:00'", TEXT, LOCAL, "2024-02-29 10:00:00"),
    ("'2024-02-29T10:00:00.123456'", TEXT, LOCAL, "2024-02-29 10:00:00.123456"),
    ("'2024-02-29 10:00:00.1234567'", TEXT, LOCAL, None),
    ("'2024-02-29 24:00:00'", TEXT, LOCAL, None),
    ("'2024-02-29 10:00:00Z'", TEXT, LOCAL, None),
    ("'2024-02-29 10:00:00Z'", TEXT, INSTANT, "2024-02-29 10:00:00Z"),
    ("'2024-02-29 10:00:00+02:00'", TEXT, INSTANT, "2024-02-29 08:00:00Z"),
    ("'2024-02-29 10:00:00'", TEXT, INSTANT, None),
    (f"'{UUID}'", TEXT, UUIDType(), UUID),
    (f"'{UUID} '", TEXT, UUIDType(), None),
    ("'abc'", TEXT, BYTES, "abc"),
    ("X'6162'", BYTES, FixedType(2), "ab"),
    ("X'61'", BYTES, FixedType(2), None),
    ("1.9D", DOUBLE, INT, None),
    ("2.0D", DOUBLE, INT, "2"),
    ("-0.0D", DOUBLE, INT, "0"),
    ("2147483648D", DOUBLE, INT, None),
    ("CAST('NaN' AS double)", DOUBLE, INT, None),
    ("CAST('Infinity' AS double)", DOUBLE, LONG, None),
    ("CAST('9.223372036854775807E18' AS double)", DOUBLE, LONG, None),
    ("CAST('-9.223372036854775808E18' AS double)", DOUBLE, LONG, "-9223372036854775808"),
    ("CAST(3 AS float)", FLOAT, INT, "3"),
    ("3000000000L", LONG, INT, None),
    ("5L", LONG, INT, "5"),
    ("9007199254740993L", LONG, DOUBLE, None),
    ("9007199254740992L", LONG, DOUBLE, "9.007199254740992E15"),
    ("9223372036854775807L", LONG, DOUBLE, None),
    ("2147483647", INT, FLOAT, None),
    ("16777216", INT, FLOAT, "1.6777216E7"),
    ("1.50BD", DecimalType(3, 2), INT, None),
    ("1.00BD", DecimalType(3, 2), INT, "1"),
    ("99999999999999999999999999999999999999BD", DecimalType(38, 0), LONG, None),
    ("1.505BD", DecimalType(4, 3), MONEY, None),
    ("1.500BD", DecimalType(4, 3), MONEY, "1.50"),
    ("1234.5BD", DecimalType(5, 1), MONEY, None),
    ("12.5BD", DecimalType(3, 1), DecimalType(2, 0), None),
    ("-7.0BD", DecimalType(3, 1), DecimalType(1, 0), "-7"),
    ("123", INT, MONEY, None),
    ("12", INT, MONEY, "12.00"),
    ("0.1D", DOUBLE, MONEY, "0.10"),
    ("1.005D", DOUBLE, MONEY, None),
    ("CAST('NaN' AS double)", DOUBLE, MONEY, None),
    ("0.10BD", DecimalType(3, 2), DOUBLE, "0.1"),
    ("12345678901234567890.1234567890BD", DecimalType(30, 10), DOUBLE, None),
    ("0.1D", DOUBLE, FLOAT, None),
    ("0.5D", DOUBLE, FLOAT, "0.5"),
    ("CAST('1E300' AS double)", DOUBLE, FLOAT, None),
    ("CAST('NaN' AS double)", DOUBLE, FLOAT, "NaN"),
    ("true", BOOL, INT, "1"),
    ("true", BOOL, DecimalType(2, 2), None),
    ("true", BOOL, TEXT, "true"),
    ("1", INT, BOOL, "true"),
    ("2", INT, BOOL, None),
    ("0.0D", DOUBLE, BOOL, "false"),
    ("1.0BD", DecimalType(2, 1), BOOL, "true"),
    ("1.5BD", DecimalType(2, 1), BOOL, None),
    ("CAST('0.1' AS decimal(38,38))", DecimalType(38, 38), BOOL, None),
    ("CAST('0' AS decimal(38,38))", DecimalType(38, 38), INT, "0"),
    ("CAST('0.0000001' AS decimal(18,10))", DecimalType(18, 10), TEXT, "0.0000001000"),
    ("CAST('-0.0000001' AS decimal(18,10))", DecimalType(18, 10), TEXT, "-0.0000001000"),
    ("CAST('12.5' AS decimal(18,10))", DecimalType(18, 10), TEXT, "12.5000000000"),
    ("0.1D", DOUBLE, TEXT, "0.1"),
    ("CAST('0001-01-02' AS date)", DATE, TEXT, "0001-01-02"),
    ("CAST('2024-01-02' AS date)", DATE, LOCAL, "2024-01-02 00:00:00"),
    ("CAST('2024-01-02 00:00:00' AS timestamp_ntz)", LOCAL, DATE, "2024-01-02"),
    ("CAST('2024-01-02 00:00:01' AS timestamp_ntz)", LOCAL, DATE, None),
    ("CAST('2024-01-02 00:00:00Z' AS timestamp_ltz)", INSTANT, DATE, "2024-01-02"),
    ("CAST('1969-12-31 00:00:00Z' AS timestamp_ltz)", INSTANT, DATE, "1969-12-31"),
    ("CAST('2024-01-02 00:00:00+01:00' AS timestamp_ltz)", INSTANT, DATE, None),
    ("CAST('1900-01-02 03:04:05.678901Z' AS timestamp_ltz)", INSTANT, TEXT, "1900-01-02 03:04:05.678901Z"),
]
SETTINGS = (
    {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"},
    {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true",
    },
)


@pytest.mark.core
def test_a_value_converts_or_not_under_all_settings(scenario: Scenario) -> None:
    shown = []
    for number, (_, source, target, _) in enumerate(CASES):
        sql = str(lossless(f"`v{number}`", source, target))
        text = instant_text(sql) if isinstance(target, TimestamptzType) else f"CAST({sql} AS string)"
        shown.append(text)
    values = ", ".join(f"{value} AS `v{number}`" for number, (value, *_) in enumerate(CASES))
    query = f"SELECT {', '.join(shown)} FROM (SELECT {values} FROM range(1)) AS `cases`"
    for settings in SETTINGS:
        before = {name: scenario.sql(f"SET {name}")[0][1] for name in settings}
        for name, value in settings.items():
            scenario.sql(f"SET {name}={value}")
        try:
            (found,) = scenario.sql(query)
        finally:
            for name, value in before.items():
                scenario.sql(f"RESET {name}" if value == "<undefined>" else f"SET {name}={value}")
        wrong = [(case, got) for case, got in zip(CASES, found, strict=True) if got != case[3]]
        assert wrong == []


NEVER = [
    (DATE, INSTANT),
    (LOCAL, INSTANT),
    (INSTANT, LOCAL),
    (INT, DATE),
    (DATE, INT),
    (BYTES, TEXT),
    (INSTANT, LONG),
    (BOOL, DATE),
]


@pytest.mark.parametrize(("source", "target"), NEVER, ids=str)
def test_pairs_of_types_without_a_value_in_common(source: IcebergType, target: IcebergType) -> None:
    assert lossless("v", source, target) is None


EVERYTHING = """
select 1 as id, 'x' as n,
  cast('12345678901234567890.0000000001' as decimal(38,10)) as exact, 9007199254740993 as big,
  cast('NaN' as double) as nan, cast('-Infinity' as float) as inf, 0.1D as tenth,
  cast(null as string) as nothing, cast('2024-01-02 03:04:05.678901Z' as timestamp_ltz) as instant,
  cast('2024-01-02 03:04:05.678901' as timestamp_ntz) as local, cast('1500-03-01' as date) as day,
  X'00ff' as bytes, 'Grüße \\'"\\n' as text, true as yes,
  named_struct('a', cast(null as int), 'at', cast('2024-01-01 00:00:00Z' as timestamp_ltz)) as s,
  array(cast('2024-01-01' as date), null) as days, map('k', X'01') as by_text, map(1.50BD, 'v') as by_number,
  make_dt_interval(1, 2) as length
union all
select 2, '5', 0, 0, 0D, cast(0 as float), 0D, null,
  cast('2024-01-02 03:04:05Z' as timestamp_ltz),
  cast('2024-01-02 03:04:05' as timestamp_ntz), cast('2024-01-02' as date), X'00', '', false,
  named_struct('a', 1, 'at', cast('2024-01-01 00:00:00Z' as timestamp_ltz)), array(), map(), map(),
  make_dt_interval(1, 2)
"""
PAYLOAD = {
    "id": 1,
    "n": "x",
    "exact": Decimal("12345678901234567890.0000000001"),
    "big": 9007199254740993,
    "nan": "NaN",
    "inf": "-Infinity",
    "tenth": Decimal("0.1"),
    "nothing": None,
    "instant": "2024-01-02 03:04:05.678901Z",
    "local": "2024-01-02 03:04:05.678901",
    "day": "1500-03-01",
    "bytes": base64.b64encode(b"\x00\xff").decode(),
    "text": "Grüße '\"\n",
    "yes": True,
    "s": {"a": None, "at": "2024-01-01 00:00:00Z"},
    "days": ["2024-01-01", None],
    "by_text": {"k": "AQ=="},
    "by_number": [{"key": Decimal("1.50"), "value": "v"}],
    "length": "INTERVAL '1 02:00:00' DAY TO SECOND",
}


ORDER = "select {0}L as order_id, {1} as amount, timestamp'2024-01-02 03:04:05' as ordered_at"


def test_a_payload_has_each_value_as_it_was(scenario: Scenario) -> None:
    """What it has, by which id without a key, and that the query of the page reads it."""
    config: dict[str, Any] = {"on_bad_rows": "dead_letter"}
    rest = ", ".join(name for name in PAYLOAD if name not in ("id", "n"))
    old = f"select id - 2 as id, cast(n as int) as n, {rest} from ({EVERYTHING}) where id = 2"
    scenario.model(old, "everything", **config)
    scenario.model("select 1 as n", "keyless", **config, unique_key=None)
    scenario.model(ORDER.format(1, 5), "orders", **config, unique_key="order_id")
    scenario.run()
    scenario.model(EVERYTHING, "everything", **config)
    texts = "select n from values ('5'), ('x'), ('x'), ('y') as source(n)"
    scenario.model(texts, "keyless", **config, unique_key=None)
    orders = f"{ORDER.format(2, repr('6'))} union all {ORDER.format(3, repr('?'))}"
    scenario.model(orders, "orders", **config, unique_key="order_id")
    scenario.run()
    (letter,) = letters(scenario, "everything_dlt")
    assert letter["payload"] == PAYLOAD
    assert list(letter["payload"]) == list(PAYLOAD)
    assert letter["messageId"] == '{"id":1}'
    assert [row[:2] for row in scenario.rows("everything")] == [(0, 5), (2, 5)]

    found = [(row["payload"]["n"], row["messageId"]) for row in letters(scenario, "keyless_dlt")]
    hashes = {n: hashlib.sha256(f'{{"n":"{n}"}}'.encode()).hexdigest() for n in ("x", "y")}
    assert sorted(found) == [("x", hashes["x"]), ("x", hashes["x"]), ("y", hashes["y"])]
    assert scenario.rows("keyless") == [(1,), (5,)]

    page = (Path(__file__).parents[3] / "docs" / "dead-letters.md").read_text()
    query = page.split("create view orders_rejected as\n")[1].split("```")[0]
    query = query.replace("orders_dlt", scenario.relation("orders_dlt"))
    shown = scenario.sql(f"select messageId, failureReason, row.order_id, row.amount from ({query})")
    reason = "`amount`: the value does not convert to int without loss"
    assert [tuple(row) for row in shown] == [('{"order_id":3}', reason, 3, "?")]


ONE, TWO, LONG_NAME = "1.500000000000000001", "1.500000000000000002", "n" * 50_001
NESTED = '"s":{"a":{"b":1.5},"c":1}'
# Payloads of rows, and whether a person would call them the same.
SAME: list[tuple[str, str, bool]] = [
    ('{"id":7,"v":"x"}', '{"v":"x","ID":"7"}', True),
    ('{"id":7,"v":"x"}', '{"id":7,"v":"x","n":null}', True),
    ('{"id":"007"}', '{"id":7}', False),
    ('{"a":1.50,"b":"y,1"}', '{"a":"1.50","b":"y,1"}', True),
    ('{"a":1.10}', '{"a":"1.1"}', False),
    ('{"a":"1.10"}', '{"a":"1.1"}', False),
    ('{"a":0.10000000000000000001}', '{"a":0.1}', False),
    ('{"a":12345678901234567890.12}', '{"a":"12345678901234567890.12"}', True),
    ('{"a":12345678901234567890.12}', '{"a":12345678901234567890.13}', False),
    ('{"a":"x\\"b\\":0.1,"}', '{"a":"x\\"b\\":0.10,"}', False),
    ('{"a":1.50,"s":{"a":1.50}}', '{"a":1.5,"s":{"a":1.50}}', False),
    ('{"a":{"c":[1.50]}}', '{"a":{"c":[1.5]}}', False),
    ('{"a":{"c":[1]},"b":true}', '{"b":"true","a":{"c":[1]}}', True),
    ('{"a":"\\"é"}', '{"a":"\\"é"}', True),
    ("no JSON", "no JSON", True),
    ('{"a":"x\\ny","b":1}', '{"b":1,"a":"x\\ny"}', True),
    ('{"a":"\\"x.y\\\\","b":1,"s":{"a":"q"}}', '{"A":"\\"x.y\\\\","s":{"a":"q"},"b":1,"c":null}', True),
    ('{"a":"","b":1}', '{"b":1}', False),
    ('{"a":"null"}', '{"a":null}', False),
    ('{"a":1,"A":2}', '{"a":2,"A":1}', False),
    # Where a decimal is read as a double, its digits are looked for, and not found at another place.
    (f'{{"a":{ONE},"s":{{"a":1.5,"c":1}}}}', f'{{"a":{TWO},"s":{{"a":1.5,"c":1}}}}', False),
    (f'{{"a":{ONE},"s":[{{"a":1.5,"c":1}}]}}', f'{{"a":{TWO},"s":[{{"a":1.5,"c":1}}]}}', False),
    (f'{{"a":{ONE},"s":{{"a":"1.5","c":1}}}}', f'{{"a":{TWO},"s":{{"a":"1.5","c":1}}}}', False),
    (f'{{"a":{{"b":{ONE}}},{NESTED}}}', f'{{"a":{{"b":{TWO}}},{NESTED}}}', False),
    (f'{{"a\\\\b":{ONE},"a\\b":1.5}}', f'{{"a\\\\b":{TWO},"a\\b":1.5}}', False),
    ('{"a":1E-7}', '{"a":1.0000000000000000000001E-7}', False),
    (f'{{"a":{"9" * 37}1}}', f'{{"a":{"9" * 37}2}}', False),
    # Spark reads no more than 50000 characters of a name, and what comes before it.
    (f'{{"a":1,"m":{{"{LONG_NAME}":1}}}}', f'{{"a":1,"m":{{"{LONG_NAME}":2}}}}', False),
]


def test_which_letters_are_of_the_same_row(scenario: Scenario) -> None:
    def encode(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    pairs = ", ".join(f"('{encode(one)}', '{encode(other)}')" for one, other, _ in SAME)
    found = scenario.sql(f"select {same_row('x')} = {same_row('y')} from values {pairs} as pairs(x, y)")
    assert [(one, other, row[0]) for (one, other, _), row in zip(SAME, found, strict=True)] == SAME
