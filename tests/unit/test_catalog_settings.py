"""One statement of a catalog, said to PyIceberg and to Spark."""

import sqlite3
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from dbt.adapters.sparkevolve.catalog_settings import CatalogSettings, resolve
from dbt.adapters.sparkevolve.errors import ProfileError

BASE = Path("/project")
SQLITE_DRIVER = "org.xerial:sqlite-jdbc:3.50.3.0"
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


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = resolve("lake", {"type": "sql", "uri": "sqlite:///c.db"}, tmp_path)
    assert settings.sqlite_file == tmp_path / "c.db"
    assert settings.pyiceberg["uri"] == f"sqlite:///{tmp_path}/c.db?timeout=60"
    assert spark(settings)["uri"] == f"jdbc:sqlite:{tmp_path}/c.db"


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
    }
    assert settings.packages == (POSTGRESQL_DRIVER,)
    assert settings.sqlite_file is None
    assert not settings.embedded


def test_a_postgresql_catalog_has_defaults_for_host_and_port_and_needs_no_user() -> None:
    mapped = spark(resolve("lake", {"type": "sql", "uri": "postgresql:///lake"}, BASE))
    assert mapped["uri"] == "jdbc:postgresql://localhost:5432/lake"
    assert not mapped.keys() & {"jdbc.user", "jdbc.password"}


def test_a_parameter_of_the_postgresql_url_is_not_lost_for_spark() -> None:
    """Else one side of a server that demands TLS connects with it, and the other without."""
    mapped = spark(resolve("lake", {"type": "sql", "uri": "postgresql://h/lake?sslmode=require"}, BASE))
    assert mapped.get("jdbc.sslmode") == "require" or "sslmode=require" in mapped["uri"]


def test_a_sql_catalog_in_another_database_is_refused() -> None:
    assert refused({"type": "sql", "uri": "mysql+pymysql://me:hidden@h/d"}) == (
        "The SQL catalog `lake` is in mysql, and Spark and PyIceberg can share one in: sqlite, postgresql."
    )


@pytest.mark.parametrize("properties", [{}, {"uri": ""}, {"uri": "/a/path"}, {"uri": "user:hidden@host/db"}])
def test_a_sql_catalog_without_a_url_is_refused(properties: dict[str, str]) -> None:
    assert refused({"type": "sql", **properties}) == (
        "`catalog_properties` of the catalog `lake` needs a SQLAlchemy URL as `uri`, such as "
        "sqlite:////absolute/path/catalog.db."
    )


# Other catalogs


@pytest.mark.parametrize("kind", ["rest", "hive", "glue"])
def test_other_catalogs_are_said_to_both_sides_alike(kind: str) -> None:
    properties = {
        "type": kind,
        "uri": "http://h:8181",
        "warehouse": "w",
        "credential": "id:hidden",
        "header.x": "y",
    }
    settings = resolve("lake", properties, BASE)
    assert settings == CatalogSettings(
        name="lake",
        pyiceberg=properties,
        spark={
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": kind,
            "spark.sql.catalog.lake.cache-enabled": "false",
            "spark.sql.catalog.lake.uri": "http://h:8181",
            "spark.sql.catalog.lake.warehouse": "w",
            "spark.sql.catalog.lake.credential": "id:hidden",
            "spark.sql.catalog.lake.header.x": "y",
        },
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
        ({"type": "nessie", "token": "hidden"}, "'nessie'"),
        ({"uri": "http://me:hidden@h"}, "None"),
        ({"type": "jdbc"}, "'jdbc'"),
        ({"py-catalog-impl": "x.Y", "password": "hidden"}, "None"),
    ],
)
def test_an_unknown_type_is_refused_with_those_that_work(properties: dict[str, object], shown: str) -> None:
    assert refused(properties) == (
        f"`catalog_properties` of the catalog `lake` has the type {shown}, and Spark and PyIceberg can "
        f"share one of: "
        "sql, rest, hive, glue. Set `type`, or leave `catalog_properties` out for the embedded catalog under "
        "./.sparkevolve."
    )


@pytest.mark.parametrize(
    "uri",
    [
        "postgres//me:hidden@host/db",
        "mysql://me:hidden@host/db",
        "sqlite://me:hidden@host/:memory:",
        "postgresql://me:p@ss:hidden@host/db",
        "postgresql://me:hidden@host:port/db",
    ],
)
def test_no_refusal_shows_a_secret(uri: str) -> None:
    text = refused({"type": "sql", "uri": uri, "s3.secret-access-key": "hidden"})
    assert "hidden" not in text
    assert uri not in text


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
    assert sorted(path.name for path in folder.iterdir()) == [".gitignore", "catalog.db"]
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
