"""One statement of a catalog in the profile, said to both sides: to PyIceberg and to Spark."""

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from dbt.adapters.sparkevolve.errors import ProfileError
from dbt.adapters.sparkevolve.evolution.table_properties import property_text
from dbt.adapters.sparkevolve.iceberg import embedded, mysql, postgresql
from dbt.adapters.sparkevolve.iceberg.addresses import address
from dbt.adapters.sparkevolve.iceberg.capabilities import SKIPS_NAMES, Kind, kind_of
from dbt.adapters.sparkevolve.iceberg.catalog_properties import (
    MAPPINGS,
    PYICEBERG_ALONE,
    SPARK_ALONE,
    near_miss,
)
from dbt.adapters.sparkevolve.iceberg.embedded import BUSY_SECONDS
from dbt.adapters.sparkevolve.iceberg.jdbc import SocketAddressError
from dbt.adapters.sparkevolve.iceberg.metastore import LOCKS_OF_CATALOG
from dbt.adapters.sparkevolve.iceberg.storage import bundles, file_io
from dbt.adapters.sparkevolve.iceberg.translation import Translation, translate
from dbt.adapters.sparkevolve.redaction import clean
from dbt.adapters.sparkevolve.suggestions import did_you_mean

CATALOG_PROPERTIES = "catalog_properties"
CATALOGS = "catalogs"
_SIDES = (PYICEBERG_ALONE, SPARK_ALONE)
# The types whose `warehouse` is a path, in which Spark puts new schemas.
_WITH_PATHS = ("sql", "hive")

# Addresses of object stores, in each of which a bucket or a container stands behind `://`.
_WITH_BUCKETS = ("s3", "s3a", "s3n", "gs", "oss", "abfs", "abfss", "wasb", "wasbs")

# What an address looks like where a server has to have one.
_ADDRESS_FORMS = {"rest": "https://catalog.example.com/api", "hive": "thrift://metastore.example.com:9083"}

# PyIceberg's `type` -> the `type` of Iceberg's Spark catalog.
_SPARK_TYPES = {"sql": "jdbc", "rest": "rest", "hive": "hive", "glue": "glue"}

# JDBC drivers by SQLAlchemy's name of the database; SQLite is the one that is run here.
JDBC_DRIVERS = {
    "sqlite": "org.xerial:sqlite-jdbc:3.50.3.0",
    "postgresql": "org.postgresql:postgresql:42.7.7",
    # MariaDB's driver reads certificates in PEM format, and speaks to MySQL's servers too.
    **dict.fromkeys(mysql.DIALECTS, "org.mariadb.jdbc:mariadb-java-client:3.5.6"),
}
# SQLAlchemy's name for PostgreSQL of before, which libpq and many services still write.
_POSTGRES = "postgres"
# After which codes of its database Iceberg's JDBC catalog connects and asks once more. What it takes for a
# lost connection anyway is all that MariaDB's driver says of one.
_ASK_AGAIN = "retryable_status_codes"
_ADDRESSES = {
    "postgresql": postgresql.jdbc_address,
    **dict.fromkeys(mysql.DIALECTS, mysql.jdbc_address),
}
# What is installed for a database whose URL names no driver, and how one says so there.
_DRIVERS = {
    "postgresql": ("postgresql", "postgresql+psycopg2"),
    "mysql": ("mysql", "mysql+pymysql"),
    "mariadb": ("mysql", "mariadb+pymysql"),
}
# A type of Iceberg in Java -> what it is here; it is known by the end of its class, too.
_TYPES_OF_JAVA = {
    "jdbc": "sql",
    "JdbcCatalog": "sql",
    "RESTCatalog": "rest",
    "HiveCatalog": "hive",
    "GlueCatalog": "glue",
}
_TITLES = {"postgresql": "PostgreSQL", "mysql": "MySQL", "mariadb": "MariaDB"}

