"""One statement of a catalog, said to PyIceberg and to Spark."""

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from dbt.adapters.sparkevolve.errors import CatalogUnavailableError, ProfileError
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings, Place, resolve

BASE = Path("/project")
SQLITE_DRIVER = "org.xerial:sqlite-jdbc:3.50.3.0"
DELEGATION = "spark.sql.catalog.lake.header.X-Iceberg-Access-Delegation"
POSTGRESQL_DRIVER = "org.postgresql:postgresql:42.7.7"


def spark(settings: CatalogSettings) -> dict[str, str]:
    """Return Spark's settings without the prefix of the catalog; its own class is under the empty name."""
    prefix = f"spark.sql.catalog.{settings.name}"
    assert all(key == prefix or key.startswith(f"{prefix}.") for key in settings.spark)
    return {key.removeprefix(prefix).removeprefix("."): value for key, value in settings.spark.items()}


def refused(properties: dict[str, object], base_dir: Path = BASE) -> str:
    with pytest.raises(ProfileError) as raised:
        resolve("lake", properties, base_dir)
    assert raised.value.setting == "catalog_properties"
    return raised.value.msg


# The embedded catalog


def test_without_properties_the_catalog_is_a_sqlite_file_in_the_project() -> None:
    assert resolve("lake", {}, BASE) == CatalogSettings(
        name="lake",
        pyiceberg={
            "type": "sql",
            "uri": "sqlite:////project/.sparkevolve/catalog.db?timeout=60",
            "warehouse": "file:///project/.sparkevolve/warehouse",
        },
        spark={
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "jdbc",
            "spark.sql.catalog.lake.cache-enabled": "false",
            "spark.sql.catalog.lake.uri": "jdbc:sqlite:/project/.sparkevolve/catalog.db",
            "spark.sql.catalog.lake.warehouse": "file:///project/.sparkevolve/warehouse",
            "spark.sql.catalog.lake.jdbc.schema-version": "V1",
            "spark.sql.catalog.lake.jdbc.busy_timeout": "60000",
        },
        packages=(SQLITE_DRIVER,),
        sqlite_file=Path("/project/.sparkevolve/catalog.db"),
        embedded=True,
    )


@pytest.mark.parametrize("folder", ["my project", "Büro", "a&b=c", "x;y", "semi'quote", "50@home", "a:b"])
def test_the_embedded_catalog_works_in_folders_with_odd_names(tmp_path: Path, folder: str) -> None:
    settings = resolve("lake", {}, tmp_path / folder)
    assert settings.sqlite_file == tmp_path / folder / ".sparkevolve" / "catalog.db"
    assert spark(settings)["uri"] == f"jdbc:sqlite:{settings.sqlite_file}"
    settings.prepare()
    catalog = load_catalog("lake", **settings.pyiceberg)
    catalog.create_namespace("db")
    assert settings.sqlite_file.stat().st_size > 0
    with sqlite3.connect(settings.sqlite_file) as connection:
        assert connection.execute("select namespace from iceberg_namespace_properties").fetchall() == [
            ("db",)
        ]
    connection.close()


@pytest.mark.parametrize("character", ["?", "#", "%"])
def test_the_embedded_catalog_is_refused_in_a_folder_that_a_url_cannot_name(character: str) -> None:
    assert refused({}, Path(f"/a{character}b")) == (
        f"The embedded catalog cannot lie in /a{character}b/.sparkevolve: SQLite's URLs give ?, # and % a "
        f"meaning of "
        "their own. Move the project, or set `catalog_properties`."
    )


def test_a_folder_with_such_a_character_is_fine_for_another_catalog() -> None:
    assert resolve("lake", {"type": "rest", "uri": "http://h"}, Path("/a%b")).sqlite_file is None


# SQL catalogs


def test_a_sqlite_catalog_of_the_user_is_shared_by_its_absolute_path() -> None:
    settings = resolve(
        "lake", {"type": "sql", "uri": "sqlite:////data/my lake/c.db", "warehouse": "s3://bucket/w"}, BASE
    )
    assert settings.pyiceberg == {
        "type": "sql",
        "uri": "sqlite:////data/my lake/c.db?timeout=60",
        "warehouse": "s3://bucket/w",
    }
    assert spark(settings) == {
        "": "org.apache.iceberg.spark.SparkCatalog",
        "type": "jdbc",
        "cache-enabled": "false",
        "uri": "jdbc:sqlite:/data/my lake/c.db",
        "warehouse": "s3://bucket/w",
        "jdbc.schema-version": "V1",
        "jdbc.busy_timeout": "60000",
    }
    assert settings.packages == (SQLITE_DRIVER,)
    assert settings.sqlite_file == Path("/data/my lake/c.db")
    assert not settings.embedded


