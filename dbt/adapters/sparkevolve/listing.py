"""What there is in Spark and in the catalog: relations, their columns, what ``dbt docs`` shows of them."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.impl import BaseAdapter
from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation, InformationSchema
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.spark.column import SparkColumn
from dbt.adapters.spark.impl import SparkAdapter
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.column import SparkEvolveColumn
from dbt.adapters.sparkevolve.errors import ForeignCatalogError, SchemaNameError, UnreadableTableError
from dbt.adapters.sparkevolve.evolution.table_properties import COMMENT_PROPERTY
from dbt.adapters.sparkevolve.evolution.types import type_text
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog, LoadedTable
from dbt.adapters.sparkevolve.messages import has_nothing_to_list
from dbt.adapters.sparkevolve.relation import namespace, schema_name, schema_problem

if TYPE_CHECKING:
    import agate

_CATALOG_COLUMNS = [
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
]


class ListingAdapter(SparkAdapter):
    """The part of the adapter that looks and changes nothing, but for dropping a whole schema."""

    catalog: IcebergCatalog

    def get_relation(self, database: str, schema: str, identifier: str) -> BaseRelation | None:
        """Return a relation; without ``database`` it is looked for in the profile's catalog."""
        found: BaseRelation | None = BaseAdapter.get_relation(
            self, database or self.catalog.name, schema, identifier
        )
        return found

    def list_schemas(self, database: str) -> list[str]:
        """Return the names of the schemas of a catalog, which dbt asks for before it makes one.

        Raises:
            ForeignCatalogError: the name is that of the profile's catalog in other letters.
        """
        bare = database.strip("`")
        if bare != self.catalog.name and bare.lower() == self.catalog.name.lower():
            raise ForeignCatalogError(self.quote(bare), bare, self.catalog.name)
        schemas: list[str] = super().list_schemas(database)
        return schemas

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Return the tables and views of a schema, with three questions however many there are."""
        schema, catalog = str(schema_relation.schema), schema_relation.database
        where = str(schema_relation.without_identifier())
        listed = self._names_shown(f"show tables in {where}")
        views = self._names_shown(f"show views in {where}")
        iceberg = self.catalog.table_names(schema) if catalog == self.catalog.name else frozenset()
        return [
            self.Relation.create(
                database=catalog,
                schema=schema,
                identifier=name,
                type=RelationType.View if name in views else RelationType.Table,
                is_iceberg=name in iceberg,
                is_delta=False,
                is_hudi=False,
            )
            for name in sorted({*listed, *views, *iceberg})
        ]

    def relation_now(
        self, relation: BaseRelation, *, was_view: bool
    ) -> tuple[BaseRelation | None, LoadedTable | None]:
        """Return what there is under one name now, and the Iceberg table if it is one.

        It takes the same few questions however many relations the schema has.

        Args:
            relation: the name.
            was_view: whether it is likely to be a view, for which is looked first then.
        """
        view = relation.replace(type=RelationType.View, is_iceberg=False)
        if was_view and self._is_shown("views", relation):
            return view, None
        iceberg = relation.replace(type=RelationType.Table, is_iceberg=True)
        try:
            table = self.catalog.find(relation)
        except UnreadableTableError:
            return iceberg, None
        if table is not None:
            return iceberg, table
        if not was_view and self._is_shown("views", relation):
            return view, None
        if self._is_shown("tables", relation):
            return relation.replace(type=RelationType.Table, is_iceberg=False), None
        return None, None

    def _is_shown(self, kind: str, relation: BaseRelation) -> bool:
        # In Spark's patterns `*` and `|` have a meaning, and else those of regular expressions.
        pattern = re.sub(r"[^A-Za-z0-9_]", ".", str(relation.identifier))
        where = relation.without_identifier()
        return relation.identifier in self._names_shown(f"show {kind} in {where} like '{pattern}'")

    def _names_shown(self, sql: str) -> frozenset[str]:
        try:
            _, rows = self.execute(sql, fetch=True)
        except DbtRuntimeError as exc:
            if has_nothing_to_list(str(exc)):
                return frozenset()
            raise
        # namespace, name, isTemporary
        return frozenset(str(row[1]) for row in rows if not row[2])

    def get_columns_in_relation(self, relation: BaseRelation) -> list[SparkColumn]:
        """Return the columns of a relation; those of an Iceberg table with the exact types of its schema.

        DESCRIBE, which everything else has to make do with, cuts long struct types off and ends at a
        name that begins with ``#``.
        """
        table = self.catalog.find_readable(relation)
        if table is None:
            # Under `--empty` a relation stands for a subquery, which cannot be described.
            described = super().get_columns_in_relation(relation.replace(limit=None, event_time_filter=None))
            return [SparkEvolveColumn(column=c.column, dtype=c.dtype) for c in described]
        return [
            SparkEvolveColumn(column=field.name, dtype=type_text(field.field_type))
            for field in table.schema().fields
        ]

    def create_schema(self, relation: BaseRelation) -> None:
        """Make a schema, and those that it lies in, unless they are there.

        Raises:
            SchemaNameError: its name does not say where it is to be.
        """
        schema = str(relation.schema)
        levels = namespace(schema)
        catalogs = (levels[0],) if len(levels) > 1 and self._is_catalog(levels[0]) else ()
        problem = schema_problem(schema, self.catalog.name, self.catalog.kind, catalogs)
        if problem and relation.database in (None, self.catalog.name):
            raise SchemaNameError(schema, self.catalog.name, problem)
        for end in range(1, len(levels)):
            above = self.Relation.create(relation.database, schema_name(levels[:end]))
            super().create_schema(above)
        super().create_schema(relation)

    def _is_catalog(self, name: str) -> bool:
        if not re.fullmatch(r"\w+", name, re.ASCII):
            return False
        _, rows = self.execute(f"SET spark.sql.catalog.{name}", fetch=True)
        return str(rows[0][1]) != "<undefined>"

    @available.parse(lambda *a, **k: False)
    def check_schema_exists(self, database: str, schema: str) -> bool:
        """Tell whether there is a schema; a nested one is not in the list of schemas."""
        if len(namespace(schema)) > 1 and database in (None, self.catalog.name):
            return self.catalog.namespace_exists(schema)
        exists: bool = super().check_schema_exists(database, schema)
        return exists

    def drop_schema(self, relation: BaseRelation) -> None:
        """Drop a schema and all that is in it: an Iceberg catalog does not drop one that is not empty."""
        for inside in self.list_relations_without_caching(relation):
            self.drop_relation(inside)  # type: ignore[no-untyped-call]
        super().drop_schema(relation)

    def get_catalog(self, relation_configs: Any, used_schemas: Any) -> Any:
        """Return what ``dbt docs`` shows, for all catalogs that the project uses."""
        return BaseAdapter.get_catalog(self, relation_configs, used_schemas)

    def _get_one_catalog(
        self, information_schema: InformationSchema, schemas: set[str], used_schemas: Any
    ) -> "agate.Table":
        from dbt_common.clients.agate_helper import table_from_data_flat

        database = information_schema.database
        rows = [
            row
            for schema in sorted(schemas)
            for relation in self.list_relations(database, schema)
            for row in self._catalog_rows(relation)
        ]
        return table_from_data_flat(rows, _CATALOG_COLUMNS)

    def _described(self, relation: BaseRelation) -> tuple[str | None, list[tuple[str, str, str | None]]]:
        """Return the comment of a view, or of a table of another format, and its columns with theirs."""
        answer = self.execute_macro("get_columns_in_relation_raw", kwargs={"relation": relation})
        rows = [tuple(str(value or "") for value in row.values()) for row in answer]
        end = next((n for n, row in enumerate(rows) if not row[0] or row[0].startswith("#")), len(rows))
        facts = {row[0]: row[1] for row in rows[end:]}
        return facts.get("Comment") or None, [(row[0], row[1], row[2] or None) for row in rows[:end]]

    def _catalog_rows(self, relation: BaseRelation) -> Iterable[dict[str, Any]]:
        table = self.catalog.find_readable(relation)
        if table is not None:
            comment = table.properties.get(COMMENT_PROPERTY)
            owner = table.properties.get("owner")
            columns = [(f.name, type_text(f.field_type), f.doc) for f in table.schema().fields]
        else:
            owner = None
            comment, columns = self._described(relation)
        for index, (name, dtype, doc) in enumerate(columns, start=1):
            values = (
                *(relation.database, relation.schema, relation.identifier, str(relation.type)),
                *(comment, owner, name, index, dtype, doc),
            )
            yield dict(zip(_CATALOG_COLUMNS, values, strict=True))

    def _make_match_kwargs(self, database: str, schema: str, identifier: str) -> dict[str, str]:
        """Look for a name as it is written, quoted or not: Spark hands it to the catalog as it is."""
        parts = {"database": database, "schema": schema, "identifier": identifier}
        return {part: name for part, name in parts.items() if name is not None}
