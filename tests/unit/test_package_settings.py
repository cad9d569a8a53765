"""The settings of a model in the package: the adapter's values, defaults and words, under two places."""

from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.sparkevolve import model_config
from dbt.adapters.sparkevolve.errors import SparkEvolveError
from dbt.adapters.sparkevolve.model_config import FOREIGN
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from dbt.adapters.sparkevolve.spark import sql_settings
from tests.unit.package_macros import PURE, PackageMacros

NODE = "model.case.t"
WINDOW = {
    "__dbt_internal_microbatch_event_time_start": datetime(2024, 1, 1),
    "__dbt_internal_microbatch_event_time_end": datetime(2024, 1, 2),
}
SAME = (
    *("on_schema_change", "merge_update_columns", "merge_exclude_columns", "removed_columns", "publish"),
    *("audits", "full_refresh_schema", "type_widening", "relax_not_null", "nested_evolution"),
    *("unmappable_types", "column_renames", "commit_retries", "tblproperties", "partition_by"),
    *("clustered_by", "event_time", "unique_key", "predicates", "frozen", "is_refreshed", "add_columns"),
    *("is_sampled_empty", "event_time_start", "event_time_end", "options"),
)


def macros(
    config: dict[str, Any], full_refresh: bool = False, is_empty: bool = False, **columns: dict[str, Any]
) -> PackageMacros:
    return PackageMacros(
        {
            "config": config,
            "model": SimpleNamespace(unique_id=NODE, columns=columns, config=config, alias="t"),
            "flags": SimpleNamespace(FULL_REFRESH=full_refresh, EMPTY=is_empty),
        }
    )


def by_package(config: dict[str, Any], full_refresh: bool, is_empty: bool) -> dict[str, Any]:
    return dict(macros(config, full_refresh, is_empty).incremental_settings(full_refresh))


def by_adapter(config: dict[str, Any], full_refresh: bool, is_empty: bool) -> IncrementalSettings:
    return IncrementalSettings.from_config(
        config, NODE, full_refresh=full_refresh, full_refresh_flag=full_refresh, is_empty=is_empty
    )


def plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