@pytest.mark.parametrize("started_in", ["project", "elsewhere"])
def test_a_relative_path_begins_in_the_project(
    started_in: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / started_in).mkdir()
    monkeypatch.chdir(tmp_path / started_in)
    project = tmp_path / "project"
    settings = resolve("lake", {"type": "sql", "uri": "sqlite:///c.db"}, project)
    assert settings.sqlite_file == project / "c.db"
    assert settings.pyiceberg["uri"] == f"sqlite:///{project}/c.db?timeout=60"
    assert spark(settings)["uri"] == f"jdbc:sqlite:{project}/c.db"


@pytest.mark.parametrize("kind", ["sql", "hive"])
@pytest.mark.parametrize(
    "warehouse", ["wh", "./wh", "~/wh", "file:wh", "file://wh", "FILE:wh", "file://host/wh", " "]
)
def test_a_warehouse_that_begins_in_the_current_folder_is_refused(kind: str, warehouse: str) -> None:
    assert refused({"type": kind, "uri": "sqlite:////c.db", "warehouse": warehouse}) == (
        f"`warehouse` in `catalog_properties` of the catalog `lake` is {warehouse!r}, which begins in "
        "whatever folder Spark was started in: what is built there could be read from nowhere else. Give the "
        "whole path, such as file:///srv/lake/warehouse."
    )


@pytest.mark.parametrize("warehouse", ["file:///a#b", "s3://bucket/a?b", "hdfs://n/a#b/c"])
def test_a_warehouse_that_pyiceberg_would_cut_off_is_refused(warehouse: str) -> None:
    assert "`?` and `#` end a path for PyIceberg" in refused(
        {"type": "sql", "uri": "sqlite:////c.db", "warehouse": warehouse}
    )


@pytest.mark.parametrize("warehouse", ["file:///w\n", " /w", "s3://b/w "])
def test_a_warehouse_with_a_space_around_it_is_refused(warehouse: str) -> None:
    assert refused({"type": "sql", "uri": "sqlite:////c.db", "warehouse": warehouse}) == (
        f"`warehouse` in `catalog_properties` of the catalog `lake` is {warehouse!r}, with a space or the "
        "end of a line before or after it, which would be part of each path. Take it away, such as with "
        "`env_var('WAREHOUSE') | trim`."
    )


@pytest.mark.parametrize("warehouse", ["s3:/b/w", "s3://", "gs:/b", "abfss:/c@a.dfs.core.windows.net/w"])
def test_a_warehouse_in_no_bucket_is_refused(warehouse: str) -> None:
    scheme = warehouse.partition(":")[0]
    assert refused({"type": "sql", "uri": "sqlite:////c.db", "warehouse": warehouse}) == (
        f"`warehouse` in `catalog_properties` of the catalog `lake` is {warehouse!r}, an address without a "
        f"bucket. Give the whole one, such as {scheme}://bucket/warehouse."
    )


@pytest.mark.parametrize(
    "warehouse",
    ["/w", "/w#1/", "file:/w", "file:///w/", "file:///w h%20/ü", "s3a://b/w", "hdfs:///w", "C:\\w", ""],
)
def test_any_other_warehouse_is_said_to_both_sides_as_it_is(warehouse: str) -> None:
    settings = resolve("lake", {"type": "sql", "uri": "sqlite:////c.db", "warehouse": warehouse}, BASE)
    assert settings.pyiceberg["warehouse"] == spark(settings)["warehouse"] == warehouse


@pytest.mark.parametrize("uri", ["sqlite://", "sqlite:///:memory:", "sqlite+pysqlite:///:memory:"])
def test_a_sqlite_catalog_in_memory_is_refused(uri: str) -> None:
    assert refused({"type": "sql", "uri": uri}) == (
        "The SQL catalog `lake` is in the memory of one process, and Spark could not see it: give a file "
        "in `uri`."
    )


def test_a_postgresql_catalog_is_mapped_with_its_password_apart_from_the_url() -> None:
    settings = resolve(
        "lake",
        {"type": "sql", "uri": "postgresql+psycopg2://me:p%40ss@db.host:5433/lake", "warehouse": "s3://b/w"},
        BASE,
    )
    assert settings.pyiceberg == {
        "type": "sql",
        "uri": "postgresql+psycopg2://me:p%40ss@db.host:5433/lake",
        "warehouse": "s3://b/w",
    }
    assert spark(settings) == {
        "": "org.apache.iceberg.spark.SparkCatalog",
        "type": "jdbc",
        "cache-enabled": "false",
        "uri": "jdbc:postgresql://db.host:5433/lake",
        "warehouse": "s3://b/w",
        "jdbc.schema-version": "V1",
        "jdbc.user": "me",
        "jdbc.password": "p@ss",
        "retryable_status_codes": "57P01,57P02,57P03,57P05",
    }
    assert settings.packages == (POSTGRESQL_DRIVER,)
    assert settings.sqlite_file is None
    assert not settings.embedded


