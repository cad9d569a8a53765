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
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata

from dbt.adapters.sparkevolve.errors import ForeignCatalogError, FreshnessError, NotIcebergError
from dbt.adapters.sparkevolve.evolution.table_properties import COMMENT_PROPERTY
from dbt.adapters.sparkevolve.evolution.types import type_text
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs
from dbt.adapters.sparkevolve.iceberg.statistics import STATISTICS, last_change, statistics

if TYPE_CHECKING:
    import agate

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

    def age(self, relation: BaseRelation) -> FreshnessResponse:
        """Return how old the rows of an Iceberg table are, as seen now; without any, as old as can be.

        Raises:
            FreshnessError: there is no such table, or its metadata do not tell.
            UnreadableTableError: PyIceberg cannot read its metadata.
        """
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
        try:
            return None if milliseconds is None else _EPOCH + timedelta(milliseconds=milliseconds)
        except OverflowError as exc:
            raise FreshnessError(str(relation), f"no calendar has its time, {milliseconds} ms") from exc


def key(relation: BaseRelation) -> tuple[str, str, str]:
    """Return the name of a relation as dbt compares names in ``catalog.json``: in any case."""
    parts = (relation.database, relation.schema, relation.identifier)
    database, schema, identifier = (str(part or "").casefold() for part in parts)
    return database, schema, identifier


def schemas_of(relations: Iterable[BaseRelation]) -> list[tuple[str | None, str]]:
    """Return the catalogs and schemas of relations, in order; a catalog is None where none is named."""
    places = {(relation.database, str(relation.schema)) for relation in relations}
    return sorted(places, key=lambda place: (place[0] or "", place[1]))


def wanted(
    relations: Collection[BaseRelation], listed: Iterable[BaseRelation]
) -> dict[tuple[str, str, str], BaseRelation]:
    """Return those of some relations that are there, by ``key``.

    Of two whose names differ in case only it is the one that is asked for: to dbt they are one.

    Args:
        relations: those that are asked for.
        listed: what there is.
    """
    names = {_parts(relation) for relation in relations}
    keys = {key(relation) for relation in relations}
    found: dict[tuple[str, str, str], BaseRelation] = {}
    for relation in listed:
        name = key(relation)
        if name in keys and (name not in found or _parts(relation) in names):
            found[name] = relation
    return found


def _parts(relation: BaseRelation) -> tuple[str | None, str | None, str | None]:
    return relation.database, relation.schema, relation.identifier


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
