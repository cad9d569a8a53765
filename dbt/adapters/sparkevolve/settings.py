"""The settings of an incremental model or a snapshot: what each may be, its default, and its documentation.

To add one, add a field to ``IncrementalSettings``, made with ``_setting``. A test asks for its row in the
table of the documentation.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from dbt.adapters.sparkevolve import setting_kinds
from dbt.adapters.sparkevolve.errors import (
    ModelSettingError,
    SettingsConflictError,
    SparkEvolveError,
    raise_all,
)
from dbt.adapters.sparkevolve.evolution import names
from dbt.adapters.sparkevolve.evolution.defaults import shown_default
from dbt.adapters.sparkevolve.evolution.table_properties import (
    COMMENT_PROPERTY,
    FORMAT_VERSION,
)
from dbt.adapters.sparkevolve.setting_kinds import Kind, Limit, RowAudit
from dbt.adapters.sparkevolve.variables import FREEZE_SCHEMA, is_on


class Strategy(str, Enum):
    """How a batch is brought into its table."""

    DELETE_INSERT = "delete+insert"
    APPEND = "append"
    MERGE = "merge"
    INSERT_OVERWRITE = "insert_overwrite"
    MICROBATCH = "microbatch"
    # Not for ``incremental_strategy``: what the run and the kind of node make of it.
    FULL_REFRESH = "full_refresh"
    SNAPSHOT = "snapshot"

    def __str__(self) -> str:
        return str(self.value)


STRATEGIES = (
    Strategy.DELETE_INSERT,
    Strategy.APPEND,
    Strategy.MERGE,
    Strategy.INSERT_OVERWRITE,
    Strategy.MICROBATCH,
)
"""The values of ``incremental_strategy``."""
KEYED = (Strategy.DELETE_INSERT, Strategy.MERGE)
"""The strategies that go by a ``unique_key``."""
KEYLESS = (Strategy.INSERT_OVERWRITE, Strategy.MICROBATCH)
"""The strategies that replace rows without a key."""
ADDING = ("append_new_columns", "append_new_columns_preserve")
"""The values of ``on_schema_change`` that add columns."""
SWITCHES = ("type_widening", "relax_not_null", "nested_evolution")
"""What may change in columns that are there; each is a setting of its own."""
ICEBERG = "iceberg"


class Config(Protocol):
    """A node's configuration: dbt's own object, or a mapping."""

    def get(self, name: str, default: Any = None, /) -> Any:
        """Return the value that the node has under a name."""


class ColumnProperties(Protocol):
    """What a model's properties say of a column: dbt's own object."""

    @property
    def extra(self) -> Mapping[str, Any]:
        """What dbt itself has no field for."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """The column's ``meta``, and that of its ``config``."""


OWN_META = "sparkevolve"
"""The key in a node's ``meta`` under which settings may stand: dbt v2 allows none that it does not know."""


class _OwnFirst:
    """A configuration in which ``meta.sparkevolve`` goes before what stands beside ``meta``."""

    def __init__(self, config: Config, own: Mapping[str, Any]) -> None:
        self._config = config
        self._own = own

    def get(self, name: str, default: Any = None, /) -> Any:
        """Return the value that the node has under a name."""
        return self._own[name] if name in self._own else self._config.get(name, default)


def own_first(config: Config, node: str) -> Config:
    """Return a configuration in which settings under ``meta.sparkevolve`` go first.

    Args:
        config: the node's.
        node: its id, for messages.

    Raises:
        ModelSettingError: what stands there is no mapping.
        SettingsConflictError: it has a name that is no setting.
    """
    meta = config.get("meta")
    own = meta.get(OWN_META) if isinstance(meta, Mapping) else None
    if own is None:
        return config
    if not isinstance(own, Mapping):
        raise ModelSettingError(
            f"meta.{OWN_META}", own, node, "It has to be a mapping of settings to values."
        )
    known = [setting.key for setting in (*SETTINGS.values(), FILE_FORMAT)]
    for name in own:
        if name not in known:
            raise SettingsConflictError(
                [str(name)],
                node,
                f"`meta.{OWN_META}` has `{name}` in {node}, which is no setting. Allowed are: "
                f"{', '.join(known)}.",
            )
    return _OwnFirst(config, own)


def _strategy(value: Any) -> Strategy:
    return Strategy(value or Strategy.APPEND)


