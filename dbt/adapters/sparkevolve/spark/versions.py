"""What runs: the versions that an error is about as often as not, for `dbt debug`."""

from importlib.metadata import version

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.evolution.names import quote
from dbt.adapters.sparkevolve.spark.interface import Spark


def versions(spark: Spark, catalog: str) -> str:
    """Return the versions of Spark, its Java and its Iceberg, and of PyIceberg, as one line.

    Args:
        spark: the session or server that is asked.
        catalog: the name of an Iceberg catalog in it.
    """
    asked = {
        "Spark": "version()",
        "Java": "java_method('java.lang.System', 'getProperty', 'java.version')",
        "Iceberg": f"{quote(catalog)}.system.iceberg_version()",
    }
    told = [_told(spark, name, function) for name, function in asked.items()]
    return ", ".join([*told, f"PyIceberg {version('pyiceberg')}"])


def _told(spark: Spark, name: str, function: str) -> str:
    """Return what a function says of the version of a program; a server may have forbidden it."""
    try:
        answer = str(spark.rows(f"select {function}")[0][0])
    except DbtRuntimeError:
        return f"{name} version unknown"
    # `4.1.4 3da5ea60…`: the commit matters to nobody.
    return f"{name} {answer.partition(' ')[0]}"