@pytest.mark.parametrize("form", ["plain", "spark"])
def test_after_which_codes_spark_asks_postgresql_again_is_the_profile_s_to_say(form: str) -> None:
    said = {"retryable_status_codes": "25P03"}
    given = {"type": "sql", "uri": "postgresql:///lake", **(said if form == "plain" else {"spark": said})}
    settings = resolve("lake", given, BASE)
    assert spark(settings)["retryable_status_codes"] == "25P03"
    assert "retryable_status_codes" not in settings.pyiceberg
    assert "retryable" not in (settings.differences or "")


def test_a_postgresql_catalog_has_defaults_for_host_and_port_and_needs_no_user() -> None:
    mapped = spark(resolve("lake", {"type": "sql", "uri": "postgresql:///lake"}, BASE))
    assert mapped["uri"] == "jdbc:postgresql://localhost:5432/lake"
    assert not mapped.keys() & {"jdbc.user", "jdbc.password"}


def test_a_parameter_of_the_postgresql_url_is_not_lost_for_spark() -> None:
    """Else one side of a server that demands TLS connects with it, and the other without."""
    mapped = spark(resolve("lake", {"type": "sql", "uri": "postgresql://h/lake?sslmode=require"}, BASE))
    assert mapped.get("jdbc.sslmode") == "require" or "sslmode=require" in mapped["uri"]


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("postgresql://[::1]/lake", "[::1]:5432/lake"),
        ("postgresql://[2001:db8::1]:5433/lake", "[2001:db8::1]:5433/lake"),
        ("postgresql:///lake?host=db.host", "db.host:5432/lake"),
        ("postgresql:///lake?host=db.host&port=5433", "db.host:5433/lake"),
        ("postgresql:///lake?host=db.host:5433", "db.host:5433/lake"),
        ("postgresql:///lake?host=[::1]:5433", "[::1]:5433/lake"),
        ("postgresql:///lake?host=::1", "[::1]:5432/lake"),
        ("postgresql://h:5433/lake?host=other", "other:5433/lake"),
        ("postgresql:///lake?host=a:1&host=b:2", "a:1,b:2/lake"),
        ("postgresql:///lake?host=a,b&port=1,2", "a:1,b:2/lake"),
        ("postgresql://h/?dbname=lake", "h:5432/lake"),
        ("postgresql://h/my lake", "h:5432/my%20lake"),
        ("postgresql://h/a%20b", "h:5432/a%20b"),
        ("postgresql://h/lake?connect_timeout=5", "h:5432/lake?connectTimeout=5"),
        ("postgresql://h/lake?application_name=a b", "h:5432/lake?ApplicationName=a+b"),
        ("postgresql://h/lake?channel_binding=require", "h:5432/lake?channelBinding=require"),
        ("postgresql://h/lake?gssencmode=disable", "h:5432/lake?gssEncMode=disable"),
        ("postgresql://h/lake?krbsrvname=pg", "h:5432/lake?kerberosServerName=pg"),
        ("postgresql://h/lake?options=-csearch_path%3Dx", "h:5432/lake?options=-csearch_path%3Dx"),
        ("postgresql://h/lake?service=s", "h:5432/lake?service=s"),
        ("postgresql://h/lake?sslnegotiation=direct", "h:5432/lake?sslNegotiation=direct"),
        (
            "postgresql://h/lake?sslmode=verify-full&sslrootcert=/ca&sslcert=/c&sslkey=/k&sslpassword=p",
            "h:5432/lake?sslmode=verify-full&sslrootcert=%2Fca&sslcert=%2Fc&sslkey=%2Fk&sslpassword=p",
        ),
        ("postgresql://h/lake?keepalives=1", "h:5432/lake?tcpKeepAlive=true"),
        ("postgresql://h/lake?load_balance_hosts=random", "h:5432/lake?loadBalanceHosts=true"),
        ("postgresql://h/lake?target_session_attrs=read-write", "h:5432/lake?targetServerType=primary"),
    ],
)
def test_an_address_of_postgresql_is_said_to_java(uri: str, address: str) -> None:
    settings = resolve("lake", {"type": "sql", "uri": uri}, BASE)
    assert spark(settings)["uri"] == f"jdbc:postgresql://{address}"
    assert settings.differences == ""


@pytest.mark.parametrize(
    "uri", ["postgresql://me:p%40%3Fs@h/lake", "postgresql://h/lake?user=me&password=p%40%3Fs"]
)
def test_user_and_password_of_postgresql_are_not_in_the_url(uri: str) -> None:
    mapped = spark(resolve("lake", {"type": "sql", "uri": uri}, BASE))
    assert (mapped["uri"], mapped["jdbc.user"], mapped["jdbc.password"]) == (
        "jdbc:postgresql://h:5432/lake",
        "me",
        "p@?s",
    )