# What tells one catalog from another of its type, beside a REST catalog's headers, which may name a tenant. A
# metastore has its tables whatever the warehouse is. A SQL catalog keeps its tables by its name.
_IDENTITY = {
    "rest": ("uri", "warehouse", "prefix"),
    "hive": ("uri",),
    "glue": (
        "glue.id",
        "glue.endpoint",
        *(
            f"{part}.{key}"
            for part in ("glue", "client")
            for key in ("region", "profile-name", "access-key-id")
        ),
    ),
}
# Without a warehouse, a server may choose one by who asks, such as AWS Glue that of the account.
_OF_USER = ("credential", "token", "client.profile-name", "client.access-key-id")
_OF_NO_PLACE = "header.x-iceberg-access-delegation"


@dataclass(frozen=True)
class Place:
    """Where a profile states a catalog, for errors to say so.

    Attributes:
        name: the catalog's name.
        setting: the setting of the profile that has its properties.
    """

    name: str
    setting: str = CATALOG_PROPERTIES

    @classmethod
    def of_further(cls, name: str) -> "Place":
        """Return the place of a catalog beside the profile's own."""
        return cls(name, f"{CATALOGS}.{name}")

    @property
    def is_further(self) -> bool:
        """Whether it is a catalog beside the profile's own."""
        return self.setting != CATALOG_PROPERTIES

    def __str__(self) -> str:
        """Return the place as an error begins with it."""
        return f"`{self.setting}`" + ("" if self.is_further else f" of the catalog `{self.name}`")

    def error(self, text: str) -> ProfileError:
        """Return the error whose text goes on after the place."""
        return ProfileError(self.setting, f"{self} {text}")


