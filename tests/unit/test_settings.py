"""What the settings of a model are, what they are not, and what they come to."""

from dataclasses import FrozenInstanceError, fields
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.sparkevolve.errors import (
    ModelConfigError,
    ModelSettingsError,
    SettingsConflictError,
    VariableError,
)
from dbt.adapters.sparkevolve.impl import SparkEvolveConfig
from dbt.adapters.sparkevolve.settings import DOCUMENTED, SETTINGS, SWITCHES, IncrementalSettings, Strategy
from dbt.adapters.sparkevolve.variables import switch

NODE = "model.case.t"
START, END = datetime(2024, 1, 1, tzinfo=timezone.utc), datetime(2024, 1, 2, tzinfo=timezone.utc)
WINDOW = {
    "__dbt_internal_microbatch_event_time_start": START,
    "__dbt_internal_microbatch_event_time_end": END,
}
BATCH = {"incremental_strategy": "microbatch", "event_time": "`ts`", **WINDOW}


def settings(config: dict[str, Any] | None = None, **run: Any) -> IncrementalSettings:
    return IncrementalSettings.from_config(config or {}, NODE, **run)


def test_a_model_that_sets_nothing_has_the_defaults() -> None:
    assert settings() == IncrementalSettings(
        on_schema_change="ignore",
        strategy=Strategy.APPEND,
        unique_key=(),
        predicates=(),
        merge_update_columns=(),
        merge_exclude_columns=(),
        removed_columns="null",
        publish="branch",
        audits=(),
        on_bad_rows="fail",
        dead_letter_suffix="_dlt",
        dead_letter_limit=None,
        full_refresh_schema="keep",
        type_widening=True,
        relax_not_null=True,
        nested_evolution=True,
        unmappable_types="string",
        column_renames={},
        column_defaults={},
        pad_with="null",
        commit_retries=4,
        tblproperties={},
        partition_by=(),
        clustered_by=(),
        buckets=None,
        location=None,
        options={},
        event_time=None,
        adds_again=True,
        is_sampled_empty=False,
        event_time_start=None,
        event_time_end=None,
        is_refreshed=False,
        add_columns=False,
        frozen=(),
        bookkeeping=(),
        keep_table_type=(),
        defaults={},
        contrary_defaults=(),
        keep_defaults=False,
        row_audits=(),
        letter_key=(),
        merges=False,
        snapshot_columns={},
        valid_to_current=None,
    )


def test_each_value_that_is_set_is_kept_in_one_form() -> None:
    found = settings(
        {
            "on_schema_change": "append_new_columns",
            "incremental_strategy": "merge",
            "unique_key": ["`Id`", "k"],
            "incremental_predicates": "a > 1",
            "merge_update_columns": "`V`",
            "removed_columns": "keep",
            "audits": ["id > 0", "k > 0"],
            "full_refresh_schema": "replace",
            "type_widening": False,
            "unmappable_types": "fail",
            "column_renames": {"a.b": "c"},
            "column_defaults": {"`A`": "1"},
            "pad_with": "default",
            "commit_retries": 0,
            "tblproperties": {"a": 1, "b": True, "comment": "x"},
            "partition_by": "days(ts)",
            "clustered_by": ["`c`"],
            "buckets": 4,
            "options": {"o": 1},
        },
        location="s3://bucket/t",
    )
    assert found == IncrementalSettings(
        on_schema_change="append_new_columns",
        strategy=Strategy.MERGE,
        unique_key=("Id", "k"),
        predicates=("a > 1",),
        merge_update_columns=("V",),
        removed_columns="keep",
        audits=("id > 0", "k > 0"),
        full_refresh_schema="replace",
        type_widening=False,
        unmappable_types="fail",
        column_renames={"a.b": "c"},
        column_defaults={"`A`": "1"},
        pad_with="default",
        defaults={"`A`": "1"},
        commit_retries=0,
        tblproperties={"a": "1", "b": "true", "comment": "x"},
        partition_by=("days(ts)",),
        clustered_by=("c",),
        buckets="4",
        location="s3://bucket/t",
        options={"o": 1},
        add_columns=True,
    )
    with pytest.raises(FrozenInstanceError):
        found.publish = "direct"  # type: ignore[misc]


