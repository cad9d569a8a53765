"""Tables of format version 3, of older partitions, without branches, and of the adapter."""

import uuid
from typing import Any

import pyarrow
import yaml
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StringType, UUIDType

from tests.functional.harness import Scenario

ADDS = {"on_schema_change": "append_new_columns"}


def test_a_table_of_format_version_3_evolves(project: Scenario) -> None:
    config = {**ADDS, "tblproperties": {"format-version": "3"}}
    project.model("select 1 as id, 'a' as b", "v3", **config)
    project.run("--select", "v3")
    project.model("select 1 as id, cast(2 as bigint) as n union all select 2, 3", "v3", **config)
    project.run("--select", "v3")
    assert project.table("v3").metadata.format_version == 3
    assert project.sql(f"select * from {project.relation('v3')} order by id") == [(1, None, 2), (2, None, 3)]
    assert list(project.table("v3").metadata.refs) == ["main"]
    # Variants stay what they are, and so do those of the staged batch.
    project.model("select 2 as id, parse_json('[1]') as v", "v3", **config)
    project.run("--select", "v3")
    project.model("select 3 as id, parse_json('{\"a\": null}') as v", "v3", **config)
    project.run("--select", "v3")
    # Over Thrift, Iceberg keeps what this session has seen of the table.
    project.sql(f"refresh table {project.relation('v3')}")
    rows = f"select id, n, typeof(v), to_json(v) from {project.relation('v3')} order by id"
    assert project.sql(rows) == [
        (1, 2, "variant", None),
        (2, None, "variant", "[1]"),
        (3, None, "variant", '{"a":null}'),
    ]


def test_a_key_is_the_same_in_each_way_to_write_a_uuid(project: Scenario, lake: Catalog) -> None:
    """Where Iceberg has a uuid: texts in other columns that look like one stay what they are."""
    one, two = uuid.UUID(int=10 << 124), uuid.UUID(int=11 << 124)
    models: dict[str, dict[str, Any]] = {
        "replaced": {},
        "kept": {"removed_columns": "keep"},
        "merged": {"incremental_strategy": "merge"},
    }
    project.sql(f"create schema if not exists lake.{project.schema}")
    for name, config in models.items():
        u = NestedField(1, "u", UUIDType(), required=name == "kept")
        schema = Schema(u, NestedField(2, "t", StringType(), required=False))
        table = lake.create_table((project.schema, name), schema, properties={"format-version": "2"})
        rows = {"u": pyarrow.array([one.bytes], pyarrow.uuid()), "t": ["AAAAAAAA-1-1-1-1"]}
        table.append(pyarrow.table(rows, schema.as_arrow()))
        keys = ["t", "u"] if name == "merged" else "u"
        first = f"select '{str(one).upper()}' as u, 'AAAAAAAA-1-1-1-1' as t, 1 as n"
        project.model(
            f"{first} union all select '{two}', 'b', 2", name, **{**ADDS, **config, "unique_key": keys}
        )
    run = project.run("--select", *models)
    for name in models:
        assert project.rows(name) == [(one, "AAAAAAAA-1-1-1-1", 1), (two, "b", 2)], name
        assert project.types(name) == {"u": "uuid", "t": "string", "n": "int"}
    assert run.log.count("no uuid") == 4
    project.model("select 'A-1-1-1-1' as u, 'c' as t", "replaced", **ADDS, unique_key="u")
    run = project.fail("--select", "replaced")
    assert "Column `u` is uuid in the table, and the model returns: A-1-1-1-1" in run.message
    assert project.rows("replaced") == [(one, "AAAAAAAA-1-1-1-1", 1), (two, "b", 2)]


def test_descriptions_are_stored_once(project: Scenario) -> None:
    config = {**ADDS, "persist_docs": {"relation": True, "columns": True}}

    def describe(**docs: str) -> None:
        columns = [{"name": name, "description": doc} for name, doc in docs.items()]
        models = {"models": [{"name": "told", "description": "It's told.", "columns": columns}]}
        project.file("models/told.yml", yaml.safe_dump(models))

    describe(id="The key; it's ${one}.", b="A \\ letter.")
    project.model("select 1 as id, 'a' as b", "told", **config)
    project.run("--select", "told")
    assert project.docs("told") == {"id": "The key; it's ${one}.", "b": "A \\ letter."}
    schemas = project.schemas("told")
    project.run("--select", "told")
    assert project.schemas("told") == schemas
    describe(id="The key.", b="A \\ letter.", c="New.")
    project.model("select 1 as id, 'a' as b, 2 as c", "told", **config)
    project.run("--select", "told")
    assert project.docs("told") == {"id": "The key.", "b": "A \\ letter.", "c": "New."}
    # The addition with its description, and the other description.
    assert project.schemas("told") == schemas + 2
    # A default, which only the adapter stores, is not passed over.
    columns = [{"name": "id"}, {"name": "c", "config": {"meta": {"default": 0}}}]
    project.file("models/told.yml", yaml.safe_dump({"models": [{"name": "told", "columns": columns}]}))
    run = project.fail("--select", "told")
    assert "The column `c` of model.case.told has a `default` in its properties." in run.message


