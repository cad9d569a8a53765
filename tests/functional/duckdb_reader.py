"""A third reader of tables, beside Spark and PyIceberg: DuckDB, by a table's metadata file."""

from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg
from pyiceberg.table import Table


def duckdb_rows(table: Table, columns: str = "*", order_by: str = "ALL") -> list[tuple[Any, ...]]:
    """Return the rows that DuckDB reads in a table that lies in files of this machine.

    Args:
        table: the table; its current metadata file is read.
        columns: what is selected, as SQL.
        order_by: by what the rows are sorted, as SQL.
    """
    location = table.metadata_location.removeprefix("file:").replace("///", "/").replace("'", "''")
    # They come from PyPI, without the signature of DuckDB's own server.
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        for extension in (duckdb_extension_avro, duckdb_extension_iceberg):
            connection.execute(f"LOAD '{_file_of(extension)}'")
        sql = f"SELECT {columns} FROM iceberg_scan('{location}') ORDER BY {order_by}"
        return connection.execute(sql).fetchall()


def _file_of(extension: ModuleType) -> Path:
    assert extension.__file__ is not None
    (found,) = Path(extension.__file__).parent.rglob("*.duckdb_extension")
    return found
