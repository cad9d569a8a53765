"""The part of the adapter that writes what a configuration says into SQL, and lets none of it be SQL."""

from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.base.meta import available

from dbt.adapters.sparkevolve import model_config
from dbt.adapters.sparkevolve.errors import DdlError, SeveralStatementsError
from dbt.adapters.sparkevolve.load.finishing import FinishingAdapter
from dbt.adapters.sparkevolve.sql import ddl, splitting


class ClausesAdapter(FinishingAdapter):
    """The part of the adapter that writes what a configuration says into SQL."""

    @available
    def one_statement(self, sql: str) -> str:
        """Return a query without the semicolon and the comments at its end, so that SQL can follow it.

        Raises:
            SeveralStatementsError: there is another statement.
        """
        found = splitting.split_statements(sql)
        if len(found) > 1:
            raise SeveralStatementsError(len(found))
        return found[0] if found else sql

    @available
    def partition_sql(self, partition_by: str | Sequence[str]) -> str:
        """Return what a table is partitioned by, or clustered by, as it stands between brackets in DDL."""
        return ", ".join(ddl.partition_sql(partition_by))

    @available
    def format_name(self, file_format: str) -> str:
        """Return the name of a table format.

        Raises:
            DdlError: it is no word.
        """
        if not ddl.is_word(file_format):
            raise DdlError("file_format", file_format, "the name of a format, such as `iceberg`")
        return file_format

    @available
    def other_primary_key(self, options: Mapping[str, Any], unique_key: Any) -> str:
        """Return what to say of a Hudi table whose key is not its model's; empty if it is the same."""
        return model_config.other_primary_key(options, unique_key)

    @available
    def type_name(self, column: str, type_: str) -> str:
        """Return the type that a model or seed gives a column.

        Raises:
            DdlError: it is more than a type.
        """
        if not ddl.is_type(type_):
            raise DdlError(f"column_types of {column}", type_, "a type of Spark's, such as `decimal(10,2)`")
        return type_