def test_a_parameter_that_java_s_driver_lacks_is_told() -> None:
    uri = "postgresql://h/lake?tcp_user_timeout=5&keepalives=maybe&client_encoding=utf8"
    settings = resolve("lake", {"type": "sql", "uri": uri}, BASE)
    assert spark(settings)["uri"] == "jdbc:postgresql://h:5432/lake"
    assert settings.tuning == ("`tcp_user_timeout` in `uri`", "`keepalives` in `uri`")
    settings.check()


@pytest.mark.parametrize("host", ["/var/run/postgresql", "@abstract"])
def test_a_socket_is_refused(host: str) -> None:
    assert refused({"type": "sql", "uri": f"postgresql://me:hidden@/lake?host={host}"}) == (
        f"`uri` of the SQL catalog `lake` names the Unix socket {host}, and Spark's driver of PostgreSQL "
        "connects to hosts only. Name the host and the port on which the server listens."
    )


def test_a_sql_catalog_in_another_database_is_refused() -> None:
    assert refused({"type": "sql", "uri": "mssql+pymssql://me:hidden@h/d"}) == (
        "The SQL catalog `lake` is in mssql, and Spark and PyIceberg can share one in: sqlite, postgresql, "
        "mysql, mariadb."
    )


def test_a_mysql_catalog_is_mapped_with_its_password_apart_from_the_url() -> None:
    uri = "mysql+pymysql://me:p%40ss@db.host/lake"
    settings = resolve("lake", {"type": "sql", "uri": uri, "warehouse": "s3://b/w"}, BASE)
    assert settings.pyiceberg["uri"] == uri
    assert spark(settings) == {
        "": "org.apache.iceberg.spark.SparkCatalog",
        "type": "jdbc",
        "cache-enabled": "false",
        "uri": "jdbc:mariadb://db.host:3306/lake",
        "warehouse": "s3://b/w",
        "jdbc.schema-version": "V1",
        "jdbc.user": "me",
        "jdbc.password": "p@ss",
    }
    assert settings.packages == ("org.mariadb.jdbc:mariadb-java-client:3.5.6",)
    assert "p@ss" not in repr(settings)


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("mysql+mysqldb:///lake", "localhost:3306/lake"),
        ("mariadb+pymysql://[::1]:3307/my lake", "[::1]:3307/my%20lake"),
        ("mysql://h/lake?charset=utf8mb4&connect_timeout=5", "h:3306/lake?connectTimeout=5000"),
        ("mysql://h/lake?read_timeout=30", "h:3306/lake?socketTimeout=30000"),
        ("mysql://h/lake?ssl_ca=/c/ca.pem", "h:3306/lake?sslMode=verify-full&serverSslCert=/c/ca.pem"),
        (
            "mysql://h/lake?ssl_ca=/ca&ssl_check_hostname=false",
            "h:3306/lake?sslMode=verify-ca&serverSslCert=/ca",
        ),
        ("mysql://h/lake?ssl_mode=DISABLED", "h:3306/lake?sslMode=disable"),
        ("mysql://h/lake?ssl_mode=REQUIRED", "h:3306/lake?sslMode=trust"),
        ("mysql://h/lake?ssl_mode=VERIFY_CA&ssl_ca=/ca", "h:3306/lake?sslMode=verify-ca&serverSslCert=/ca"),
    ],
)
def test_an_address_of_mysql_is_said_to_java(uri: str, address: str) -> None:
    settings = resolve("lake", {"type": "sql", "uri": uri}, BASE)
    assert spark(settings)["uri"] == f"jdbc:mariadb://{address}"
    assert settings.differences == ""


def test_what_java_s_driver_of_mysql_lacks_is_named() -> None:
    uri = "mysql://h/lake?write_timeout=5&ssl_mode=PREFERRED&connect_timeout=soon"
    settings = resolve("lake", {"type": "sql", "uri": uri}, BASE)
    assert spark(settings)["uri"] == "jdbc:mariadb://h:3306/lake"
    assert settings.tuning == (
        "`write_timeout` in `uri`",
        "`ssl_mode` in `uri`",
        "`connect_timeout` in `uri`",
    )
    uri = "mysql://h/lake?ssl_ca=/ca&ssl_cert=/c&ssl_key=/k"
    with pytest.raises(
        ProfileError, match=r"Spark has nothing for `ssl_cert` in `uri`, `ssl_key` in `uri`\."
    ):
        resolve("lake", {"type": "sql", "uri": uri}, BASE).check()
    assert refused({"type": "sql", "uri": "mysql://me:hidden@/lake?unix_socket=/run/mysqld.sock"}) == (
        "`uri` of the SQL catalog `lake` names the Unix socket /run/mysqld.sock, and Spark's driver of MySQL "
        "connects to hosts only. Name the host and the port on which the server listens."
    )