@dataclass(frozen=True)
class CatalogSettings:
    """A catalog as each side needs it.

    Attributes:
        name: its name, in Spark and in PyIceberg. A SQL catalog's rows are kept under it too.
        pyiceberg: properties of PyIceberg's catalog.
        spark: settings of a Spark session, all under ``spark.sql.catalog.<name>``.
        packages: Maven coordinates that this catalog needs besides Iceberg's runtime.
        bundles: Iceberg's own jars that it needs too, which have the version of the runtime.
        file_io: what Spark reads the catalog's files with, where that follows from its properties.
        java_properties: system properties of Spark's Java, for what Spark has no settings for.
        sqlite_file: the database of a SQLite catalog, or None. Both processes and both languages share it.
        embedded: no ``catalog_properties`` were given.
        ca_file: certificates in PEM format of authorities that Spark's Java is to trust too.
        authorities: what tells these certificates from those that were in the file before; None without any.
        tuning: what was said of the catalog that Spark has nothing for, and need not; for people to read.
        lacking_spark: the same that Spark would have to have.
        lacking_pyiceberg: the same of PyIceberg.
        unknown: what neither is known to read.
        place: where the profile states it.
        stated: what it states there, as texts: for both sides, and in a mapping for each side alone.
    """

    name: str
    pyiceberg: Mapping[str, Any] = field(repr=False)
    spark: Mapping[str, str] = field(repr=False)
    packages: tuple[str, ...] = ()
    bundles: tuple[str, ...] = ()
    file_io: str | None = None
    java_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    sqlite_file: Path | None = None
    embedded: bool = False
    ca_file: str | None = None
    authorities: str | None = field(default=None, repr=False)
    tuning: tuple[str, ...] = ()
    lacking_spark: tuple[str, ...] = ()
    lacking_pyiceberg: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    place: Place = field(default=Place(""), repr=False, compare=False)
    stated: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def kind(self) -> str:
        """PyIceberg's type of the catalog, in lower case."""
        return str(self.pyiceberg["type"]).lower()

    @property
    def known(self) -> Mapping[str, Any]:
        """What tells what the catalog can do: PyIceberg's properties, and what only Spark is told of that."""
        skips = self.spark.get(f"spark.sql.catalog.{self.name}.{SKIPS_NAMES}")
        return self.pyiceberg if skips is None else {**self.pyiceberg, SKIPS_NAMES: skips}

    @property
    def where(self) -> str:
        """Where it is, without user and password: a folder of the project, a server, or a file."""
        if self.embedded and self.sqlite_file is not None:
            return str(self.sqlite_file.parent)
        return clean(address(self.pyiceberg))

    @property
    def identity(self) -> tuple[str, ...]:
        """What two names of one catalog have in common, and those of two catalogs have not."""
        names = _IDENTITY.get(self.kind)
        if names is None:
            return (self.name,)
        said = {str(key).lower(): str(value) for key, value in self.pyiceberg.items()}
        if self.kind == "rest":
            names += tuple(sorted(key for key in said if key.startswith("header.") and key != _OF_NO_PLACE))
            names += () if said.get("warehouse") else _OF_USER
        parts = [f"{key}={said[key].rstrip('/')}" for key in names if said.get(key)]
        return (self.kind, *parts)

    @property
    def asks_for_aws_credentials(self) -> bool:
        """Whether Spark looks for AWS's credentials where its Java has them."""
        said = ("client.credentials-provider", "s3.access-key-id")
        prefix = f"spark.sql.catalog.{self.name}"
        return "iceberg-aws-bundle" in self.bundles and not any(
            f"{prefix}.{key}" in self.spark for key in said
        )

    @property
    def takes_locks(self) -> bool:
        """Whether commits to a Hive metastore take a lock, unless a table says else."""
        said = self.spark.get(f"spark.sql.catalog.{self.name}.{LOCKS_OF_CATALOG}", "true")
        # As Hadoop reads it: what is neither means nothing.
        return said.strip().lower() != "false"

    @property
    def differences(self) -> str:
        """A warning of what reaches one side only, which does no harm, or was not understood; or nothing."""
        parts = [
            f"{what} {', '.join(names)}."
            for what, names in (
                ("Spark has nothing for", self.tuning),
                ("Neither is known to read", self.unknown),
            )
            if names
        ]
        if not parts:
            return ""
        return (
            f"{self.place} do not reach Spark and PyIceberg alike. "
            f"{' '.join(parts)} `dbt debug` tells whether both see one catalog."
        )

    def missing_module(self, module: str) -> ProfileError:
        """Return the error that says which module of Python the catalog needs, and how one gets it."""
        if self.kind != "sql":
            install = {"hive": "'dbt-sparkevolve[hive]'", "glue": "boto3"}.get(self.kind, module)
            return self.place.error(
                f"cannot be opened: Python has no module `{module}`, which PyIceberg needs for `type: "
                f"{self.kind}`. Install it: pip install {install}"
            )
        url = make_url(str(self.pyiceberg.get("uri", "")))
        extra, driver = _DRIVERS.get(url.drivername, ("", ""))
        if extra:
            return self.place.error(
                f"cannot be opened: Python has no module `{module}`, by which SQLAlchemy reaches a `uri` "
                f"that names no driver. Write `{driver}://…` in `uri`, with what `pip install "
                f"'dbt-sparkevolve[{extra}]'` brings."
            )
        return self.place.error(
            f"cannot be opened: Python has no module `{module}`, by which `uri` is reached. Install it, or "
            "name another driver in `uri`: `pip install 'dbt-sparkevolve[postgresql]'` is for "
            "postgresql+psycopg2://…, `[mysql]` for mysql+pymysql://…"
        )

    def check(self) -> None:
        """See whether all that decides who reads and writes what was said to both sides.

        Raises:
            ProfileError: which properties one side has nothing for.
        """
        parts = [
            f"{what} {', '.join(names)}."
            for what, names in (
                ("Spark has nothing for", self.lacking_spark),
                ("PyIceberg has nothing for", self.lacking_pyiceberg),
            )
            if names
        ]
        if parts:
            raise self.place.error(
                "cannot be said to both sides: one would be denied what the other may do, or look elsewhere. "
                f"{' '.join(parts)} Leave it out, or say what each side gets by itself in the mappings "
                f"`pyiceberg` and `spark` of `{self.place.setting}`."
            )

    def prepare(self) -> None:
        """Make the folder and the database of a SQLite catalog, in WAL mode, unless they are there.

        In WAL mode readers and one writer do not block each other, and the mode stays with the file.

        Raises:
            MovedCatalogError: it is an embedded catalog, which was copied or moved here.
        """
        if self.sqlite_file is None:
            return
        folder = self.sqlite_file.parent
        if self.embedded:
            embedded.make_private(folder)
            embedded.make_file(self.sqlite_file)
        else:
            folder.mkdir(parents=True, exist_ok=True)
        with (
            _told(self.place, self.sqlite_file),
            closing(sqlite3.connect(self.sqlite_file, timeout=BUSY_SECONDS)) as connection,
        ):
            embedded.use_wal(connection)
            if self.embedded:
                embedded.check_location(folder, connection)
            if self.embedded and self.pyiceberg["warehouse"] == f"file://{folder / 'warehouse'}":
                self._note_owner(folder, connection)

    def _note_owner(self, folder: Path, connection: sqlite3.Connection) -> None:
        if not embedded.note_owner(folder, self.name, connection):
            raise ProfileError(
                self.place.setting,
                f"Another dbt command has begun to use {folder} at this moment, with a catalog of another "
                f"name than `{self.name}`. Nothing was done: start this one again.",
            )


