"""What is said of rows that cannot be placed, and the text of what tells them from the others."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyiceberg.types import (
    BinaryType,
    DateType,
    IcebergType,
    IntegerType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from dbt.adapters.sparkevolve.evolution.conversions import Member, Unchanged, Whole
from dbt.adapters.sparkevolve.evolution.types import VariantType
from dbt.adapters.sparkevolve.load.letters import Letters, reasons_of
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.sql.dead_letters import Judgement, encoded, insert_letters, to_json
from dbt.adapters.sparkevolve.sql.dml import TARGET_ALIAS
from tests.unit.macros import macro

TARGET = SparkEvolveRelation.create("lake", "s", "t")
INT, TEXT = IntegerType(), StringType()


def letters(found: list[tuple[Any, ...]], bad: int, rows: int) -> Letters:
    relation = SparkEvolveRelation.create("lake", "s", "t_dlt")
    return Letters(TARGET, relation, TARGET, TARGET, "t", rows=rows, bad=bad, reasons=reasons_of(found))


def test_what_is_said_of_bad_rows() -> None:
    found = letters([("wrong", 2, '{"id":1}'), ("wrong", 2, '{"id":2}'), ("none", 1, '{"id":3}')], 3, 10)
    assert found.text == (
        "3 of 10 rows could not be placed and are in `lake`.`s`.`t_dlt`:\n"
        '  * wrong: 2 rows, such as {"id":1}, {"id":2}\n'
        '  * none: 1 row, such as {"id":3}'
    )
    assert found.data() == {
        "table": "`lake`.`s`.`t_dlt`",
        "rows": 3,
        "of": 10,
        "reasons": [
            {"reason": "wrong", "rows": 2, "samples": ['{"id":1}', '{"id":2}']},
            {"reason": "none", "rows": 1, "samples": ['{"id":3}']},
        ],
    }


def test_of_more_than_a_hundred_reasons_the_rest_is_counted() -> None:
    rows = [(f"r{n}", 200 - n, f"{n}-{i}") for n in range(103) for i in range(10)]
    found = letters(rows, 1000, 1000)
    assert [len(found.shown), len(found.others)] == [100, 3]
    assert found.data()["other_reasons"] == {"reasons": 3, "rows": 100 + 99 + 98}
    assert found.text.splitlines()[-1] == "  * 3 other reasons: 297 rows"
    assert len(found.text.splitlines()) == 102
    assert {len(reason["samples"]) for reason in found.data()["reasons"]} == {10}


def test_a_batch_in_which_nothing_can_be_wrong_is_not_looked_at() -> None:
    same = Member("a", ("a",), Unchanged())
    assert not Judgement("b", {"a": INT}, [same], {}).is_needed
    assert Judgement("b", {"a": INT}, [same], {}, audits=["a > 0"]).is_needed
    assert Judgement("b", {"a": INT}, [same], {}, unique=["a"]).is_needed
    assert Judgement("b", {"a": INT}, [Member("a", ("a",), Unchanged(), not_null=True)], {}).is_needed


def test_a_text_for_a_binary_column_is_written_as_bytes() -> None:
    """As one that is bytes already: a replay cannot tell them apart."""
    converts = Member("a", ("a",), Whole(("a",), TEXT, BinaryType()))
    judged = Judgement("b", {"a": TEXT, "c": TEXT}, [converts, Member("c", ("c",), Unchanged())], {}, ["a"])
    row = f"{TARGET_ALIAS}.`sparkevolve_row`"
    base64 = encoded(f"{row}.`a`")
    assert f"named_struct('a', {base64}, 'c', {row}.`c`)" in judged.judged()
    assert f"THEN to_json(named_struct('a', {base64}), " in judged.judged()


def test_rows_of_a_key_may_be_apart() -> None:
    """As letters of several times, of which each one replaces those before it."""
    member = Member("a", ("a",), Unchanged())
    counted = Judgement("b", {"a": INT, "at": INT}, [member], {}, unique=["a"], apart=["at"]).count()
    assert f"count(*) OVER (PARTITION BY {TARGET_ALIAS}.`a`, {TARGET_ALIAS}.`at`) > 1" in counted
    assert "the unique_key `a` is in several rows of the batch" in counted


def test_keys_that_do_not_convert_are_not_one_key() -> None:
    member = Member("a", ("a",), Whole(("a",), TEXT, INT))
    counted = Judgement("b", {"a": TEXT}, [member], {}, unique=["A"]).count()
    before = f"{TARGET_ALIAS}.`sparkevolve_row`.`a`"
    (fails,) = (condition for _, condition in member.failures(before, 0))
    key = f"{TARGET_ALIAS}.`a`, CASE WHEN ({fails}) THEN {before} END"
    assert f"count(*) OVER (PARTITION BY {key}) > 1" in counted


def test_audits_see_projected_columns_and_letters_those_of_the_batch() -> None:
    """Also where these have names that the adapter has for its own."""
    types: dict[str, IcebergType] = {"N": INT, "sparkevolve_batch": INT}
    members = [Member(name, (name,), Unchanged()) for name in types]
    n = f"CAST({TARGET_ALIAS}.`N` AS bigint)"
    judgement = Judgement("b", types, members, {"p": "1"}, audits=["n > 0"], projected={"n": n})
    judged, found = judgement.judged(), "size(`sparkevolve_found`) = 0"
    assert judged.startswith(
        f"SELECT\n  {TARGET_ALIAS}.`sparkevolve_batch_`.`N`,\n  "
        f"{TARGET_ALIAS}.`sparkevolve_batch_`.`sparkevolve_batch`,\n"
    )
    passed = f"{TARGET_ALIAS}.`sparkevolve_batch`,\n  {TARGET_ALIAS}.`p`,\n  "
    assert f"SELECT\n  {passed}CASE WHEN {found} THEN {n} END AS `n`,\n  named_struct('N', " in judged
    # Without audits nothing has to be projected.
    assert n not in Judgement("b", types, members, {}, projected={"n": n}).judged()


def test_names_of_the_model_are_not_taken() -> None:
    types: dict[str, IcebergType] = {"sparkevolve_ROW": INT, "sparkevolve_letter_id": TEXT}
    members = [
        Member("sparkevolve_ROW", ("sparkevolve_ROW",), Unchanged(), not_null=True),
        Member("sparkevolve_letter_id", ("sparkevolve_letter_id",), Whole(("x",), TEXT, INT)),
    ]
    judgement = Judgement("b", types, members, {})
    assert "`sparkevolve_row_`.`sparkevolve_ROW` IS NULL" in judgement.count()
    assert judgement.good("j") == (
        "SELECT `sparkevolve_ROW`, `sparkevolve_letter_id`\nFROM j\nWHERE `sparkevolve_letter_id_` IS NULL"
    )


STRUCT = StructType(NestedField(1, "at", DateType()), NestedField(2, "n", INT))
DAY = "substring_index(CAST(CAST({} AS timestamp_ntz) AS string), ' ', 1)"


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (INT, "r.`c`"),
        (TimestampType(), "CAST(r.`c` AS string)"),
        (
            TimestamptzType(),
            "concat(CAST(CAST('1970-01-01 00:00:00' AS timestamp_ntz) + make_dt_interval(0, 0, 0, "
            "CAST('0.000001' AS decimal(18,6))) * unix_micros(r.`c`) AS string), 'Z')",
        ),
        (BinaryType(), "translate(base64(CAST(r.`c` AS binary)), CAST(X'0d0a' AS string), '')"),
        (
            STRUCT,
            f"IF(r.`c` IS NULL, NULL, named_struct('at', {DAY.format('r.`c`.`at`')}, 'n', r.`c`.`n`))",
        ),
        (ListType(1, DateType()), f"transform(r.`c`, value_0 -> {DAY.format('value_0')})"),
        (VariantType(), """IF(is_variant_null(r.`c`), parse_json('"null"'), r.`c`)"""),
        (ListType(1, INT), "r.`c`"),
        (MapType(1, TEXT, 2, INT), "r.`c`"),
        (
            MapType(1, INT, 2, TEXT),
            "transform(map_entries(r.`c`), value_0 -> "
            "named_struct('key', value_0.key, 'value', value_0.value))",
        ),
    ],
    ids=str,
)
def test_a_value_in_json(type_: IcebergType, value: str) -> None:
    json = to_json("r", {"c": type_})
    assert json == f"to_json(named_struct('c', {value}), map('ignoreNullFields', 'false'))"


def test_base64_is_one_line() -> None:
    assert encoded("x") == "translate(base64(CAST(x AS binary)), CAST(X'0d0a' AS string), '')"


def test_what_a_table_of_letters_has_besides_is_null() -> None:
    names = {"messageId": "string", "note": "int", "PAYLOAD": "string", "modelName": "string"}
    sql = insert_letters("d", names, "SELECT 1", model="it's", invocation_id="i", loaded_micros=5)
    assert sql.startswith(
        "INSERT INTO d (`messageId`, `note`, `PAYLOAD`, `modelName`)\nSELECT\n"
        "  `new`.`id` AS `messageId`,\n  CAST(NULL AS int) AS `note`,\n  `new`.`payload` AS `PAYLOAD`,\n"
        "  CAST(X'69742773' AS STRING) AS "
        "`modelName`\nFROM ("
    )


def test_an_id_or_a_reason_breaks_no_line() -> None:
    key = '{"id":"' + "k" * 2000 + '"}'
    found = letters([("audit: a\n > 0", 1, "x\u2028\x1b[31m\r\ny é\u0085"), ("long", 1, key)], 2, 2)
    assert found.text.count("\n") == 2
    assert "  * audit: a > 0: 1 row, such as x \\x1b[31m y é\n" in found.text
    assert f"  * long: 1 row, such as {key[:200]}…" in found.text
    assert found.data()["reasons"][1]["samples"] == [key[:1000] + "…"]
    many = letters([("r", 20, str(n)) for n in range(20)], 20, 20)
    assert len(many.data()["reasons"][0]["samples"]) == many.text.count(",") == 10


def test_a_name_in_another_catalog_is_another_one() -> None:
    told: list[dict[str, list[str]]] = []
    runner = SimpleNamespace(
        check_dead_letters=lambda target, settings, others, kind, is_plan: told.append(others)
    )
    nodes = {
        f"model.shop.{database}": {
            "unique_id": f"model.shop.{database}",
            "resource_type": "model",
            "database": database,
            "schema": "s",
            "alias": "t_dlt",
            "config": {"materialized": "table"},
        }
        for database in ("lake", "archive")
    }
    check = macro(
        "materializations/incremental/dead_letters.sql",
        "sparkevolve__check_dead_letters",
        graph={"nodes": nodes},
        model={"unique_id": "model.shop.t"},
        adapter=SimpleNamespace(get_relation=lambda *name: None, load_runner=lambda: runner),
    )
    check(TARGET, SimpleNamespace(sets_aside=True, dead_letter_suffix="_dlt"))
    assert told == [{"model.shop.lake": ["s", "t_dlt"]}]


def test_the_payload_has_the_bytes_of_texts_that_are_no_utf_8() -> None:
    nested = StructType(NestedField(3, "n", INT), NestedField(4, "s", ListType(5, TEXT)))
    types: dict[str, IcebergType] = {"id": INT, "a": TEXT, "b": nested, "m": MapType(6, TEXT, 7, INT)}
    members = [Member(name, (name,), Unchanged(), not_null=name == "a") for name in types]
    judged = Judgement("j", types, members, {"sparkevolve_NOT_utf8": "1"}, ["id"]).judged()
    row = f"{TARGET_ALIAS}.`sparkevolve_row`"

    def lost(text: str) -> str:
        return f"NOT {text} <=> decode(encode({text}, 'UTF-16BE'), 'UTF-16BE')"

    listed = f"transform({row}.`b`.`s`, value_0 -> {encoded('value_0')})"
    struct = f"IF({row}.`b` IS NULL, NULL, named_struct('n', {row}.`b`.`n`, 's', {listed}))"
    entries = f"map_entries({row}.`m`)"
    pair = f"named_struct('key', {encoded('value_0.key')}, 'value', value_0.value)"
    texts = (
        f"named_struct('a', CASE WHEN {lost(f'{row}.`a`')} THEN {encoded(f'{row}.`a`')} END, "
        f"'b', CASE WHEN (exists({row}.`b`.`s`, value_0 -> {lost('value_0')})) THEN {struct} END, "
        f"'m', CASE WHEN exists({entries}, value_0 -> ({lost('value_0.key')})) THEN "
        f"transform({entries}, value_0 -> {pair}) END)"
    )
    assert f"'lost', to_json({texts}, map('ignoreNullFields', 'true')))), row -> CASE row.lost " in judged
    # Beside a column of this name.
    assert (
        """concat(left(row.json, length(row.json) - 1), ',"sparkevolve_not_utf82":', row.lost, '}')"""
        in judged
    )
    only = Judgement("j", {"id": INT}, members[:1], {}, ["id"]).judged()
    assert "decode(" not in only