def test_a_driver_of_python_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = "`catalog_properties` of the catalog `lake` cannot be opened: Python has no module "
    named = "by which SQLAlchemy reaches a `uri` that names no driver. Write "
    hive = {"type": "hive", "uri": "thrift://127.0.0.1:1", "warehouse": "file:///w"}
    for module, properties, text in (
        (
            "MySQLdb",
            {"type": "sql", "uri": "mysql://me:hidden@h/d"},
            f"`MySQLdb`, {named}`mysql+pymysql://…` in `uri`, with what `pip install "
            "'dbt-sparkevolve[mysql]'` brings.",
        ),
        (
            "asyncmy",
            {"type": "sql", "uri": "mysql+asyncmy://me:hidden@h/d"},
            "`asyncmy`, by which `uri` is reached. Install it, or name another driver in `uri`: `pip install "
            "'dbt-sparkevolve[postgresql]'` is for postgresql+psycopg2://…, `[mysql]` for mysql+pymysql://…",
        ),
        (
            "thrift",
            hive,
            "`thrift`, which PyIceberg needs for `type: hive`. Install it: pip install "
            "'dbt-sparkevolve[hive]'",
        ),
    ):
        with monkeypatch.context() as patched:
            for name in [n for n in sys.modules if n.partition(".")[0] in (module, "hive_metastore")]:
                patched.delitem(sys.modules, name)
            patched.delitem(sys.modules, "pyiceberg.catalog.hive", raising=False)
            patched.setitem(sys.modules, module, None)
            with pytest.raises(ProfileError) as raised:
                IcebergCatalog(resolve("lake", properties, tmp_path)).check()
            assert raised.value.msg == begin + text
            # Of a further one only what is in it fails, which is told by the kind of the error.
            further = resolve("wh", properties, tmp_path, Place.of_further("wh"))
            with pytest.raises(CatalogUnavailableError) as unavailable:
                IcebergCatalog(further).check()
            assert unavailable.value.catalog == "wh"
            assert unavailable.value.of_another().msg == (
                "`catalogs.wh` cannot be opened: Python has no module " + text
            )


def test_a_catalog_stated_as_in_java_is_told_how_it_is_stated_here() -> None:
    begin = "`catalog_properties` of the catalog `lake` has "
    jdbc = "`type: jdbc`, as Iceberg says it in Java. Write `type: sql`, and in `uri` a SQLAlchemy URL, "
    java = "`catalog-impl`, a class of Java of which PyIceberg knows nothing. Write "
    for properties, text in (
        ({"type": "JDBC"}, f"{jdbc}such as postgresql+psycopg2://host/database, with user"),
        ({"catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog"}, f"{java}`type: sql` instead."),
        ({"type": "rest", "catalog-impl": "x.Y"}, f"{java}`type` instead."),
        (
            {"type": "sql", "uri": "jdbc:mysql://h/d?user=me&password=hidden"},
            "an address of JDBC as `uri`. Write a SQLAlchemy URL, such as mysql+pymysql://host/database: wh",
        ),
        (
            {"type": "sql", "url": "sqlite:////c.db"},
            "`url`, which neither Spark nor PyIceberg reads. Did you",
        ),
    ):
        assert refused(properties).startswith(begin + text)
    assert refused({"type": "sql", "url": "x"}).endswith("Did you mean `uri`?")


@pytest.mark.parametrize("properties", [{}, {"uri": ""}, {"uri": "/a/path"}, {"uri": "user:hidden@host/db"}])
def test_a_sql_catalog_without_a_url_is_refused(properties: dict[str, str]) -> None:
    assert refused({"type": "sql", **properties}) == (
        "`catalog_properties` of the catalog `lake` needs a SQLAlchemy URL as `uri`, such as "
        "sqlite:////absolute/path/catalog.db."
    )


# Other catalogs


@pytest.mark.parametrize(
    ("kind", "form"),
    [("rest", "https://catalog.example.com/api"), ("hive", "thrift://metastore.example.com:9083")],
)
@pytest.mark.parametrize("given", [{}, {"uri": None}, {"uri": " "}, {"spark": {"uri": "http://h"}}])
def test_a_server_needs_an_address(kind: str, form: str, given: dict[str, Any]) -> None:
    assert refused({"type": kind, **given}) == (
        f"`catalog_properties` of the catalog `lake` has the type '{kind}', which needs the address of a "
        f"server as `uri`, such as {form}."
    )
    # Spark may have its own.
    alone = {"pyiceberg": {"uri": "http://h"}}
    assert resolve("lake", {"type": kind, **alone}, Path()).pyiceberg["uri"] == "http://h"