GOOD: list[dict[str, Any]] = [
    {},
    {"unique_key": "id"},
    {"unique_key": ["`a``b`", "B"], "on_schema_change": "append_new_columns_preserve"},
    {"unique_key": []},
    {"unique_key": "", "incremental_strategy": "merge"},
    {"unique_key": "id", "incremental_strategy": None},
    {"unique_key": "id", "incremental_strategy": "append"},
    {"unique_key": "id", "on_schema_change": "fail", "type_widening": False},
    {"unique_key": "id", "incremental_strategy": "merge", "merge_update_columns": "v"},
    {"unique_key": "id", "incremental_strategy": "merge", "merge_exclude_columns": ["v", "`w`"]},
    {"incremental_predicates": "a > 1"},
    {"incremental_predicates": ["a > 1"], "predicates": ["b > 2", "c"]},
    {"incremental_predicates": []},
    {"audits": ["a > 1", "b is not null"], "publish": None},
    {"audits": {"sql": "a > 1", "severity": "row"}, "on_bad_rows": "fail", "pad_with": "null"},
    {"audits": ["a", {"sql": "b"}], "column_defaults": {}},
    {"publish": "direct", "removed_columns": None},
    {"removed_columns": "keep", "unique_key": "id"},
    {"full_refresh_schema": "replace", "unmappable_types": "fail", "commit_retries": 0},
    {"type_widening": False, "relax_not_null": False, "nested_evolution": False},
    {"type_widening": "false", "relax_not_null": " On ", "nested_evolution": 0, "commit_retries": " 7 "},
    {"column_renames": {"old": "new", "`a.b`.c": "d"}},
    {"tblproperties": {"a": True, "b": 1, "c": 1.5, "d": "x"}},
    {"partition_by": "days(ts)", "incremental_strategy": "insert_overwrite"},
    {"partition_by": ["a", "bucket(4, b)"], "clustered_by": "c", "buckets": 4},
    {"partitioned_by": ["a"], "partition_by": []},
    {"incremental_strategy": "microbatch", "event_time": "`at`", **WINDOW},
    {"incremental_strategy": "microbatch", "event_time": "at", "full_refresh": True, **WINDOW},
    {"full_refresh": False, "file_format": "iceberg"},
    {"file_format": None},
    {"options": {"write.format.default": "orc"}, "location_root": "s3://a/b"},
]
BAD: list[dict[str, Any]] = [
    {"on_schema_change": "sync_all_columns"},
    {"on_schema_change": "drop"},
    {"on_schema_change": None},
    {"incremental_strategy": "replace"},
    {"incremental_strategy": 3},
    {"unique_key": [""]},
    {"unique_key": " "},
    {"unique_key": {"a": "b"}},
    {"unique_key": ["a", 1]},
    {"merge_update_columns": []},
    {"merge_update_columns": "a", "merge_exclude_columns": "b", "incremental_strategy": "merge"},
    {"merge_update_columns": "a", "unique_key": "id"},
    {"incremental_predicates": {"a": 1}},
    {"incremental_predicates": [""]},
    {"audits": 1},
    {"audits": {"sql": "a", "severity": "soft"}},
    {"audits": [{"sql": ""}]},
    {"audits": ["a", {"sqls": "a"}]},
    {"audits": ["a", 1]},
    {"audits": "a > 1", "publish": "direct"},
    {"publish": "soon"},
    {"removed_columns": "drop"},
    {"removed_columns": "keep", "incremental_strategy": "insert_overwrite"},
    {"removed_columns": "keep", "incremental_strategy": "microbatch", "event_time": "at", **WINDOW},
    {"full_refresh_schema": "drop"},
    {"type_widening": "flase_"},
    {"type_widening": 1.0},
    {"type_widening": None},
    {"nested_evolution": 2},
    {"unmappable_types": None},
    {"column_renames": "a"},
    {"column_renames": {"a": ""}},
    {"column_renames": {"a": 1}},
    {"commit_retries": -1},
    {"commit_retries": True},
    {"commit_retries": "4.0"},
    {"commit_retries": "-4"},
    {"commit_retries": ""},
    {"commit_retries": None},
    {"tblproperties": ["a"]},
    {"tblproperties": {"a": None}},
    {"tblproperties": {"": "x"}},
    {"options": ["a"]},
    {"location_root": ["a"]},
    {"partition_by": {"a": 1}},
    {"partition_by": [""]},
    {"clustered_by": []},
    {"event_time": ["a"]},
    {"event_time": ""},
    {"incremental_strategy": "microbatch"},
    {"file_format": "parquet"},
]
# What is said before anything of a model runs, in both places.
SAID: list[dict[str, Any]] = [
    {},
    {"unique_key": "id", "merge_update_columns": None, "predicates": []},
    {"incremental_predicates": "a > 1", "predicates": ["b"]},
    {"unique_key": "id", "incremental_predicates": "a > 1", "incremental_strategy": "append"},
    {"merge_update_columns": ["a"], "incremental_strategy": "insert_overwrite"},
    {"merge_exclude_columns": ["a"], "merge_update_columns": ["a"], "incremental_strategy": "merge"},
    {"clustered_by": "a", "zorder": ["a"]},
    {"buckets": 4, "dead_letter_limit": 5, "dead_letter_suffix": "_bad"},
    dict.fromkeys(FOREIGN, "x"),
]
REFUSED_BEFORE: list[dict[str, Any]] = [
    {"sql_header": "set x = 1"},
    {"tblproperties": {"sparkevolve.x": "y"}},
    {"incremental_strategy": "insert_overwrite", "partition_by": []},
]


@pytest.mark.parametrize("full_refresh", [False, True])
@pytest.mark.parametrize("is_empty", [False, True])
@pytest.mark.parametrize("config", GOOD, ids=str)
def test_settings_are_read_as_the_adapter_does(
    config: dict[str, Any], full_refresh: bool, is_empty: bool
) -> None:
    expected = by_adapter(config, full_refresh, is_empty)
    found = by_package(config, full_refresh, is_empty)
    assert {name: found[name] for name in SAME} == {name: plain(getattr(expected, name)) for name in SAME}
    assert found["strategy"] == str(expected.strategy)
    assert (found["replacing"], found["key_setting"]) == (
        list(expected.replacing[0]),
        expected.replacing[1],
    )


# Of microbatch under `meta` dbt itself does not see anything: that is the next test.
@pytest.mark.parametrize(
    ("config", "place"),
    [
        (config, place)
        for config in BAD
        for place in ("plain", "meta")
        if (config, place) != ({"incremental_strategy": "microbatch"}, "meta")
    ],
    ids=str,
)
def test_settings_are_refused_as_the_adapter_does(config: dict[str, Any], place: str) -> None:
    ours = {name: value for name, value in config.items() if not name.startswith("__")}
    others = {name: value for name, value in config.items() if name.startswith("__")}
    given = config if place == "plain" else {"meta": {"sparkevolve": ours}, **others}
    with pytest.raises(SparkEvolveError) as expected:
        by_adapter(given, False, False)
    with pytest.raises(CompilationError) as found:
        by_package(given, False, False)
    assert str(found.value.msg) == str(expected.value.msg)


