"""What runs: the versions that an error is about as often as not, for `dbt debug`."""

from importlib.metadata import version

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.evolution.names import quote
from dbt.adapters.sparkevolve.spark.interface import Spark

_UNKNOWN = "not told"


def versions(spark: Spark, catalog: str) -> str:
    """Return the versions of Spark, its Java and its Iceberg, and of PyIceberg, as one line.

    Args:
        spark: the session or server that is asked.
        catalog: the name of an Iceberg catalog in it.
    """
    java = _answer(spark, "select java_method('java.lang.System', 'getProperty', 'java.version')")
    iceberg = _answer(spark, f"select {quote(catalog)}.system.iceberg_version()")
    # `4.1.4 3da5ea60…`: the commit matters to nobody.
    spark_version = _answer(spark, "select version()").partition(" ")[0]
    return f"Spark {spark_version}, Java {java}, Iceberg {iceberg}, PyIceberg {version('pyiceberg')}"


def _answer(spark: Spark, sql: str) -> str:
    """Return the one value of a query; a server may have forbidden such functions."""
    try:
        return str(spark.rows(sql)[0][0])
    except DbtRuntimeError:
        return _UNKNOWN