@pytest.mark.parametrize("kind", ["rest", "hive", "glue"])
def test_other_catalogs_are_said_to_both_sides_alike(kind: str) -> None:
    properties = {
        "type": kind,
        "uri": "http://h:8181",
        "warehouse": "/w",
        "credential": "id:hidden",
        "header.x": "y",
    }
    settings = resolve("lake", properties, BASE)
    assert settings == CatalogSettings(
        name="lake",
        pyiceberg={**properties, **({"hive.hive2-compatible": "true"} if kind == "hive" else {})},
        spark={
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": kind,
            "spark.sql.catalog.lake.cache-enabled": "false",
            "spark.sql.catalog.lake.uri": "http://h:8181",
            "spark.sql.catalog.lake.warehouse": "/w",
            "spark.sql.catalog.lake.credential": "id:hidden",
            "spark.sql.catalog.lake.header.x": "y",
            # What PyIceberg asks for by itself.
            **({DELEGATION: "vended-credentials"} if kind == "rest" else {}),
        },
        bundles=("iceberg-aws-bundle",) if kind == "glue" else (),
    )


def test_the_type_may_be_written_in_capitals(tmp_path: Path) -> None:
    settings = resolve("lake", {"type": "SQL", "uri": f"sqlite:///{tmp_path}/c.db"}, BASE)
    assert spark(settings)["type"] == "jdbc"
    settings.prepare()
    assert load_catalog("lake", **settings.pyiceberg).list_namespaces() == []


def test_the_region_has_another_name_in_spark() -> None:
    settings = resolve(
        "lake", {"type": "glue", "s3.region": "eu-central-1", "s3.endpoint": "http://s3"}, BASE
    )
    assert settings.pyiceberg["s3.region"] == "eu-central-1"
    assert spark(settings)["client.region"] == "eu-central-1"
    assert spark(settings)["s3.endpoint"] == "http://s3"
    assert "s3.region" not in spark(settings)


def test_what_is_for_python_only_is_left_out_of_spark() -> None:
    settings = resolve(
        "lake", {"type": "rest", "uri": "u", "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"}, BASE
    )
    assert settings.pyiceberg["py-io-impl"] == "pyiceberg.io.fsspec.FsspecFileIO"
    assert not [key for key in settings.spark if "py-io-impl" in key]


def test_values_of_yaml_become_text() -> None:
    settings = resolve("lake", {"type": "rest", "uri": "u", "flag": True, "off": False, "number": 5}, BASE)
    assert {key: settings.pyiceberg[key] for key in ("flag", "off", "number")} == {
        "flag": "true",
        "off": "false",
        "number": "5",
    }
    assert spark(settings)["flag"] == "true"


def test_a_property_without_a_value_is_not_set() -> None:
    """In YAML, ``token:`` is null, which is not the token None."""
    settings = resolve("lake", {"type": "rest", "uri": "u", "token": None}, BASE)
    assert "None" not in settings.pyiceberg.values()
    assert "None" not in settings.spark.values()


def test_the_session_catalog_keeps_sparks_own_tables() -> None:
    settings = resolve("spark_catalog", {"type": "hive", "uri": "thrift://h:9083"}, BASE)
    assert settings.spark["spark.sql.catalog.spark_catalog"] == "org.apache.iceberg.spark.SparkSessionCatalog"


@pytest.mark.parametrize(
    ("properties", "shown"),
    [
        ({"type": "nessie", "token": "hidden"}, "the type 'nessie'"),
        ({"uri": "http://me:hidden@h"}, "no `type`"),
        ({"py-catalog-impl": "x.Y", "password": "hidden"}, "no `type`"),
    ],
)
def test_an_unknown_type_is_refused_with_those_that_work(properties: dict[str, object], shown: str) -> None:
    assert refused(properties) == (
        f"`catalog_properties` of the catalog `lake` has {shown}, and Spark and PyIceberg can "
        f"share one of: "
        "sql, rest, hive, glue. Set `type`, or leave `catalog_properties` out for the embedded catalog under "
        "./.sparkevolve."
    )


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "postgres", "mysql"])
def test_a_database_in_place_of_its_type_is_told(kind: str) -> None:
    assert refused({"type": kind, "uri": "postgresql://h/lake"}).endswith(
        "under ./.sparkevolve. A SQL database has the type sql, and `uri` says which one it is."
    )


def test_the_former_name_of_postgresql_is_told() -> None:
    assert refused({"type": "sql", "uri": "postgres://me:hidden@h/lake"}) == (
        "The SQL catalog `lake` is in postgres, and Spark and PyIceberg can share one in: sqlite, "
        "postgresql, mysql, mariadb. Did you mean `postgresql`?"
    )


@pytest.mark.parametrize("uri", ["sqlite://srv/lake/catalog.db", "sqlite://me:hidden@srv/lake/catalog.db"])
def test_a_sqlite_file_on_a_host_is_refused(uri: str) -> None:
    """Two slashes too few: the first folder would be the host, and the rest begin in the project."""
    assert refused({"type": "sql", "uri": uri}) == (
        "`uri` of the SQL catalog `lake` names a host, and SQLite has none. Write three slashes before a "
        "path that begins in the dbt project, and four before a whole one, such as "
        "sqlite:////srv/lake/catalog.db."
    )