_STRATEGY = setting_kinds.one_of(*map(str, STRATEGIES), read=_strategy)


@dataclass(frozen=True)
class Setting:
    """What a user may write under one key.

    Attributes:
        key: the name in the configuration.
        kind: what its values may be.
        default: what it is where it is not set.
        default_text: how the documentation shows that.
        meaning: what it is for, in one line of the documentation.
        other_key: another name of it, which goes before the key.
        second_key: another name of it, which goes after the key.
        strategies: those in which it has an effect; empty for all.
        null_is_unset: whether `null` means that it is not set, where a text such as `null` is a value.
    """

    key: str
    kind: Kind
    default: object
    default_text: str
    meaning: str
    other_key: str = ""
    strategies: tuple[Strategy, ...] = ()
    null_is_unset: bool = True
    second_key: str = ""

    def value(self, config: Config, node: str) -> Any:
        """Return the value that a configuration has, as the settings keep it.

        Args:
            config: the node's configuration.
            node: its id, for messages.

        Raises:
            ModelSettingError: it cannot be one.
        """
        other = config.get(self.other_key) if self.other_key else None
        value = other or config.get(self.key, self.default)
        if self.second_key and not value:
            value = config.get(self.second_key) or value
        if value is None and self.null_is_unset:
            value = self.default
        is_set = not (value is None and self.default is None)
        if is_set and not self.kind.accepts(value):
            raise ModelSettingError(self.key, value, node, self.kind.remedy)
        return self.kind.read(value)


def _setting(
    kind: Kind,
    default: object,
    default_text: str,
    meaning: str,
    *,
    key: str = "",
    other_key: str = "",
    strategies: tuple[Strategy, ...] = (),
    null_is_unset: bool = True,
    second_key: str = "",
) -> Any:
    """Return a field of ``IncrementalSettings`` that a user can set, under its own name or ``key``."""
    setting = Setting(
        key, kind, default, default_text, meaning, other_key, strategies, null_is_unset, second_key
    )
    return field(default_factory=lambda: kind.read(default), metadata={"setting": setting})


