"""What a model's configuration may hold: no near misses of settings, and no values that cannot be one."""

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dbt.adapters.sparkevolve.errors import (
    ModelConfigError,
    ModelSettingError,
    ModelSettingsError,
    SettingsConflictError,
    SparkEvolveError,
    raise_all,
)
from dbt.adapters.sparkevolve.settings import DOCUMENTED, OWN_META, IncrementalSettings, Strategy, strategy_of
from dbt.adapters.sparkevolve.suggestions import closest, did_you_mean, is_slip

# Our settings of a model, and those of dbt that we read: a near miss of one of them changes what is written.
KNOWN = frozenset(
    {
        *(setting.key for setting in DOCUMENTED),
        "sql_header",
        # dbt's
        "batch_size",
        "begin",
        "column_types",
        "concurrent_batches",
        "contract",
        "database",
        "full_refresh",
        "grants",
        "lookback",
        "materialized",
        "post_hook",
        "pre_hook",
    }
)
# Words that a project may well use for settings of its own, although one letter makes them another's.
_OWN = frozenset({"option", "column_type", "bucket", "databases"})
# Names that dbt or its packages give a meaning to, without being fields of its configuration.
_OTHERS = frozenset(
    {
        *("hard_deletes", "invalidate_hard_deletes", "inserts_only", "location", "post-hook", "pre-hook"),
        *(
            "partitioned_by",
            "predicates",
            "quote_columns",
            "snapshot_table_column_names",
            "target_schema",
            "target_database",
        ),
    }
)

DEFAULT = "default"
"""The key of a column for its default."""
# What somebody may write for it who does not look it up.
_FOR_DEFAULT = frozenset({"default_value", "column_default"})

_IN_MODEL = "say it in the model's SQL"
_ICEBERG_ORDER = "set the table's order with `ALTER TABLE ... WRITE ORDERED BY`"
_COMPACTION = "Iceberg's `rewrite_data_files` sorts files, in a maintenance job of yours"
# Settings of dbt-databricks, dbt-athena, dbt-trino, dbt-glue, dbt-bigquery and dbt-snowflake that models
# bring along, and what to do instead. Those that change which rows are written come first.
FOREIGN: dict[str, str] = {
    "not_matched_by_source_action": "delete in a post-hook the rows that the source no longer has",
    "not_matched_by_source_condition": "delete in a post-hook the rows that the source no longer has",
    "delete_condition": "delete in a post-hook",
    "update_condition": f"{_IN_MODEL}: return only rows that are to be updated",
    "insert_condition": f"{_IN_MODEL}: return only rows that are to be inserted",
    "matched_condition": f"{_IN_MODEL}: return only rows that are to be updated",
    "not_matched_condition": f"{_IN_MODEL}: return only rows that are to be inserted",
    "skip_matched_step": f"{_IN_MODEL}: leave out the keys that {{{{ this }}}} has",
    "skip_not_matched_step": f"{_IN_MODEL}: return only keys that {{{{ this }}}} has",
    "target_alias": "the table is `DBT_INTERNAL_DEST` in conditions",
    "source_alias": "the batch is `DBT_INTERNAL_SOURCE` in conditions",
    "merge_with_schema_evolution": "use `on_schema_change: append_new_columns_preserve`",
    "on_table_exists": "a table is replaced in one commit, and an incremental one is kept",
    "require_partition_filter": "Iceberg has no such rule",
    "table_properties": "use `tblproperties`, with Iceberg's names",
    "properties": "use `tblproperties` and `partition_by`",
    "table_type": "use `file_format`; an incremental model is an Iceberg table",
    "format": "use `file_format`, and `tblproperties: {write.format.default: ...}` for the files",
    "write_compression": "use `tblproperties: {write.parquet.compression-codec: ...}`",
    "compression": "use `tblproperties: {write.parquet.compression-codec: ...}`",
    "s3_data_dir": "use `location_root`",
    "s3_data_naming": "use `location_root`",
    "external_location": "use `location_root`",
    "custom_location": "use `location_root`",
    "base_location_root": "use `location_root`",
    "liquid_clustered_by": f"use `partition_by`, or {_ICEBERG_ORDER}",
    "auto_liquid_cluster": f"use `partition_by`, or {_ICEBERG_ORDER}",
    "cluster_by": f"use `partition_by`, or {_ICEBERG_ORDER}",
    "zorder": _COMPACTION,
    "bucketed_by": "use `partition_by: bucket(16, column)`",
    "bucket_count": "use `partition_by: bucket(16, column)`",
    "partition_expiration_days": "delete old rows in a post-hook",
    "hours_to_expiration": "drop the table when it is no longer needed",
    "partitions": "`insert_overwrite` replaces the partitions that the batch has rows for",
    "copy_partitions": "use `incremental_strategy: insert_overwrite`",
    "iceberg_expire_snapshots": "use Iceberg's `expire_snapshots`, in a maintenance job of yours",
    "versions_to_keep": "use Iceberg's `expire_snapshots`, in a maintenance job of yours",
    "add_iceberg_timestamp": "return the column from the model",
    "force_batch": "it is not needed",
    "lf_tags_config": "set the tags in Lake Formation",
    "lf_grants": "grant in Lake Formation",
    "databricks_tags": "set the tags in the catalog",
    "transient": "it is not needed",
    "copy_grants": "grants stay with the table",
}