@pytest.mark.parametrize(
    "uri",
    [
        "postgres//me:hidden@host/db",
        "mssql://me:hidden@host/db",
        "mysql://me:hidden@host/db?unix_socket=/s",
        "sqlite://me:hidden@host/:memory:",
        "postgresql://me:p@ss:hidden@host/db",
        "postgresql://me:hidden@host:port/db",
    ],
)
def test_no_refusal_shows_a_secret(uri: str) -> None:
    text = refused({"type": "sql", "uri": uri, "s3.secret-access-key": "hidden"})
    assert "hidden" not in text
    assert uri not in text


# Names and forms


def test_a_near_miss_of_a_property_is_refused() -> None:
    assert refused({"type": "rest", "uri": "u", "warehose": "w"}) == (
        "`catalog_properties` of the catalog `lake` has `warehose`, which neither Spark nor PyIceberg reads. "
        "Did you mean `warehouse`?"
    )


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"s3": {"region": "x"}}, "`s3` in `catalog_properties` of the catalog `lake` is a mapping, and"),
        ({"scope": ["a", "b"]}, "`scope` in `catalog_properties` of the catalog `lake` is a list, and"),
        (
            {"auth.type": "basic"},
            "`auth.type` in `catalog_properties` of the catalog `lake` has another form",
        ),
        ({"ssl.cabundle": "/ca"}, "`ssl.cabundle` in `catalog_properties` of the catalog `lake` has another"),
        ({"auth": "basic"}, "`auth` in `catalog_properties` of the catalog `lake` has another form"),
        ({"auth": {"basic": {}}}, "`auth` in `catalog_properties` of the catalog `lake` has no `type`"),
    ],
)
def test_a_value_of_another_form_is_refused(properties: dict[str, object], told: str) -> None:
    assert refused({"type": "rest", "uri": "u", **properties}).startswith(told)


def test_a_catalog_class_of_python_is_refused_beside_a_type() -> None:
    assert refused({"type": "rest", "uri": "u", "py-catalog-impl": "x.Y"}) == (
        "`catalog_properties` of the catalog `lake` have `type` and `py-catalog-impl`: PyIceberg takes one "
        "of them, and Spark knows no class of Python. Leave `py-catalog-impl` out."
    )


def test_properties_one_level_too_deep_are_told_where_they_belong() -> None:
    nested = {"catalog_properties": {"type": "rest", "uri": "http://rest"}}
    with pytest.raises(ProfileError) as raised:
        resolve("wh", nested, BASE, Place.of_further("wh"))
    assert raised.value.msg == (
        "`catalogs.wh` has `catalog_properties`: write the properties themselves there, such as `type` and "
        "`uri`, one level up."
    )
    assert refused({"type": "rest", "catalog_properties": "x"}).startswith(
        "`catalog_properties` of the catalog `lake` has `catalog_properties`: write the properties themselves"
    )


def test_mappings_reach_pyiceberg_as_they_are() -> None:
    auth = {"type": "basic", "basic": {"username": "me", "password": "p"}}
    ssl = {"cabundle": False}
    settings = resolve("lake", {"type": "rest", "uri": "u", "auth": auth, "ssl": ssl}, BASE)
    assert (settings.pyiceberg["auth"], settings.pyiceberg["ssl"]) == (auth, ssl)
    assert not {"auth", "ssl"} & spark(settings).keys()


def test_what_reaches_one_side_and_does_no_harm_is_told_in_one_warning() -> None:
    settings = resolve("lake", {"type": "rest", "uri": "u", "s3.resolve-region": True, "flag": 1}, BASE)
    assert settings.differences == (
        "`catalog_properties` of the catalog `lake` do not reach Spark and PyIceberg alike. Spark has "
        "nothing for `s3.resolve-region`. Neither is known to read `flag`. `dbt debug` tells "
        "whether both see one catalog."
    )
    settings.check()
    assert resolve("lake", {}, BASE).differences == ""


# Preparing


def journal_mode(database: Path) -> str:
    connection = sqlite3.connect(database)
    try:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0])
    finally:
        connection.close()


def test_preparing_makes_the_database_in_wal_mode_and_hides_it_from_git(tmp_path: Path) -> None:
    settings = resolve("lake", {}, tmp_path / "a" / "b c")
    settings.prepare()
    folder = tmp_path / "a" / "b c" / ".sparkevolve"
    assert sorted(path.name for path in folder.iterdir()) == [
        ".gitignore",
        "catalog.db",
        "location",
        "owner",
    ]
    assert (folder / ".gitignore").read_text() == "*\n"
    assert journal_mode(folder / "catalog.db") == "wal"