@dataclass(frozen=True, kw_only=True)
class IncrementalSettings:
    """How a model or a snapshot is loaded, all of it checked.

    What a user sets is described by each field's own text. Beside that:

    Attributes:
        adds_again: whether another run of the same batch adds its rows once more.
        is_sampled_empty: whether dbt has made what the model reads look empty, and the table keeps its rows.
        event_time_start: where the window of a microbatch begins; None for another strategy.
        event_time_end: where it ends, which is not in it.
        is_refreshed: whether the run may do what a full refresh may, as each batch of a refreshed model.
        add_columns: whether columns are added that only the model has.
        frozen: the names of the settings that are off only since ``on_schema_change`` is ``fail``.
        frozen_for: the id of the model or snapshot, if no schema may change in this run; empty if it may.
        bookkeeping: folded names of columns of the batch that are not for the table.
        keep_table_type: columns that are cast to the type that the table has, as dbt's own of a snapshot.
        defaults: all defaults of columns, by the name as it was written.
        contrary_defaults: what to say of columns that have two defaults.
        keep_defaults: whether the defaults that the table has may not change.
        row_audits: conditions that single rows have to meet; the other ones go to the dead letters.
        letter_key: the columns that tell a bad row's id, whatever the strategy goes by.
        merges: whether no two rows of a batch may have the same key.
        snapshot_columns: the names of dbt's own columns in a snapshot, by what dbt calls them.
        valid_to_current: the SQL of what dbt writes into a version that is valid; None for NULL.
        version_key: the SQL by which a snapshot finds the versions of a row; empty for a model.
    """

    on_schema_change: str = _setting(
        setting_kinds.one_of("ignore", "fail", *ADDING),
        "ignore",
        "`ignore`",
        "what happens to new and removed columns, see [below](#on_schema_change)",
        null_is_unset=False,
    )
    strategy: Strategy = _setting(  # noqa: RUF009  # it makes a field
        _STRATEGY,
        None,
        "`delete+insert` with a `unique_key`, else `append`",
        "also `merge`, `insert_overwrite` and `microbatch`, see [Strategies](strategies.md)",
        key="incremental_strategy",
    )
    unique_key: tuple[str, ...] = _setting(
        setting_kinds.KEY,
        None,
        "none",
        "a string or a list; any case, any name, with or without backticks. NULL equals NULL, and structs "
        "are compared by the names of their fields. It need not be unique: all rows of a key are replaced",
    )
    predicates: tuple[str, ...] = _setting(
        setting_kinds.CONDITIONS,
        None,
        "none",
        "a list of SQL conditions that limit which rows of the table are replaced, see "
        "[Strategies](strategies.md#incremental_predicates)",
        key="incremental_predicates",
        other_key="predicates",
        strategies=(*KEYED, Strategy.MICROBATCH),
    )
    merge_update_columns: tuple[str, ...] = _setting(
        setting_kinds.COLUMNS,
        None,
        "all",
        "the columns that `merge` updates in an existing row; any case. `delete+insert` with a key refuses "
        "it, since it replaces whole rows; elsewhere it has no effect, and a warning says so",
        strategies=(Strategy.MERGE,),
    )
    merge_exclude_columns: tuple[str, ...] = _setting(
        setting_kinds.COLUMNS,
        None,
        "none",
        "the columns that `merge` leaves as they are in an existing row; one of the two may be set",
        strategies=(Strategy.MERGE,),
    )
    removed_columns: str = _setting(
        setting_kinds.one_of("null", "keep"),
        "null",
        "`null`",
        "the value of a column that the model no longer returns, in rows that `delete+insert` replaces: "
        "NULL, or with `keep` the value in the replaced row, see "
        "[Strategies](strategies.md#removed_columns-keep)",
    )
    publish: str = _setting(
        setting_kinds.one_of("branch", "direct"),
        "branch",
        "`branch`",
        "everything that a run does becomes visible in one commit; `direct` writes statement by statement, "
        "see [Publication](publication.md)",
    )
    audits: tuple[str, ...] = _setting(
        setting_kinds.AUDITS,
        None,
        "none",
        "a list of SQL predicates that every loaded row must satisfy before it becomes visible; NULL does "
        "not satisfy one, see [Publication](publication.md#audits). `{sql: predicate, severity: row}` sets "
        "single rows aside with `on_bad_rows: dead_letter`",
    )
    on_bad_rows: str = _setting(
        setting_kinds.one_of("fail", "dead_letter"),
        "fail",
        "`fail`",
        "what happens to rows that cannot be placed in the table: the run fails, or with `dead_letter` they "
        "go to a table of their own and the others are loaded, see [Dead letters](dead-letters.md)",
        null_is_unset=False,
    )
    dead_letter_suffix: str = _setting(
        setting_kinds.SUFFIX,
        "_dlt",
        "`_dlt`",
        "what the name of that table has after the name of the model's",
        null_is_unset=False,
    )
    dead_letter_limit: Limit | None = _setting(  # noqa: RUF009  # it makes a field
        setting_kinds.MOST,
        None,
        "none",
        "how many rows of a batch may be bad: a number, or a part of the batch such as `'5%'`; with more the "
        "run fails, and nothing is published",
    )
    full_refresh_schema: str = _setting(
        setting_kinds.one_of("keep", "replace"),
        "keep",
        "`keep`",
        "what `--full-refresh` does with columns that the model no longer returns: they stay and are "
        "padded; `replace` takes the model's columns only",
    )
    type_widening: bool = _setting(
        setting_kinds.SWITCH,
        True,
        "`true`",
        "widen a column: `int` → `bigint`, `float` → `double`, `decimal(P,S)` → `decimal(P+n,S)` and "
        "nothing else; `false` refuses",
        null_is_unset=False,
    )
    relax_not_null: bool = _setting(
        setting_kinds.SWITCH,
        True,
        "`true`",
        "make a NOT NULL column optional when NULL has to be written into it; `false` refuses",
        null_is_unset=False,
    )
    nested_evolution: bool = _setting(
        setting_kinds.SWITCH,
        True,
        "`true`",
        "apply the same rules inside structs, lists and maps; `false` refuses a nested difference",
        null_is_unset=False,
    )
    unmappable_types: str = _setting(
        setting_kinds.one_of("string", "fail"),
        "string",
        "`string`",
        "a type that the table's format lacks (intervals, TIME, strings with a collation, VARIANT before "
        "version 3) is stored as string, with a warning; `fail` refuses",
        null_is_unset=False,
    )
    column_renames: Mapping[str, str] = _setting(
        setting_kinds.RENAMES,
        None,
        "none",
        "`{old: new}`: a rename that keeps the field id and all values; `{'address.zip': 'postcode'}` "
        "inside a struct; a name with a dot in it may stand in backticks. Has no effect once it is done. "
        "If the model returns the old name in a type that the column cannot take, that is a new column: "
        "[retire and replace](replace-a-type.md). Downstream readers that still use the old name are yours "
        "to change",
    )
    column_defaults: Mapping[str, object] = _setting(
        setting_kinds.DEFAULTS,
        None,
        "none",
        "`{status: \"'new'\"}`: defaults of columns, as SQL literals; also `default` of a column in the "
        "properties file, which goes before it, see [Column defaults](column-defaults.md)",
    )
    pad_with: str = _setting(
        setting_kinds.one_of("null", "default"),
        "null",
        "`null`",
        "what is written into a column that the model no longer returns: NULL, or with `default` the "
        "column's default if it has one, see [Column defaults](column-defaults.md#pad_with)",
    )
    commit_retries: int = _setting(
        setting_kinds.COUNT,
        4,
        "4",
        "how often a commit, of the schema or of the rows, is tried again when another writer was faster",
        null_is_unset=False,
    )
    tblproperties: Mapping[str, str] = _setting(
        setting_kinds.PROPERTIES,
        None,
        "format version 2, merge-on-read (not in version 1), the last 100 metadata files",
        "properties of the table; what is added or changed later is set by the next run, in the schema "
        "commit. None is removed, and a `format-version` other than the table's is refused. (In a full "
        "refresh with `replace` a higher one upgrades the table, and Spark refuses a lower one.)",
    )
    partition_by: tuple[str, ...] = _setting(
        setting_kinds.PARTS,
        None,
        "none",
        "a column, a transform such as `days(ts)`, or a list of these",
        second_key="partitioned_by",  # dbt-athena's name
    )
    clustered_by: tuple[str, ...] = _setting(
        setting_kinds.COLUMNS, None, "none", "with `buckets`, the columns whose hash tells a row's bucket"
    )
    buckets: str | None = _setting(
        setting_kinds.ANY, None, "none", "with `clustered_by`, the number of buckets"
    )
    location: str | None = _setting(
        setting_kinds.LOCATION,
        None,
        "where the catalog puts it",
        "the folder in which the table gets a folder of its name",
        key="location_root",
    )
    options: Mapping[str, object] = _setting(
        setting_kinds.OPTIONS, None, "none", "as in dbt-spark; `tblproperties` reach a table later too"
    )
    event_time: str | None = _setting(
        setting_kinds.COLUMN,
        None,
        "none",
        "with `microbatch`, the column that tells which rows are in the window of a batch",
    )
    adds_again: bool = False
    is_sampled_empty: bool = False
    event_time_start: datetime | None = None
    event_time_end: datetime | None = None
    is_refreshed: bool = False
    add_columns: bool = False
    frozen: tuple[str, ...] = ()
    frozen_for: str = ""
    bookkeeping: tuple[str, ...] = ()
    keep_table_type: tuple[str, ...] = ()
    defaults: Mapping[str, object] = field(default_factory=dict)
    contrary_defaults: tuple[str, ...] = ()
    keep_defaults: bool = False
    row_audits: tuple[str, ...] = ()
    letter_key: tuple[str, ...] = ()
    merges: bool = False
    snapshot_columns: Mapping[str, str] = field(default_factory=dict)
    valid_to_current: str | None = None
    version_key: tuple[str, ...] = ()

    @property
    def may_be_replaced(self) -> bool:
        """Whether `full_refresh_schema: replace` would do what the run is refused."""
        return self.strategy == Strategy.FULL_REFRESH and not self.frozen_for

    @classmethod
    def from_config(
        cls,
        config: Config,
        node: str,
        *,
        full_refresh: bool = False,
        full_refresh_flag: bool | None = None,
        is_empty: bool = False,
        location: str | None = None,
        is_running: bool = True,
        freezes_schema: object = False,
        columns: Mapping[str, ColumnProperties] | None = None,
    ) -> "IncrementalSettings":
        """Return the settings of a model, all of them checked.

        Args:
            config: the model's configuration.
            node: its id, for messages.
            full_refresh: whether the run replaces all rows of the table.
            full_refresh_flag: whether dbt was called with `--full-refresh`; of a microbatch model only the
                first batch is one.
            is_empty: whether dbt was called with `--empty`.
            location: where the model's table is to be; None if the catalog chooses.
            is_running: whether the model runs now; if not, a microbatch model has no window.
            freezes_schema: the variable ``FREEZE_SCHEMA``, unchecked.
            columns: what the model's properties say of its columns.

        Raises:
            VariableError: that is neither true nor false.
            ModelSettingError: a value cannot be one.
            SettingsConflictError: settings contradict each other.
            ModelSettingsError: there is more than one of these.
        """
        config = own_first(config, node)
        start = config.get("__dbt_internal_microbatch_event_time_start")
        given = cls._given(config, node, has_window=start is not None or not is_running)

        strategy, docs = given.strategy, config.get(PERSIST_DOCS.key) or {}
        has_key = strategy in KEYED and bool(given.unique_key)
        # A full refresh of a microbatch model is one in its first batch only; the others may do as much.
        asked = config.get("full_refresh")
        asked = full_refresh_flag if asked is None else asked
        is_refreshed = bool(full_refresh or (strategy == Strategy.MICROBATCH and asked))
        # Under `fail` nothing of the table may change, but by a full refresh.
        is_frozen = given.on_schema_change == "fail" and not is_refreshed
        defaults, contrary = all_defaults(given.column_defaults, columns or {})
        row_audits = given._row_audits()
        frozen = tuple(name for name in SWITCHES if is_frozen and getattr(given, name))
        return replace(
            given,
            type_widening=given.type_widening and not is_frozen,
            relax_not_null=given.relax_not_null and not is_frozen,
            nested_evolution=given.nested_evolution and not is_frozen,
            frozen=frozen,
            defaults=defaults,
            contrary_defaults=contrary,
            keep_defaults=is_frozen,
            strategy=Strategy.FULL_REFRESH if full_refresh else strategy,
            audits=tuple(audit for audit in given.audits if audit not in row_audits),
            row_audits=row_audits,
            letter_key=given.unique_key if given.sets_aside else (),
            merges=given.sets_aside and strategy == Strategy.MERGE and has_key,
            unique_key=given.unique_key if has_key else (),
            location=location,
            tblproperties={
                name: text
                for name, text in given.tblproperties.items()
                # The description of the model is one.
                if name != COMMENT_PROPERTY or not docs.get("relation", False)
            },
            adds_again=(strategy == Strategy.APPEND or (strategy in KEYED and not has_key))
            and config.get("full_refresh") is not True
            and not is_empty,
            is_sampled_empty=is_empty and not full_refresh,
            event_time_start=start,
            event_time_end=config.get("__dbt_internal_microbatch_event_time_end"),
            is_refreshed=is_refreshed,
            frozen_for=node if is_on(FREEZE_SCHEMA, freezes_schema) else "",
            add_columns=is_refreshed or given.on_schema_change in ADDING,
        )

    @classmethod
    def check(cls, config: Config, node: str) -> None:
        """Raise what ``from_config`` would, but of a window, which not every run of a model has."""
        cls._given(own_first(config, node), node, has_window=True)

    @classmethod
    def _given(cls, config: Config, node: str, *, has_window: bool) -> "IncrementalSettings":
        """Return what the user has set, all of it checked, and nothing that follows from it."""
        found: list[SparkEvolveError] = []
        values = {}
        file_format = config.get(FILE_FORMAT.key) or ICEBERG
        if file_format != ICEBERG:
            found.append(ModelSettingError(FILE_FORMAT.key, file_format, node, f"Allowed are: {ICEBERG}."))
        for name, setting in SETTINGS.items():
            if name == "on_schema_change" and config.get(name) == "sync_all_columns":
                text = (
                    f"on_schema_change is 'sync_all_columns' in {node}, which means to drop columns, and "
                    f"sparkevolve never drops one. {setting.kind.remedy}"
                )
                found.append(SettingsConflictError([name], node, text))
                continue
            try:
                values[name] = setting.value(config, node)
            except ModelSettingError as exc:
                found.append(exc)
        raise_all(found, node)
        given = replace(cls(**values), strategy=Strategy(strategy_of(config)))
        conflicts = given._conflicts(node, has_window=has_window)
        raise_all([SettingsConflictError(settings, node, text) for settings, text in conflicts], node)
        return given

    def _conflicts(self, node: str, *, has_window: bool) -> Iterator[tuple[Sequence[str], str]]:
        """Yield settings that contradict each other, and what to say of them."""
        if self.strategy == Strategy.MICROBATCH and not has_window:
            yield (
                ["incremental_strategy"],
                f"incremental_strategy is 'microbatch' in {node}, and dbt runs the model as a whole and not "
                "batch by batch, since the project or a package has a macro "
                "`get_incremental_microbatch_sql`. sparkevolve does not use it: remove it, or set the flag "
                "`require_batched_execution_for_custom_microbatch_strategy` in dbt_project.yml.",
            )
        if self.removed_columns == "keep" and self.strategy in (
            Strategy.INSERT_OVERWRITE,
            Strategy.MICROBATCH,
        ):
            yield (
                ["removed_columns", "incremental_strategy"],
                f"removed_columns is 'keep' in {node}, but {self.strategy} replaces rows without a key, so "
                "there is no previous value to keep. Use incremental_strategy 'delete+insert' or 'merge'.",
            )
        if self.sets_aside and node.startswith("snapshot."):
            yield (
                ["on_bad_rows"],
                f"on_bad_rows is 'dead_letter' in {node}, and a snapshot has no dead letters: a row without "
                "its version would look deleted in the next run. Leave it out.",
            )
        if set(self.audits) - set(self._row_audits()) and self.publish == "direct":
            yield (
                ["audits", "publish"],
                f"audits are set in {node}, but publish is 'direct': rows would be visible before they are "
                "checked. Set publish to 'branch'.",
            )
        both = [name for name in ("merge_update_columns", "merge_exclude_columns") if getattr(self, name)]
        if len(both) > 1:
            yield both, f"{' and '.join(both)} are both set in {node}. Set one of them."
        if both and self.strategy == Strategy.DELETE_INSERT and self.unique_key:
            yield (
                [both[0], "incremental_strategy"],
                f"{both[0]} is set in {node}, but delete+insert replaces whole rows: columns that are to "
                "stay as they are would be overwritten. Set incremental_strategy to 'merge'.",
            )

    def for_snapshot(
        self,
        columns: Mapping[str, str],
        key: str | Sequence[str] | None,
        valid_to_current: str | None,
        node: str,
    ) -> "IncrementalSettings":
        """Return the settings of a snapshot, which preserves: it adds what is new and keeps what is gone.

        Its changes follow from what the table has, so they are published only if that is so still.

        Args:
            columns: the names of dbt's own columns, by what dbt calls them.
            key: the snapshot's ``unique_key``; each part of a composite one comes as a column.
            valid_to_current: the SQL of what dbt writes into a version that is valid; None for NULL.
            node: the snapshot's id, for messages.

        Raises:
            SettingsConflictError: one of dbt's own columns is to be renamed, or another one to its name.
        """
        own = {names.fold(name): name for name in columns.values()}
        for old, new in self.column_renames.items():
            wanted = [str(old)] if "." in str(old) else [str(old), str(new)]
            found = next((own[n] for n in (names.fold(names.unquote(w)) for w in wanted) if n in own), None)
            if found is not None:
                raise SettingsConflictError(
                    ["column_renames"],
                    node,
                    f"`column_renames` of {node} wants {old} to become {new}, and {names.quote(found)} is a "
                    "column of dbt's own, which it finds by its name. Nothing was written. Take that rename "
                    "out. For a new snapshot, `snapshot_meta_column_names` gives such columns other names.",
                )
        # dbt numbers the parts of a list, of however many; a column of the source may have any other name.
        parts = tuple(key) if isinstance(key, list | tuple) else ()
        keys = [f"dbt_unique_key_{number}" for number, _ in enumerate(parts, start=1)] or ["dbt_unique_key"]
        return replace(
            self,
            strategy=Strategy.SNAPSHOT,
            snapshot_columns=columns,
            valid_to_current=valid_to_current,
            adds_again=False,
            audits=(),
            on_schema_change="append_new_columns",
            unique_key=(),
            version_key=tuple(map(str, parts or filter(None, [key]))),
            add_columns=True,
            bookkeeping=("dbt_change_type", *keys),
            # A batch of changes has no window, and needs no bounds of a time.
            event_time=None,
            keep_table_type=tuple(
                columns[name] for name in ("dbt_updated_at", "dbt_valid_from", "dbt_valid_to")
            ),
        )

    @property
    def sets_aside(self) -> bool:
        """Whether rows that cannot be placed go to the dead letters, and the others are loaded."""
        return self.on_bad_rows == "dead_letter"

    def _row_audits(self) -> tuple[str, ...]:
        return tuple(a for a in self.audits if self.sets_aside and isinstance(a, RowAudit))

    @property
    def keeps_removed(self) -> bool:
        """Whether what the model no longer returns is read again from the rows that the batch replaces."""
        return self.strategy == Strategy.DELETE_INSERT and self.removed_columns == "keep"

    @property
    def format_version(self) -> int | None:
        """The version of Iceberg's table format that a new table gets; None if the model does not say."""
        text = self.tblproperties.get(FORMAT_VERSION, "").strip()
        return int(text) if text.isascii() and text.isdigit() else None

    @property
    def limits(self) -> tuple[str, ...]:
        """The conditions that rows of the table have to meet beside that, where a strategy finds some."""
        return self.predicates if self.replacing[0] else ()

    @property
    def replacing(self) -> tuple[tuple[str, ...], str]:
        """The columns by which a batch replaces rows, and the setting that names them."""
        if self.strategy == Strategy.MICROBATCH:
            return ((self.event_time,) if self.event_time else ()), "event_time"
        return self.unique_key, "unique_key"