def test_dbts_older_name_of_the_predicates_goes_first() -> None:
    assert settings({"predicates": ["a"], "incremental_predicates": ["b"]}).predicates == ("a",)
    assert settings({"predicates": [], "incremental_predicates": ["b"]}).predicates == ("b",)


def test_dbt_athenas_name_of_the_partitions_goes_last() -> None:
    assert settings({"partitioned_by": ["a"], "partition_by": ["b"]}).partition_by == ("b",)
    assert settings({"partitioned_by": ["a"]}).partition_by == ("a",)
    assert settings({"partitioned_by": ["a"], "partition_by": []}).partition_by == ("a",)


CHOICES = {
    "incremental_strategy": "delete+insert, append, merge, insert_overwrite, microbatch",
    "on_schema_change": "ignore, fail, append_new_columns, append_new_columns_preserve",
    "removed_columns": "null, keep",
    "pad_with": "null, default",
    "publish": "branch, direct",
    "full_refresh_schema": "keep, replace",
    "unmappable_types": "string, fail",
    "type_widening": "true, false",
    "relax_not_null": "true, false",
    "nested_evolution": "true, false",
    "commit_retries": "whole numbers from 0",
    "incremental_predicates": "an SQL condition, or a list of them",
    "audits": "an SQL condition, or a list of them, of which each may be `{sql: condition, severity: row}` "
    "(or `run`)",
    "on_bad_rows": "fail, dead_letter",
    "dead_letter_suffix": "letters from A to Z, digits and underscores, at least one",
    "dead_letter_limit": "a whole number of rows, such as 100, or a part of the batch up to '100%', such as "
    "'5%'",
}
NAMES = "the name of a column, or a list of names with at least one; leave it out for none"
SHAPES = {
    "unique_key": NAMES,
    "merge_update_columns": NAMES,
    "merge_exclude_columns": NAMES,
    "partition_by": "a column, a transform such as `days(ts)`, or a list of these",
    "clustered_by": NAMES,
    "event_time": "the name of a column",
    "location_root": "a location, such as `s3://bucket/folder`",
    "tblproperties": "a mapping of names to texts, numbers or booleans",
    "options": "a mapping of names to texts, numbers or booleans",
    "column_renames": "a mapping of old to new names",
    "column_defaults": "a mapping of columns to SQL literals, such as `{status: \"'new'\"}`",
}


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("incremental_strategy", "delete_insert", '"delete_insert"'),
        ("incremental_strategy", "snapshot", '"snapshot"'),
        ("incremental_strategy", "full_refresh", '"full_refresh"'),
        ("incremental_strategy", "", '""'),
        ("on_schema_change", "append", '"append"'),
        ("on_schema_change", None, "null"),
        ("removed_columns", False, "false"),
        ("publish", "", '""'),
        ("full_refresh_schema", ["keep"], '["keep"]'),
        ("unmappable_types", None, "null"),
        ("type_widening", "truth", '"truth"'),
        ("relax_not_null", 2, "2"),
        ("relax_not_null", 1.0, "1.0"),
        ("nested_evolution", None, "null"),
        ("commit_retries", -1, "-1"),
        ("commit_retries", True, "true"),
        ("commit_retries", "4.0", '"4.0"'),
        ("commit_retries", "-4", '"-4"'),
        ("commit_retries", None, "null"),
        ("incremental_predicates", {"a": 1}, '{"a": 1}'),
        ("incremental_predicates", 5, "5"),
        ("audits", "", '""'),
        ("audits", ["a > 0", " "], '["a > 0", " "]'),
        ("audits", ["a > 0", 1], '["a > 0", 1]'),
        ("audits", {"a > 0": 1}, '{"a > 0": 1}'),
        ("audits", [{"sql": "a > 0", "severity": "rows"}], '[{"sql": "a > 0", "severity": "rows"}]'),
        ("audits", [{"sql": " ", "severity": "row"}], '[{"sql": " ", "severity": "row"}]'),
        ("audits", {"severity": "row"}, '{"severity": "row"}'),
        ("on_bad_rows", "skip", '"skip"'),
        ("on_bad_rows", None, "null"),
        ("on_bad_rows", True, "true"),
        ("dead_letter_suffix", "", '""'),
        ("dead_letter_suffix", None, "null"),
        ("dead_letter_suffix", "_dlt`; drop table x", '"_dlt`; drop table x"'),
        ("dead_letter_suffix", "/../x", '"/../x"'),
        ("dead_letter_suffix", " ", '" "'),
        ("dead_letter_suffix", "_dlt\n", '"_dlt\\n"'),
        ("dead_letter_suffix", "__dbt_tmp_0123456789ab", '"__dbt_tmp_0123456789ab"'),
        ("dead_letter_suffix", 5, "5"),
        ("dead_letter_limit", -1, "-1"),
        ("dead_letter_limit", True, "true"),
        ("dead_letter_limit", 1.5, "1.5"),
        ("dead_letter_limit", "101%", '"101%"'),
        ("dead_letter_limit", "-5%", '"-5%"'),
        ("dead_letter_limit", "many", '"many"'),
        ("dead_letter_limit", "", '""'),
    ],
)
def test_a_value_that_is_none_of_those_allowed_is_refused(key: str, value: object, shown: str) -> None:
    with pytest.raises(ModelConfigError) as error:
        settings({key: value})
    assert error.value.msg == f"{key} is {shown} in {NODE}. Allowed are: {CHOICES[key]}."
    assert (error.value.setting, error.value.value, error.value.node_id) == (key, value, NODE)
    assert error.value.type == "Compilation"


