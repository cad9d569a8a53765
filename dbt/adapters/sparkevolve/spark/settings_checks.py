"""Settings of the profile with which Spark does not start, or starts without what they name."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from dbt.adapters.sparkevolve.errors import ProfileError
from dbt.adapters.sparkevolve.evolution.table_properties import property_text
from dbt.adapters.sparkevolve.spark.jars import ICEBERG_RUNTIMES

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
