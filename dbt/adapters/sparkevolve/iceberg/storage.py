"""Where a catalog's files are, what Spark reads them with, and the jars that this takes; pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Storage:
    """A kind of storage.

    Attributes:
        file_io: Iceberg's class that reads and writes its files.
        bundle: Iceberg's jar with what that class needs, such as ``iceberg-aws-bundle``; empty for none.
        prefixes: how properties begin that are about this storage.
    """

    file_io: str
    bundle: str
    prefixes: tuple[str, ...] = ()


_S3 = Storage("org.apache.iceberg.aws.s3.S3FileIO", "iceberg-aws-bundle", ("s3.", "client.", "glue."))
_GCS = Storage("org.apache.iceberg.gcp.gcs.GCSFileIO", "iceberg-gcp-bundle", ("gcs.", "gcp."))
_AZURE = Storage("org.apache.iceberg.azure.adlsv2.ADLSFileIO", "iceberg-azure-bundle", ("adls.", "azure."))
_HADOOP = Storage("org.apache.iceberg.hadoop.HadoopFileIO", "")
# By the scheme of an address.
STORAGES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), _S3),
    "gs": _GCS,
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), _AZURE),
    **dict.fromkeys(("file", "hdfs", "viewfs"), _HADOOP),
}
# A scheme that is Hadoop's too -> how Spark's settings begin by which Hadoop reads it.
_HADOOP_SETTINGS = {
    "s3": "spark.hadoop.fs.s3.",
    "s3a": "spark.hadoop.fs.s3a.",
    "gs": "spark.hadoop.fs.gs.",
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), "spark.hadoop.fs.azure."),
}
_CLOUDS = (_S3, _GCS, _AZURE)
# It asks each address for its scheme.
_RESOLVING = "org.apache.iceberg.io.ResolvingFileIO"


def scheme_of(given: Mapping[str, Any]) -> str:
    """Return the scheme of the warehouse's address, in lower case; empty if it has none, or is a name."""
    before, found, _ = str(given.get("warehouse", "")).partition(":/")
    return before.lower() if found else ""


def file_io(kind: str, given: Mapping[str, Any]) -> str | None:
    """Return the class that Spark is to read a catalog's files with; None if it says so, or may choose.

    Args:
        kind: PyIceberg's ``type`` of the catalog, in lower case.
        given: the profile's properties of it.
    """
    if "io-impl" in given:
        return None
    storage = STORAGES.get(scheme_of(given))
    if storage is not None:
        # A server says of each table where it is, which need not be in the warehouse.
        if kind == "rest":
            return _RESOLVING
        # What the other catalogs take anyway.
        return None if storage is _HADOOP and kind != "glue" else storage.file_io
    if kind in ("rest", "glue") or not _mentioned(given):
        return None
    return _RESOLVING


def is_hadoops(warehouse: Mapping[str, Any], settings: Iterable[str]) -> bool:
    """Tell whether the files of a warehouse are read through Hadoop, which is set up for its scheme.

    Args:
        warehouse: the properties of the catalog.
        settings: the names of the profile's own settings of Spark.
    """
    begins = _HADOOP_SETTINGS.get(scheme_of(warehouse))
    return begins is not None and any(name.startswith(begins) for name in settings)


def bundles(kind: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return Iceberg's jars that the catalog needs beside its runtime, in one order.

    Args:
        kind: PyIceberg's ``type`` of the catalog, in lower case.
        given: the profile's properties of it.
    """
    storage = STORAGES.get(scheme_of(given))
    needed = {storage.bundle} if storage is not None else set()
    needed |= {cloud.bundle for cloud in _CLOUDS if cloud.file_io == given.get("io-impl")}
    # What is said of a storage is said since there is something in it.
    needed |= {cloud.bundle for cloud in _mentioned(given)}
    signs = (
        str(given.get("rest.sigv4-enabled", "")).lower() == "true" or given.get("rest.auth.type") == "sigv4"
    )
    if kind == "glue" or signs:
        needed.add(_S3.bundle)
    return tuple(cloud.bundle for cloud in _CLOUDS if cloud.bundle in needed)


def _mentioned(given: Mapping[str, Any]) -> list[Storage]:
    # A pool of clients is one of connections to a Hive metastore.
    names = [str(name) for name in given if not str(name).startswith("client.pool.")]
    return [cloud for cloud in _CLOUDS if any(name.startswith(cloud.prefixes) for name in names)]