def test_microbatch_under_meta_is_refused_with_its_reason() -> None:
    with pytest.raises(CompilationError) as found:
        by_package({"meta": {"sparkevolve": {"incremental_strategy": "microbatch"}}}, False, False)
    assert str(found.value.msg) == (
        "incremental_strategy is 'microbatch' under `meta.sparkevolve` in model.case.t, where dbt does not "
        "see it, so it runs the model as a whole and not batch by batch. Write it, and `event_time`, "
        "`begin` and `batch_size`, beside `meta`."
    )


def test_a_setting_under_meta_goes_first() -> None:
    config = {
        "publish": "branch",
        "audits": ["plain"],
        "meta": {"owner": "me", "sparkevolve": {"publish": "direct", "audits": []}},
    }
    found = by_package(config, False, False)
    assert (found["publish"], found["audits"]) == ("direct", [])
    expected = by_adapter(config, False, False)
    assert (expected.publish, expected.audits) == ("direct", ())
    # Also one that is null there: it is as if it was not set.
    config["meta"] = {"sparkevolve": {"publish": None}}
    assert by_package(config, False, False)["publish"] == "branch"


@pytest.mark.parametrize("meta", [None, {}, {"sparkevolve": None}, {"other": {"publish": "soon"}}, "text"])
def test_what_others_keep_in_meta_is_theirs(meta: object) -> None:
    assert by_package({"meta": meta}, False, False)["publish"] == "branch"
    assert by_adapter({"meta": meta}, False, False).publish == "branch"


@pytest.mark.parametrize("own", [{"publishes": "direct"}, ["publish"], "direct", {"partitioned_by": "a"}])
def test_under_meta_a_name_that_is_no_setting_is_refused(own: object) -> None:
    config = {"meta": {"sparkevolve": own}}
    with pytest.raises(SparkEvolveError) as expected:
        by_adapter(config, False, False)
    with pytest.raises(CompilationError) as found:
        by_package(config, False, False)
    assert str(found.value.msg) == str(expected.value.msg)


def test_the_message_lists_all_settings() -> None:
    with pytest.raises(CompilationError) as found:
        by_package({"meta": {"sparkevolve": {"publishes": "direct"}}}, False, False)
    assert str(found.value.msg).startswith(
        "`meta.sparkevolve` has `publishes` in model.case.t, which is no setting. Allowed are: "
        "on_schema_change, incremental_strategy, unique_key, "
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"on_bad_rows": "dead_letter"}, 'on_bad_rows is "dead_letter" in model.case.t. Only'),
        ({"pad_with": "default"}, 'pad_with is "default" in model.case.t. Only'),
        ({"column_defaults": {"a": "1"}}, 'column_defaults is {"a": "1"} in model.case.t. Only'),
    ],
)
def test_what_only_the_adapter_can_do_is_refused(config: dict[str, Any], message: str) -> None:
    for given in (config, {"meta": {"sparkevolve": config}}):
        with pytest.raises(CompilationError) as found:
            by_package(given, False, False)
        assert str(found.value.msg).startswith(message)
        assert str(found.value.msg).endswith("run the model with the adapter. Nothing was written.")


@pytest.mark.parametrize(
    "properties", [{"default": 0}, {"meta": {"default": None}}, {"config": {"meta": {"default": "x"}}}]
)
def test_a_default_in_the_properties_of_a_column_is_refused(properties: dict[str, Any]) -> None:
    others = {"name": "a", "description": "", "meta": {"owner": "x"}, "config": {"meta": {}, "tags": []}}
    assert macros({}, a=others).incremental_settings(False)["column_renames"] == {}
    with pytest.raises(CompilationError) as found:
        macros({}, a=others, n={"name": "n", **properties}).incremental_settings(False)
    assert str(found.value.msg) == (
        "The column `n` of model.case.t has a `default` in its properties. Only dbt-sparkevolve itself "
        "stores defaults of columns: leave it out, or run the model with the adapter. Nothing was written."
    )


@pytest.mark.parametrize("place", ["plain", "meta"])
@pytest.mark.parametrize("config", SAID, ids=lambda config: ",".join(config)[:40])
def test_what_has_no_effect_is_said_as_the_adapter_does(config: dict[str, Any], place: str) -> None:
    given = config if place == "plain" else {"meta": {"sparkevolve": config}}
    merged = {**given, **given.get("meta", {}).get("sparkevolve", {})}
    expected = model_config.without_effect({"materialized": "incremental", **given})
    assert sorted(PURE.settings_without_effect(merged)) == sorted(expected)


