"""The part of the adapter that begins a node and ends it: pre-hooks, grants, descriptions, post-hooks."""

import dataclasses
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from multiprocessing.context import SpawnContext
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve import model_config
from dbt.adapters.sparkevolve.errors import (
    AfterLoadError,
    CloneError,
    ConnectionLostError,
    GrantsError,
    RunCancelledError,
    TableGoneError,
    UnplannableError,
)
from dbt.adapters.sparkevolve.evolution import names
from dbt.adapters.sparkevolve.load.incremental import IncrementalAdapter
from dbt.adapters.sparkevolve.load.outcome import Outcome, steps_of
from dbt.adapters.sparkevolve.messages import is_grant_unknown, is_relation_not_found
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from dbt.adapters.sparkevolve.sql import branch_statements, splitting

if TYPE_CHECKING:
    import agate

logger = AdapterLogger("SparkEvolve")

_PRIVILEGE = re.compile(r"[A-Za-z][A-Za-z_]*(?: [A-Za-z_]+)*")
# First words of statements that change no table, view or file.
_READING = frozenset(
    {"SET", "RESET", "USE", "SELECT", "VALUES", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "REFRESH"}
)
_IS_INCREMENTAL = "macro.dbt.is_incremental"


class FinishingAdapter(IncrementalAdapter):
    """The part of the adapter that begins a node after its pre-hooks, and ends it."""

    def __init__(self, config: Any, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        self._warned: set[str] = set()

    # How the node is configured

    def pre_model_hook(self, config: Any) -> None:
        """Check a node's configuration before anything of it runs.

        Raises:
            ModelConfigError: a name is a near miss of a setting, or a value cannot be one.
        """
        super().pre_model_hook(config)
        node = config.model
        if str(node.resource_type) not in ("model", "snapshot", "seed"):
            return
        given = dict(node.config._extra)
        fields = [field.name for field in dataclasses.fields(node.config)]
        if given.get("partitioned_by") and not given.get("partition_by"):
            # dbt-athena's name of it.
            node.config["partition_by"] = given["partitioned_by"]
        model_config.check(node.unique_id, given, fields, node.config)

    @available.parse_none
    def incremental_settings(
        self, config: Any, full_refresh: bool, flags: Any, location: str | None = None
    ) -> IncrementalSettings:
        """Return the settings of the model or snapshot that runs, all of them checked.

        Args:
            config: dbt's object of its configuration.
            full_refresh: whether the run replaces all rows of the table.
            flags: dbt's flags.
            location: where the model's table is to be; None if the catalog chooses.

        Raises:
            ModelSettingError: a value cannot be one.
            SettingsConflictError: settings contradict each other.
        """
        return IncrementalSettings.from_config(
            config,
            config.model.unique_id,
            full_refresh=full_refresh,
            full_refresh_flag=flags.FULL_REFRESH,
            is_empty=bool(flags.EMPTY),
            location=location,
        )

    @available.parse(lambda *a, **k: [])
    def settings_without_effect(
        self, node: str, given: Collection[str], strategy: str | None = None
    ) -> list[str]:
        """Return what to say, once, of the settings of a node that other adapters or strategies know.

        Args:
            node: its id.
            given: the names of all its settings that have a value.
            strategy: how an incremental model is loaded, None for another node.
        """
        if node in self._warned:
            return []
        self._warned.add(node)
        found = model_config.settings_without_effect(given)
        if strategy is not None:
            found += model_config.settings_without_effect_in(strategy, given)
        return found

    # What is there now

    @available.parse_none
    def current_relation(self, relation: SparkEvolveRelation) -> SparkEvolveRelation | None:
        """Return what the catalog has under a name now, and let dbt's cache know it.

        dbt looks at its schemas once, before any hook runs; hooks and other writers drop and make relations
        after that.
        """
        cached = self.get_relation(str(relation.database), str(relation.schema), str(relation.identifier))
        found, self._node.table = self.relation_now(
            relation, was_view=cached is not None and bool(cached.is_view)
        )
        if _kind(found) != _kind(cached):
            if cached is not None:
                self.cache_dropped(cached)
            if found is not None:
                self.cache_added(found)
        return found  # type: ignore[return-value]  # of the adapter's own class

    @available.parse_none
    def note_gone(self, relation: SparkEvolveRelation, macros: Collection[str]) -> None:
        """Note that dbt compiled a model as incremental, and that its table is not there any more.

        Args:
            relation: the model's table.
            macros: the ids of the macros that the model's SQL calls.

        Raises:
            TableGoneError: the model asks whether it is incremental, so it returns too few rows.
        """
        if self._calls(macros, _IS_INCREMENTAL):
            raise TableGoneError(str(relation))
        logger.info(f"{relation} has been dropped or replaced since dbt compiled its model: it is made again")
        self._node.gone = relation

    def _calls(self, macros: Collection[str], wanted: str) -> bool:
        """Tell whether macros are, or call, the one with the id ``wanted``."""
        resolver = self.get_macro_resolver()
        known = getattr(resolver, "macros", {})
        seen: set[str] = set()
        waiting = list(macros)
        while waiting:
            macro = waiting.pop()
            if macro == wanted:
                return True
            if macro not in seen and macro in known:
                seen.add(macro)
                waiting.extend(known[macro].depends_on.macros)
        return False

    @available.parse_none
    def check_clone(
        self,
        relation: SparkEvolveRelation,
        existing: SparkEvolveRelation | None,
        original: SparkEvolveRelation,
    ) -> None:
        """See whether a view onto ``original`` can be made under the name ``relation``.

        Raises:
            CloneError: a table is there, which would have to be dropped, or it is the original itself.
        """
        if relation.render() == original.render():
            raise CloneError(str(relation), "it is the relation that is to be cloned.")
        if existing is not None and not existing.is_view:
            raise CloneError(
                str(relation),
                "a table is there, with its columns, rows and history. Drop it by hand if nobody needs it.",
            )

    @available.parse_none
    def check_plannable(self, relation: SparkEvolveRelation, hook: str) -> None:
        """See whether a pre-hook can run though nothing may be changed.

        Raises:
            UnplannableError: it may change something.
        """
        words = [splitting.first_word(statement) for statement in splitting.split_statements(hook)]
        if any(word not in _READING for word in words):
            raise UnplannableError(str(relation), hook.strip())

    # What is done after the load

    @available.parse_none
    def check_grants(self, relation: SparkEvolveRelation, grants: Mapping[str, Any] | None) -> None:
        """See whether a model's grants can be applied, before anything is built.

        Raises:
            GrantsError: Spark has no GRANT, or a privilege is no word of SQL.
        """
        if not grants:
            return
        for privilege in grants:
            if not _PRIVILEGE.fullmatch(privilege):
                raise GrantsError(
                    str(relation), f"{privilege!r} is no privilege, which are words such as `select`."
                )
        try:
            super().execute(f"EXPLAIN GRANT SELECT ON TABLE {relation} TO {names.quote('nobody')}")
        except DbtRuntimeError as exc:
            # Any other answer, such as of an extension that cannot explain a GRANT, leaves it to the GRANT.
            if is_grant_unknown(str(exc)):
                raise GrantsError(
                    str(relation),
                    "this Spark has no GRANT (its parser does not know the statement; an authoriser such as "
                    "Ranger's brings one along). Take `grants` out of the model's configuration, and grant "
                    "in the catalog.",
                ) from exc

    @available.parse_none
    def rows_are_visible(
        self,
        relation: SparkEvolveRelation,
        *,
        adds_again: bool = False,
        is_refreshed: bool = False,
        docs: bool = False,
        grants: bool = False,
        hooks: Sequence[object] = (),
    ) -> None:
        """Note that readers see what this node has made, and what it still has to do."""
        self._node.outcome = Outcome(
            str(relation), adds_again, is_refreshed, steps_of(docs=docs, grants=grants, hooks=hooks)
        )

    @available.parse_none
    def begin_step(self, step: str) -> None:
        """Note what the node does next; what comes before it is done."""
        if self._node.outcome is not None:
            self._node.outcome.begin(step)

    @available.parse_none
    def refresh_published(self, relation: SparkEvolveRelation) -> None:
        """Let Spark see what was published. A new connection sees it anyway, so a lost one is no failure."""
        try:
            self.execute(branch_statements.refresh_table(str(relation)))
        except AfterLoadError as exc:
            if not isinstance(exc.__cause__, ConnectionLostError):
                raise
            logger.debug(f"The connection was lost after the batch was published: {exc.__cause__}")
            self.connections.reconnect()

    @available.parse(lambda *a, **k: ("", None))
    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> "tuple[Any, agate.Table]":
        """Run a statement, and say in its error what has been done before it."""
        try:
            answer: tuple[Any, agate.Table] = super().execute(sql, auto_begin, fetch, limit)
            return answer
        except DbtRuntimeError as exc:
            explained = self._explained(exc, sql)
            if explained is exc:
                raise
            raise explained from exc

    def post_model_hook(self, config: Any, context: Any) -> None:
        """Clean up after a node, and say in its error, if it has one, what had been done."""
        exc = sys.exc_info()[1]
        explained = self._explained(exc) if isinstance(exc, Exception) else exc
        super().post_model_hook(config, context)
        if explained is not None and explained is not exc:
            raise explained from exc

    def _explained(self, exc: Exception, sql: str = "") -> Exception:
        """Return an error that says, beside what went wrong, what had been done before; or the same one."""
        node = self._node
        if isinstance(exc, AfterLoadError | RunCancelledError):
            # They say what readers see.
            return exc
        if isinstance(exc, ConnectionLostError) and node.outcome is None:
            # Whether the statement has taken effect nobody knows, and the error says so.
            return exc
        text = str(getattr(exc, "msg", "") or exc) or type(exc).__name__
        if node.outcome is not None:
            return node.outcome.error(text)
        load = node.load
        if load is not None and not load.is_published and sql.strip() in load.statements[1:]:
            return DbtRuntimeError(
                f"{text}\nThe model's `publish` is 'direct', so the statement before this one has taken "
                f"effect: readers of {load.target} do not see the rows that this run was to replace until it "
                "runs again."
            )
        if node.gone is not None and is_relation_not_found(text):
            return DbtRuntimeError(
                f"{text}\n{node.gone} was there when dbt compiled the model, and has been dropped or "
                "replaced since, by a hook of this run or by another writer. Nothing was loaded."
            )
        return exc


def _kind(relation: BaseRelation | None) -> tuple[str, bool] | None:
    """Return what dbt's cache knows of a relation: its type, and whether it is an Iceberg table."""
    if relation is None:
        return None
    return str(relation.type), bool(getattr(relation, "is_iceberg", False))
