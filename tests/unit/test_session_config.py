"""Settings of the in-process session."""

import pwd
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from dbt.adapters.sparkevolve.errors import ProfileError
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings, resolve
from dbt.adapters.sparkevolve.redaction import SECRETS_OF_SPARK
from dbt.adapters.sparkevolve.spark.session_config import check_warehouses, session_config

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
RUNTIME_41 = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
SQLITE_DRIVER = "org.xerial:sqlite-jdbc:3.50.3.0"
BASE = Path("/project")
EMBEDDED = resolve("lake", {}, BASE)
REST = resolve("lake", {"type": "rest", "uri": "http://h"}, BASE)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder in which no run has resolved any jar."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_dir=str(folder)))
    return folder


def config(spark_config: dict[str, object], settings: CatalogSettings = EMBEDDED) -> dict[str, str]:
    return session_config(settings, spark_config, "4.1.4", BASE)


def test_the_session_of_a_bare_profile() -> None:
    assert config({}) == {
        "spark.app.name": "dbt-sparkevolve",
        "spark.master": "local[*]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.redaction.regex": SECRETS_OF_SPARK,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": "file:///project/.sparkevolve/spark-warehouse",
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.defaultCatalog": "lake",
        "spark.sql.variable.substitute": "false",
        **EMBEDDED.spark,
        "spark.jars.packages": f"{RUNTIME_41},{SQLITE_DRIVER}",
    }


def test_what_the_profile_says_wins() -> None:
    given = {
        "spark.master": "local[2]",
        "spark.sql.defaultCatalog": "other",
        "spark.sql.catalog.lake.cache-enabled": True,
        "spark.sql.shuffle.partitions": 3,
        "spark.x": False,
    }
    assert config(given) == {
        **config({}),
        "spark.master": "local[2]",
        "spark.sql.defaultCatalog": "other",
        "spark.sql.catalog.lake.cache-enabled": "true",
        "spark.sql.shuffle.partitions": "3",
        "spark.x": "false",
    }


def test_executors_elsewhere_reach_the_driver() -> None:
    """At the address that Spark finds for this machine, unless the profile has one."""
    there = config({"spark.master": "spark://head:7077"})
    assert there["spark.master"] == "spark://head:7077"
    assert not {"spark.driver.host", "spark.driver.bindAddress"} & there.keys()
    named = config({"spark.master": "yarn", "spark.driver.host": "gateway.internal"})
    assert named["spark.driver.host"] == "gateway.internal"
    assert config({"spark.master": " local[2] "})["spark.driver.host"] == "127.0.0.1"


def test_the_profile_itself_is_left_as_it_is() -> None:
    given = {"spark.jars.packages": "a:b:1", "spark.sql.extensions": "mine"}
    config(given)
    assert given == {"spark.jars.packages": "a:b:1", "spark.sql.extensions": "mine"}


@pytest.mark.parametrize(
    ("given", "extensions"),
    [
        ("com.example.Mine", f"com.example.Mine,{EXTENSIONS}"),
        (EXTENSIONS, EXTENSIONS),
        (f"{EXTENSIONS},com.example.Mine", f"{EXTENSIONS},com.example.Mine"),
    ],
)
def test_icebergs_extensions_join_those_of_the_user(given: str, extensions: str) -> None:
    assert config({"spark.sql.extensions": given})["spark.sql.extensions"] == extensions


