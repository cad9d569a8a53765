"""The adapter class: it brings catalog, planning and SQL together, and decides nothing itself."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import Any, Optional

from dbt.adapters.base.meta import available
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.spark.impl import SparkConfig
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.clauses import ClausesAdapter
from dbt.adapters.sparkevolve.column import SparkEvolveColumn
from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.errors import SettingError
from dbt.adapters.sparkevolve.evolution import names
from dbt.adapters.sparkevolve.evolution.table_properties import FORMAT_VERSION, property_text
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.load.planning import DEFAULT_FILE_FORMAT
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import SETTINGS, STRATEGIES
from dbt.adapters.sparkevolve.spark.connections import SparkEvolveConnectionManager
from dbt.adapters.sparkevolve.spark.sql_settings import ESCAPED_LITERALS, SUBSTITUTE
from dbt.adapters.sparkevolve.sql import ddl, values

# Rows of a seed in one statement.
SEED_BATCH = 10_000
# Merge-on-read: a small batch into a large table writes the batch, not the files that it touches.
# Iceberg has it from format version 2 on.
_MERGE_ON_READ = dict.fromkeys(
    ("write.delete.mode", "write.update.mode", "write.merge.mode"), "merge-on-read"
)
DEFAULT_TABLE_PROPERTIES = {
    "format-version": "2",
    # Each run makes some commits, and each commit a metadata file as large as the table's history.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}


@dataclass
class SparkEvolveConfig(SparkConfig):
    """Model configuration that this adapter adds; the macros say what each value means."""

    file_format: str = DEFAULT_FILE_FORMAT
    tblproperties: Optional[dict[str, Any]] = None
    commit_retries: int = 4
    publish: str = "branch"


class SparkEvolveAdapter(ClausesAdapter):
    """dbt-spark on an Iceberg catalog, with columns that never go away."""

    Relation = SparkEvolveRelation
    Column = SparkEvolveColumn
    ConnectionManager = SparkEvolveConnectionManager
    AdapterSpecificConfigs = SparkEvolveConfig

    _capabilities = CapabilityDict(
        {Capability.MicrobatchConcurrency: CapabilitySupport(support=Support.Full)}
    )

    def __init__(self, config: Any, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        credentials: SparkEvolveCredentials = config.credentials
        # `dbt debug` hands over a profile without a project.
        credentials.set_base_dir(Path(getattr(config, "project_root", None) or Path.cwd()))
        self.catalog = IcebergCatalog(
            credentials.catalog_settings(), self.connections.cancellation, credentials.catalog_timeout
        )
        self.connections.watch_catalog(self.catalog.check, self.catalog.check_after)

    @available.parse(lambda *a, **k: [])
    def schema_history(self, relation: SparkEvolveRelation) -> list[dict[str, Any]]:
        """Return all schemas that a table has had, oldest first.

        Returns:
            For each ``schema_id``, ``is_current``, ``at`` (ISO 8601 or empty), ``invocation_id`` (of the run
            of ours that made it, or empty), ``source`` (a fingerprint of what the model returned then, or
            empty), ``changes`` (texts), ``columns`` (``id``, ``name``, ``type``).
        """
        return self.catalog.schema_history(relation)

    @available.parse_none
    def persist_iceberg_docs(
        self,
        relation: SparkEvolveRelation,
        comment: str | None,
        column_docs: Mapping[str, str],
        config: Any,
    ) -> None:
        """Store changed descriptions of a table and its columns in one commit; none if none changed.

        Args:
            relation: the table.
            comment: its description; None if it is not to be stored.
            column_docs: the descriptions of its columns.
            config: dbt's object of the node's configuration, for ``commit_retries``.
        """
        retries = SETTINGS["commit_retries"].value(config, config.model.unique_id)

        def through_spark(comment: str | None, changed: Mapping[str, str]) -> None:
            texts = {name: self.string_literal(doc) for name, doc in changed.items()}
            of_table = None if comment is None else self.string_literal(comment)
            for sql in ddl.describe(str(relation), of_table, texts):
                self.execute(sql)

        docs = {names.fold(name): doc for name, doc in column_docs.items()}
        self.catalog.set_docs(relation, comment, docs, retries, through_spark)

    # SQL text

    @available.parse(lambda *a, **k: [])
    def seed_queries(self, table: Any, column_types: Mapping[str, str]) -> list[str]:
        """Return queries that together return a seed's rows; at least one, which may be without rows.

        Args:
            table: the rows, as an agate table.
            column_types: Spark SQL types by column name; that of another column follows from its values.
        """
        columns = list(table.column_names)
        types = [
            self.type_name(name, column_types.get(name) or str(self.convert_type(table, index)))
            for index, name in enumerate(columns)
        ]
        rows = [list(row.values()) for row in table.rows]
        return [
            values.values_query(columns, types, rows[start : start + SEED_BATCH])
            for start in range(0, max(len(rows), 1), SEED_BATCH)
        ]

    @classmethod
    def quote(cls, identifier: str) -> str:
        """Return a name in backticks."""
        return names.quote(identifier)

    @available.parse(lambda *a, **k: "''")
    def string_literal(self, text: str) -> str:
        """Return a text as a Spark SQL literal, also where no expression may stand, such as in COMMENT.

        Raises:
            SettingError: under the session's settings there is none.
        """
        if names.is_plain(text):
            return f"'{text}'"
        verbatim, substitutes = (self._is_on(name) for name in (ESCAPED_LITERALS, SUBSTITUTE))
        literal = names.constant_literal(text, verbatim=verbatim, substitutes=substitutes)
        if literal is None:
            raise SettingError(
                ESCAPED_LITERALS, "true", f"Spark SQL has no literal for this text then: {text!r}."
            )
        return literal

    def _is_on(self, setting: str) -> bool:
        return (self._setting(setting) or "").strip().lower() == "true"

    @available.parse(lambda *a, **k: {})
    def table_properties(
        self, configured: Mapping[str, Any] | None, relation: SparkEvolveRelation
    ) -> dict[str, str]:
        """Return the properties of a new Iceberg table: the model's ``tblproperties`` over our defaults.

        Args:
            configured: the model's.
            relation: the table, which it may replace: Iceberg takes no format version back.
        """
        given = {str(key): property_text(value) for key, value in (configured or {}).items()}
        modes = {} if given.get(FORMAT_VERSION, "").strip() == "1" else _MERGE_ON_READ
        defaults = {**DEFAULT_TABLE_PROPERTIES, **modes}
        if FORMAT_VERSION not in given and self.catalog.is_newer_format(relation):
            del defaults[FORMAT_VERSION]
        return {**defaults, **given}

    def debug_query(self) -> None:
        """Prove for ``dbt debug`` that Spark answers, and that PyIceberg sees the same catalog as Spark.

        Raises:
            DbtRuntimeError: what one makes, the other does not see.
        """
        probe = self.Relation.create(
            database=self.catalog.name, schema=f"sparkevolve_debug_{uuid.uuid4().hex[:12]}"
        ).without_identifier()
        self.execute(f"create schema {probe}")
        try:
            if not self.catalog.namespace_exists(str(probe.schema)):
                raise DbtRuntimeError(
                    f"Spark's catalog `{self.catalog.name}` is not the one that `catalog_properties` of the "
                    f"profile describe: PyIceberg does not see a schema that Spark has just made ({probe}). "
                    "Make `catalog_properties` say what the server's spark.sql.catalog."
                    f"{self.catalog.name}.* settings say."
                )
        finally:
            self.execute(f"drop schema {probe}")

    def valid_incremental_strategies(self) -> list[str]:
        """Return the strategies that load into a table without losing a column."""
        return [str(strategy) for strategy in STRATEGIES]
