"""Settings of the profile with which Spark does not start, or goes on without what they name."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from dbt.adapters.sparkevolve.errors import ProfileError
from dbt.adapters.sparkevolve.evolution.table_properties import property_text
from dbt.adapters.sparkevolve.redaction import safe
from dbt.adapters.sparkevolve.spark.jars import ICEBERG_RUNTIMES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSIONS = "spark.sql.extensions"

_MEMORY = "spark.driver.memory"
# As Java's -Xmx takes it.
_HEAP = re.compile(r"([1-9]\d*)([kmgt]?)", re.IGNORECASE)
_BYTES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
# Spark's own limit: one and a half times the 300 MiB that it reserves.
_LEAST = 450 * _BYTES["m"]
_RUNTIME = re.compile(r"iceberg-spark-runtime-([\d.]+)_[\d.]+")
_PATTERN = re.compile(r"[*?\[{]")


def check_settings(spark_config: Mapping[str, Any], spark_version: str) -> None:
    """See whether Spark can start with what the profile says of its memory and its jars.

    Args:
        spark_config: the profile's.
        spark_version: such as ``4.1.4``.

    Raises:
        ProfileError: it cannot, or would do without a jar in silence.
    """
    said = {str(key): property_text(value) for key, value in spark_config.items()}
    _check_memory(said.get(_MEMORY))
    _check_files(said.get("spark.jars", ""))
    for setting in ("spark.jars", "spark.jars.packages"):
        _check_runtime(setting, said.get(setting, ""), spark_version)


def check_extensions(session: "SparkSession", config: Mapping[str, str]) -> None:
    """See whether Spark can use the classes that are to extend it: it passes over one that it cannot.

    An authoriser's would let everybody in by that.

    Args:
        session: the session.
        config: what it is to have.

    Raises:
        ProfileError: no jar has one of them, it is no extension, or lacks a class that it needs itself.
    """
    from py4j.protocol import Py4JJavaError

    stated = ",".join((config.get(EXTENSIONS, ""), session.conf.get(EXTENSIONS, "") or ""))
    for name in filter(None, map(str.strip, stated.split(","))):
        try:
            is_extension = _extend_nothing(session, name)
        except Py4JJavaError as exc:
            kind = exc.java_exception.getClass().getName()
            if kind == "java.lang.ClassNotFoundException":
                raise _useless_extension(name, "no jar of Spark's has such a class") from safe(exc)
            if kind == "java.lang.NoClassDefFoundError":
                why = f"it needs what no jar of Spark's has ({exc.java_exception.getMessage()})"
                raise _useless_extension(name, why) from safe(exc)
            # With any other error, Spark does not start.
            continue
        if not is_extension:
            raise _useless_extension(name, "that class is no extension of Spark's")


def _extend_nothing(session: "SparkSession", name: str) -> bool:
    """Do with an extension what Spark does, to a set of them that nobody uses; tell whether it is one."""
    java: Any = session._jvm
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    found = java.java.lang.Class.forName(name, True, loader)
    if not java.java.lang.Class.forName("scala.Function1", False, loader).isAssignableFrom(found):
        return False
    found.newInstance().apply(java.org.apache.spark.sql.SparkSessionExtensions())
    return True


def _useless_extension(name: str, why: str) -> ProfileError:
    return ProfileError(
        "spark_config",
        f"`spark.sql.extensions` names {name}, and {why}: Spark would go on without it. Name its jar in "
        "`spark.jars` or `spark.jars.packages`, or take it out.",
    )


def _check_memory(said: str | None) -> None:
    if said is None:
        return
    heap = _HEAP.fullmatch(said)
    if heap is None:
        raise ProfileError(
            "spark_config",
            f"`{_MEMORY}` in `spark_config` is {said!r}: Java takes a whole number with k, m, g or t behind "
            "it, such as 2g.",
        )
    if int(heap[1]) * _BYTES[heap[2].lower()] < _LEAST:
        raise ProfileError(
            "spark_config",
            f"`{_MEMORY}` in `spark_config` is {said!r}, and Spark does not start with less than 450m.",
        )


def _check_files(jars: str) -> None:
    """See whether the jars on this machine are there: Spark starts without those that are not."""
    for jar in filter(None, map(str.strip, jars.split(","))):
        parts = urlsplit(jar)
        is_local = parts.scheme in ("", "file") and not parts.netloc
        # In an address, a space may be written as %20.
        paths = {parts.path, unquote(parts.path) if parts.scheme else parts.path}
        if is_local and not _PATTERN.search(jar) and not any(Path(path).exists() for path in paths):
            raise ProfileError(
                "spark_config",
                f"`spark.jars` in `spark_config` names {jar}, and there is no such file. A path that does "
                f"not begin with / begins in the folder that dbt is run in, here {Path.cwd()}.",
            )


def _check_runtime(setting: str, jars: str, spark_version: str) -> None:
    line = ".".join(spark_version.split(".")[:2])
    for found in _RUNTIME.finditer(jars):
        if found[1] != line:
            # Of a Spark that Iceberg has no runtime for, that is said later.
            fitting = ICEBERG_RUNTIMES.get(line, "the one that fits")
            raise ProfileError(
                "spark_config",
                f"`{setting}` in `spark_config` has {found[0]}, Iceberg's runtime for Spark {found[1]}, and "
                f"this is Spark {spark_version}. Name {fitting}, or leave it out: it is what a session gets "
                "by itself.",
            )