@pytest.mark.parametrize("key", SWITCHES)
@pytest.mark.parametrize(
    ("value", "means"),
    [("false", False), (" No ", False), (0, False), ("TRUE", True), ("on", True), (1, True)],
)
def test_a_text_is_read_as_the_boolean_that_it_says(key: str, value: object, means: bool) -> None:
    """What `env_var` returns in a model's `config` is a text, as is what stands in quotes."""
    assert getattr(settings({key: value}), key) is means
    assert settings({key: value}) == settings({key: means})


def test_a_text_is_read_as_the_number_that_it_says() -> None:
    assert settings({"commit_retries": " 7 "}).commit_retries == 7


def test_all_wrong_settings_are_named_at_once() -> None:
    with pytest.raises(ModelSettingsError) as raised:
        settings(
            {
                "publish": "branches",
                "on_schema_change": "sync_all_columns",
                "file_format": "delta",
                "type_widening": "maybe",
            }
        )
    assert raised.value.msg == (
        f"4 settings of {NODE} cannot be used:\n"
        f'  * file_format is "delta" in {NODE}. Allowed are: iceberg.\n'
        f"  * on_schema_change is 'sync_all_columns' in {NODE}, which means to drop columns, and sparkevolve "
        f"never drops one. Allowed are: {CHOICES['on_schema_change']}.\n"
        f'  * publish is "branches" in {NODE}. Allowed are: branch, direct.\n'
        f'  * type_widening is "maybe" in {NODE}. Allowed are: true, false.'
    )
    assert (len(raised.value.errors), raised.value.node_id, raised.value.type) == (4, NODE, "Compilation")
    with pytest.raises(ModelSettingsError) as raised:
        settings(
            {
                "audits": "a",
                "publish": "direct",
                "removed_columns": "keep",
                "incremental_strategy": "insert_overwrite",
            }
        )
    assert [e.settings for e in raised.value.errors if isinstance(e, SettingsConflictError)] == [
        ("removed_columns", "incremental_strategy"),
        ("audits", "publish"),
    ]


def test_an_incremental_model_is_an_iceberg_table() -> None:
    with pytest.raises(ModelConfigError) as error:
        settings({"file_format": "delta"})
    assert error.value.msg == f'file_format is "delta" in {NODE}. Allowed are: iceberg.'