@pytest.mark.parametrize(
    ("given", "packages"),
    [
        ({}, f"{RUNTIME_41},{SQLITE_DRIVER}"),
        ({"spark.jars.packages": ""}, f"{RUNTIME_41},{SQLITE_DRIVER}"),
        ({"spark.jars.packages": "a:b:1, c:d:2 ,"}, f"a:b:1,c:d:2,{RUNTIME_41},{SQLITE_DRIVER}"),
        (
            {"spark.jars.packages": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"},
            f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0,{SQLITE_DRIVER}",
        ),
        ({"spark.jars": "/opt/iceberg-spark-runtime-4.1_2.13-1.11.0.jar"}, SQLITE_DRIVER),
        (
            {"spark.jars.packages": "org.xerial:sqlite-jdbc:3.46.0.0"},
            f"org.xerial:sqlite-jdbc:3.46.0.0,{RUNTIME_41}",
        ),
        ({"spark.jars": "/opt/sqlite-jdbc.jar,/opt/x.jar"}, RUNTIME_41),
    ],
)
def test_jars_of_the_user_are_loaded_beside_ours_or_in_their_place(
    given: dict[str, object], packages: str
) -> None:
    assert config(given)["spark.jars.packages"] == packages
    assert config(given).get("spark.jars") == given.get("spark.jars")


def test_a_user_who_brings_all_jars_needs_no_packages() -> None:
    jars = "/opt/iceberg-spark-runtime-4.1_2.13-1.11.0.jar,/opt/sqlite-jdbc-3.50.jar"
    assert "spark.jars.packages" not in config({"spark.jars": jars})
    assert config({"spark.jars": jars})["spark.jars"] == jars


def test_a_catalog_without_a_database_needs_icebergs_runtime_only() -> None:
    assert config({}, REST)["spark.jars.packages"] == RUNTIME_41


S3 = resolve("lake", {"type": "hive", "uri": "thrift://h:1", "warehouse": "s3a://b/w"}, BASE)
S3_FILE_IO = "org.apache.iceberg.aws.s3.S3FileIO"


def test_what_reads_the_files_follows_from_the_warehouse() -> None:
    found = config({}, S3)
    assert found["spark.sql.catalog.lake.io-impl"] == S3_FILE_IO
    assert found["spark.jars.packages"] == f"{RUNTIME_41},org.apache.iceberg:iceberg-aws-bundle:1.12.0"


@pytest.mark.parametrize(
    "runtime",
    [
        {"spark.jars.packages": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"},
        {"spark.jars": "/jars/iceberg-spark-runtime-4.1_2.13-1.11.0.jar"},
    ],
)
def test_a_bundle_has_the_version_of_the_user_s_runtime(runtime: dict[str, object]) -> None:
    packages = config(runtime, S3)["spark.jars.packages"].split(",")
    assert "org.apache.iceberg:iceberg-aws-bundle:1.11.0" in packages
    assert not any("1.12" in package for package in packages)


def test_a_bundle_that_the_user_brings_in_parts_is_not_loaded_beside_them() -> None:
    parts = "software.amazon.awssdk:bundle:2.29.0,software.amazon.awssdk:url-connection-client:2.29.0"
    assert config({"spark.jars.packages": parts}, S3)["spark.jars.packages"] == f"{parts},{RUNTIME_41}"


def test_a_bundle_that_the_user_brings_is_not_loaded_twice() -> None:
    found = config({"spark.jars": "/jars/iceberg-aws-bundle-1.12.0.jar"}, S3)
    assert found["spark.jars.packages"] == RUNTIME_41
    assert found["spark.sql.catalog.lake.io-impl"] == S3_FILE_IO


def test_files_that_hadoop_is_set_up_for_are_read_through_it() -> None:
    found = config({"spark.hadoop.fs.s3a.access.key": "a"}, S3)
    assert "spark.sql.catalog.lake.io-impl" not in found
    assert found["spark.jars.packages"] == RUNTIME_41


def test_spark_s_own_catalog_is_the_metastore() -> None:
    properties = {"type": "hive", "uri": "thrift://h:1", "warehouse": "hdfs://n/w"}
    found = config({}, resolve("spark_catalog", properties, BASE))
    assert found["spark.sql.catalog.spark_catalog"] == "org.apache.iceberg.spark.SparkSessionCatalog"
    assert found["spark.sql.catalogImplementation"] == "hive"
    assert found["spark.hadoop.hive.metastore.uris"] == "thrift://h:1"
    assert found["spark.sql.warehouse.dir"] == "hdfs://n/w"
    rest = {"type": "rest", "uri": "http://h"}
    for other in (resolve("lake", properties, BASE), resolve("spark_catalog", rest, BASE)):
        assert config({}, other)["spark.sql.catalogImplementation"] == "in-memory"


def test_spark_shows_no_secret_of_a_catalog() -> None:
    shown = re.compile(config({})["spark.redaction.regex"])
    secrets = [
        *("s3.access-key-id", "s3.secret-access-key", "s3.session-token", "rest.access-key-id", "token"),
        *(
            "credential",
            "rest.auth.basic.password",
            "jdbc.password",
            "header.Authorization",
            "header.X-Api-Key",
        ),
        *("adls.auth.shared-key.account.key", "adls.sas-token.a", "adls.connection-string.a", "s3.sse.key"),
        *("gcs.oauth2.token", "gcs.encryption-key", "gcs.decryption-key", "gcp.auth.credentials-json"),
        *("aws.accessKeyId", "aws.secretAccessKey", "aws.sessionToken", "spark.ssl.keyPassword"),
        *("header.Cookie", "header.X-Auth-Key", "header.Ocp-Apim-Subscription-Key", "header.X-Session-Id"),
        *("adls.account-key", "fs.gs.auth.service.account.private.key", "fs.azure.sas.c.a.blob", "kms.key"),
        # values
        *("https://me:abc@h/repository", "http://me:a@proxy:80", "-Da.password=abc", "-Da=http://me:abc@h"),
    ]
    assert [name for name in secrets if shown.search(name) is None] == []
    plain = [
        *("uri", "warehouse", "io-impl", "client.region", "s3.endpoint", "s3.path-style-access", "type"),
        *(
            "header.X-Iceberg-Access-Delegation",
            "https://h:80/a@b",
            "jdbc:postgresql://h:5432/db?sslmode=require",
        ),
        *("thrift://a:9083,thrift://b:9083", "abfss://data@acct.dfs.core.windows.net/t", "rest.auth.type"),
    ]
    assert [name for name in plain if shown.search(name)] == []


def test_a_sql_catalog_needs_a_warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = resolve("lake", {"type": "SQL", "uri": "postgresql:///lake"}, BASE)
    key = "spark.sql.catalog.lake.warehouse"
    with pytest.raises(ProfileError) as refused:
        check_warehouses((REST, bare), {**REST.spark, **bare.spark})
    assert refused.value.setting == "catalog_properties"
    assert str(refused.value.msg).endswith(
        "has the type 'sql' and no `warehouse`, without which Spark cannot open it: the folder in which new "
        "schemas are made. Give `warehouse` as a whole address, such as s3://bucket/warehouse or "
        "file:///srv/lake/warehouse."
    )
    check_warehouses((EMBEDDED,), EMBEDDED.spark)
    check_warehouses((bare,), {key: "s3://b/w"})
    # The machine may have its own.
    with monkeypatch.context() as machine:
        machine.setenv("PYSPARK_SUBMIT_ARGS", f"--conf {key}=s3://b/w pyspark-shell")
        check_warehouses((bare,), bare.spark)
    (tmp_path / "spark-defaults.conf").write_text(f"{key} s3://b/w\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    check_warehouses((bare,), bare.spark)
