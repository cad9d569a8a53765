"""What is checked of a node before it builds anything."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.errors import (
    CatalogLacksError,
    CloneError,
    ColumnsDifferError,
    FrozenSchemaError,
    GrantsError,
    TableGoneError,
    UnplannableError,
)
from dbt.adapters.sparkevolve.evolution import names
from dbt.adapters.sparkevolve.iceberg.capabilities import Kind
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs
from dbt.adapters.sparkevolve.messages import is_grant_unknown
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from dbt.adapters.sparkevolve.spark.interface import Spark
from dbt.adapters.sparkevolve.sql import splitting
from dbt.adapters.sparkevolve.variables import (
    FREEZE_SCHEMA,
    PLAN_ONLY,
    is_on,
    is_quoted_in,
    is_read_in,
    unread,
)

_PRIVILEGE = re.compile(r"[A-Za-z][A-Za-z_]*(?: [A-Za-z_]+)*")
# By which a model can tell whether its table is there, the one that says so for sure first.
_ASKS = ("macro.dbt.is_incremental", "macro.dbt.load_relation", "macro.dbt.load_cached_relation")
# A method of the adapter, of which dbt does not say who calls it.
_GET_RELATION = "get_relation"
# Names by which a macro may be called without its own.
_INDIRECT = frozenset({"context", "dispatch"})


class Checks:
    """What is checked of a node before it builds anything.

    Args:
        spark: where the node runs.
        macros: all macros of the project by id, as dbt's manifest has them.
        variables: the variables that are given and were not looked at yet, by name.
        folders: returns where the project and its packages are.
        catalogs: the catalogs that the profile states, of which PyIceberg knows; None where none is asked.
    """

    def __init__(
        self,
        spark: Spark,
        macros: Mapping[str, Any],
        variables: dict[str, Any] | None = None,
        folders: Callable[[], Iterable[Path]] = lambda: (),
        catalogs: Catalogs | None = None,
    ) -> None:
        self._spark = spark
        self._macros = macros
        self._variables = {} if variables is None else variables
        self._folders = folders
        self._catalogs = catalogs

    def is_in_stated_catalog(self, relation: SparkEvolveRelation) -> bool:
        """Tell whether a relation is in a catalog that the profile states."""
        return self._catalogs is None or self._catalogs.has(relation.database)

    def unread_variables(self, graph: Mapping[str, Any]) -> list[str]:
        """Return what to say, once, of variables that look like ours and that nobody reads.

        Args:
            graph: dbt's, with the nodes of the project.
        """

        def is_read(name: str) -> bool:
            nodes = (str(node.get("raw_code") or "") for node in graph.get("nodes", {}).values())
            macros = (str(macro.macro_sql) for macro in self._macros.values())
            if is_quoted_in(name, nodes) or is_quoted_in(name, macros):
                return True
            # Those of sources, of configurations and of disabled models are in no node.
            return any(is_read_in(name, folder) for folder in self._folders())

        given = dict(self._variables)
        self._variables.clear()
        return unread(given, is_read)

    def plans_only(self, value: object) -> bool:
        """Tell whether this run says what it would do, and does nothing.

        Args:
            value: dbt's variable `sparkevolve_plan_only`.

        Raises:
            VariableError: it is neither true nor false.
        """
        return is_on(PLAN_ONLY, value)

    def freezes_schema(self, value: object) -> bool:
        """Tell whether the schema of no table may change in this run.

        Args:
            value: dbt's variable `sparkevolve_freeze_schema`.

        Raises:
            VariableError: it is neither true nor false.
        """
        return is_on(FREEZE_SCHEMA, value)

    def frozen(self, relation: SparkEvolveRelation, node: str, changes: Sequence[str]) -> None:
        """Refuse to build a node whose table would get other columns, in a run that freezes schemas.

        Raises:
            FrozenSchemaError: it would.
        """
        if changes:
            raise FrozenSchemaError(str(relation), node, changes)

    @staticmethod
    def columns_differ(text: str) -> None:
        """Refuse a load into a table with other columns. An error of a macro would come with its callers.

        Raises:
            ColumnsDifferError: always.
        """
        raise ColumnsDifferError(text)

    def compiled_without_table(
        self, relation: SparkEvolveRelation, called: Collection[str], code: str, hooks: Iterable[str]
    ) -> None:
        """See whether a model that dbt compiled as incremental can be built though its table has gone since.

        Args:
            relation: the model's table.
            called: the ids of the macros that the model or its hooks call.
            code: the model as it is written, which may have the hooks in it.
            hooks: the hooks of the model as they are written.

        Raises:
            TableGoneError: the model asks whether it is incremental, so it returns too few rows; or it may
                have looked whether its table is there.
        """
        words = own_words(code, hooks)
        own = [macro for macro in called if macro.rpartition(".")[2] in words or words & _INDIRECT]
        reached = self._reached(own)
        texts = [self._macros[macro].macro_sql for macro in reached if not macro.startswith("macro.dbt.")]
        asked = [macro.rpartition(".")[2] for macro in _ASKS if macro in reached]
        if _GET_RELATION in words or any(_GET_RELATION in re.findall(r"\w+", text) for text in texts):
            asked.append(_GET_RELATION)
        if asked:
            raise TableGoneError(str(relation), asked[0])

    def grants(self, relation: SparkEvolveRelation, grants: Mapping[str, Any] | None) -> None:
        """See whether a model's grants can be applied.

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
            self._spark.run(f"EXPLAIN GRANT SELECT ON TABLE {relation} TO {names.quote('nobody')}")
        except DbtRuntimeError as exc:
            # Any other answer, such as of an extension that cannot explain a GRANT, leaves it to the GRANT.
            if is_grant_unknown(str(exc)):
                raise GrantsError(
                    str(relation),
                    "this Spark has no GRANT (its parser does not know the statement; an authoriser such as "
                    "Ranger's brings one along). Take `grants` out of the model's configuration, and grant "
                    "in the catalog.",
                ) from exc

    def clone(
        self,
        relation: SparkEvolveRelation,
        existing: SparkEvolveRelation | None,
        original: SparkEvolveRelation,
    ) -> None:
        """See whether a view onto ``original`` can be made under the name ``relation``.

        Raises:
            CloneError: a table is there, which would have to be dropped, or it is the original itself.
            CatalogLacksError: the catalog has no views.
        """
        if relation.render() == original.render():
            raise CloneError(str(relation), "it is the relation that is to be cloned.")
        if existing is not None and not existing.is_view:
            raise CloneError(
                str(relation),
                "a table is there, with its columns, rows and history. Drop it by hand if nobody needs it.",
            )
        self._views(relation, f"{original} cannot be cloned as {relation}", "A clone is a view.")

    def name(self, relation: SparkEvolveRelation, node: str) -> None:
        """See whether a node's table can have its name.

        Raises:
            CatalogLacksError: its catalog has no such names.
        """
        catalog = self._catalog_of(relation)
        if catalog is not None and not catalog.capabilities.takes_name(str(relation.identifier)):
            raise CatalogLacksError(
                str(relation),
                f"{node} cannot be built as {relation}",
                catalog.name,
                catalog.capabilities.kind.value,
                f"takes names {catalog.capabilities.names.value}",
                "Give it another `alias`, or rename it. Nothing of it was built.",
            )

    def views(self, relation: SparkEvolveRelation, node: str) -> None:
        """See whether there can be a view.

        Raises:
            CatalogLacksError: its catalog has none.
        """
        remedy = "Set `materialized` to `table`, `incremental` or `ephemeral`."
        self._views(relation, f"{node} cannot be built as {relation}", remedy)

    def stored_failures(self, relation: SparkEvolveRelation, test: str, stored_as: str | None) -> None:
        """See whether the failures of a test can be stored.

        Raises:
            CatalogLacksError: they are to be a view, and the catalog has none.
        """
        if stored_as == "view":
            remedy = "Set `store_failures_as` to `table` or `ephemeral`."
            self._views(relation, f"The failures of {test} cannot be stored as {relation}", remedy)

    def _views(self, relation: SparkEvolveRelation, what: str, remedy: str) -> None:
        catalog = self._catalog_of(relation)
        if catalog is None or catalog.capabilities.has_views:
            return
        kind = catalog.capabilities.kind
        if kind is Kind.REST and not catalog.capabilities.is_said("has_views"):
            remedy += (
                " If the server has views and does not say so in its configuration, put "
                f"`view-endpoints-supported: true` into `{catalog.stated_by}`."
            )
        raise CatalogLacksError(
            str(relation),
            what,
            catalog.name,
            kind.value,
            "has no views",
            f"{remedy} Nothing of it was built.",
        )

    def branches(self, relation: SparkEvolveRelation, node: str, settings: IncrementalSettings) -> None:
        """See whether a node can be loaded and published as it is configured.

        Raises:
            CatalogLacksError: that takes a branch of a table, which its catalog does not keep.
        """
        catalog = self._catalog_of(relation)
        if catalog is None:
            return
        what = f"{node} cannot be loaded into {relation} with "
        for setting, value, remedy in (
            ("publish", "branch", "Set `publish: direct`, where each statement is visible at once."),
            ("removed_columns", "keep", "Set `removed_columns: 'null'`."),
            ("on_bad_rows", "dead_letter", "Set `on_bad_rows: fail`."),
        ):
            if getattr(settings, setting) == value:
                refuse_without_branches(
                    catalog, relation, f"{what}`{setting}: {value}`", f"{remedy} Nothing of it was built."
                )

    def renaming(self, relation: SparkEvolveRelation) -> None:
        """See whether a table or view can get another name.

        Raises:
            CatalogLacksError: its catalog gives none.
        """
        catalog = self._catalog_of(relation)
        if catalog is not None and not catalog.capabilities.renames:
            raise CatalogLacksError(
                str(relation),
                f"{relation} cannot be renamed",
                catalog.name,
                catalog.capabilities.kind.value,
                "renames no table",
                "Build it under its new name, and drop the old one. Nothing was renamed.",
            )

    def _catalog_of(self, relation: SparkEvolveRelation) -> IcebergCatalog | None:
        catalogs = self._catalogs
        return catalogs.of(relation.database) if catalogs and catalogs.has(relation.database) else None

    def plannable(self, relation: SparkEvolveRelation, hook: str) -> None:
        """See whether a pre-hook can run though nothing may be changed.

        Raises:
            UnplannableError: it may change something.
        """
        if not all(map(splitting.reads_only, splitting.split_statements(hook))):
            raise UnplannableError(str(relation), hook.strip())

    def _reached(self, called: Collection[str]) -> set[str]:
        """Return the ids of macros, and of those that they call."""
        seen: set[str] = set()
        waiting = list(called)
        while waiting:
            macro = waiting.pop()
            if macro not in seen and macro in self._macros:
                seen.add(macro)
                waiting.extend(self._macros[macro].depends_on.macros)
        return seen


def own_words(code: str, hooks: Iterable[str]) -> set[str]:
    """Return the words of a model as it is written, without those of the hooks in its ``config``.

    Dbt counts the macros that hooks call among the model's. A hook that is not found as it is, since it is
    put together or has escapes in it, counts as the model.

    Args:
        code: the model.
        hooks: its hooks, those of other files among them.
    """
    for hook in hooks:
        code = code.replace(hook, " ") if hook else code
    return set(re.findall(r"\w+", code))


def refuse_without_branches(
    catalog: IcebergCatalog, relation: SparkEvolveRelation, what: str, remedy: str
) -> None:
    """Refuse what takes a branch of a table, in a catalog that keeps none.

    Args:
        catalog: the catalog.
        relation: the table.
        what: what cannot be done, as the beginning of a sentence.
        remedy: what to do instead, and that nothing was done.

    Raises:
        CatalogLacksError: it keeps none.
    """
    if not catalog.capabilities.keeps_branches:
        kind = catalog.capabilities.kind.value
        lack = "keeps no branches of a table"
        raise CatalogLacksError(str(relation), what, catalog.name, kind, lack, remedy)
