"""What run-operations share: their arguments, and the node of the project that one is about.

A macro that a user calls with ``dbt run-operation`` has an entry in ``OPERATIONS``, and begins with the
macros ``sparkevolve__arguments`` and ``sparkevolve__node_named``, which lead here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dbt.adapters.sparkevolve.errors import OperationError
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.setting_kinds import Kind
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from dbt.adapters.sparkevolve.suggestions import closest, did_you_mean
from dbt.adapters.sparkevolve.variables import switch, whole_number
from dbt.adapters.sparkevolve.yaml_values import has_json, key_in_json, yaml_text

_KINDS = ("model", "snapshot", "seed")
_LONGEST_PAUSE = 86_400.5
_WITHOUT_TABLE = {
    "ephemeral": "is ephemeral, so it has no table",
    "view": "is a view, and views have no rows or history of their own",
    "materialized_view": "is a materialized view, which sparkevolve does not build",
}


@dataclass(frozen=True)
class Argument:
    """An argument of a run-operation.

    Attributes:
        name: the name under which it stands in ``--args``.
        kind: what its values may be.
        default: what it is where it is not given.
        is_required: whether it has to be given.
        example: a value, as a message shows it.
    """

    name: str
    kind: Kind
    default: Any = None
    is_required: bool = False
    example: str = "…"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _is_name(value: object) -> bool:
    return _is_text(value) or (isinstance(value, int) and not isinstance(value, bool))


def _is_field_id(value: object) -> bool:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return (is_number and int(str(value)) > 0) or (isinstance(value, str) and value.isdecimal())


NAME_OF_NODE = Kind(_is_name, "the name of a model, snapshot or seed", str)


def _is_sql(value: object) -> bool:
    return isinstance(value, str | int | float) and str(value).strip() != ""


def _sql(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _is_count(value: object) -> bool:
    return (whole_number(value) or 0) > 0


def _is_seconds(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    try:
        return 0 <= float(value) < _LONGEST_PAUSE
    except ValueError:
        return False


def _names_listed(value: Any) -> tuple[str, ...]:
    return (str(value),) if isinstance(value, str | int) else tuple(str(name) for name in value)


def _are_names(value: object) -> bool:
    return _is_name(value) or (isinstance(value, list) and len(value) > 0 and all(map(_is_name, value)))


_SQL = Kind(
    _is_sql,
    "an SQL expression over the columns of a row, as text: what is no text in YAML goes in quotes, as in "
    "\"date '2024-01-15'\"",
    _sql,
)
_NODES = Kind(_are_names, "the name of a model, snapshot or seed, or a list of names", _names_listed)
_COLUMNS = Kind(_are_names, "the name of a column, or a list of names", _names_listed)
_COUNT = Kind(_is_count, "a whole number from 1", int)
_SECONDS = Kind(_is_seconds, "a number of seconds from 0 to a day", float)
_SWITCH = Kind(lambda value: switch(value) is not None, "true or false", switch)


def _message_id(value: Any) -> str:
    return value if isinstance(value, str) else key_in_json(value)


def _is_message_id(value: object) -> bool:
    return _is_text(value) or (isinstance(value, Mapping) and has_json(value))


def _are_message_ids(value: object) -> bool:
    listed = value if isinstance(value, list) else [value]
    return len(listed) > 0 and all(map(_is_message_id, listed))


def _message_ids(value: Any) -> tuple[str, ...]:
    return tuple(map(_message_id, value if isinstance(value, list) else [value]))


_ID = Kind(_is_text, "the id of a dbt command", str)
_MESSAGE_IDS = Kind(
    _are_message_ids,
    "a messageId as the dead letters have it, as text or as a mapping, or a list of them; what YAML writes "
    "otherwise than its text has it, as that text: '{\"price\":1.0E20}'",
    _message_ids,
)

MODEL = Argument("model", NAME_OF_NODE, is_required=True, example="orders")

# The name of a column, or the dotted path of a field in one.
COLUMN = Argument("column", Kind(_is_name, "the name of a column", str), is_required=True, example="status")
PLAN_ONLY = Argument("plan_only", _SWITCH, False)
FIELD_ID = Argument("field_id", Kind(_is_field_id, "a field id, such as 7", int))

OPERATIONS: dict[str, tuple[Argument, ...]] = {
    "schema_history": (MODEL,),
    "schema_page": (
        Argument("models", _NODES, ()),
        Argument("path", Kind(_is_text, "the path of a file", str), ""),
    ),
    "restore_column": (MODEL, COLUMN, FIELD_ID, PLAN_ONLY),
    "backfill_column": (
        MODEL,
        COLUMN,
        Argument("value", _SQL, is_required=True, example="\"'unknown'\""),
        Argument("where", _SQL, ""),
        Argument("batch_by", _COLUMNS, ()),
        Argument("rows_per_batch", _COUNT),
        Argument("pause_seconds", _SECONDS, 0.0),
        Argument("max_batches", _COUNT),
        Argument("only_null", _SWITCH, True),
        PLAN_ONLY,
        Argument("restart", _SWITCH, False),
    ),
    "replay_dead_letters": (
        MODEL,
        Argument("where", _SQL, ""),
        Argument("invocation_id", _ID, ""),
        Argument("message_ids", _MESSAGE_IDS, ()),
        Argument("limit", _COUNT),
        Argument("overwrite", _SWITCH, False),
        PLAN_ONLY,
    ),
}
"""What each run-operation may be given."""


@dataclass(frozen=True)
class NamedNode:
    """A model, snapshot or seed of the project that has a table of its own.

    Attributes:
        unique_id: dbt's id of it.
        relation: its table, which need not be there.
        config: its configuration, by name.
        columns: what the properties file says of its columns, by name.
        freezes_schema: dbt's variable `sparkevolve_freeze_schema`, unchecked.
    """

    unique_id: str
    relation: SparkEvolveRelation
    config: dict[str, Any]
    columns: Mapping[str, Mapping[str, Any]]
    freezes_schema: object = False

    @cached_property
    def settings(self) -> IncrementalSettings:
        """Its settings, as a run of it would have them, but for the window of a microbatch.

        Raises:
            VariableError: whether schemas are frozen is neither true nor false.
            ModelSettingError: a value cannot be one.
            SettingsConflictError: settings contradict each other.
        """
        return IncrementalSettings.from_config(
            self.config,
            self.unique_id,
            is_running=False,
            freezes_schema=self.freezes_schema,
            columns={name: _Column(given, given.get("meta") or {}) for name, given in self.columns.items()},
        )


@dataclass(frozen=True)
class _Column:
    """What the properties of a node say of a column, as dbt's ``graph`` has it.

    Attributes:
        extra: all of it: what dbt has no field for stands beside what it has one for.
        meta: its ``meta``.
    """

    extra: Mapping[str, Any]
    meta: Mapping[str, Any]


class Operations:
    """What the macros of run-operations ask first.

    Args:
        catalog: the name of the profile's catalog.
        disabled: dbt's nodes that are switched off, by id.
    """

    def __init__(self, catalog: str, disabled: Mapping[str, Iterable[Any]]) -> None:
        self._catalog = catalog
        self._disabled = disabled

    def arguments(self, operation: str, given: Mapping[str, Any], plans_only: bool = False) -> dict[str, Any]:
        """Return the arguments of a run-operation by name, all of them, as their kinds read them.

        Args:
            operation: its name.
            given: what the user has given; None is not given.
            plans_only: whether a variable says that nothing is to be done but to plan.

        Raises:
            OperationError: one is unknown or missing, or its value cannot be one.
        """
        known = OPERATIONS[operation]
        names = [argument.name for argument in known]
        for name in given:
            if name not in names:
                near = closest(str(name), names)
                raise OperationError(
                    f"`{operation}` has no argument `{name}`. "
                    + (f"{did_you_mean(near)} " if near else "")
                    + f"Its arguments are: {', '.join(names)}."
                )
        found = {}
        for argument in known:
            value = given.get(argument.name)
            if value is None and argument.is_required:
                raise OperationError(self._missing(operation, argument))
            if value is not None and not argument.kind.accepts(value):
                raise OperationError(
                    f"The argument `{argument.name}` of `{operation}` is {yaml_text(value)}, and has to be "
                    f"{argument.kind.wanted}."
                )
            found[argument.name] = argument.default if value is None else argument.kind.read(value)
        if PLAN_ONLY in known:
            found[PLAN_ONLY.name] = found[PLAN_ONLY.name] or plans_only
        return found

    @staticmethod
    def _missing(operation: str, argument: Argument) -> str:
        needed = [other for other in OPERATIONS[operation] if other.is_required]
        example = ", ".join(f"{other.name}: {other.example}" for other in needed)
        how = f"--args '{{{example}}}'."
        if argument is MODEL:
            return f"Name a model, snapshot or seed: {how}"
        return f"`{operation}` needs the argument `{argument.name}`: {how}"

    def node_named(self, graph: Mapping[str, Any], name: str, freezes_schema: object = False) -> NamedNode:
        """Return the node of the project that a user has named.

        Args:
            graph: dbt's ``graph``.
            name: its name, with its package (``package.orders``) where several have one of that name; of a
                versioned model, the latest version's, or another's as in ``orders.v1``. dbt's id of it will
                do, too.
            freezes_schema: dbt's variable `sparkevolve_freeze_schema`.

        Raises:
            OperationError: there is none, there are several, or it has no table.
        """
        nodes = [n for n in graph.get("nodes", {}).values() if n["resource_type"] in _KINDS]
        found = _latest([node for node in nodes if name in _names(node)])
        if not found:
            raise OperationError(self._unknown(name, nodes))
        if len(found) > 1:
            choices = ", ".join(sorted(f"`{_full_name(node)}`" for node in found))
            raise OperationError(
                f"Several nodes of this project are named '{name}'. Say which one is meant: {choices}."
            )
        node = found[0]
        reason = _WITHOUT_TABLE.get(str(node["config"].get("materialized")))
        if reason is not None:
            raise OperationError(f"{node['unique_id']} {reason}. Name a node that is built as a table.")
        return self._of(node, freezes_schema)

    def nodes_named(self, graph: Mapping[str, Any], names: Iterable[str]) -> list[NamedNode]:
        """Return the nodes that a user has named; without names all whose tables evolve, by their ids.

        Args:
            graph: dbt's ``graph``.
            names: see ``node_named``.

        Raises:
            OperationError: see ``node_named``.
        """
        given = list(dict.fromkeys(names))
        if given:
            return [self.node_named(graph, name) for name in given]
        nodes = sorted(graph.get("nodes", {}).values(), key=lambda node: str(node["unique_id"]))
        return [self._of(node) for node in nodes if _evolves(node)]

    def _of(self, node: Mapping[str, Any], freezes_schema: object = False) -> NamedNode:
        return NamedNode(
            node["unique_id"],
            SparkEvolveRelation.create(
                database=node.get("database") or self._catalog,
                schema=node["schema"],
                identifier=node["alias"],
                type=SparkEvolveRelation.Table,
            ),
            node["config"],
            node.get("columns") or {},
            freezes_schema,
        )

    def _unknown(self, name: str, nodes: Iterable[Mapping[str, Any]]) -> str:
        for listed in self._disabled.values():
            for node in listed:
                known = {key: getattr(node, key, None) for key in (*_IDENTITY, "resource_type")}
                if str(known["resource_type"]) in _KINDS and name in _names(known):
                    return (
                        f"{known['unique_id']} is disabled (`enabled: false`), so dbt does not say where its "
                        "table is. Enable it first."
                    )
        near = closest(name, sorted({known for node in nodes for known in _names(node)}))
        return f"There is no model, snapshot or seed named '{name}' in this project." + (
            f" {did_you_mean(near)}" if near else ""
        )


def _evolves(node: Mapping[str, Any]) -> bool:
    kind, materialized = str(node["resource_type"]), str(node["config"].get("materialized"))
    return kind == "snapshot" or (kind == "model" and materialized == "incremental")


_IDENTITY = ("unique_id", "name", "package_name", "version", "latest_version")


def _names(node: Mapping[str, Any]) -> set[str]:
    """Return all names by which a user may call a node."""
    short = {str(node["name"])}
    if node.get("version") is not None:
        short.add(f"{node['name']}.v{node['version']}")
    return {*short, *(f"{node['package_name']}.{name}" for name in short), str(node["unique_id"])}


def _full_name(node: Mapping[str, Any]) -> str:
    version = "" if node.get("version") is None else f".v{node['version']}"
    return f"{node['package_name']}.{node['name']}{version}"


def _latest(nodes: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return nodes without the older versions of a model of which there are several, as ``ref`` has it."""
    by_name: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for node in nodes:
        by_name.setdefault((node["package_name"], node["name"]), []).append(node)
    found = []
    for same in by_name.values():
        latest = [node for node in same if node.get("version") == node.get("latest_version")]
        found += latest if len(same) > 1 and latest else same
    return found
