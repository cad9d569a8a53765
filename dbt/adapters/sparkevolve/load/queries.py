"""What the query of a model or snapshot returns, in types that Iceberg can store."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyiceberg.schema import Schema

from dbt.adapters.sparkevolve.errors import EvolutionRefusedError, ModelMovedError, UnreadableQueryError
from dbt.adapters.sparkevolve.evolution import names, refusals
from dbt.adapters.sparkevolve.evolution.partition_sources import partition_refusals
from dbt.adapters.sparkevolve.evolution.partitions import parse_partitions, part
from dbt.adapters.sparkevolve.evolution.plan import check_source_names
from dbt.adapters.sparkevolve.evolution.renames import new_names
from dbt.adapters.sparkevolve.evolution.table_properties import FIRST_WITH_VARIANTS
from dbt.adapters.sparkevolve.evolution.types import fields_within, has_variant, type_text
from dbt.adapters.sparkevolve.load.node import Node
from dbt.adapters.sparkevolve.load.strategies import window_refusals
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from dbt.adapters.sparkevolve.spark.interface import Spark
from dbt.adapters.sparkevolve.spark.sql_settings import may_lack_names
from dbt.adapters.sparkevolve.sql import snapshots, spark_types, storable


class Queries:
    """Asks Spark what a query returns, and writes it so that Iceberg can store that.

    Args:
        spark: where the node runs.
        reads_types: whether the catalog reads the text of each type, as a Hive metastore does: it reads fewer
            names, and no variants.
        node: the node that runs.
    """

    def __init__(self, spark: Spark, reads_types: bool, node: Node) -> None:
        self._spark = spark
        self._reads_types = reads_types
        self._node = node

    def as_stored(
        self,
        target: SparkEvolveRelation,
        sql: str,
        settings: IncrementalSettings,
        table: Schema | None = None,
    ) -> dict[str, Any]:
        """Return the model's query with everything in it that Iceberg cannot store left out or as string.

        Args:
            target: the model's table.
            sql: the model's query.
            settings: ``unmappable_types`` (``string`` or ``fail``), ``unique_key`` and ``column_renames``.
            table: the table's schema, if there is a table: a bare NULL gets the type that it has there.

        Returns:
            ``sql``, ``columns`` (names that it returns), ``warnings`` (texts), and of one that is rewritten
            ``described``, see ``check_described_still``.

        Raises:
            EvolutionRefusedError: a name that cannot be used, a key that is not returned, or a type that
                Iceberg lacks under ``fail``.
            UnreadableQueryError: the types of the columns cannot be told.
        """
        columns = self._columns(target, sql, *settings.replacing)
        variants = self._takes_variants(settings, table)
        query = storable.storable_query(sql, columns, table, settings.column_renames, variants=variants)
        self._node.nulls = query.nulls
        self._node.stages_variants = query.has_variants
        found = list(check_source_names(query.columns, *settings.replacing))
        inner = list(spark_types.field_paths(columns))
        found += [refusals.empty_name(path) for path in inner if not path[-1]]
        found += window_refusals(columns, settings)
        lacking = [note for note in query.notes if note.type != "void"]
        if settings.unmappable_types == "fail":
            found += [refusals.unmappable(note.path, note.type) for note in lacking]
        if self._reads_types:
            found += [refusals.unreadable_by_hive(p) for p in inner if not names.is_readable_by_hive(p[-1])]
        if table is None and not found:
            found += self._partition_refusals(
                target,
                columns if query.sql == sql else query.sql,
                settings.partition_by,
                settings.clustered_by,
                settings.buckets,
            )
        if found:
            raise self._refusal(target, found)
        if table is None and self._node.is_replacing is not None:
            self._node.columns = (
                _stored(columns) if query.sql == sql else self.stored_columns(target, query.sql)
            )
        return {
            "sql": query.sql,
            "columns": list(query.columns),
            "warnings": [str(note) for note in query.notes],
            "described": None if query.sql == sql else (sql, columns),
        }

    def check_partitions(
        self, target: SparkEvolveRelation, sql: str, partition_by: Any, clustered_by: Any, buckets: Any
    ) -> None:
        """See whether a table that is made from a query can be partitioned as it is configured.

        Args:
            target: the table.
            sql: the query.
            partition_by: the node's, a text or a list; none if it has none.
            clustered_by: the same, which means something with ``buckets`` only.
            buckets: their number.

        Raises:
            EvolutionRefusedError: it cannot.
        """
        found = self._partition_refusals(target, sql, partition_by, clustered_by, buckets)
        if found:
            raise self._refusal(target, found)

    def _partition_refusals(
        self,
        target: SparkEvolveRelation,
        query: str | spark_types.Struct,
        partition_by: str | Sequence[str] | None,
        clustered_by: str | Sequence[str] | None,
        buckets: Any,
    ) -> list[refusals.Refusal]:
        listed = [clustered_by] if isinstance(clustered_by, str) else clustered_by or ()
        if buckets and len(listed) > 1:
            return [refusals.several_in_a_bucket(listed, str(buckets))]
        by_bucket = [part("bucket", name, str(buckets)) for name in listed if buckets]
        wanted = {"partition_by": parse_partitions(partition_by), "clustered_by": by_bucket}
        if not any(wanted.values()):
            return []
        columns = self._columns(target, query) if isinstance(query, str) else query
        self._node.spelled = spark_types.spelled_paths(columns)
        types = dict(spark_types.paths_and_types(columns))
        return [
            refusal
            for setting, parts in wanted.items()
            for refusal in partition_refusals(setting, parts, types, _stored(columns))
        ]

    def check_described_still(
        self, target: SparkEvolveRelation, query: Mapping[str, Any], *, is_made: bool = False
    ) -> None:
        """See whether a query that is rewritten has returned all that the model returns, once it has run.

        It names the columns that the model had before: one that what it reads has got since is not in it, and
        would be left out in silence. What a query that is not rewritten has returned, the batch says.

        Args:
            target: the model's table.
            query: what ``as_stored`` returned.
            is_made: whether it has made the table, so that its rows are visible.

        Raises:
            ModelMovedError: it returns something else by now.
        """
        if query.get("described") is None:
            return
        sql, columns = query["described"]
        if self._columns(target, sql) != columns:
            raise ModelMovedError(str(target), written=self._node.changed, is_made=is_made)

    def snapshot(
        self, target: SparkEvolveRelation, sql: str, settings: IncrementalSettings, table: Schema
    ) -> dict[str, Any]:
        """Return whether a snapshot's query is like its table; if not, also in types that it can store.

        Like it are columns and fields that are spelled and ordered as in the table. dbt compares structs, and
        unites rows, by position, and it minds the case of names. What is renamed is like it once it has the
        table's type.

        Args:
            target: the snapshot's table.
            sql: the query.
            settings: see ``as_stored``.
            table: the table's schema.

        Returns:
            ``is_like``, ``sql``, ``columns`` (names) and ``without_rows`` (a query for no rows of it).
        """
        columns = self._columns(target, sql)
        if storable.is_like(columns, table) and not _may_replace(columns, table, settings.column_renames):
            return {"is_like": True, "sql": sql, "columns": [name for name, _ in columns.fields]}
        query = self.as_stored(target, sql, settings, table)
        return {**query, "is_like": False, "without_rows": spark_types.no_rows(query["sql"])}

    def snapshot_row_changed(self, table: Schema, check_cols: Any, columns: Sequence[str]) -> str:
        """Return the condition that a row differs from the version of it that is valid now.

        Args:
            table: the table's schema.
            check_cols: dbt's setting: ``all``, or the names of columns.
            columns: the names that the snapshot's query returns.
        """
        spelled = {names.fold(f.name): f.name for f in table.fields}
        compared = columns if check_cols == "all" else [names.unquote(str(name)) for name in check_cols]
        if any(names.fold(name) not in spelled for name in compared):
            return "(true)"  # as dbt has it, each row has a new version since there is a new column
        variants = {f.name for f in table.fields if has_variant(f.field_type)}
        return snapshots.snapshot_row_changed([spelled[names.fold(name)] for name in compared], variants)

    def stored_columns(self, target: SparkEvolveRelation, sql: str) -> list[tuple[str, str]]:
        """Return the names of a query's columns, and the types that a table made from it has for them.

        Args:
            target: the table, for messages.
            sql: the query, in types that Iceberg can store.
        """
        return _stored(self._columns(target, sql))

    def note_columns(self, target: SparkEvolveRelation, sql: str) -> None:
        """Note what a query returns that a table is to be made from, for the record in that."""
        self._node.columns = self.stored_columns(target, sql)

    def reads(self, sql: str, target: SparkEvolveRelation) -> bool:
        """Tell whether a query may read a table, through views too: whether its plan has the table's name."""
        plan = self._spark.explain(sql)
        if may_lack_names(plan):
            return True
        # As a whole word: a table `t` is not in each plan, and its model would be computed again for nothing.
        word = rf"(?<!\w){re.escape(names.fold(str(target.identifier)))}(?!\w)"
        return re.search(word, names.fold(plan)) is not None

    def _takes_variants(self, settings: IncrementalSettings, table: Schema | None) -> bool:
        """Tell whether the model's table can have variants: the one that is there, or the one to be made."""
        version = self._node.format_version if table is not None else settings.format_version
        return version is not None and version >= FIRST_WITH_VARIANTS and not self._reads_types

    def _columns(
        self, target: SparkEvolveRelation, sql: str, key: Sequence[str] = (), key_setting: str = ""
    ) -> spark_types.Struct:
        found, json = self._spark.columns_of(spark_types.no_rows(sql))
        if json is not None:
            return spark_types.columns_from_json(json)
        if not all(found) or not found or names.collisions(found):
            # There are no types to be asked for, or not by such names; the rest is looked for with them.
            raise self._refusal(target, check_source_names(found, key, key_setting))
        return columns_by_type(self._spark, target, sql, found)

    def _refusal(
        self, target: SparkEvolveRelation, found: Sequence[refusals.Refusal]
    ) -> EvolutionRefusedError:
        return EvolutionRefusedError(str(target), found, changed=self._node.changed)