def resolve(
    name: str, properties: Mapping[str, Any], base_dir: Path, place: Place | None = None
) -> CatalogSettings:
    """Return the settings of the catalog ``name``.

    Args:
        name: the profile's ``catalog``, or a name under its ``catalogs``.
        properties: what the profile has there; empty means the embedded catalog.
        base_dir: the folder in which ``.sparkevolve`` lies; the dbt project's.
        place: where the profile states it; None for ``catalog_properties``.

    Raises:
        ProfileError: the properties do not describe a catalog that both sides can share.
    """
    place = place or Place(name)
    if not properties:
        return _embedded(place, base_dir / embedded.FOLDER)
    alone = {side: _said_alone(place, side, properties.get(side)) for side in _SIDES}
    given = _given(place, {key: value for key, value in properties.items() if key not in _SIDES})
    _check_spelling_of_java(place, given)
    kind = str(given.get("type", "")).lower()
    if kind not in _SPARK_TYPES:
        without = f"leave `{place.setting}` {'empty' if place.is_further else 'out'}"
        shown = f"the type {given['type']!r}" if "type" in given else "no `type`"
        is_database = kind in {*JDBC_DRIVERS, _POSTGRES}
        database = " A SQL database has the type sql, and `uri` says which one it is." if is_database else ""
        raise place.error(
            f"has {shown}, and Spark and PyIceberg can share one of: "
            f"{', '.join(_SPARK_TYPES)}. Set `type`, or {without} for the embedded catalog under "
            f"./.sparkevolve.{database}"
        )
    if "py-catalog-impl" in given:
        raise place.error(
            "have `type` and `py-catalog-impl`: PyIceberg takes one of them, and Spark knows no class of "
            "Python. Leave `py-catalog-impl` out."
        )
    _check_warehouse(place, kind, given.get("warehouse", ""))
    # Spark may have its own from a Thrift server's operator, or from hive-site.xml.
    if kind in _ADDRESS_FORMS and not str({**given, **alone[PYICEBERG_ALONE]}.get("uri", "")).strip():
        raise place.error(
            f"has the type {kind!r}, which needs the address of a server as `uri`, such as "
            f"{_ADDRESS_FORMS[kind]}."
        )
    if kind == "sql":
        settings = _sql(place, given, base_dir)
    else:
        settings = _settings(place, kind, translate(kind, given), given)
    settings = replace(
        settings, stated={**given, **{side: alone[side] for side in _SIDES if properties.get(side)}}
    )
    if not any(alone.values()):
        return settings
    of_spark = {f"spark.sql.catalog.{name}.{key}": value for key, value in alone[SPARK_ALONE].items()}
    # What Spark alone is told may be what its files are read with, or with which jars.
    seen_by_spark = {**given, **alone[SPARK_ALONE]}
    return replace(
        settings,
        pyiceberg={**settings.pyiceberg, **alone[PYICEBERG_ALONE]},
        spark={**settings.spark, **of_spark},
        bundles=bundles(kind, seen_by_spark),
        file_io=file_io(kind, seen_by_spark),
    )


