"""One statement of a catalog in the profile, said to both sides: to PyIceberg and to Spark."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from dbt.adapters.sparkevolve.errors import ProfileError

# How long one side waits for the other's lock on a shared SQLite file.
BUSY_SECONDS = 60

# PyIceberg's `type` -> the `type` of Iceberg's Spark catalog.
_SPARK_TYPES = {"sql": "jdbc", "rest": "rest", "hive": "hive", "glue": "glue"}

# JDBC drivers by SQLAlchemy's name of the database; SQLite is the one that is run here.
JDBC_DRIVERS = {
    "sqlite": "org.xerial:sqlite-jdbc:3.50.3.0",
    "postgresql": "org.postgresql:postgresql:42.7.7",
}

# The few properties that the two libraries name differently.
_SPARK_NAMES = {"s3.region": "client.region"}


@dataclass(frozen=True)
class CatalogSettings:
    """A catalog as each side needs it.

    Attributes:
        name: its name, in Spark and in PyIceberg. A SQL catalog's rows are kept under it too.
        pyiceberg: properties of ``pyiceberg.catalog.load_catalog``.
        spark: settings of a Spark session, all under ``spark.sql.catalog.<name>``.
        packages: Maven coordinates that this catalog needs besides Iceberg's runtime.
        sqlite_file: the database of a SQLite catalog, or None. Both processes and both languages share it.
        embedded: no ``catalog_properties`` were given.
    """

    name: str
    pyiceberg: Mapping[str, str]
    spark: Mapping[str, str]
    packages: tuple[str, ...] = ()
    sqlite_file: Path | None = None
    embedded: bool = False

    def prepare(self) -> None:
        """Make the folder and the database of a SQLite catalog, in WAL mode, unless they are there.

        In WAL mode readers and one writer do not block each other, and the mode stays with the file.
        """
        if self.sqlite_file is None:
            return
        folder = self.sqlite_file.parent
        folder.mkdir(parents=True, exist_ok=True)
        if self.embedded and not (folder / ".gitignore").exists():
            (folder / ".gitignore").write_text("*\n")
        with sqlite3.connect(self.sqlite_file, timeout=BUSY_SECONDS) as connection:
            if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                connection.execute("PRAGMA journal_mode=WAL")
        connection.close()


def resolve(name: str, properties: Mapping[str, Any], base_dir: Path) -> CatalogSettings:
    """Return the settings of the catalog ``name``.

    Args:
        name: the profile's ``catalog``.
        properties: the profile's ``catalog_properties``; empty means the embedded catalog.
        base_dir: the folder in which ``.sparkevolve`` lies; the dbt project's.

    Raises:
        ProfileError: the properties do not describe a catalog that both sides can share.
    """
    if not properties:
        return _embedded(name, base_dir / ".sparkevolve")
    given = {str(key): _text(value) for key, value in properties.items() if value is not None}
    kind = given.get("type", "").lower()
    if kind not in _SPARK_TYPES:
        raise ProfileError(
            "catalog_properties",
            f"`catalog_properties` of the catalog `{name}` has the type {given.get('type')!r}, and Spark and "
            f"PyIceberg can share one of: {', '.join(_SPARK_TYPES)}. Set `type`, or leave "
            "`catalog_properties` out for the embedded catalog under ./.sparkevolve.",
        )
    if kind == "sql":
        return _sql(name, given)
    return CatalogSettings(name, given, _spark_settings(name, kind, given))


def _embedded(name: str, folder: Path) -> CatalogSettings:
    if any(character in str(folder) for character in "?#%"):
        raise ProfileError(
            "catalog_properties",
            f"The embedded catalog cannot lie in {folder}: SQLite's URLs give ?, # and % a meaning of "
            "their own. Move the project, or set `catalog_properties`.",
        )
    url = URL.create("sqlite", database=str(folder / "catalog.db"))
    return _sql(
        name,
        {
            "type": "sql",
            "uri": url.render_as_string(hide_password=False),
            "warehouse": f"file://{folder / 'warehouse'}",
        },
        embedded=True,
    )


def _sql(name: str, given: dict[str, str], *, embedded: bool = False) -> CatalogSettings:
    try:
        url = make_url(given.get("uri", ""))
    except (ArgumentError, ValueError):
        # Its text would repeat the URL, and with it a password.
        raise ProfileError(
            "catalog_properties",
            f"`catalog_properties` of the catalog `{name}` needs a SQLAlchemy URL as `uri`, such as "
            "sqlite:////absolute/path/catalog.db.",
        ) from None
    database = url.get_backend_name()
    if database not in JDBC_DRIVERS:
        raise ProfileError(
            "catalog_properties",
            f"The SQL catalog `{name}` is in {database}, and Spark and PyIceberg can share one in: "
            f"{', '.join(JDBC_DRIVERS)}.",
        )
    jdbc: dict[str, str] = {"jdbc.schema-version": "V1"}  # V1 is the one that holds views
    sqlite_file = None
    if database == "sqlite":
        if not url.database or url.database == ":memory:":
            raise ProfileError(
                "catalog_properties",
                f"The SQL catalog `{name}` is in the memory of one process, and Spark could not see it: "
                "give a file in `uri`.",
            )
        sqlite_file = Path(url.database).absolute()
        url = url.set(database=str(sqlite_file)).update_query_dict({"timeout": str(BUSY_SECONDS)})
        uri = f"jdbc:sqlite:{sqlite_file}"
        jdbc["jdbc.busy_timeout"] = str(BUSY_SECONDS * 1000)
    else:
        uri = f"jdbc:{database}://{url.host or 'localhost'}:{url.port or 5432}/{url.database or ''}"
        if url.query:
            uri += "?" + urlencode(url.query, doseq=True)
        if url.username:
            jdbc["jdbc.user"] = url.username
        if url.password:
            jdbc["jdbc.password"] = str(url.password)
    pyiceberg = {**given, "uri": url.render_as_string(hide_password=False)}
    return CatalogSettings(
        name=name,
        pyiceberg=pyiceberg,
        spark=_spark_settings(name, "sql", {**given, "uri": uri, **jdbc}),
        packages=(JDBC_DRIVERS[database],),
        sqlite_file=sqlite_file,
        embedded=embedded,
    )


def _spark_settings(name: str, kind: str, properties: Mapping[str, str]) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{name}"
    # `spark_catalog` also holds Spark's own tables, so there Iceberg has to step back for those.
    implementation = "SparkSessionCatalog" if name == "spark_catalog" else "SparkCatalog"
    settings = {
        prefix: f"org.apache.iceberg.spark.{implementation}",
        f"{prefix}.type": _SPARK_TYPES[kind],
        # PyIceberg and other processes commit behind the back of a cache of this session.
        f"{prefix}.cache-enabled": "false",
    }
    for key, value in properties.items():
        if key != "type" and not key.startswith("py-"):
            settings[f"{prefix}.{_SPARK_NAMES.get(key, key)}"] = value
    return settings


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
