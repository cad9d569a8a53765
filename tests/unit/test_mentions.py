"""Which columns a condition names, by its text alone; the dbt package tells the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.sparkevolve.sql.mentions import has_select, mentions, names_word
from dbt.adapters.sparkevolve.sql.splitting import tokens
from tests.unit.package_macros import PURE
from tests.unit.strategies import rule

KEYWORDS = {"and", "or", "is", "not", "null", "in", "between", "then", "case", "when", "end", "like"}


Read = list[tuple[tuple[str, ...], str, list[tuple[str, ...]], bool]]


def by_package(sql: str) -> Read:
    return [
        (tuple(f["path"]), f["asked"], [*map(tuple, f["or_null"])], f["is_of_table"])
        for f in PURE.mentions(sql)
    ]


def by_adapter(sql: str) -> Read:
    return [(f.path, f.asked, [*f.or_null], f.is_of_table) for f in mentions(sql)]


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("day >= date'2024-01-01'", [("day",)]),
        ("DBT_INTERNAL_DEST.Day >= DATE '2024-01-01'", [("day",)]),
        ("`dbt_internal_dest` . `Da``y.x` > 1", [("da`y.x",)]),
        ('DBT_INTERNAL_DEST."day" > 1', [("day",)]),
        # These read the rows of the batch alone.
        ("DBT_INTERNAL_SOURCE.day > 1 and `dbt_internal_source`.`day` < 3", []),
        ("'day' = \"day\" or r'day\\' = `x`", [("x",)]),
        ("x -- day\n /* day /* day */ day */ > /*+ y */ 1", [("x",), ("y",)]),
        ("x = 'it\\'s day' and y = 'z''day'", [("x",), ("y",)]),
        ("day(x) = 1 and `day` (y) = 2 and other.day(z) = 3", [("x",), ("y",), ("z",)]),
        ("cast(x as date) > y::date and try_cast(z as decimal(10, 2)) > 1.5", [("x",), ("y",), ("z",)]),
        ("x > current_date() - interval 1 day", [("x",)]),
        ("x > y + INTERVAL '1 2' day to hour", [("x",), ("y",)]),
        ("extract(day from x) = 1 and extract(day from day) = 2", [("x",), ("day",)]),
        ("timestampadd(day, 1, x) > y and dateadd(day, f(1, 2), z) > 1", [("x",), ("y",), ("z",)]),
        ("date_add(day, 1) > 1 and datediff(x, day) > 1", [("day",), ("x",), ("day",)]),
        ("s.a > 1 and DBT_INTERNAL_DEST.s.`B` > 2", [("s", "a"), ("s", "b")]),
        ("m['k'].v > 1 and l[0].w > 2 and l[i].w > 2", [("m",), ("l",), ("l",), ("i",)]),
        # Of a table in a subquery.
        ("x in (select o.day from lake.s.o as o)", [("x",), ("o", "day"), ("lake", "s", "o")]),
        ("case when x then day end", [("x",), ("day",)]),
        ("case end when 'a' then end else end end > END", [("end",)] * 4),
        (
            "case when x then s.when end + (case when `end` then 1 end) > end",
            [("x",), ("s", "when"), ("end",), ("end",)],
        ),
        (
            "f(end) or trim(both end from x) = end[1] or x is distinct from end",
            [("end",), ("end",), ("x",), ("end",), ("x",), ("end",)],
        ),
        ("case when x then null end or case when y then 'a' end or not end", [("x",), ("y",), ("end",)]),
        ("x between 1 and day", [("x",), ("day",)]),
        ("`1a` > 1L and 2b > 1e3", [("1a",), ("2b",)]),
        ("x /* not closed day", [("x",)]),
        ("", []),
    ],
)
def test_columns_are_told_from_all_else(sql: str, named: list[tuple[str, ...]]) -> None:
    others = {
        *(KEYWORDS - {"end"}),
        "else",
        "both",
        "distinct",
        "interval",
        "from",
        "to",
        "select",
        "as",
        "1l",
        "1e3",
    }
    found = [path for path, *_ in by_adapter(sql) if path[0] not in others]
    assert found == named
    assert by_package(sql) == by_adapter(sql)


@pytest.mark.parametrize(
    ("sql", "certain"),
    [
        ("case when x > 1 then y end > 2", "x y"),
        ("case when `end` > DBT_INTERNAL_DEST.interval then 1 end", "end interval"),
        ("case when x then 1 end > end", "x end"),
        ("x > y - interval 3 days", "x y"),
        # Parameters, and names in types.
        ("forall(x, y -> y <> '') and DBT_INTERNAL_DEST.z > 1", "z"),
        ("y - 1 > x", "y x"),
        ("cast(x as struct<y:int, z:int>).y > z::int", "x z"),
        ("cast(x as map<string, struct<y: date, z int>>) is null and y > date", "x y date"),
        ("x::ARRAY<date> is distinct from y", "x y"),
        # No type, but columns that are called so.
        ("map < x and array <= y and z > 1", "map x array y z"),
        ("x in (select y from t) and DBT_INTERNAL_DEST.z > 1", "z"),
    ],
)
def test_what_can_be_nothing_but_a_column_is_told(sql: str, certain: str) -> None:
    found = [path[-1] for path, _, _, is_certain in by_adapter(sql) if is_certain]
    assert [name for name in found if name not in ("as", "int", "days")] == certain.split()
    assert by_package(sql) == by_adapter(sql)


def test_what_is_asked_of_null_is_told() -> None:
    sql = "a is null or b IS NOT NULL or isnull(c) or isnotnull(`d`) or e = 1 or f is not distinct from 1"
    asked = {path[0]: what for path, what, *_ in by_adapter(sql)}
    assert {name: asked[name] for name in "abcdef"} == {
        "a": "null",
        "b": "not null",
        "c": "null",
        "d": "not null",
        "e": "",
        "f": "",
    }
    assert by_package(sql) == by_adapter(sql)


@pytest.mark.parametrize(
    ("sql", "spared"),
    [
        ("x > 1 or x is null", "x x"),
        ("x is null", "x"),
        ("isnull(x) or x > 1", "x x"),
        ("((x > 1)) or (y > 1 or (DBT_INTERNAL_DEST.`X` is null))", "x y x"),
        ("(x > 1 or x is null) and y > 1", "x x"),
        ("y > 1 and (z > 1 or x > 1 and x < 9 or x is null)", "z x x x"),
        ("y between 1 and 2 or x between 1 and 2 or x is null", "y x x"),
        ("case when y > 1 or x > 1 then true end or x is null", "y x x"),
        ("case when y > end then end end = end or x > 1 or x is null", "y x x"),
        ("x > 1 or l[1 + y] > 1 or x is null", "x l y x"),
        # The test is a part of something else.
        ("not (x is null)", ""),
        ("not x is null", ""),
        ("not isnull(x) or y > 1", ""),
        ("x > 1 or not (x is null)", ""),
        ("not (x > 1 or x is null)", ""),
        ("(x > 1 or x is null) = false or y > 1", ""),
        ("x > 1 and x is null", "x"),
        ("x > 1 or y > 1 and x is null", "x"),
        ("x > 1 or x is null is false", ""),
        ("x > 1 or f(x is null) or isnull(f(x)) or [x is null]", ""),
        ("x between 1 and x is null or y > 1", ""),
        ("case when x is null or x > 1 then false end", ""),
        ("x > 1 or (select x from t where y > 1 or x is null)", ""),
        # A name may be a keyword: then nothing is known.
        ("x end > 1 or x > 1 or x is null", ""),
        ("case > 1 or x > 1 or x is null", ""),
        ("x > 1 or x is null)", ""),
        ("coalesce(x, 9) > 1 or x <=> null", ""),
    ],
)
def test_what_null_makes_true_is_told(sql: str, spared: str) -> None:
    found = [path[-1] for path, _, or_null, _ in by_adapter(sql) if ("x",) in or_null and len(path[-1]) == 1]
    assert " ".join(found) == spared
    assert by_package(sql) == by_adapter(sql)


PARTS = (
    *("a", "`b``c`", "DBT_INTERNAL_DEST", "DBT_INTERNAL_SOURCE", "é", "1"),
    *[*".()[],:;= \n\r'\"`\\"],
    *("'s'", '"d"', "r'\\'", "-- x\n", "--\\\n", "/*", "*/", "/*+"),
    *("is", "not", "null", "as", "to", "extract", "from", "dateadd", "isnull", "interval", "->"),
    *(" or ", " and ", " between ", " case ", " then ", " end ", " end ", " a is null ", "(", ")", "select "),
)


@rule
@given(st.lists(st.sampled_from(PARTS) | st.characters(), max_size=16).map("".join))
def test_the_package_reads_texts_as_the_adapter_does(sql: str) -> None:
    assert PURE.sql_tokens(sql) == [[kind, sql[a:b]] for kind, a, b in tokens(sql) if kind != "space"]
    assert by_package(sql) == by_adapter(sql)


@pytest.mark.parametrize(
    ("sql", "is_query"),
    [
        ("x in (select 1)", True),
        ("x > ( /* newest */ SELECT max(y) FROM t)", True),
        ("exists (with q as (select 1) select 1 from q)", True),
        ("x = (select -1)", True),
        ("(with q as (select 1) table q) = x and f((select 1))", True),
        ("x > 1 and not (select true)", True),
        # To Spark an argument of a function is no query.
        ("coalesce(select is null, false) and `f` (select + 1) and s.in (select is null)", False),
        ("'(select 1)' = x -- (select 1)", False),
        ("(select) > 1 and (select = 2) and f(select, 1) and (`select` = 1) and s.select = 2", False),
        ("extract(year from x) > 1 and trim(from y) = ''", False),
        ("", False),
    ],
)
def test_a_query_is_told_for_sure(sql: str, is_query: bool) -> None:
    assert has_select(sql) is PURE.has_select(sql) is is_query


@pytest.mark.parametrize(
    ("sql", "is_named"),
    [
        ("x in (select 1 from lake.db.Orders)", True),
        ("x in (select 1 from lake.db.`orders`)", True),
        ("x in (select 1 from orders.snapshots)", True),
        ("orders > 1", True),
        ("x in (select 'orders' from orders_old) -- orders", False),
    ],
)
def test_a_text_that_may_read_a_table_has_its_name(sql: str, is_named: bool) -> None:
    assert names_word(sql, "ORDERS") is PURE.names_word(sql, "ORDERS") is is_named
