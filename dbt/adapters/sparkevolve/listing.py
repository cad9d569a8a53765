"""What there is in Spark and in the catalog: relations, and their columns."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import RelationConfig, RelationType
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.column import SparkEvolveColumn
from dbt.adapters.sparkevolve.credentials import SPARK_CATALOG
from dbt.adapters.sparkevolve.errors import (
    NoSuchCatalogError,
    SameTableError,
    SchemaNameError,
    StatementError,
    UnreadableTableError,
)
from dbt.adapters.sparkevolve.evolution.types import type_text
from dbt.adapters.sparkevolve.iceberg.catalog import LoadedTable
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs
from dbt.adapters.sparkevolve.messages import has_nothing_to_list, is_relation_not_found
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation, namespace, schema_name, schema_problem
from dbt.adapters.sparkevolve.spark.interface import Spark


class Listing:
    """Says what there is, and changes nothing.

    Args:
        catalogs: the catalogs that the profile states.
        spark: Spark, which knows of other catalogs and of what is no Iceberg table.
        set_up: the names of catalogs that Spark has for sure.
    """

    def __init__(self, catalogs: Catalogs, spark: Spark, set_up: Iterable[str] = ()) -> None:
        self._catalogs = catalogs
        self._spark = spark
        self._there = {catalogs.own.name, SPARK_CATALOG, *set_up}

    def relations(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Return the tables and views of a schema, with three questions however many there are."""
        schema, catalog = str(schema_relation.schema), schema_relation.database
        iceberg = self._catalogs.of(catalog).table_names(schema)
        where = str(schema_relation.without_identifier())
        listed = self._names_shown(f"show tables in {where}")
        views = self._views_shown(schema_relation)
        return [
            SparkEvolveRelation.create(
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

        Raises:
            NotIcebergError: it is an Iceberg table to Spark, and PyIceberg does not find it: they do not use
                one catalog. As one of another format, it would be dropped by a node that replaces those.
        """
        view = relation.replace(type=RelationType.View, is_iceberg=False)
        if was_view and self._is_shown("views", relation):
            return view, None
        iceberg = relation.replace(type=RelationType.Table, is_iceberg=True)
        try:
            catalog = self._catalogs.of(relation.database)
            table = catalog.find(relation)
        except UnreadableTableError:
            return iceberg, None
        if table is not None:
            # One that was made to be filled, and was not, is none.
            return (None, None) if catalog.is_unfilled_table(table) else (iceberg, table)
        if not was_view and self._is_shown("views", relation):
            return view, None
        if not self._is_shown("tables", relation):
            return None, None
        if self._catalogs.has(relation.database) and self._is_iceberg_to_spark(relation):
            # Another writer may have made it just now.
            return iceberg, catalog.load(relation)
        return relation.replace(type=RelationType.Table, is_iceberg=False), None

    def _is_iceberg_to_spark(self, relation: BaseRelation) -> bool:
        try:
            rows = self._spark.rows(f"describe table extended {relation}")
        except DbtRuntimeError as exc:
            if is_relation_not_found(str(exc)):
                return False  # such as a table of Hive's in a catalog that can only list it
            raise
        # The columns come first, and may have any name.
        found = next((str(row[1]) for row in reversed(rows) if str(row[0]) == "Provider"), "")
        return found.lower() == "iceberg"

    def _is_shown(self, kind: str, relation: BaseRelation) -> bool:
        # In Spark's patterns `*` and `|` have a meaning, and else those of regular expressions.
        pattern = f" like '{re.sub('[^A-Za-z0-9_]', '.', str(relation.identifier))}'"
        if kind == "views":
            return relation.identifier in self._views_shown(relation, pattern)
        return relation.identifier in self._names_shown(
            f"show {kind} in {relation.without_identifier()}{pattern}"
        )

    def _views_shown(self, schema_relation: BaseRelation, pattern: str = "") -> frozenset[str]:
        """Return the names of views, without a question where there can be none."""
        if not self._catalogs.of(schema_relation.database).capabilities.has_views:
            return frozenset()
        return self._names_shown(f"show views in {schema_relation.without_identifier()}{pattern}")

    def _names_shown(self, sql: str) -> frozenset[str]:
        try:
            rows = self._spark.rows(sql)
        except DbtRuntimeError as exc:
            if has_nothing_to_list(str(exc)):
                return frozenset()
            raise
        # namespace, name, isTemporary
        return frozenset(str(row[1]) for row in rows if not row[2])

    def iceberg_columns(self, relation: BaseRelation) -> list[SparkEvolveColumn] | None:
        """Return the columns of an Iceberg table with the exact types of its schema, None for another one.

        DESCRIBE, which everything else has to make do with, cuts long struct types off and ends at a
        name that begins with ``#``.
        """
        table = self._catalogs.of(relation.database).find_readable(relation)
        if table is None:
            return None
        return [
            SparkEvolveColumn(column=field.name, dtype=type_text(field.field_type))
            for field in table.schema().fields
        ]

    def schemas_above(self, relation: BaseRelation) -> Iterator[BaseRelation]:
        """Return the schemas that a schema lies in, outermost first.

        Raises:
            SchemaNameError: its name does not say where it is to be.
        """
        schema = str(relation.schema)
        levels = namespace(schema)
        catalogs = (levels[0],) if len(levels) > 1 and self._is_catalog(levels[0]) else ()
        catalog = self._catalogs.of(relation.database)
        can = catalog.capabilities
        problem = schema_problem(
            schema,
            catalog.name,
            catalogs,
            kind=can.kind.value,
            is_nested=can.has_nested_schemas,
            takes_name=can.takes_schema,
            names=can.names.value,
            is_own=catalog is self._catalogs.own,
        )
        if problem and self._catalogs.has(relation.database):
            raise SchemaNameError(schema, catalog.name, problem)
        for end in range(1, len(levels)):
            yield SparkEvolveRelation.create(relation.database, schema_name(levels[:end]))

    def check_catalog(self, database: str | None) -> None:
        """See whether Spark has the catalog of a relation, which is asked once of each.

        Spark takes the name of one that it does not have for a schema's, of the catalog that is current: what
        is built under it stands in the wrong place.

        Raises:
            NoSuchCatalogError: it has not.
        """
        name = self._catalogs.name_of(database)
        if name in self._there:
            return
        try:
            setting = self._spark.setting(f"spark.sql.catalog.{name}")
        except StatementError:
            return  # a server may not let one ask
        if setting is None:
            raise NoSuchCatalogError(name, is_stated=self._catalogs.has(name))
        self._there.add(name)

    def nested_schema_exists(self, database: str | None, schema: str) -> bool | None:
        """Tell whether there is a nested schema, which no list of schemas has; None of one that is not."""
        if len(namespace(schema)) > 1 and self._catalogs.has(database):
            return self._catalogs.of(database).namespace_exists(schema)
        return None

    def _is_catalog(self, name: str) -> bool:
        if not re.fullmatch(r"\w+", name, re.ASCII):
            return False
        return self._spark.setting(f"spark.sql.catalog.{name}") is not None


def built_nodes(manifest: Any) -> list[RelationConfig]:
    """Return the nodes of a project that are tables or views of their own, as dbt tells them.

    Args:
        manifest: dbt's; of one that has macros only there are none.
    """
    return [
        node
        for node in getattr(manifest, "nodes", {}).values()
        if node.is_relational and not node.is_ephemeral_model and not node.is_external_node
    ]


def users_of(manifest: Any, database: str | None) -> list[str]:
    """Return the nodes and sources of a project that are in a catalog, for a text to begin with the first.

    Args:
        manifest: see ``built_nodes``.
        database: the catalog's name, in backticks or not.
    """
    name = str(database).strip("`")
    nodes = (node for node in built_nodes(manifest) if node.database == name)
    sources = (each for each in getattr(manifest, "sources", {}).values() if each.database == name)
    return [
        *(f"The {node.resource_type} `{node.name}`" for node in nodes),
        *(f"The source `{each.source_name}.{each.name}`" for each in sources),
    ]


def check_places(nodes: Iterable[RelationConfig], catalogs: Catalogs) -> None:
    """See whether each node is a table of its own.

    dbt compares names as it would write them into SQL: to it, one with the profile's catalog is another one
    than the same without, and so it is with names that the catalog takes for one, and with two names of one
    catalog.

    Raises:
        SameTableError: two nodes would be built as one table.
    """
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], RelationConfig] = {}
    for node in nodes:
        catalog = catalogs.name_of(node.database)
        fold = str.lower if catalogs.folds(catalog) else str
        levels = (*namespace(node.schema), str(node.identifier))
        place = (catalogs.identity_of(node.database), tuple(map(fold, levels)))
        other = found.setdefault(place, node)
        if other is not node:
            both = sorted((other, node), key=lambda each: each.name)
            relations = [str(SparkEvolveRelation.create(n.database, n.schema, n.identifier)) for n in both]
            named = dict.fromkeys(catalogs.name_of(n.database) for n in both)
            raise SameTableError([f"the {n.resource_type} `{n.name}`" for n in both], relations, [*named])


def kind(relation: BaseRelation | None) -> tuple[str, bool] | None:
    """Return what dbt's cache knows of a relation: its type, and whether it is an Iceberg table."""
    if relation is None:
        return None
    return str(relation.type), bool(getattr(relation, "is_iceberg", False))
