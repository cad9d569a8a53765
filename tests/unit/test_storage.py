"""What Spark reads a catalog's files with, and the jars that this takes."""

import pytest

from dbt.adapters.sparkevolve.iceberg.storage import bundles, file_io, is_hadoops

S3 = "org.apache.iceberg.aws.s3.S3FileIO"
GCS = "org.apache.iceberg.gcp.gcs.GCSFileIO"
ADLS = "org.apache.iceberg.azure.adlsv2.ADLSFileIO"
HADOOP = "org.apache.iceberg.hadoop.HadoopFileIO"
RESOLVING = "org.apache.iceberg.io.ResolvingFileIO"
AWS, GCP, AZURE = ("iceberg-aws-bundle",), ("iceberg-gcp-bundle",), ("iceberg-azure-bundle",)
SIGNED = {"rest.sigv4-enabled": "true"}


@pytest.mark.parametrize(
    ("kind", "given", "io", "jars"),
    [
        *(
            (kind, {"warehouse": f"{scheme}://b/w"}, io, jars)
            for kind in ("sql", "hive", "glue")
            for scheme, io, jars in [
                *((scheme, S3, AWS) for scheme in ("s3", "s3a", "s3n", "S3")),
                *(("gs", GCS, GCP) for _ in range(kind != "glue")),
                *((scheme, ADLS, AZURE) for scheme in ("abfs", "abfss", "wasb", "wasbs") if kind != "glue"),
            ]
        ),
        # A server says of each table where it is.
        ("rest", {"warehouse": "s3://b/w"}, RESOLVING, AWS),
        ("rest", {"warehouse": "gs://b/w"}, RESOLVING, GCP),
        ("rest", {"warehouse": "lake"}, None, ()),
        ("rest", {"warehouse": "lake", "s3.endpoint": "http://h"}, None, AWS),
        ("rest", {"warehouse": "lake", "client.region": "r"}, None, AWS),
        ("rest", {"warehouse": "lake", "gcs.project-id": "p"}, None, GCP),
        ("rest", {"warehouse": "lake", "adls.account-name": "a"}, None, AZURE),
        ("rest", {"warehouse": "arn:aws:s3tables:r:1:bucket/b", **SIGNED}, None, AWS),
        ("rest", {"rest.sigv4-enabled": "false"}, None, ()),
        ("rest", {"rest.auth.type": "sigv4"}, None, AWS),
        # Glue reads S3 unless its warehouse is elsewhere, and its own client is among the jars for S3.
        ("glue", {}, None, AWS),
        ("glue", {"warehouse": "file:///w"}, HADOOP, AWS),
        ("glue", {"warehouse": "gs://b/w"}, GCS, (*AWS, *GCP)),
        # Schemas that have their places of their own.
        ("hive", {"s3.access-key-id": "a"}, RESOLVING, AWS),
        ("hive", {"client.pool.cache.eviction-interval-ms": "1"}, None, ()),
        # What the others do anyway.
        *(
            (kind, {"warehouse": where}, None, ())
            for kind in ("sql", "hive", "rest")
            for where in ("/w", "w")
        ),
        *((kind, {"warehouse": "file:///w"}, None, ()) for kind in ("sql", "hive")),
        ("hive", {"warehouse": "hdfs://n/w"}, None, ()),
        # The user's own choice is said to Spark as it is.
        ("sql", {"warehouse": "s3://b/w", "io-impl": HADOOP}, None, AWS),
        ("hive", {"warehouse": "/w", "io-impl": GCS}, None, GCP),
    ],
)
def test_what_files_are_read_with(
    kind: str, given: dict[str, str], io: str | None, jars: tuple[str, ...]
) -> None:
    assert (file_io(kind, given), bundles(kind, given)) == (io, jars)


@pytest.mark.parametrize(
    ("warehouse", "setting", "is_so"),
    [
        ("s3a://b/w", "spark.hadoop.fs.s3a.access.key", True),
        ("s3://b/w", "spark.hadoop.fs.s3a.access.key", False),
        ("s3://b/w", "spark.hadoop.fs.s3.impl", True),
        ("gs://b/w", "spark.hadoop.fs.gs.project.id", True),
        ("abfss://c@a/w", "spark.hadoop.fs.azure.account.key.a", True),
        ("s3a://b/w", "spark.hadoop.fs.gs.project.id", False),
        ("s3a://b/w", "spark.driver.memory", False),
    ],
)
def test_what_hadoop_is_set_up_for_stays_hadoop_s(warehouse: str, setting: str, is_so: bool) -> None:
    assert is_hadoops({"warehouse": warehouse}, [setting]) is is_so
