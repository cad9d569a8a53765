"""Which jars Spark needs for Iceberg and its catalog, and which of them an earlier run has downloaded."""

import hashlib
import json
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
# Coordinates that mean the same jars whenever they are looked for.
_FIXED = re.compile(r"[\w.-]+:[\w.-]+:(?!latest)(?![\w.-]*-SNAPSHOT)\d[\w.-]*")
_OF_IVY = ("spark.jars.excludes", "spark.jars.repositories", "spark.jars.ivySettings")
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


def resolved_jars(packages: Sequence[str], ivy_home: Path, asked: Mapping[str, str]) -> list[Path]:
    """Return the files of ``packages`` in Spark's Ivy folder, or nothing unless each one is there.

    Only for packages that are known to need no others, or of which an earlier start has noted what they need,
    and files that are whole: another process may still be writing.

    Args:
        packages: their Maven coordinates.
        ivy_home: the folder in which Spark's Ivy keeps jars.
        asked: the settings of the session.
    """
    alone = {*ICEBERG_RUNTIMES.values(), *JDBC_DRIVERS.values()}
    if not all(package in alone or _BUNDLE.fullmatch(package) for package in packages):
        return _noted_jars(packages, ivy_home, asked)
    names = [_file_name(package) for package in packages]
    for folder in jar_folders(ivy_home):
        jars = [folder / name for name in names]
        if all(zipfile.is_zipfile(jar) for jar in jars):
            return jars
    return []


def note_resolved(jars: str, config: Mapping[str, str], ivy_home: Path) -> None:
    """Note which jars Ivy has found for the packages of a session, so that the next one needs no Ivy.

    Args:
        jars: all jars of the session, as Spark names them.
        config: the settings that it was started with.
        ivy_home: the folder in which Spark's Ivy keeps jars.
    """
    packages = [package.strip() for package in config.get("spark.jars.packages", "").split(",")]
    if not all(map(_FIXED.fullmatch, packages)):
        return
    paths = [Path(jar.strip().removeprefix("file://")) for jar in jars.split(",")]
    for folder in jar_folders(ivy_home):
        names = [path.name for path in paths if path.parent == folder]
        # What is elsewhere the user has named; and such a setting may have taken the place of Spark's list.
        if {_file_name(package) for package in packages} <= set(names):
            try:
                (folder / _note_name(packages, config)).write_text(json.dumps(names))
            except OSError as exc:
                logger.debug(f"Which jars there are was not noted: {exc}")


def _noted_jars(packages: Sequence[str], ivy_home: Path, asked: Mapping[str, str]) -> list[Path]:
    if not all(map(_FIXED.fullmatch, packages)):
        return []
    for folder in jar_folders(ivy_home):
        try:
            names = json.loads((folder / _note_name(packages, asked)).read_text())
        except (OSError, ValueError):
            continue
        jars = [folder / Path(str(name)).name for name in names]
        if jars and all(zipfile.is_zipfile(jar) for jar in jars):
            return jars
    return []


def _file_name(package: str) -> str:
    """Return what Ivy calls the jar of a package in its folder."""
    return "{}_{}-{}.jar".format(*package.split(":"))


def _note_name(packages: Sequence[str], asked: Mapping[str, str]) -> str:
    """Return the name of the note about packages, by all that decides what Ivy finds for them."""
    said = [*packages, *(f"{name}={asked.get(name, '')}" for name in _OF_IVY)]
    return f"dbt-sparkevolve-{hashlib.sha256(chr(10).join(said).encode()).hexdigest()[:16]}.json"


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
