"""Types that other engines have made, such as uuid and fixed, and that Spark lacks."""

import uuid
from datetime import time
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, FixedType, IntegerType, NestedField, StructType, TimeType, UUIDType

from tests.functional.harness import Scenario
from tests.functional.precreated import PLAN_ONLY

ONE, TWO = (
    uuid.UUID("11111111-aaaa-4bbb-8ccc-222222222222"),
    uuid.UUID("f1111111-aaaa-4bbb-8ccc-222222222222"),
)


def read(scenario: Scenario, name: str) -> list[tuple[Any, ...]]:
    rows = scenario.table(name).scan().to_arrow().to_pylist()
    return sorted((row["id"], str(row["u"]) if row["u"] else None, row["f"], row["s"]) for row in rows)


def visible(scenario: Scenario) -> dict[str, Any]:
    """The rows of each table, the snapshots that lead to them, and the names of branches."""
    found: dict[str, Any] = {}
    for name in scenario.tables():
        metadata = scenario.table(name).metadata
        history = [entry.snapshot_id for entry in metadata.snapshot_log]
        found[name] = (read(scenario, name), history, list(metadata.refs))
    return found


def test_texts_and_bytes_are_loaded_if_they_are_of_the_type(scenario: Scenario, lake: Catalog) -> None:
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    schema = Schema(
        NestedField(1, "id", IntegerType(), required=False),
        NestedField(2, "u", UUIDType(), required=False),
        NestedField(3, "f", FixedType(4), required=False),
        NestedField(4, "s", StructType(NestedField(5, "u", UUIDType(), required=False)), required=False),
    )
    options: dict[str, dict[str, Any]] = {
        "by_uuid": {"unique_key": "u"},
        "by_bytes": {"unique_key": "f"},
        "merged": {"unique_key": "u", "incremental_strategy": "merge"},
        "nulls": {"unique_key": "id", "incremental_strategy": "merge"},
    }
    first = (
        f"select 1 as id, '{ONE}' as u, X'01020304' as f, named_struct('u', '{TWO}') as s "
        f"union all select 2, '{TWO}', X'FF020304', null"
    )
    for name, option in options.items():
        lake.create_table((scenario.schema, name), schema, properties={"format-version": "2"})
        scenario.model(first, name, **option)
    scenario.run()
    old, two = {"u": TWO}, (2, str(TWO), b"\xff\x02\x03\x04", None)
    for name in options:
        rows = [(i, u, f, s and {"u": uuid.UUID(str(s["u"]))}) for i, u, f, s in read(scenario, name)]
        assert rows == [(1, str(ONE), b"\x01\x02\x03\x04", old), two], name
    # A uuid is the same in upper case.
    again = f"select 9 as id, '{str(ONE).upper()}' as u, X'01020304' as f, null as s"
    for name, option in options.items():
        sql = (
            "select 1 as id, null as u, null as f, named_struct('u', null) as s" if name == "nulls" else again
        )
        scenario.model(sql, name, **option)
    scenario.run()
    for name in ("by_uuid", "by_bytes", "merged"):
        assert read(scenario, name) == [two, (9, str(ONE), b"\x01\x02\x03\x04", None)], name
    assert read(scenario, "nulls") == [(1, None, None, {"u": None}), two]
    before = visible(scenario)
    # Spark reads the text as a uuid, of other digits.
    scenario.model("select 3 as id, '1-2-3-4-5' as u", "nulls", unique_key="id")
    scenario.model(f"select 3 as id, '{TWO}' as u union all select 4, 'nope'", "merged", **options["merged"])
    scenario.model("select 3 as id, X'01' as f", "by_bytes", unique_key="id")
    scenario.model(f"select 3 as id, '{TWO}' as u, X'0102030405' as f", "by_uuid", **options["by_uuid"])
    run = scenario.fail()
    assert len(run.result.result or ()) == 4
    messages = "".join(str(node.message) for node in run.result.result or ())
    assert "Column `u` is uuid in the table, and the model returns: 1-2-3-4-5" in messages
    assert "Column `u` is uuid in the table, and the model returns: nope" in messages
    assert "Column `f` is fixed[4] in the table, and the model returns: 1 bytes" in messages
    assert "Column `f` is fixed[4] in the table, and the model returns: 5 bytes" in messages
    assert visible(scenario) == before


def test_a_type_that_spark_lacks_is_refused_and_others_of_another_engine_are_padded(
    scenario: Scenario, lake: Catalog
) -> None:
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    types = {"u": UUIDType(), "f": FixedType(4), "b": BinaryType(), "ti": TimeType()}
    fields = [NestedField(1, "id", IntegerType(), required=False)]
    fields += [
        NestedField(n, name, type_, required=False) for n, (name, type_) in enumerate(types.items(), 2)
    ]
    table = lake.create_table((scenario.schema, "t"), Schema(*fields))
    row = {"id": 1, "u": uuid.UUID(int=7).bytes, "f": b"abcd", "b": b"xyz", "ti": time(1, 2)}
    table.append(pa.Table.from_pylist([row], schema=table.schema().as_arrow()))
    before = scenario.state()
    for sql in (
        "select 2 as id",
        "select 2 as id, cast('01:02:03' as time) as ti",
        "select 2 as id, null as ti",
    ):
        scenario.model(sql)
        for arguments in ((), PLAN_ONLY):
            run = scenario.fail(*arguments)
            assert (
                "Column `ti` of the table has the Iceberg type time, for which Spark SQL has no type, so "
                "that no row can be written. Load this table with an engine that can."
            ) in run.message
    assert scenario.state() == before
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("ti")
    scenario.model("select 2 as id, X'616263' as b")
    for _ in range(2):
        scenario.run()
        assert scenario.rows() == [(1, uuid.UUID(int=7), b"abcd", b"xyz"), (2, None, None, b"abc")]
    assert scenario.types() == {"id": "int", "u": "uuid", "f": "fixed[4]", "b": "binary"}
    assert scenario.schemas() == 2
