"""Which settings of a model are refused, and which are warned of."""

from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.sparkevolve.errors import ModelConfigError, ModelSettingsError
from dbt.adapters.sparkevolve.model_config import (
    FOREIGN,
    KNOWN,
    check,
    misspelt_keys,
    other_primary_key,
    settings_without_effect,
    settings_without_effect_in,
    without_effect,
)
from tests.unit.macros import macro

FIELDS = ("materialized", "unique_key", "tags", "meta", "full_refresh", "schema", "docs", "group")


def test_all_that_is_wrong_is_one_error() -> None:
    given = {"uniqe_key": "id", "materialized": "incremental", "publish": "now", "location_root": ""}
    with pytest.raises(ModelSettingsError) as raised:
        check("model.case.t", given, FIELDS, given)
    assert raised.value.msg == (
        "3 settings of model.case.t cannot be used:\n"
        '  * uniqe_key is "id" in model.case.t. There is no such setting. Did you mean `unique_key`?\n'
        '  * location_root is "" in model.case.t. It has to be a location, such as `s3://bucket/folder`.\n'
        '  * publish is "now" in model.case.t. Allowed are: branch, direct.'
    )
    # What is no incremental model may have anything under these names.
    check("model.case.t", {}, FIELDS, {"materialized": "table", "publish": "now"})


def refused(given: dict[str, Any], config: dict[str, Any] | None = None) -> str:
    with pytest.raises(ModelConfigError) as error:
        check("model.case.t", given, FIELDS, config if config is not None else given)
    return str(error.value.msg)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("remove_columns", "removed_columns"),
        ("removed-columns", "removed_columns"),
        ("Removed_Columns", "removed_columns"),
        ("columns_removed", "removed_columns"),
        ("unique_keys", "unique_key"),
        ("uniqe_key", "unique_key"),
        ("on_schema_changes", "on_schema_change"),
        ("incremental_stratgy", "incremental_strategy"),
        ("full_refresh_schemas", "full_refresh_schema"),
        ("column_rename", "column_renames"),
        ("tbl_properties", "tblproperties"),
        ("commit_retry", "commit_retries"),
        ("partition_bys", "partition_by"),
        ("incremental_predicate", "incremental_predicates"),
        ("audit", "audits"),
        ("publishes", "publish"),
        ("column_renaming", "column_renames"),
        ("type_widen", "type_widening"),
        ("schema_change", "on_schema_change"),
        ("on_shcema_change", "on_schema_change"),
        ("materialised", "materialized"),
        ("uniquekey", "unique_key"),
        ("merge_updates_column", "merge_update_columns"),
        ("persist_doc", "persist_docs"),
        ("event_tiem", "event_time"),
        ("Database", "database"),
        ("data_base", "database"),
    ],
)
def test_a_near_miss_of_a_setting_is_refused(written: str, meant: str) -> None:
    message = refused({written: "keep"})
    assert message == (
        f'{written} is "keep" in model.case.t. There is no such setting. Did you mean `{meant}`?'
    )


@pytest.mark.parametrize(
    "given",
    [
        *({name: None} for name in sorted(KNOWN | set(FOREIGN))),
        {"owner": "x"},
        # another word, or a part of a setting's name that is one itself
        *({name: "x"} for name in ("option", "partition", "column_name", "column_names", "column_type")),
        *({name: "x"} for name in ("event_type", "event_name", "batch_side", "published", "publisher")),
        *({name: "x"} for name in ("location", "bucket", "partition_by_day", "file_formatter", "auditor")),
        {"sla_minutes": 5},
        {"_audits": ["x"]},
        {"__dbt_internal_microbatch_event_time_start": 1},
        {"tag": "x"},  # near a field of dbt's that changes nothing of what is written
        {"post-hook": []},
        {"schemas": "x"},
        {"databases": "x"},
        {"partitions": ["x"]},  # dbt-bigquery's
        {"base_location_root": "x"},  # dbt-snowflake's
    ],
    ids=lambda given: next(iter(given)),
)
def test_other_names_are_left_alone(given: dict[str, Any]) -> None:
    check("model.case.t", given, FIELDS, given)