def _check_spelling_of_java(place: Place, given: Mapping[str, Any]) -> None:
    """See whether a catalog is stated as Spark's settings have it: here it is stated as for PyIceberg.

    Raises:
        ProfileError: it is.
    """
    implementation = str(given.get("catalog-impl", "")).rpartition(".")[2]
    if implementation:
        known = _TYPES_OF_JAVA.get(implementation)
        raise place.error(
            f"has `catalog-impl`, a class of Java of which PyIceberg knows nothing. Write "
            f"{f'`type: {known}`' if known else '`type`'} instead."
        )
    if str(given.get("type", "")).lower() == "jdbc":
        raise place.error(
            "has `type: jdbc`, as Iceberg says it in Java. Write `type: sql`, and in `uri` a SQLAlchemy URL, "
            "such as postgresql+psycopg2://host/database, with user and password before the host."
        )
    uri = str(given.get("uri", ""))
    if uri.lower().startswith("jdbc:"):
        database = uri.split(":")[1].lower()
        instead = {"sqlite": "sqlite:////absolute/path/catalog.db"}.get(
            database,
            f"{_DRIVERS.get(database, ('', 'postgresql+psycopg2'))[1]}://host/database",
        )
        raise place.error(
            f"has an address of JDBC as `uri`. Write a SQLAlchemy URL, such as {instead}: what Spark needs "
            "is made from it."
        )


def _said_alone(place: Place, side: str, said: Any) -> dict[str, Any]:
    """Return what one side alone gets, as it gets it.

    Raises:
        ProfileError: it is no mapping.
    """
    if said is None:
        return {}
    if not isinstance(said, Mapping):
        raise ProfileError(
            place.setting,
            f"`{side}` in {place} is no mapping: it has the properties that this side alone gets, each on a "
            "line of its own.",
        )
    return {
        str(key): value if isinstance(value, Mapping) else property_text(value)
        for key, value in said.items()
        if value is not None
    }