# Settings that mean something in some strategies only, by each of their names.
_STRATEGIES = {
    key: setting.strategies
    for setting in DOCUMENTED
    for key in (setting.key, setting.other_key)
    if key and setting.strategies
}


def without_effect(config: Mapping[str, Any]) -> list[str]:
    """Return what to say of the settings of a node that only other adapters or strategies know.

    Args:
        config: the node's configuration, by name; what stands under ``meta.sparkevolve`` goes first.
    """
    config = _own_first(config)
    given = [name for name, value in config.items() if value is not None and value != []]
    found = settings_without_effect(given)
    found += checks_without_effect(str(config.get("materialized")), config)
    if config.get("materialized") == "incremental":
        found += settings_without_effect_in(strategy_of(config), given)
        if config.get("on_bad_rows") != "dead_letter":
            found += [
                f"`{name}` has no effect without `on_bad_rows: dead_letter`: a bad row fails the run."
                for name in given
                if name in ("dead_letter_suffix", "dead_letter_limit")
            ]
    return found


def _own_first(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a configuration as ``settings.own_first`` does, by name and unchecked."""
    meta = config.get("meta")
    own = meta.get(OWN_META) if isinstance(meta, Mapping) else None
    return ChainMap(dict(own), config) if isinstance(own, Mapping) else config  # type: ignore[arg-type]


def misspelt_keys(columns: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what to say of keys of columns that are nearly `default`, one text each.

    dbt takes any key there, so that a misspelt one would have no effect in silence.

    Args:
        columns: what a node's properties say of its columns, by name.
    """
    found = []
    for column, given in columns.items():
        meta = given.get("meta")
        places = {"": given, " in its `meta`": meta if isinstance(meta, Mapping) else {}}
        for place, keys in places.items():
            for key in keys:
                # In `meta`, where each project has its own keys, the plural is no slip.
                is_meant = is_slip(str(key), DEFAULT) and not (place and str(key).lower() == f"{DEFAULT}s")
                if key != DEFAULT and (is_meant or (not place and key in _FOR_DEFAULT)):
                    found.append(
                        f"`{key}` of the column `{column}`{place} has no effect. {did_you_mean(DEFAULT)}"
                    )
    return found


def settings_without_effect(given: Iterable[str]) -> list[str]:
    """Return what to say of other adapters' settings, one text each, in the order of ``given``.

    Also of half of a pair, which dbt-spark passes over.
    """
    names = list(given)
    foreign = [name for name in names if name in FOREIGN]
    found = [f"`{name}` has no effect with sparkevolve: {FOREIGN[name]}." for name in foreign]
    for one, other in (("clustered_by", "buckets"), ("buckets", "clustered_by")):
        if one in names and other not in names:
            found.append(f"`{one}` has no effect without `{other}`.")
    return found


def other_primary_key(options: Mapping[str, Any], unique_key: Any) -> str:
    """Return what to say of a Hudi table whose key is another than its model's; empty if it is the same.

    Args:
        options: the model's ``options``.
        unique_key: the model's.
    """
    stated = options.get("primaryKey")
    if stated is None or not unique_key:
        return ""
    listed = [unique_key] if isinstance(unique_key, str) else list(unique_key)
    wanted = [str(name) for name in listed]
    has = {name.strip().lower() for name in str(stated).split(",")}
    if has == {name.strip().lower() for name in wanted}:
        return ""
    return (
        f"`options` give the table the primaryKey {stated}, by which Hudi goes, and the unique_key is "
        f"{', '.join(wanted)}. Make them the same."
    )


def checks_without_effect(materialized: str, config: Mapping[str, Any]) -> list[str]:
    """Return what to say of settings by which rows would be checked, where rows are loaded without that.

    Not of a view, which has no rows of its own: what a project says of a whole folder is for others in it.
    """
    given = {"audits": bool(config.get("audits")), "on_bad_rows": config.get("on_bad_rows") == "dead_letter"}
    return [
        f"`{name}` has no effect in a {materialized}: it is for incremental models. No row is checked."
        for name, is_set in given.items()
        if is_set and materialized in ("table", "seed", "snapshot")
    ]


def settings_without_effect_in(strategy: str, given: Iterable[str]) -> list[str]:
    """Return what to say of settings that the strategy of an incremental model passes over, in order."""
    return [
        f"`{name}` has no effect with the incremental_strategy {strategy}: it is for "
        f"{', '.join(map(str, _STRATEGIES[name]))}."
        for name in given
        if name in _STRATEGIES and strategy not in _STRATEGIES[name]
    ]


def check(node: str, given: Mapping[str, Any], fields: Iterable[str], config: Mapping[str, Any]) -> None:
    """Check the configuration of a model, snapshot or seed.

    Args:
        node: its id, for messages.
        given: what the user has set that is no field of dbt's own configuration.
        fields: the names of those fields.
        config: all of the configuration, by name; what stands under ``meta.sparkevolve`` goes first.

    Raises:
        ModelConfigError: a name is a near miss of a setting, or a value cannot be one.
        SettingsConflictError: settings contradict each other.
        ModelSettingsError: there is more than one of these.
    """
    found: list[SparkEvolveError] = list(_problems(node, given, fields, _own_first(config)))
    if config.get("materialized") in ("incremental", "snapshot"):
        said = [error.setting for error in found if isinstance(error, ModelConfigError)]
        others = _problems_of_a_load(node, config)
        found += [e for e in others if not (isinstance(e, ModelConfigError) and e.setting in said)]
    raise_all(found, node)


def _problems_of_a_load(node: str, config: Mapping[str, Any]) -> Sequence[SparkEvolveError]:
    """Return what is wrong with the settings of a model or snapshot that is loaded.

    Asked for here, since an error that a macro raises comes with the names of the macros.
    """
    try:
        IncrementalSettings.check(config, node)  # type: ignore[arg-type]
    except ModelSettingsError as exc:
        return exc.errors
    except (ModelSettingError, SettingsConflictError) as exc:
        return [exc]
    return ()


def _problems(
    node: str, given: Mapping[str, Any], fields: Iterable[str], config: Mapping[str, Any]
) -> Iterator[ModelConfigError]:
    known = {*KNOWN, *_OTHERS, *FOREIGN, *fields}
    for name in given:
        near = None if name in known or name in _OWN or name.startswith("_") else closest(name, known)
        if near in KNOWN and is_slip(name, str(near)):
            yield ModelConfigError(
                name, given[name], node, f"There is no such setting. {did_you_mean(str(near))}"
            )
    if config.get("sql_header"):
        yield ModelConfigError(
            "sql_header",
            config.get("sql_header"),
            node,
            "It is not run: Spark runs one statement in a call, and what it sets would stay for other "
            "models. Use `server_side_parameters` of the profile, or a pre_hook.",
        )
    for setting in DOCUMENTED:
        value, kind = config.get(setting.key), setting.kind
        if kind.is_checked_everywhere and value is not None and not kind.accepts(value):
            yield ModelConfigError(setting.key, value, node, kind.remedy)
    properties = config.get("tblproperties")
    for name in properties if isinstance(properties, Mapping) else ():
        if str(name).lower().startswith("sparkevolve."):
            yield ModelConfigError(
                "tblproperties", name, node, "Properties with this prefix are kept by sparkevolve itself."
            )
    if config.get("incremental_strategy") == Strategy.INSERT_OVERWRITE and config.get("partition_by") == []:
        yield ModelConfigError(
            "partition_by", [], node, "Leave it out if the whole table is to be overwritten."
        )