@pytest.mark.parametrize(
    ("setting", "value", "shown"),
    [
        ("unique_key", [""], '[""]'),
        ("unique_key", ["id", None], '["id", null]'),
        ("unique_key", {"id": 1}, '{"id": 1}'),
        ("merge_update_columns", [], "[]"),
        ("merge_exclude_columns", [1], "[1]"),
        ("partition_by", {"field": "ts", "data_type": "day"}, '{"field": "ts", "data_type": "day"}'),
        ("partition_by", ["a", ""], '["a", ""]'),
        ("event_time", ["ts"], '["ts"]'),
        ("tblproperties", ["a"], '["a"]'),
        ("tblproperties", {"a": None}, '{"a": null}'),
        ("tblproperties", {"write": {"mode": "x"}}, '{"write": {"mode": "x"}}'),
        ("column_renames", [["a", "b"]], '[["a", "b"]]'),
        ("column_renames", {"a": None}, '{"a": null}'),
        ("persist_docs", {"columns": "true"}, '{"columns": "true"}'),
        ("persist_docs", True, "true"),
        ("location_root", 5, "5"),
        ("file_format", True, "true"),
    ],
)
def test_a_value_that_cannot_be_one_is_refused(setting: str, value: object, shown: str) -> None:
    message = refused({}, {setting: value})
    assert message.startswith(f"{setting} is {shown} in model.case.t. It has to be ")


def test_a_header_is_not_left_out_in_silence() -> None:
    message = refused({"sql_header": "set a=b"})
    assert message.startswith(
        'sql_header is "set a=b" in model.case.t. It is not run: Spark runs one statement'
    )


def test_values_that_can_be_are_not() -> None:
    check(
        "model.case.t",
        {},
        FIELDS,
        {
            "unique_key": ["a", "b"],
            "partition_by": [],
            "tblproperties": {"a": 1, "b": True, "c": "x"},
            "column_renames": {"a.b": "c"},
            "persist_docs": {"relation": True, "columns": False, "relations": True},
            "event_time": "ts",
            "file_format": "iceberg",
        },
    )


@pytest.mark.parametrize("none", [[], ""])
def test_an_empty_key_is_none(none: object) -> None:
    check("model.case.t", {}, FIELDS, {"unique_key": none})


def test_whole_tables_are_not_overwritten_by_an_empty_list() -> None:
    message = refused({}, {"incremental_strategy": "insert_overwrite", "partition_by": []})
    assert message == (
        "partition_by is [] in model.case.t. Leave it out if the whole table is to be overwritten."
    )


def test_settings_of_other_adapters_are_named_with_what_to_do_instead() -> None:
    assert settings_without_effect(["zorder", "materialized", "delete_condition", "own"]) == [
        "`zorder` has no effect with sparkevolve: Iceberg's `rewrite_data_files` sorts files, in a "
        "maintenance job of yours.",
        "`delete_condition` has no effect with sparkevolve: delete in a post-hook.",
    ]
    assert not set(FOREIGN) & KNOWN


@pytest.mark.parametrize(
    ("strategy", "silent"),
    [
        ("append", []),
        ("insert_overwrite", []),
        ("microbatch", ["predicates", "incremental_predicates"]),
        ("delete+insert", ["predicates", "incremental_predicates"]),
        (
            "merge",
            ["predicates", "incremental_predicates", "merge_update_columns", "merge_exclude_columns"],
        ),
    ],
)
def test_settings_of_other_strategies_are_named(strategy: str, silent: list[str]) -> None:
    for_some = "delete+insert, merge, microbatch"
    all_texts = {
        "predicates": for_some,
        "incremental_predicates": for_some,
        "merge_update_columns": "merge",
        "merge_exclude_columns": "merge",
    }
    assert settings_without_effect_in(strategy, ["unique_key", *all_texts]) == [
        f"`{name}` has no effect with the incremental_strategy {strategy}: it is for {strategies}."
        for name, strategies in all_texts.items()
        if name not in silent
    ]


