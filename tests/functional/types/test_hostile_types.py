"""What a model's columns are is never misread, whatever they and the fields in them are called."""

import pytest

from tests.functional.harness import Scenario

# Names that look like types, and types that have a name in them.
HOSTILE = """
select 1 as id,
  'A' collate UTF8_LCASE as c,
  array('B' collate UNICODE_CI) as l,
  map('k' collate UTF8_LCASE, 'v') as m,
  named_struct('a', 'C' collate UTF8_LCASE, 'x:int,y', 1, 'z', null) as s,
  2 as `p:int,q`,
  3 as `struct<`,
  4 as `a``b>`,
  null as n
"""


def test_collations_and_odd_names_are_read_as_what_they_are(scenario: Scenario, method: str) -> None:
    if scenario.sql("select version()")[0][0].startswith("3."):
        pytest.skip("Spark 3.5 has no collations")
    odd, sql = "x:int,y", HOSTILE
    if method == "thrift":
        # A server gives no more than text of what is inside a struct: what is misread there stops the run.
        scenario.model(sql)
        assert "[FIELD_NOT_FOUND] No such struct field `x` in `a`, `x:int,y`, `z`" in scenario.fail().message
        assert scenario.tables() == []
        odd, sql = "x:y", HOSTILE.replace(odd, "x:y")
    scenario.model(sql)
    for run in (scenario.run(), scenario.run()):
        assert "`c` is of the type string collate UTF8_LCASE, which Iceberg lacks" in run.log
        assert "`s`.`z` is a bare NULL" in run.log
        assert scenario.columns() == ["id", "c", "l", "m", "s", "p:int,q", "struct<", "a`b>"]
        (row,) = scenario.table().scan().to_arrow().to_pylist()
        assert row | {"m": dict(row["m"])} == {
            "id": 1,
            "c": "A",
            "l": ["B"],
            "m": {"k": "v"},
            "s": {"a": "C", odd: 1},
            "p:int,q": 2,
            "struct<": 3,
            "a`b>": 4,
        }
    scenario.model("select 'a' collate UTF8_LCASE as id, 1 as v", "keyed")
    scenario.run("--select", "keyed")
    # The table compares bytes, so this is another key.
    scenario.model("select 'A' collate UTF8_LCASE as id, 2 as v", "keyed")
    scenario.run("--select", "keyed")
    assert scenario.rows("keyed") == [("A", 2), ("a", 1)]
    scenario.model("select 1 as a, 2 as A")
    assert "names differ only in ways that Spark ignores: `a`, `A`" in scenario.fail("--select", "t").message