def of_flags(flags: Any) -> dict[str, Any]:
    """Return what dbt's flags say of a run, as ``IncrementalSettings.from_config`` takes it."""
    return {"full_refresh_flag": flags.FULL_REFRESH, "is_empty": bool(flags.EMPTY)}


def strategy_of(config: Config | Mapping[str, Any]) -> str:
    """Return how a model is loaded, unchecked: with a key and no strategy named, rows are replaced by it."""
    given = config.get("incremental_strategy")
    if given is None:
        return Strategy.DELETE_INSERT if config.get("unique_key") else Strategy.APPEND
    return str(given)


def all_defaults(
    configured: Mapping[str, object], columns: Mapping[str, ColumnProperties]
) -> tuple[dict[str, object], tuple[str, ...]]:
    """Return the defaults of a model's columns, and what to say of those that have two.

    Args:
        configured: ``column_defaults``.
        columns: what the model's properties say of its columns, by name. A default stands in a column's
            ``default``, or in ``default`` of its ``meta``; the first goes before the second, and both before
            ``column_defaults``.
    """
    found: dict[str, tuple[str, str, object]] = {}
    contrary = []

    def add(name: str, place: str, default: object) -> None:
        folded = names.fold(names.unquote(name))
        _, first, used = found.setdefault(folded, (name, place, default))
        if type(used) is not type(default) or used != default:
            contrary.append(
                f"{names.quote(names.unquote(name))} has two defaults: {shown_default(used)} in {first}, "
                f"which is taken, and {shown_default(default)} in {place}."
            )

    for name, column in columns.items():
        if "default" in column.extra:
            add(name, "`default` of the column", column.extra["default"])
        if "default" in column.meta:
            add(name, "`meta` of the column", column.meta["default"])
    for name, default in configured.items():
        add(str(name), "`column_defaults`", default)
    return {name: default for name, _, default in found.values()}, tuple(contrary)


def _settings_of(cls: type) -> dict[str, Setting]:
    found = {}
    for f in fields(cls):
        if "setting" in f.metadata:
            found[f.name] = replace(f.metadata["setting"], key=f.metadata["setting"].key or f.name)
    return found


SETTINGS = _settings_of(IncrementalSettings)
"""What a user can set, by the name of the field."""

FILE_FORMAT = Setting(
    "file_format",
    setting_kinds.FORMAT,
    ICEBERG,
    "`iceberg`",
    "required by an incremental model; others may use another one",
)
PERSIST_DOCS = Setting(
    "persist_docs",
    setting_kinds.DOCS,
    None,
    "none",
    "`{relation: true, columns: true}`: store the descriptions in the table",
)
DOCUMENTED = (*SETTINGS.values(), FILE_FORMAT, PERSIST_DOCS)
"""All settings that are described here, in the order of the documentation."""