@pytest.mark.parametrize(
    "key", ["defualt", "defaults", "Default", "defalt", "deafult", "default_value", "column_default"]
)
def test_a_misspelt_default_of_a_column_is_named(key: str) -> None:
    known = {"name": "n", "default": "1", "granularity": "day", "policy_tags": []}
    assert misspelt_keys({"a": known, "n": {"name": "n", key: "'x'"}}) == [
        f"`{key}` of the column `n` has no effect. Did you mean `default`?"
    ]


@pytest.mark.parametrize(
    "key",
    [
        *("name", "description", "data_type", "tests", "data_tests", "constraints", "meta", "tags", "quote"),
        *("config", "policy_tags", "granularity", "doc_blocks", "dimension", "entity", "is_default", "fault"),
    ],
)
def test_other_keys_of_a_column_are_nobodys_default(key: str) -> None:
    assert misspelt_keys({"n": {key: "x"}}) == []


def test_a_misspelt_default_in_meta_is_named_too() -> None:
    meta = {"defualt": "1", "default": "2", "defaults": [], "default_value": 3, "owner": "us"}
    assert misspelt_keys({"n": {"meta": meta}, "o": {"meta": None}}) == [
        "`defualt` of the column `n` in its `meta` has no effect. Did you mean `default`?"
    ]


def test_half_of_a_pair_is_said_to_mean_nothing() -> None:
    assert settings_without_effect(["clustered_by"]) == ["`clustered_by` has no effect without `buckets`."]
    assert settings_without_effect(["buckets", "x"]) == ["`buckets` has no effect without `clustered_by`."]


@pytest.mark.parametrize("on_bad_rows", [None, "fail"])
def test_settings_of_dead_letters_without_any_are_told_of(on_bad_rows: str | None) -> None:
    config = {"materialized": "incremental", "dead_letter_limit": "5%", "dead_letter_suffix": "_bad"}
    end = "has no effect without `on_bad_rows: dead_letter`: a bad row fails the run."
    found = [f"`dead_letter_limit` {end}", f"`dead_letter_suffix` {end}"]
    assert without_effect({**config, "on_bad_rows": on_bad_rows}) == found
    assert without_effect({**config, "on_bad_rows": "dead_letter"}) == []
    assert without_effect({"materialized": "incremental", "on_bad_rows": on_bad_rows}) == []
    assert settings_without_effect(["buckets", "clustered_by"]) == []


@pytest.mark.parametrize(
    ("options", "unique_key", "is_said"),
    [
        ({"primaryKey": "id"}, "id", False),
        ({"primaryKey": "ID, k"}, ["id", "K"], False),
        ({"primaryKey": "k,id"}, ["id", "k"], False),
        ({"primaryKey": "k"}, None, False),
        ({}, "id", False),
        ({"primaryKey": "k"}, "id", True),
        ({"primaryKey": "id"}, ["id", "k"], True),
    ],
)
def test_another_primary_key_of_a_hudi_table_is_said(
    options: dict[str, str], unique_key: Any, is_said: bool
) -> None:
    text = (
        f"`options` give the table the primaryKey {options.get('primaryKey')}, by which Hudi goes, and the "
        f"unique_key is {unique_key if isinstance(unique_key, str) else 'id, k'}. Make them the same."
    )
    assert other_primary_key(options, unique_key) == (text if is_said else "")