def _given(place: Place, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties as texts, but for those that are mappings.

    Raises:
        ProfileError: a name that is nearly one that exists, or a value of another form.
    """
    given: dict[str, Any] = {}
    for key, value in properties.items():
        key = str(key)
        meant = "uri" if key.lower() == "url" else near_miss(key)
        if meant is not None:
            raise place.error(f"has `{key}`, which neither Spark nor PyIceberg reads. {did_you_mean(meant)}")
        if value is None:
            continue
        first = key.partition(".")[0]
        if first in MAPPINGS and key != "auth.session-timeout-ms":
            if key != first or not isinstance(value, Mapping):
                raise ProfileError(
                    place.setting,
                    f"`{key}` in {place} has another form than PyIceberg reads: `{first}` is a mapping, such "
                    f"as {MAPPINGS[first]}.",
                )
            given[key] = value
        elif key == CATALOG_PROPERTIES:
            raise place.error(
                f"has `{key}`: write the properties themselves there, such as `type` and `uri`, one level up."
            )
        elif isinstance(value, (Mapping, list, tuple)):
            raise ProfileError(
                place.setting,
                f"`{key}` in {place} is a {'mapping' if isinstance(value, Mapping) else 'list'}, and Spark "
                f"and PyIceberg read a text there. Write its parts as `{key}.…: …`, each on a line of its "
                "own.",
            )
        else:
            given[key] = property_text(value)
    if "auth" in given and not given["auth"].get("type"):
        raise ProfileError(
            place.setting,
            f"`auth` in {place} has no `type`; it is a mapping, such as {MAPPINGS['auth']}.",
        )
    return given


@contextmanager
def _told(place: Place, database: Path) -> Iterator[None]:
    """Say which database it is that SQLite cannot use, such as one that a program keeps locked."""
    try:
        yield
    except sqlite3.OperationalError as exc:
        raise ProfileError(
            place.setting,
            f"SQLite cannot use the catalog {database}: {exc}. Locks were waited for {BUSY_SECONDS} s. See "
            "which program has it open, and whether you may write there. Nothing was done.",
        ) from exc


def _embedded(place: Place, folder: Path) -> CatalogSettings:
    """Return the settings of an embedded catalog.

    Those of a project are in one database, which keeps their tables apart by the catalogs' names, so that it
    does not matter which of them is the profile's own. See ``embedded.warehouse`` for their files.
    """
    if any(character in str(folder) for character in "?#%"):
        raise ProfileError(
            place.setting,
            f"The embedded catalog cannot lie in {folder}: SQLite's URLs give ?, # and % a meaning of "
            f"their own. Move the project, or set `{place.setting}`.",
        )
    with _told(place, folder / "catalog.db"):
        warehouse = embedded.warehouse(folder, place.name, is_further=place.is_further)
    url = URL.create("sqlite", database=str(folder / "catalog.db"))
    return _sql(
        place,
        {
            "type": "sql",
            "uri": url.render_as_string(hide_password=False),
            "warehouse": f"file://{warehouse}",
        },
        folder,
        is_embedded=True,
    )


def _check_warehouse(place: Place, kind: str, warehouse: str) -> None:
    """See whether a warehouse is the same place for both sides, wherever dbt is run from.

    To a REST catalog it may be any name.

    Raises:
        ProfileError: it is a path that begins in the current folder, one that PyIceberg cuts off, or an
            address without a bucket.
    """
    if kind not in _WITH_PATHS or not warehouse:
        return
    parts = urlsplit(warehouse)
    if parts.scheme in _WITH_BUCKETS and not parts.netloc:
        raise ProfileError(
            place.setting,
            f"`warehouse` in {place} is {clean(warehouse)!r}, an address without a bucket. Give the whole "
            f"one, such as {parts.scheme}://bucket/warehouse.",
        )
    is_whole = parts.path.startswith("/") and not parts.netloc
    if parts.scheme in ("", "file") and not is_whole:
        raise ProfileError(
            place.setting,
            f"`warehouse` in {place} is {clean(warehouse)!r}, which begins in whatever folder Spark was "
            "started in: what is built there could be read from nowhere else. Give the whole path, such as "
            "file:///srv/lake/warehouse.",
        )
    if warehouse != warehouse.strip():
        raise ProfileError(
            place.setting,
            f"`warehouse` in {place} is {clean(warehouse)!r}, with a space or the end of a line before or "
            "after it, which would be part of each path. Take it away, such as with "
            "`env_var('WAREHOUSE') | trim`.",
        )
    if parts.scheme and any(character in warehouse for character in "?#"):
        raise ProfileError(
            place.setting,
            f"`warehouse` in {place} is {clean(warehouse)!r}, and in an address `?` and `#` end a path for "
            "PyIceberg, and do not for Spark. Choose a folder without them.",
        )


def _sql(
    place: Place, given: dict[str, str], base_dir: Path, *, is_embedded: bool = False
) -> CatalogSettings:
    name = place.name
    try:
        url = make_url(given.get("uri", ""))
    except (ArgumentError, ValueError):
        # Its text would repeat the URL, and with it a password.
        raise place.error(
            "needs a SQLAlchemy URL as `uri`, such as sqlite:////absolute/path/catalog.db."
        ) from None
    database = url.get_backend_name()
    if database not in JDBC_DRIVERS:
        meant = f" {did_you_mean('postgresql')}" if database == _POSTGRES else ""
        raise ProfileError(
            place.setting,
            f"The SQL catalog `{name}` is in {database}, and Spark and PyIceberg can share one in: "
            f"{', '.join(JDBC_DRIVERS)}.{meant}",
        )
    translation = translate("sql", {**given, "type": "sql"})
    # V1 is the schema that holds views.
    jdbc: dict[str, str] = {"jdbc.schema-version": "V1"}
    sqlite_file = None
    if database == "sqlite":
        if url.host or url.port or url.username or url.password:
            raise ProfileError(
                place.setting,
                f"`uri` of the SQL catalog `{name}` names a host, and SQLite has none. Write three slashes "
                "before a path that begins in the dbt project, and four before a whole one, such as "
                "sqlite:////srv/lake/catalog.db.",
            )
        if not url.database or url.database == ":memory:":
            raise ProfileError(
                place.setting,
                f"The SQL catalog `{name}` is in the memory of one process, and Spark could not see it: "
                "give a file in `uri`.",
            )
        # From wherever dbt is run: from another folder it would be another, empty catalog.
        sqlite_file = base_dir.absolute() / url.database
        url = url.set(database=str(sqlite_file)).update_query_dict({"timeout": str(BUSY_SECONDS)})
        uri = f"jdbc:sqlite:{sqlite_file}"
        jdbc["jdbc.busy_timeout"] = str(BUSY_SECONDS * 1000)
    else:
        try:
            address = _ADDRESSES[database](url)
        except SocketAddressError as exc:
            raise ProfileError(
                place.setting,
                f"`uri` of the SQL catalog `{name}` names the Unix socket {exc.path}, and Spark's driver of "
                f"{_TITLES[database]} connects to hosts only. Name the host and the port on which the server "
                "listens.",
            ) from None
        uri = address.url
        if address.user:
            jdbc["jdbc.user"] = address.user
        if address.password:
            jdbc["jdbc.password"] = address.password
        translation.tuning += [f"`{parameter}` in `uri`" for parameter in address.lacking]
        translation.lacking_spark += [f"`{parameter}` in `uri`" for parameter in address.denied]
    again = {_ASK_AGAIN: postgresql.ENDED} if database == "postgresql" else {}
    translation.spark = {**again, **translation.spark, "uri": uri, **jdbc}
    translation.pyiceberg = {**translation.pyiceberg, "type": given["type"]}
    translation.pyiceberg["uri"] = url.render_as_string(hide_password=False)
    settings = _settings(place, "sql", translation, given)
    return replace(
        settings, packages=(JDBC_DRIVERS[database],), sqlite_file=sqlite_file, embedded=is_embedded
    )


def _settings(place: Place, kind: str, translation: Translation, given: Mapping[str, Any]) -> CatalogSettings:
    name = place.name
    prefix = f"spark.sql.catalog.{name}"
    # `spark_catalog` also holds Spark's own tables, so there Iceberg has to step back for those.
    implementation = "SparkSessionCatalog" if name == "spark_catalog" else "SparkCatalog"
    spark = {
        prefix: f"org.apache.iceberg.spark.{implementation}",
        f"{prefix}.type": _SPARK_TYPES[kind],
        # PyIceberg and other processes commit behind the back of a cache of this session.
        f"{prefix}.cache-enabled": "false",
        **{f"{prefix}.{key}": value for key, value in translation.spark.items()},
    }
    if kind_of({**given, "type": kind}) is Kind.S3_TABLES:
        # Otherwise DROP TABLE … PURGE of a hook would delete files itself, and drop the table without them.
        spark.setdefault(f"{prefix}.rest-catalog-purge", "true")
    return CatalogSettings(
        name,
        translation.pyiceberg,
        spark,
        bundles=bundles(kind, given),
        file_io=file_io(kind, given),
        java_properties=translation.java,
        ca_file=translation.ca_file,
        authorities=_fingerprint(translation.ca_file),
        tuning=tuple(translation.tuning),
        lacking_spark=tuple(translation.lacking_spark),
        lacking_pyiceberg=tuple(translation.lacking_pyiceberg),
        unknown=tuple(translation.unknown),
        place=place,
    )


def _fingerprint(file: str | None) -> str | None:
    try:
        return file and hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return None  # that is said where the file is used
