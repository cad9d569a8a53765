"""Which jars Spark needs for Iceberg and its catalog, and which of them an earlier run has downloaded."""

import re
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.sparkevolve.errors import UnsupportedVersionError
from dbt.adapters.sparkevolve.iceberg.catalog_settings import JDBC_DRIVERS

logger = AdapterLogger("SparkEvolve")

# Iceberg's Spark runtime by Spark line: the newest that there is for it. 1.11 is the oldest whose JDBC
# catalog can share a SQLite file (apache/iceberg #15462), and it needs Java 17.
ICEBERG_RUNTIMES = {
    "3.5": "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0",
    "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
    "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}
_RUNTIME = re.compile(r"iceberg-spark-runtime-[\d.]+_[\d.]+[:-](\d+(?:[.]\d+)*)")
# What a bundle is made of, by which a user may have brought it in parts: twice it would clash.
_IN_BUNDLES = {
    "iceberg-aws-bundle": ("software.amazon.awssdk", "awssdk-", "/bundle-2."),
    "iceberg-gcp-bundle": ("com.google.cloud:google-cloud-storage", "google-cloud-storage-"),
    "iceberg-azure-bundle": ("com.azure:azure-storage", "azure-storage-file-datalake-"),
}
_BUNDLE = re.compile(r"org[.]apache[.]iceberg:iceberg-(?:aws|gcp|azure)-bundle:[\d.]+")
# A jar that has not grown for so long is not being written any more.
_STALLED_SECONDS = 5


def iceberg_runtime(spark_version: str) -> str:
    """Return the Maven coordinates of the Iceberg runtime for a Spark version such as ``4.1.4``.

    Raises:
        UnsupportedVersionError: there is no runtime for it.
    """
    line = ".".join(spark_version.split(".")[:2])
    try:
        return ICEBERG_RUNTIMES[line]
    except KeyError:
        raise UnsupportedVersionError(
            "Spark",
            spark_version,
            ", ".join(ICEBERG_RUNTIMES),
            "Iceberg has no runtime for it. Install one of these, such as `pip install 'pyspark>=4.1,<4.2'`.",
        ) from None


def iceberg_version(config: Mapping[str, str]) -> str:
    """Return the version of the Iceberg runtime that a session gets; empty if its jar does not say."""
    found = _RUNTIME.search(",".join(config.get(key, "") for key in ("spark.jars", "spark.jars.packages")))
    return found[1] if found else ""


def bundled(bundles: Sequence[str], jars: str) -> list[str]:
    """Return the Maven coordinates of Iceberg's bundles, in the version of the runtime that Spark gets.

    Args:
        bundles: their names, such as ``iceberg-aws-bundle``.
        jars: coordinates and paths of all jars that Spark gets, the runtime among them. A bundle is left out
            if it is one of them, or if what is in it is.
    """
    runtime = _RUNTIME.search(jars)
    # A runtime that somebody has renamed: the newest bundle fits it as well as any.
    version = runtime[1] if runtime else next(reversed(ICEBERG_RUNTIMES.values())).rpartition(":")[2]
    return [
        f"org.apache.iceberg:{name}:{version}"
        for name in bundles
        if not any(part in jars for part in (name, *_IN_BUNDLES[name]))
    ]


def resolved_jars(packages: Sequence[str], ivy_home: Path) -> list[Path]:
    """Return the files of ``packages`` in Spark's Ivy folder, or nothing unless each one is there.

    Only for packages known to need no others, and files that are whole: another process may still be writing.
    """
    alone = {*ICEBERG_RUNTIMES.values(), *JDBC_DRIVERS.values()}
    if not all(package in alone or _BUNDLE.fullmatch(package) for package in packages):
        return []
    names = ["{}_{}-{}.jar".format(*package.split(":")) for package in packages]
    for folder in jar_folders(ivy_home):
        jars = [folder / name for name in names]
        if all(zipfile.is_zipfile(jar) for jar in jars):
            return jars
    return []


def remove_broken_jars(packages: Sequence[str], ivy_home: Path) -> None:
    """Remove jars that a run which was killed has written in part: Ivy takes what is there, ever after.

    The directory of a jar is at its end, so one that has it is whole. One that another process is writing
    has just changed, and is left alone.
    """
    for package in packages:
        group, artifact, version, *_ = [*package.split(":"), "", ""]
        for folder in jar_folders(ivy_home):
            cached = folder.parent / "cache" / group / artifact / "jars" / f"{artifact}-{version}.jar"
            for jar in (folder / f"{group}_{artifact}-{version}.jar", cached):
                try:
                    if time.time() - jar.stat().st_mtime > _STALLED_SECONDS and not zipfile.is_zipfile(jar):
                        jar.unlink()
                        logger.info(f"Removed {jar}, which is not a whole jar: it is downloaded again")
                except OSError:
                    continue


def jar_folders(ivy_home: Path) -> list[Path]:
    """Return the folders in which Spark's Ivy keeps jars, below its home."""
    return [ivy_home / "jars", *sorted(ivy_home.glob(".ivy2*/jars"))]