@pytest.mark.parametrize(
    ("config", "strategy"),
    [
        ({"unique_key": "id"}, "delete+insert"),
        ({"unique_key": []}, "append"),
        ({"incremental_strategy": "append", "unique_key": "id"}, "append"),
    ],
)
def test_a_model_is_told_of_settings_that_its_strategy_passes_over(
    config: dict[str, object], strategy: str
) -> None:
    unset = {"zorder": None, "predicates": []}
    given = {"materialized": "incremental", "merge_update_columns": "v", **unset, **config}
    assert without_effect(given) == [
        f"`merge_update_columns` has no effect with the incremental_strategy {strategy}: it is for merge."
    ]
    assert without_effect({**given, "materialized": "table"}) == []


def test_settings_under_meta_count_in_what_has_no_effect() -> None:
    def said(own: dict[str, object], **given: object) -> list[str]:
        return without_effect({"materialized": "incremental", "meta": {"sparkevolve": own}, **given})

    assert said({"on_bad_rows": "dead_letter"}, dead_letter_limit="5%") == []
    assert said({"incremental_strategy": "merge"}, unique_key="id", merge_update_columns=["a"]) == []
    assert said({"unique_key": "id", "dead_letter_limit": 1}, on_bad_rows="dead_letter") == []
    assert said({"on_bad_rows": None}, on_bad_rows="dead_letter", dead_letter_limit=1) == [
        "`dead_letter_limit` has no effect without `on_bad_rows: dead_letter`: a bad row fails the run."
    ]
    assert said({"merge_update_columns": ["a"]}) == [
        "`merge_update_columns` has no effect with the incremental_strategy append: it is for merge."
    ]
    assert without_effect({"materialized": "incremental", "meta": {"sparkevolve": [1]}}) == []


def test_settings_under_meta_are_checked_of_every_node() -> None:
    own: dict[str, object] = {"tblproperties": {"sparkevolve.told": "x"}}
    with pytest.raises(ModelConfigError, match="Properties with this prefix are kept by sparkevolve itself"):
        check("model.p.m", {}, [], {"materialized": "table", "meta": {"sparkevolve": own}})


def test_nothing_is_dropped_before_what_is_to_be_warned_of() -> None:
    class Stopped(Exception):
        """What `--warn-error` raises."""

    def warn(texts: list[str], what: str) -> None:
        assert (texts, what) == (["another key"], "model.shop.orders")
        raise Stopped

    config = {"file_format": "hudi", "options": {"primaryKey": "id"}, "unique_key": "key"}
    keys = SimpleNamespace(other_primary_key=lambda options, key: "another key")
    warn_of_options = macro(
        "clauses.sql",
        "sparkevolve__warn_of_options",
        sparkevolve__config=config.get,
        sparkevolve__file_format=lambda: "hudi",
        model={"unique_id": "model.shop.orders"},
        adapter=SimpleNamespace(clauses=lambda: keys),
        sparkevolve__warn=warn,
    )
    build = macro(
        "materializations/table.sql",
        "materialization_table_sparkevolve",
        sparkevolve__is_plan_only=lambda: False,
        sparkevolve__warn_of_options=warn_of_options,
    )
    with pytest.raises(Stopped):
        build()


@pytest.mark.parametrize("materialized", ["table", "seed", "snapshot", "view", "ephemeral", "incremental"])
def test_checks_of_rows_are_named_where_rows_are_loaded_without_them(materialized: str) -> None:
    where = f"has no effect in a {materialized}: it is for incremental models. No row is checked."
    config = {"materialized": materialized, "audits": ["id > 0"], "on_bad_rows": "dead_letter"}
    is_named = materialized in ("table", "seed", "snapshot")
    found = [f"`audits` {where}", f"`on_bad_rows` {where}"] if is_named else []
    assert without_effect(config) == found
    # As dbt has them where nobody has set them, or set to what is done anyway.
    own = {"sparkevolve": {"on_bad_rows": "fail", "audits": []}}
    assert without_effect({**config, "meta": own}) == []