@pytest.mark.parametrize(
    ("config", "of", "message"),
    [
        (
            {"on_schema_change": "sync_all_columns"},
            ("on_schema_change",),
            f"on_schema_change is 'sync_all_columns' in {NODE}, which means to drop columns, and sparkevolve "
            "never drops one. Allowed are: ignore, fail, append_new_columns, append_new_columns_preserve.",
        ),
        (
            {"incremental_strategy": "microbatch", "event_time": "ts"},
            ("incremental_strategy",),
            f"incremental_strategy is 'microbatch' in {NODE}, and dbt runs the model as a whole and not "
            "batch by batch, since the project or a package has a macro `get_incremental_microbatch_sql`. "
            "sparkevolve does not use it: remove it, or set the flag "
            "`require_batched_execution_for_custom_microbatch_strategy` in dbt_project.yml.",
        ),
        *(
            (
                {**BATCH, "incremental_strategy": strategy, "removed_columns": "keep"},
                ("removed_columns", "incremental_strategy"),
                f"removed_columns is 'keep' in {NODE}, but {strategy} replaces rows without a key, so there "
                "is no previous value to keep. Use incremental_strategy 'delete+insert' or 'merge'.",
            )
            for strategy in ("insert_overwrite", "microbatch")
        ),
        (
            {"audits": "a > 0", "publish": "direct"},
            ("audits", "publish"),
            f"audits are set in {NODE}, but publish is 'direct': rows would be visible before they are "
            "checked. Set publish to 'branch'.",
        ),
        (
            {"incremental_strategy": "append", "merge_update_columns": "a", "merge_exclude_columns": "b"},
            ("merge_update_columns", "merge_exclude_columns"),
            f"merge_update_columns and merge_exclude_columns are both set in {NODE}. Set one of them.",
        ),
        *(
            (
                {"unique_key": "id", name: "a"},
                (name, "incremental_strategy"),
                f"{name} is set in {NODE}, but delete+insert replaces whole rows: columns that are to stay "
                "as they are would be overwritten. Set incremental_strategy to 'merge'.",
            )
            for name in ("merge_update_columns", "merge_exclude_columns")
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    config: dict[str, Any], of: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SettingsConflictError) as error:
        settings(config)
    assert error.value.msg == message
    assert (error.value.settings, error.value.node_id) == (of, NODE)
    assert error.value.type == "Compilation"


def test_what_may_stand_together_is_not_refused() -> None:
    settings({"merge_update_columns": "a"})  # without a key it appends
    settings({"removed_columns": "keep", "unique_key": "id"})
    settings({"audits": [], "publish": "direct"})


@pytest.mark.parametrize(
    ("config", "strategy", "key"),
    [
        ({}, "append", ()),
        ({"unique_key": "id"}, "delete+insert", ("id",)),
        ({"unique_key": []}, "append", ()),
        ({"unique_key": ""}, "append", ()),
        ({"unique_key": "id", "incremental_strategy": None}, "delete+insert", ("id",)),
        ({"unique_key": "id", "incremental_strategy": "append"}, "append", ()),
        ({"unique_key": "id", "incremental_strategy": "insert_overwrite"}, "insert_overwrite", ()),
        ({"unique_key": "id", **BATCH}, "microbatch", ()),
        ({"incremental_strategy": "merge"}, "merge", ()),
    ],
)
def test_the_key_tells_the_strategy_and_only_some_go_by_it(
    config: dict[str, Any], strategy: str, key: tuple[str, ...]
) -> None:
    found = settings(config)
    assert (found.strategy, str(found.strategy), found.unique_key) == (strategy, strategy, key)
    refreshed = settings(config, full_refresh=True)
    assert (refreshed.strategy, refreshed.unique_key) == ("full_refresh", key)


def test_rows_are_replaced_by_the_key_or_by_the_time() -> None:
    assert settings({"unique_key": "`Id`"}).replacing == (("Id",), "unique_key")
    found = settings(BATCH)
    assert found.replacing == (("ts",), "event_time")
    assert (found.event_time_start, found.event_time_end) == (START, END)


@pytest.mark.parametrize(
    ("config", "run", "answer"),
    [
        ({}, {}, True),
        ({"incremental_strategy": "merge"}, {}, True),
        ({"incremental_strategy": "delete+insert"}, {}, True),
        ({"unique_key": "id"}, {}, False),
        ({"incremental_strategy": "insert_overwrite"}, {}, False),
        (BATCH, {}, False),
        ({"full_refresh": True}, {}, False),
        ({"full_refresh": False}, {}, True),
        ({}, {"is_empty": True}, False),
        ({}, {"full_refresh": True}, True),
    ],
)
def test_what_adds_rows_again(config: dict[str, Any], run: dict[str, Any], answer: bool) -> None:
    assert settings(config, **run).adds_again is answer


@pytest.mark.parametrize(
    ("config", "run", "answer"),
    [
        ({}, {}, False),
        ({}, {"full_refresh": True}, True),
        ({}, {"full_refresh_flag": True}, False),
        (BATCH, {"full_refresh_flag": True}, True),
        ({**BATCH, "full_refresh": False}, {"full_refresh_flag": True}, False),
        ({**BATCH, "full_refresh": True}, {}, True),
    ],
)
def test_each_batch_of_a_refreshed_model_may_do_what_a_full_refresh_may(
    config: dict[str, Any], run: dict[str, Any], answer: bool
) -> None:
    found = settings({**config, "on_schema_change": "fail", "type_widening": False}, **run)
    assert (found.is_refreshed, found.add_columns) == (answer, answer)
    assert (found.relax_not_null, found.nested_evolution, found.type_widening) == (answer, answer, False)
    assert found.frozen == (() if answer else ("relax_not_null", "nested_evolution"))


def test_nothing_is_frozen_but_under_fail() -> None:
    for value in ("ignore", "append_new_columns", "append_new_columns_preserve"):
        found = settings({"on_schema_change": value})
        assert (found.frozen, found.type_widening, found.add_columns) == ((), True, value != "ignore")


def test_an_empty_source_replaces_nothing_but_in_a_full_refresh() -> None:
    assert settings(is_empty=True).is_sampled_empty
    assert not settings(is_empty=True, full_refresh=True).is_sampled_empty


@pytest.mark.parametrize(("docs", "kept"), [({"relation": True}, {}), ({"columns": True}, {"comment": "x"})])
def test_a_description_goes_before_a_comment(docs: dict[str, bool], kept: dict[str, str]) -> None:
    assert settings({"persist_docs": docs, "tblproperties": {"comment": "x"}}).tblproperties == kept


@pytest.mark.parametrize(
    ("key", "keys", "version_key"),
    [
        ("id", ["dbt_unique_key"], ("id",)),
        (["id"], ["dbt_unique_key_1"], ("id",)),
        (["a", "b || c"], ["dbt_unique_key_1", "dbt_unique_key_2"], ("a", "b || c")),
        (None, ["dbt_unique_key"], ()),
    ],
)
def test_a_snapshot_adds_what_is_new_and_has_columns_of_its_own(
    key: Any, keys: list[str], version_key: tuple[str, ...]
) -> None:
    names = ("dbt_scd_id", "dbt_updated_at", "dbt_valid_from", "dbt_valid_to")
    columns = {name: f"{name}_" for name in names}
    of_model = settings({"unique_key": key, "audits": "a > 0", "commit_retries": 7, "event_time": "ts"})
    assert of_model.for_snapshot(
        columns, key, "to_date('9999-12-31')", "snapshot.p.s"
    ) == IncrementalSettings(
        strategy=Strategy.SNAPSHOT,
        on_schema_change="append_new_columns",
        commit_retries=7,
        add_columns=True,
        snapshot_columns=columns,
        valid_to_current="to_date('9999-12-31')",
        version_key=version_key,
        bookkeeping=("dbt_change_type", *keys),
        keep_table_type=("dbt_updated_at_", "dbt_valid_from_", "dbt_valid_to_"),
    )


@pytest.mark.parametrize(
    ("renames", "text"),
    [
        ({"begins": "since"}, "begins to become since, and `Begins`"),
        ({"`BEGINS`": "since"}, "`BEGINS` to become since, and `Begins`"),
        ({"v": "DBT_SCD_ID"}, "v to become DBT_SCD_ID, and `dbt_scd_id`"),
        ({"a": "b", "dbt_scd_id": "id"}, "dbt_scd_id to become id, and `dbt_scd_id`"),
        # A field in a column may be called so, and a column as dbt would call one of another snapshot.
        ({"s.v": "begins", "dbt_valid_from": "since", "a": "b"}, ""),
    ],
)
def test_columns_of_dbts_own_are_not_renamed(renames: dict[str, str], text: str) -> None:
    names = ("dbt_scd_id", "dbt_updated_at", "dbt_valid_to")
    columns = {"dbt_valid_from": "Begins", **{name: name for name in names}}
    of_model = settings({"unique_key": "id", "column_renames": renames})
    if not text:
        assert of_model.for_snapshot(columns, "id", None, "snapshot.p.s").column_renames == renames
        return
    with pytest.raises(SettingsConflictError) as caught:
        of_model.for_snapshot(columns, "id", None, "snapshot.p.s")
    assert str(caught.value.msg) == (
        f"`column_renames` of snapshot.p.s wants {text} is a column of dbt's own, which it finds by its "
        "name. Nothing was written. Take that rename out. For a new snapshot, `snapshot_meta_column_names` "
        "gives such columns other names."
    )


def test_each_setting_says_what_it_is_for() -> None:
    derived = {f.name for f in fields(IncrementalSettings)} - set(SETTINGS)
    assert derived == {
        *("adds_again", "is_sampled_empty", "event_time_start", "event_time_end", "is_refreshed"),
        *("add_columns", "frozen", "bookkeeping", "keep_table_type", "snapshot_columns", "valid_to_current"),
        *("frozen_for", "version_key"),
        *("defaults", "contrary_defaults", "keep_defaults"),
        *("row_audits", "letter_key", "merges"),
    }
    assert len({setting.key for setting in DOCUMENTED}) == len(DOCUMENTED)
    assert [setting.key for setting in DOCUMENTED if not (setting.meaning and setting.default_text)] == []
    assert {setting.key for setting in SETTINGS.values()} == {*CHOICES, *SHAPES, "buckets"}


@pytest.mark.parametrize("name", ["file_format", "tblproperties", "commit_retries", "publish"])
def test_dbts_parser_is_told_the_same_defaults(name: str) -> None:
    (setting,) = (setting for setting in DOCUMENTED if setting.key == name)
    assert getattr(SparkEvolveConfig(), name) == setting.default


SCALARS = st.integers() | st.booleans() | st.floats(allow_nan=False)
NO_TEXT = SCALARS | st.lists(SCALARS, min_size=1) | st.dictionaries(st.text(), SCALARS, min_size=1)
NO_MAPPING = SCALARS | st.text(min_size=1) | st.lists(SCALARS, min_size=1)
WRONG = {
    **dict.fromkeys([*CHOICES, *SHAPES], NO_TEXT),
    **dict.fromkeys(SWITCHES, (st.integers() | st.text()).filter(lambda value: switch(value) is None)),
    "dead_letter_limit": st.integers(max_value=-1) | st.booleans() | st.lists(st.integers()),
    "commit_retries": st.integers(max_value=-1) | st.booleans() | st.text("abc. -") | st.lists(st.integers()),
    **dict.fromkeys(("tblproperties", "options", "column_renames", "column_defaults"), NO_MAPPING),
}


@given(st.sampled_from(sorted(WRONG)).flatmap(lambda key: st.tuples(st.just(key), WRONG[key])))
def test_a_value_of_a_wrong_type_gives_an_error_that_names_the_setting(wrong: tuple[str, Any]) -> None:
    key, value = wrong
    with pytest.raises(ModelConfigError) as error:
        settings({key: value})
    wanted = f"Allowed are: {CHOICES[key]}." if key in CHOICES else f"It has to be {SHAPES[key]}."
    assert error.value.msg.startswith(f"{key} is ")
    assert error.value.msg.endswith(f" in {NODE}. {wanted}")
    assert error.value.setting == key


@pytest.mark.parametrize("value", [True, "true", "True", " yes ", "on", 1, "1"])
def test_a_variable_that_freezes_schemas_is_on_in_any_of_yamls_words(value: object) -> None:
    assert settings(freezes_schema=value).frozen_for == NODE


@pytest.mark.parametrize("value", [False, "false", "FALSE", "no", "off", 0, "0"])
def test_and_off(value: object) -> None:
    assert settings(freezes_schema=value) == settings()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("maybe", '"maybe"'),
        ("", '""'),
        (None, "null"),
        (2, "2"),
        (1.0, "1.0"),
        ([True], "[true]"),
        ({"t": 1}, '{"t": 1}'),
    ],
)
def test_a_variable_that_is_neither_is_refused(value: object, shown: str) -> None:
    """Whoever misspells a stop does not get a run without one."""
    with pytest.raises(VariableError) as raised:
        settings(freezes_schema=value)
    assert raised.value.msg == (
        f"The variable `sparkevolve_freeze_schema` is {shown}, which is neither true nor false: give it as "
        "`--vars 'sparkevolve_freeze_schema: true'`, or leave it out. Nothing was built."
    )
    assert (raised.value.variable, raised.value.value) == ("sparkevolve_freeze_schema", value)


