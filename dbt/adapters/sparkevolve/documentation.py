"""What dbt shows of relations: columns, comments and figures in its docs, ages as the freshness of sources.

It costs one load of its metadata for each Iceberg table, and one DESCRIBE for each other relation, of those
that are asked for, however many there are beside them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.impl import FreshnessResponse
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.errors import (
    CatalogUnavailableError,
    ForeignCatalogError,
    FreshnessError,
    NotIcebergError,
    RunCancelledError,
    StatementError,
)
from dbt.adapters.sparkevolve.evolution.table_properties import COMMENT_PROPERTY
from dbt.adapters.sparkevolve.evolution.types import type_text
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs
from dbt.adapters.sparkevolve.iceberg.statistics import STATISTICS, last_change, statistics

if TYPE_CHECKING:
    import agate

logger = AdapterLogger("SparkEvolve")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# Of each figure, as dbt reads it from the columns `stats:<name>:<key>`.
_KEYS = ("label", "value", "description", "include")
_COLUMNS = [
    "table_database",
    "table_schema",
    "table_name",
    "table_type",
    "table_comment",
    "table_owner",
    "column_name",
    "column_index",
    "column_type",
    "column_comment",
    *(f"stats:{id}:{key}" for id in STATISTICS for key in _KEYS),
]
# Database, schema and identifier.
Parts = tuple[str, str, str]
# The comment of a relation, and its columns with type and comment.
Described = tuple[str | None, list[tuple[str, str, str | None]]]


def described(rows: Iterable[Iterable[Any]]) -> Described:
    """Return what DESCRIBE TABLE EXTENDED says of a relation.

    Args:
        rows: its rows: of the columns first, and after an empty line or a headline of the relation.
    """
    texts = [tuple(str(value or "") for value in row) for row in rows]
    end = next((n for n, row in enumerate(texts) if not row[0] or row[0].startswith("#")), len(texts))
    facts = {row[0]: row[1] for row in texts[end:]}
    return facts.get("Comment") or None, [(row[0], row[1], row[2] or None) for row in texts[:end]]


class Documentation:
    """Tells what dbt shows of relations, and changes nothing.

    Args:
        catalogs: the catalogs that the profile states.
        describe: asked for what is no Iceberg table of theirs.
    """

    def __init__(self, catalogs: Catalogs, describe: Callable[[BaseRelation], Described]) -> None:
        self._catalogs = catalogs
        self._describe = describe
        self._unanswered: dict[BaseRelation, CatalogUnavailableError] = {}

    def of(self, relation: BaseRelation) -> CatalogTable:
        """Return what there is to show of a relation."""
        table = self._catalogs.of(relation.database).find_readable(relation)
        if table is None:
            comment, columns = self._describe(relation)
            owner, figures = None, []
        else:
            comment, owner = table.properties.get(COMMENT_PROPERTY), table.properties.get("owner")
            columns = [(f.name, type_text(f.field_type), f.doc) for f in table.schema().fields]
            figures = statistics(table)
        return CatalogTable(
            metadata=TableMetadata(
                type=str(relation.type or RelationType.Table),
                schema=str(relation.schema),
                name=str(relation.identifier),
                database=relation.database or self._catalogs.own.name,
                comment=comment,
                owner=owner,
            ),
            columns={
                name: ColumnMetadata(type=dtype, index=index, name=name, comment=doc)
                for index, (name, dtype, doc) in enumerate(columns, start=1)
            },
            stats={f.id: StatsItem(f.id, f.label, f.value, True, f.description) for f in figures},
        )

    def of_node(self, relation: BaseRelation) -> CatalogTable:
        """Return the same under the database that a node has, even none: dbt looks nodes up by that."""
        shown = self.of(relation)
        shown.metadata.database = relation.database
        return shown

    def ages(self, relations: Iterable[BaseRelation]) -> dict[BaseRelation, FreshnessResponse]:
        """Return the ages of those tables that have one; a catalog that is away is asked once."""
        found: dict[BaseRelation, FreshnessResponse] = {}
        away: dict[str, CatalogUnavailableError] = {}
        for relation in relations:
            catalog = self._catalogs.name_of(relation.database)
            try:
                if catalog not in away:
                    found[relation] = self._age(relation)
            except CatalogUnavailableError as exc:
                away[catalog] = exc
            except FreshnessError as exc:
                logger.debug(exc.msg)
            if catalog in away:
                self._unanswered[relation] = away[catalog]
        return found

    def age(self, relation: BaseRelation) -> FreshnessResponse:
        """Return how old the rows of an Iceberg table are, as seen now; without any, as old as can be.

        Where ``ages`` has met that the catalog is away, that is said, and nobody waits for it again.

        Raises:
            FreshnessError: there is no such table, or its metadata cannot be read, or do not tell.
            CatalogUnavailableError: the catalog is away.
        """
        unanswered = self._unanswered.get(relation)
        if unanswered is not None:
            # Two sources may be one table.
            raise unanswered.of_another()
        return self._age(relation)

    def _age(self, relation: BaseRelation) -> FreshnessResponse:
        now = datetime.now(timezone.utc)
        modified = self._last_modified(relation) or datetime.min.replace(tzinfo=timezone.utc)
        return {
            "max_loaded_at": modified,
            "snapshotted_at": now,
            "age": (now - modified).total_seconds(),
        }

    def _last_modified(self, relation: BaseRelation) -> datetime | None:
        try:
            milliseconds = last_change(self._catalogs.of(relation.database).load(relation))
        except NotIcebergError as exc:
            raise FreshnessError(str(relation), f"it is not an Iceberg table of `{exc.catalog}`") from exc
        except ForeignCatalogError as exc:
            where = f"`{exc.database}`, which the profile does not state under `catalogs:`"
            raise FreshnessError(str(relation), f"it is in the catalog {where}") from exc
        except (CatalogUnavailableError, RunCancelledError):
            raise
        except Exception as exc:
            # Such as that the file of its metadata is gone, or that one may not read it.
            raise FreshnessError(str(relation), f"its metadata cannot be read ({said(exc)})") from exc
        try:
            return None if milliseconds is None else _EPOCH + timedelta(milliseconds=milliseconds)
        except OverflowError as exc:
            raise FreshnessError(str(relation), f"no calendar has its time, {milliseconds} ms") from exc


def said(exc: Exception) -> str:
    """Return what an error says, and of what kind it is if it is not one for people."""
    text = str(exc.msg if isinstance(exc, DbtRuntimeError) else exc).strip().rstrip(".")
    return text if isinstance(exc, DbtRuntimeError) else f"{type(exc).__name__}: {text}".removesuffix(": ")


def error(what: str, exc: Exception) -> DbtRuntimeError:
    """Return what ``catalog.json`` says of what cannot be shown, beside what it shows.

    Errors of our own say what they are about, and answers of Spark do not.
    """
    if isinstance(exc, DbtRuntimeError) and not isinstance(exc, StatementError):
        return exc
    found = DbtRuntimeError(f"dbt docs cannot show {what}: {said(exc)}")
    found.__cause__ = exc
    return found


def wanted(
    relations: Collection[BaseRelation], listed: Iterable[BaseRelation], own: str
) -> list[BaseRelation]:
    """Return those of some relations that are there, under the names that they have there.

    dbt compares names in ``catalog.json`` in any case. Of two whose names differ in case only it is the one
    that is asked for: to dbt they are one. It tells no database from that of the profile's catalog, though.

    Args:
        relations: those that are asked for.
        listed: what there is, with the database of each.
        own: the name of the profile's catalog.
    """
    exact = {_parts(relation): relation for relation in listed}
    similar = {_lower(name): relation for name, relation in exact.items()}
    found: dict[Parts, BaseRelation] = {}
    for relation in sorted(relations, key=str):
        place = _parts(relation, own)
        name = _lower(_parts(relation))
        there = exact.get(place)
        if there is not None or (name not in found and _lower(place) in similar):
            shown = there or similar[_lower(place)]
            found[name] = shown.replace(path=shown.path.replace(database=relation.database))
    return [relation for _, relation in sorted(found.items())]


def _parts(relation: BaseRelation, own: str = "") -> Parts:
    return relation.database or own, str(relation.schema), str(relation.identifier)


def _lower(name: Parts) -> Parts:
    # As dbt does it: `casefold` would take straße for strasse.
    database, schema, identifier = (part.lower() for part in name)
    return database, schema, identifier


def as_table(shown: Iterable[CatalogTable]) -> "agate.Table":
    """Return what dbt writes into ``catalog.json``: a row for each column."""
    from dbt_common.clients.agate_helper import table_from_data_flat

    return table_from_data_flat([row for one in shown for row in _rows(one)], _COLUMNS)


def _rows(shown: CatalogTable) -> Iterator[dict[str, Any]]:
    of_table = shown.metadata
    left_out = StatsItem(id="", label="", value=None, include=False, description="")
    figures = {
        f"stats:{id}:{key}": getattr(shown.stats.get(id, left_out), key) for id in STATISTICS for key in _KEYS
    }
    for column in shown.columns.values():
        values = (
            *(of_table.database, of_table.schema, of_table.name, of_table.type, of_table.comment),
            *(of_table.owner, column.name, column.index, column.type, column.comment),
        )
        yield {**dict(zip(_COLUMNS, values, strict=False)), **figures}