def test_direct_goes_straight_into_the_table(project: Scenario) -> None:
    config = {**ADDS, "meta": {"sparkevolve": {"publish": "direct"}}}
    project.model("select 1 as id, 'a' as b union all select 2, 'b'", "straight", **config)
    project.run("--select", "straight")
    project.model("select 2 as id, 'c' as b, 1 as n", "straight", **config)
    run = project.run("--select", "straight")
    assert project.rows("straight") == [(1, "a", None), (2, "c", 1)]
    assert "CREATE BRANCH" not in run.log
    # The DELETE and the INSERT.
    assert len(project.snapshots("straight")) == 3


def test_partitions_of_an_older_spec_are_not_left_beside_the_new_rows(project: Scenario) -> None:
    config = {**ADDS, "unique_key": None, "incremental_strategy": "insert_overwrite"}
    rows = "select 1 as id, 1 as p union all select 2, 2 union all select 5, 1"
    project.model(rows, "parts", **config, partition_by="p")
    project.run("--select", "parts")
    project.model("select 3 as id, 2 as p", "parts", **config, partition_by="p")
    project.run("--select", "parts")
    assert project.rows("parts") == [(1, 1), (3, 2), (5, 1)]
    table = project.relation("parts")
    project.sql(f"alter table {table} replace partition field p with bucket(2, p)")
    before = project.rows("parts")
    project.model("select 4 as id, 2 as p", "parts", **config, partition_by="bucket(2, p)")
    run = project.fail("--select", "parts")
    assert "the table has files from before its partitioning was changed" in run.message
    assert project.rows("parts") == before
    # Without a branch it is seen at once if files of both are there, and else told after.
    project.model("select 4 as id, 2 as p", "parts", **config, partition_by="bucket(2, p)", publish="direct")
    run = project.fail("--select", "parts")
    assert "its rows are visible beside those that they were to replace" in run.message
    assert project.rows("parts") == sorted([*before, (4, 2)])
    undo = run.message.partition("nobody else has committed: `")[2].partition("`. ")[0]
    run = project.fail("--select", "parts")
    assert "it has files from before its partitioning was changed" in run.message
    assert "Nothing was written." in run.message
    project.sql(undo)
    assert project.rows("parts") == before
    assert list(project.table("parts").metadata.refs) == ["main"]
    # What says which rows were deleted is left over from the older spec, and no file of rows is.
    project.sql(f"delete from {table} where id = 5")
    project.sql(
        f"call lake.system.rewrite_data_files(table => '{project.schema}.parts', "
        "options => map('rewrite-all', 'true'))"
    )
    files = f"select content, spec_id from {table}.files order by content"
    assert project.sql(files)[-1] == (1, 0)
    for publish in ("branch", "direct"):
        project.model(
            "select 4 as id, 2 as p", "parts", **config, partition_by="bucket(2, p)", publish=publish
        )
        project.run("--select", "parts")
        assert (4, 2) in project.rows("parts")


def test_what_a_killed_run_has_left_is_removed_by_its_age(project: Scenario) -> None:
    left = f"left__dbt_tmp_{'0' * 12}"
    theirs = f"theirs__dbt_tmp_{'1' * 12}"
    checked = f"sparkevolve_check_{'2' * 12}"
    ours = "'sparkevolve.staged-by' = 'x'"
    for name, properties in ((left, ours), (checked, ours), (theirs, "'other' = 'x'")):
        project.sql(
            f"create table {project.relation(name)} using iceberg tblproperties ({properties}) "
            "as select 1 as id"
        )
    assert project.dbt("run-operation", "sparkevolve.clean_up").success
    assert project.dbt("run-operation", "sparkevolve.check").success
    tables = project.tables()
    assert {left, checked, theirs} <= set(tables)
    assert len([name for name in tables if name.startswith("sparkevolve_check_")]) == 1
    assert project.dbt("run-operation", "sparkevolve.clean_up", "--args", "{hours: -1}").success
    assert not {left, checked} & set(project.tables())
    assert theirs in project.tables()
    project.sql(f"drop table {project.relation(theirs)}")


def test_a_project_moves_to_the_adapter_and_back_by_its_profile(
    project: Scenario, profile_target: dict[str, Any]
) -> None:
    profiles = project.folder / "profiles.yml"
    profile = yaml.safe_load(profiles.read_text(encoding="utf-8"))
    profile["case"]["outputs"]["adapter"] = {**profile_target, "schema": project.schema}
    profiles.write_text(yaml.safe_dump(profile), encoding="utf-8")
    config = {**ADDS, "meta": {"sparkevolve": {"removed_columns": "keep"}}}
    runs = []
    for sql, target in (
        ("select 1 as id, 'a' as b union all select 2, 'b'", "t"),
        ("select 1 as id, cast(1 as bigint) as n", "adapter"),
        ("select 2 as id, 'z' as `C d`", "t"),
        ("select 2 as id, 'y' as `c D`", "adapter"),
    ):
        project.model(sql, "moves", **config)
        runs.append(project.run("--select", "moves", "--target", target))
    assert project.columns("moves") == ["id", "b", "n", "C d"]
    assert project.rows("moves") == [(1, "a", 1, None), (2, "b", None, "y")]
    # Each has its own materialization: the adapter's goes before the wrapper.
    assert ["describe query" in run.log for run in runs] == [True, False, True, False]
    assert list(project.table("moves").metadata.refs) == ["main"]