@pytest.mark.parametrize(
    ("limit", "most", "of"),
    [
        (0, 0, 1000),
        (100, 100, 1000),
        ("100", 100, 1000),
        ("5%", 50, 1000),
        ("2.5 %", 25, 1000),
        ("0%", 0, 10),
    ],
)
def test_a_limit_of_bad_rows_is_a_number_or_a_part(limit: object, most: int, of: int) -> None:
    found = settings({"on_bad_rows": "dead_letter", "dead_letter_limit": limit}).dead_letter_limit
    assert found is not None
    assert [found.is_exceeded(bad, of) for bad in (most, most + 1)] == [False, True]


def test_row_audits_set_rows_aside_only_with_dead_letters() -> None:
    audits = [
        "a > 0",
        {"sql": "b > 0", "severity": "row"},
        {"sql": "c > 0", "severity": "run"},
        {"sql": "d > 0"},
    ]
    aside = settings({"audits": audits, "on_bad_rows": "dead_letter"})
    assert (aside.audits, aside.row_audits) == (("a > 0", "c > 0", "d > 0"), ("b > 0",))
    stops = settings({"audits": audits})
    assert (stops.audits, stops.row_audits) == (("a > 0", "b > 0", "c > 0", "d > 0"), ())
    # They are checked before any row is written.
    direct = {"publish": "direct", "audits": audits[1:2]}
    assert settings({**direct, "on_bad_rows": "dead_letter"}).row_audits == ("b > 0",)
    with pytest.raises(SettingsConflictError):
        settings(direct)


def test_a_letter_is_known_by_the_key_whatever_the_strategy() -> None:
    config = {"on_bad_rows": "dead_letter", "unique_key": "id"}
    for strategy, merges in (("append", False), ("delete+insert", False), ("merge", True)):
        found = settings({**config, "incremental_strategy": strategy})
        assert (found.letter_key, found.merges) == (("id",), merges)
        assert settings({**config, "incremental_strategy": strategy}, full_refresh=True).merges is merges


def test_a_snapshot_has_no_dead_letters() -> None:
    with pytest.raises(SettingsConflictError) as error:
        IncrementalSettings.from_config({"on_bad_rows": "dead_letter"}, "snapshot.case.s")
    assert error.value.msg == (
        "on_bad_rows is 'dead_letter' in snapshot.case.s, and a snapshot has no dead letters: a row without "
        "its version would look deleted in the next run. Leave it out."
    )