def test_preparing_again_keeps_what_is_there(tmp_path: Path) -> None:
    settings = resolve("lake", {}, tmp_path)
    settings.prepare()
    load_catalog("lake", **settings.pyiceberg).create_namespace("db")
    (tmp_path / ".sparkevolve" / ".gitignore").write_text("mine\n")
    settings.prepare()
    settings.prepare()
    assert load_catalog("lake", **settings.pyiceberg).list_namespaces() == [("db",)]
    assert (tmp_path / ".sparkevolve" / ".gitignore").read_text() == "mine\n"


def test_preparing_puts_an_older_database_into_wal_mode(tmp_path: Path) -> None:
    database = tmp_path / "c.db"
    with sqlite3.connect(database) as connection:
        connection.execute("create table t (x)")
    connection.close()
    assert journal_mode(database) == "delete"
    resolve("lake", {"type": "sql", "uri": f"sqlite:///{database}"}, tmp_path).prepare()
    assert journal_mode(database) == "wal"


def test_a_database_of_the_user_gets_its_folder_but_no_gitignore(tmp_path: Path) -> None:
    settings = resolve("lake", {"type": "sql", "uri": f"sqlite:///{tmp_path}/deep/er/c.db"}, tmp_path)
    settings.prepare()
    assert sorted(path.name for path in (tmp_path / "deep" / "er").iterdir()) == ["c.db"]


def test_other_catalogs_need_no_preparing(tmp_path: Path) -> None:
    resolve("lake", {"type": "rest", "uri": "http://h"}, tmp_path).prepare()
    assert list(tmp_path.iterdir()) == []


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        resolve("lake", {}, BASE).name = "other"  # type: ignore[misc]


# What one side has nothing for


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"adls.client-id": "c", "gcs.no-auth": True},
            "Spark has nothing for `adls.client-id` (set AZURE_TENANT_ID, AZURE_CLIENT_ID and "
            "AZURE_CLIENT_SECRET for both). PyIceberg has nothing for `gcs.no-auth`.",
        ),
        ({"auth": {"type": "entra"}}, "Spark has nothing for `auth` of the type 'entra'."),
        ({"ssl": {"cabundle": False}}, "Spark has nothing for `ssl.cabundle` of false (name a file"),
        (
            {"ssl": {"client": {"cert": "/c", "key": "/k"}}},
            "Spark has nothing for `ssl.client` (Java has its own key store: write its options, "
            "-Djavax.net.ssl.keyStore and …keyStorePassword, into a file that only you can read, and set "
            "`spark.driver.extraJavaOptions` to `@` and its path).",
        ),
        (
            {"hive.kerberos-service-name": "hive"},
            "Spark has nothing for `hive.kerberos-service-name` (say it",
        ),
        ({"client.factory": "Mine"}, "PyIceberg has nothing for `client.factory`."),
        ({"rest.auth.type": "com.Mine"}, "PyIceberg has nothing for `rest.auth.type` with this value."),
    ],
)
def test_what_cannot_be_said_to_both_sides_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    settings = resolve("lake", {"type": "rest", "uri": "u", **given}, BASE)
    with pytest.raises(ProfileError) as raised:
        settings.check()
    text = str(raised.value.msg)
    assert said in text
    assert text.startswith(
        "`catalog_properties` of the catalog `lake` cannot be said to both sides: one would be denied what "
        "the other may do, or look elsewhere. "
    )
    assert text.endswith(
        " Leave it out, or say what each side gets by itself in the mappings `pyiceberg` and `spark` of "
        "`catalog_properties`."
    )


def test_what_is_for_one_side_alone_reaches_it_as_it_is() -> None:
    entra = {"type": "entra", "entra": {"scopes": ["s"]}}
    settings = resolve(
        "lake",
        {
            "type": "rest",
            "uri": "u",
            "pyiceberg": {"auth": entra, "s3.connect-timeout": 5},
            "spark": {"client.factory": "Mine", "io-impl": "org.apache.iceberg.gcp.gcs.GCSFileIO", "x": True},
        },
        BASE,
    )
    settings.check()
    assert settings.differences == ""
    assert settings.pyiceberg == {"type": "rest", "uri": "u", "auth": entra, "s3.connect-timeout": "5"}
    mapped = spark(settings)
    assert (mapped["client.factory"], mapped["x"]) == ("Mine", "true")
    assert "http-client.apache.connection-timeout-ms" not in mapped
    assert settings.bundles == ("iceberg-aws-bundle", "iceberg-gcp-bundle")


def test_what_is_for_one_side_is_a_mapping() -> None:
    assert refused({"type": "rest", "uri": "u", "spark": "io-impl"}) == (
        "`spark` in `catalog_properties` of the catalog `lake` is no mapping: it has the properties that "
        "this side alone gets, each on a line of its own."
    )