def type_of_value(spark: Spark, target: SparkEvolveRelation, sql: str) -> spark_types.SparkType:
    """Return the type of the one column of a query.

    Args:
        spark: where it runs.
        target: the table that it is about, for messages.
        sql: the query.

    Raises:
        UnreadableQueryError: the type cannot be told.
    """
    found, json = spark.columns_of(spark_types.no_rows(sql))
    if json is not None:
        return spark_types.columns_from_json(json).fields[0][1]
    return columns_by_type(spark, target, sql, found).fields[0][1]


def columns_by_type(
    spark: Spark, target: SparkEvolveRelation, sql: str, columns: Sequence[str]
) -> spark_types.Struct:
    """Return the columns of a query from what Spark says of the type of each.

    Raises:
        UnreadableQueryError: the types cannot be told.
    """
    rows = spark.rows(spark_types.types_query(sql, columns))
    try:
        return spark_types.columns_from_types(columns, [str(text) for text in rows[0]])
    except spark_types.UnreadableType as exc:
        raise UnreadableQueryError(str(target), str(exc)) from exc


def _may_replace(columns: spark_types.Struct, table: Schema, renames: Mapping[str, str]) -> bool:
    """Tell whether a query returns another type under a name that renames take away, or have taken."""
    ids = set(new_names(table, renames)) if renames else set()
    retired = {
        names.fold(f.name): f.field_type
        for f in table.fields
        if f.field_id in ids or any(inner.field_id in ids for _, inner in fields_within(f.field_type))
    }
    return any(
        names.fold(name) in retired and spark_types.stored_as(type_) != type_text(retired[names.fold(name)])
        for name, type_ in columns.fields
    )


def _stored(columns: spark_types.Struct) -> list[tuple[str, str]]:
    return [(name, spark_types.stored_as(type_)) for name, type_ in columns.fields]