@pytest.mark.parametrize("config", REFUSED_BEFORE, ids=str)
def test_what_the_adapter_refuses_of_any_node_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(SparkEvolveError) as expected:
        model_config.check(NODE, config, (), config)
    for given in (config, {"meta": {"sparkevolve": config}}) if "sql_header" not in config else (config,):
        with pytest.raises(CompilationError) as found:
            macros(given).check_config()
        assert str(found.value.msg) == str(expected.value.msg)


def test_other_adapters_settings_are_the_same() -> None:
    assert PURE.foreign_settings() == FOREIGN


def test_every_setting_of_the_adapter_is_known() -> None:
    from dbt.adapters.sparkevolve.settings import FILE_FORMAT, SETTINGS

    assert PURE.setting_names() == [setting.key for setting in (*SETTINGS.values(), FILE_FORMAT)]


def test_settings_of_spark_are_refused_as_by_the_adapter() -> None:
    # The package reckons with a session that is shared.
    shared = "spark.sql.hive.thriftServer.singleSession"
    wanted = [[each.name, each.value, each.why] for each in sql_settings.REFUSED if each.name != shared]
    assert PURE.refused_settings() == wanted


class Called:
    """A macro as dbt has it in its context, with the ids of those that it calls."""

    def __init__(self, *called: str) -> None:
        self.macro = SimpleNamespace(depends_on=SimpleNamespace(macros=list(called)))


@pytest.mark.parametrize(
    ("calls", "is_one"),
    [
        ("macro.sparkevolve.incremental", True),
        ("macro.case.one", True),
        ("macro.shared.load", True),
        ("macro.case.round", False),
        ("macro.dbt.run_hooks", False),
        ("macro.gone.load", False),
        ("macro.log.load", False),
    ],
)
def test_a_wrapper_hands_models_over_through_any_macros(calls: str, is_one: bool) -> None:
    """Those of a package that a company shares among its projects, too; some may call each other."""
    macros = PackageMacros(
        {
            "project_name": "case",
            "context": {
                "case": {
                    "materialization_incremental_spark": Called("macro.dbt.statement", calls),
                    "one": Called("macro.case.two"),
                    "two": Called("macro.dbt.statement", "macro.case.three"),
                    "three": Called("macro.sparkevolve.incremental"),
                    "round": Called("macro.case.back"),
                    "back": Called("macro.case.round"),
                },
                "shared": {
                    "load": Called("macro.shared.inner"),
                    "inner": Called("macro.sparkevolve.incremental"),
                },
                "dbt": {"run_hooks": Called("macro.dbt.statement"), "statement": Called()},
                # What dbt has under the name of a package.
                "log": print,
            },
        }
    )
    assert macros.has_override() is is_one


@pytest.mark.parametrize(("kind", "lines"), [("sparkevolve", 0), ("databricks", 1)])
def test_on_a_target_of_another_type_the_package_says_that_it_does_nothing(kind: str, lines: int) -> None:
    model = {"resource_type": "model", "unique_id": "m", "config": {"materialized": "incremental"}}
    said: list[str] = []
    macros = PackageMacros(
        {
            "execute": True,
            "target": SimpleNamespace(type=kind, name="dev"),
            "graph": {"nodes": {"m": model}},
            "log": lambda text, info: said.append(text),
        }
    )
    assert macros.require_override() == ""
    told = "the materialization of that adapter runs incremental models."
    line = f"This package is for dbt-spark, and does nothing on the target dev, which is of type {kind}"
    assert said == [f"sparkevolve: {line}: {told}"][:lines]


def test_escapes_in_literals_are_no_lack_of_a_server() -> None:
    """Spark reads them in COMMENT and TBLPROPERTIES whatever the session says of literals in expressions."""
    answers = {
        "select version()": "4.1.1",
        "select current_catalog()": "lake",
        "set `spark.sql.catalog.lake`": "org.apache.iceberg.spark.SparkCatalog",
        "set `spark.sql.extensions`": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "set `spark.sql.parser.escapedStringLiterals`": "true",
    }
    macros = PackageMacros({"log": lambda text, info: None, "target": {"schema": "shop"}})
    vars(macros)["rows"] = lambda sql: [
        (sql, answers.get(sql)) if sql.startswith("set ") else (answers[sql],)
    ]
    lacks: list[str] = []
    macros.check_server(lacks)
    assert lacks == []
    answers["set `spark.sql.catalog.other`"] = "org.apache.iceberg.spark.SparkCatalog"
    for name, catalog in {
        "s.t": "lake",
        "lake.s.t": "lake",
        "`other`.`s`.`t`": "other",
        "a.b.t": "lake",
    }.items():
        assert macros.catalog_of(name, "lake") == catalog
