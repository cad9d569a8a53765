"""Properties of a table that name its columns: they follow what a run does to the columns."""

from pathlib import Path

import yaml

from tests.functional.harness import Scenario

METRICS = "write.metadata.metrics.column."
BLOOM = "write.parquet.bloom-filter-enabled.column."


def import_files(scenario: Scenario, folder: Path, query: str) -> None:
    scenario.sql(f"insert overwrite directory '{folder}' using parquet {query}")
    scenario.sql(
        f"call lake.system.add_files(table => '{scenario.schema}.t', source_table => '`parquet`.`{folder}`')"
    )


def test_files_without_field_ids_keep_their_columns(scenario: Scenario, tmp_path: Path) -> None:
    """A name in such a file stays with the column that it was imported for, whatever has that name later."""
    scenario.sql(f"create schema lake.`{scenario.schema}`")
    table = scenario.relation()
    scenario.sql(
        f"create table {table} (id int, gone string, kept int, s struct<x: int, y: string>, c int, "
        "l array<struct<m: int, n: int>>) using iceberg"
    )
    import_files(
        scenario,
        tmp_path / "first",
        "select 1 as id, 'old' as gone, 6 as kept, named_struct('x', 7, 'y', 'old') as s, 20 as c, "
        "array(named_struct('m', 1, 'n', 2)) as l",
    )
    scenario.sql(f"alter table {table} drop column gone")
    scenario.sql(f"alter table {table} drop column s.y")
    scenario.model(
        "select 2 as id, 60 as kept2, named_struct('y', 80, 'x', 70) as s, 200 as d, "
        "array(named_struct('o', 4, 'm', 3)) as l, 500 as gone, 1 as w",
        column_renames={"kept": "kept2", "c": "d", "l.element.n": "o"},
    )
    run = scenario.run()
    for column in ("`gone`", "`s`.`y`"):
        assert f"Files without field ids may have {column}, and the table's property" in run.log
    assert "may have `w`" not in run.log
    import_files(
        scenario, tmp_path / "later", "select 3 as id, 61 as kept2, named_struct('x', 71) as s, 2 as w"
    )
    rows = [
        (1, 6, {"x": 7, "y": None}, 20, [{"m": 1, "o": 2}], None, None),
        (2, 60, {"x": 70, "y": 80}, 200, [{"m": 3, "o": 4}], 500, 1),
        (3, 61, {"x": 71, "y": None}, None, None, None, 2),
    ]
    assert scenario.rows() == rows
    by_spark = scenario.sql(
        f"select id, kept2, s.x, s.y, d, l[0].m, l[0].o, gone, w from {table} order by id"
    )
    assert by_spark == [
        (1, 6, 7, None, 20, 1, 2, None, None),
        (2, 60, 70, 80, 200, 3, 4, 500, 1),
        (3, 61, 71, None, None, None, None, None, 2),
    ]


def test_metrics_and_filters_of_a_column_are_those_of_its_new_name(scenario: Scenario) -> None:
    """Iceberg changes no property of a table that has metrics set for a column which it lacks."""
    properties = {METRICS + "v": "full", METRICS + "s.x": "full", BLOOM + "v": "true"}
    scenario.model("select 1 as id, 2 as v, named_struct('x', 1) as s", tblproperties=properties)
    scenario.run()
    renamed = {"column_renames": {"v": "w", "s": "t", "s.x": "z"}}
    sql = "select 1 as id, 2 as w, named_struct('z', 1) as t"
    scenario.model(sql, tblproperties=properties, **renamed)
    before = scenario.state()
    message = scenario.fail().message
    assert f"`tblproperties` set `{METRICS}v`, and the table will have no column `v`." in message
    assert f"`tblproperties` set `{METRICS}s.x`, and the table will have no column `s.x`." in message
    assert scenario.state() == before
    scenario.model(sql, **renamed)
    scenario.run()
    found = scenario.table().properties
    assert {name: value for name, value in found.items() if ".column." in name} == {
        METRICS + "w": "full",
        METRICS + "t.z": "full",
        BLOOM + "w": "true",
    }
    scenario.sql(f"refresh table {scenario.relation()}")
    scenario.sql(f"alter table {scenario.relation()} set tblproperties ('a' = 'b')")
    assert scenario.table().properties["a"] == "b"


def test_metrics_of_a_column_that_a_replacement_takes_away_go(scenario: Scenario) -> None:
    """Before post-hooks, which change a property, and never those of a column that is there by any name."""
    kept = {METRICS + name for name in ("id", "l", "l.element", "l.m")} | {BLOOM + "v"}
    gone = {METRICS + name for name in ("v", "l.n")}
    of_seed = {METRICS + "id", METRICS + "v"}
    hook = "alter table {{ this }} set tblproperties ('a' = 'b')"
    scenario.file(
        "seeds/schema.yml", yaml.safe_dump({"seeds": [{"name": "codes", "config": {"post_hook": hook}}]})
    )
    for fields, column in (("'m', 1, 'n', 2", "v"), ("'m', 1", "w")):
        sql = f"select 1 as id, 2 as {column}, array(named_struct({fields})) as l"
        scenario.model(sql, full_refresh_schema="replace", post_hook=hook)
        scenario.model(sql, "made", materialized="table", unique_key=None, post_hook=hook)
        scenario.file("seeds/codes.csv", f"id,{column}\n1,2\n")
        build = scenario.dbt("build", "--full-refresh")
        assert build.success, build.message
        if column == "v":
            for name, properties in (("t", kept | gone), ("made", kept | gone), ("codes", of_seed)):
                pairs = ", ".join(
                    f"'{key}' = 'true'" if key.startswith(BLOOM) else f"'{key}' = 'full'"
                    for key in properties
                )
                scenario.sql(f"alter table {scenario.relation(name)} set tblproperties ({pairs}, 'a' = 'c')")
    for name, expected in (("t", kept), ("made", kept), ("codes", {METRICS + "id"})):
        properties = scenario.table(name).properties
        assert {key for key in properties if ".column." in key} == expected
        assert properties["a"] == "b"
    assert f"removing the property {METRICS}l.n, since the table no longer has that column" in build.log
    # A run that was killed as soon as it had replaced the table leaves both.
    left = {METRICS + "v": "full", "sparkevolve.replaced-by": "0123456789ab"}
    with scenario.table().transaction() as transaction:
        transaction.set_properties(left)
    scenario.run("--select", "t")
    assert not set(left) & set(scenario.table().properties)
