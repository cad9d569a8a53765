"""What a configuration says, written into SQL so that none of it is SQL of its own."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from dbt_common.invocation import get_invocation_id

from dbt.adapters.sparkevolve import model_config
from dbt.adapters.sparkevolve.errors import DdlError, SettingError, SeveralStatementsError
from dbt.adapters.sparkevolve.evolution import names
from dbt.adapters.sparkevolve.evolution.table_properties import FORMAT_VERSION, property_text
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.spark.interface import Spark
from dbt.adapters.sparkevolve.spark.sql_settings import ESCAPED_LITERALS, SUBSTITUTE
from dbt.adapters.sparkevolve.sql import ddl, splitting, values

# Of a seed's rows in one statement, as text.
SEED_CHARACTERS = 4_000_000
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


class Clauses:
    """Writes the parts of statements that come from a configuration.

    Args:
        spark: where the statements will run: how a text is written depends on its settings.
        catalogs: the catalogs that the profile states.
        convert_type: returns the SQL type of a column of an agate table, by its number.
        spelled: how the columns are spelled by which a new table is partitioned, see ``ddl.partition_sql``.
    """

    def __init__(
        self,
        spark: Spark,
        catalogs: Catalogs,
        convert_type: Callable[[Any, int], str | None],
        spelled: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._spelled = spelled
        self._spark = spark
        self._catalogs = catalogs
        self._convert_type = convert_type

    def one_statement(self, sql: str) -> str:
        """Return a query without the semicolon and the comments at its end, so that SQL can follow it.

        Raises:
            SeveralStatementsError: there is another statement.
        """
        found = splitting.split_statements(sql)
        if len(found) > 1:
            raise SeveralStatementsError(len(found))
        return found[0] if found else sql

    def location(self, relation: SparkEvolveRelation) -> str | None:
        """Return where a table is to be made, if the catalog wants to be told; see ``IcebergCatalog``."""
        return self._catalogs.of(relation.database).location_for(relation)

    def string_literal(self, text: str) -> str:
        """Return a text as a literal where no expression may stand, such as in COMMENT and TBLPROPERTIES.

        Spark reads escapes there whatever ``spark.sql.parser.escapedStringLiterals`` says.
        """
        if names.is_plain(text):
            return f"'{text}'"
        return names.constant_literal(text, substitutes=self._is_on(SUBSTITUTE)) or ""

    def option_literal(self, text: str) -> str:
        """Return a text as the value of an option, which is an expression that has to be a constant.

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

    def descriptions(
        self, relation: SparkEvolveRelation, comment: str | None, columns: Mapping[str, str]
    ) -> list[str]:
        """Return the statements that store descriptions.

        Args:
            relation: a table.
            comment: its description; None if that stays.
            columns: descriptions of columns by name.
        """
        texts = {name: self.string_literal(doc) for name, doc in columns.items()}
        of_table = None if comment is None else self.string_literal(comment)
        return list(ddl.describe(str(relation), of_table, texts))

    def partition_sql(self, partition_by: str | Sequence[str]) -> str:
        """Return what a table is partitioned by, or clustered by, as it stands between brackets in DDL."""
        return ", ".join(ddl.partition_sql(partition_by, self._spelled))

    def format_name(self, file_format: str) -> str:
        """Return the name of a table format.

        Raises:
            DdlError: it is no word.
        """
        if not ddl.is_word(file_format):
            raise DdlError("file_format", file_format, "the name of a format, such as `iceberg`")
        return file_format

    def other_primary_key(self, options: Mapping[str, Any], unique_key: Any) -> str:
        """Return what to say of a Hudi table whose key is not its model's; empty if it is the same."""
        return model_config.other_primary_key(options, unique_key)

    def type_name(self, column: str, type_: str) -> str:
        """Return the type that a model or seed gives a column.

        Raises:
            DdlError: it is more than a type.
        """
        if not ddl.is_type(type_):
            raise DdlError(f"column_types of {column}", type_, "a type of Spark's, such as `decimal(10,2)`")
        return type_

    def seed_queries(self, table: Any, column_types: Mapping[str, str]) -> list[str]:
        """Return queries that together return a seed's rows; at least one, which may be without rows.

        Args:
            table: the rows, as an agate table.
            column_types: Spark SQL types by column name; that of another column follows from its values.
        """
        columns = list(table.column_names)
        types = [
            self.type_name(name, column_types.get(name) or str(self._convert_type(table, index)))
            for index, name in enumerate(columns)
        ]
        rows = [list(row.values()) for row in table.rows]
        return values.values_queries(columns, types, rows, SEED_CHARACTERS)

    def table_properties(
        self,
        configured: Mapping[str, Any] | None,
        relation: SparkEvolveRelation,
        creation: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Return the properties of a new Iceberg table: the model's ``tblproperties`` over our defaults.

        Args:
            configured: the model's.
            relation: the table, which it may replace: Iceberg takes no format version back.
            creation: what it says of where its schema comes from.
        """
        given = {str(key): property_text(value) for key, value in (configured or {}).items()}
        modes = {} if given.get(FORMAT_VERSION, "").strip() == "1" else _MERGE_ON_READ
        defaults = {**DEFAULT_TABLE_PROPERTIES, **modes}
        catalog = self._catalogs.of(relation.database)
        if FORMAT_VERSION not in given and catalog.is_newer_format(relation):
            del defaults[FORMAT_VERSION]
        return {
            **defaults,
            **given,
            **catalog.creation_marks(relation, get_invocation_id()),
            **(creation or {}),
        }

    def _is_on(self, setting: str) -> bool:
        return (self._spark.setting(setting) or "").strip().lower() == "true"
