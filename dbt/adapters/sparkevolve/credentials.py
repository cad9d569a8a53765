"""The profile: how to reach Spark, and which Iceberg catalog it works on."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Optional

from dbt.adapters.spark.connections import SparkConnectionMethod, SparkCredentials
from dbt_common.dataclass_schema import ValidationError

from dbt.adapters.sparkevolve.errors import ProfileError
from dbt.adapters.sparkevolve.evolution.table_properties import property_text
from dbt.adapters.sparkevolve.iceberg import catalog_settings
from dbt.adapters.sparkevolve.iceberg.capabilities import capabilities_of
from dbt.adapters.sparkevolve.iceberg.catalog_properties import KNOWN
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CATALOGS, CatalogSettings, Place
from dbt.adapters.sparkevolve.iceberg.metastore import LOCKS_OF_ALL, LOCKS_OF_CATALOG
from dbt.adapters.sparkevolve.redaction import learn
from dbt.adapters.sparkevolve.relation import namespace, schema_problem
from dbt.adapters.sparkevolve.suggestions import closest, did_you_mean
from dbt.adapters.sparkevolve.warning import warn

_CATALOG_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ANSI = "spark.sql.ansi.enabled"
# A year: sockets do not take times without an end.
_MOST_SECONDS = 31_536_000
_LAST_PORT = 65_535
_METHODS = (SparkConnectionMethod.SESSION, SparkConnectionMethod.THRIFT)


SPARK_CATALOG = "spark_catalog"
# What dbt-core reads of an output itself.
_KEYS_OF_DBT = frozenset({"type", "threads"})
# Settings of Spark that decide whether a session works as we mean it to.
_SPARK_SETTINGS = (
    "spark.jars",
    "spark.jars.packages",
    "spark.jars.ivy",
    "spark.jars.repositories",
    "spark.master",
    "spark.driver.memory",
    "spark.executor.memory",
    "spark.driver.extraJavaOptions",
    "spark.sql.extensions",
    "spark.sql.defaultCatalog",
    "spark.sql.catalogImplementation",
    "spark.sql.warehouse.dir",
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.shuffle.partitions",
)

# What means nothing to a session, which runs in this process.
_OF_SERVERS = (
    "host",
    "port",
    "user",
    "password",
    "auth",
    "kerberos_service_name",
    "use_ssl",
    "ssl_verify",
    "ssl_ca_file",
    "connect_retries",
    "retry_all",
    "connect_timeout",
    "response_timeout",
    "query_timeout",
    "poll_interval",
)
# dbt-spark's other ways to connect, and its second attempt at a statement, which may have taken effect.
_OF_DBT_SPARK_ALONE = (
    "driver",
    "cluster",
    "endpoint",
    "token",
    "organization",
    "connection_string_suffix",
    "query_retries",
)
# Settings of a catalog in Spark that say where its tables are, behind its name.
_PLACING = (".type", ".catalog-impl", ".uri", ".warehouse")
# What stands for no host: dbt-spark's documentation and our own default have the first and the last. That of
# this machine is where a session is.
_NO_HOST = ("na", "n/a", "none", "", "local", "localhost", "127.0.0.1", "in-process")


def near_miss_of_spark(key: str, catalogs: Sequence[str]) -> str | None:
    """Return the setting of Spark that ``key`` is a near miss of; None if it is one, or is like none.

    Spark has hundreds of settings, many of them alike, so only one part may differ: what stands between dots.

    Args:
        key: a key of ``spark_config``.
        catalogs: the names of the profile's catalogs, with which their settings begin.
    """
    parts = key.split(".")
    stated = [f"spark.sql.catalog.{name}" for name in catalogs]
    for setting in (*_SPARK_SETTINGS, *stated):
        wanted = setting.split(".")
        begins = setting.startswith("spark.sql.catalog.")
        given = parts[: len(wanted)] if begins else parts
        differing = [(part, want) for part, want in zip(given, wanted, strict=False) if part != want]
        if len(given) == len(wanted) and len(differing) == 1:
            part, want = differing[0]
            # A catalog of nearly the same name may be another one.
            if want not in catalogs and closest(part, [want]) is not None:
                return ".".join([*wanted, *parts[len(wanted) :]])
    return None


def is_local(spark_config: Mapping[str, Any]) -> bool:
    """Tell whether a session runs on this machine alone, by the profile's ``spark_config``."""
    return str(spark_config.get("spark.master", "local")).strip().startswith("local")


@dataclass(repr=False)
class SparkEvolveCredentials(SparkCredentials):
    """An output of ``type: sparkevolve`` in ``profiles.yml``; dbt-spark's settings and these.

    Attributes:
        catalog: name of the catalog in Spark and in PyIceberg.
        catalog_properties: PyIceberg's properties of it; empty for the embedded one.
        catalogs: the same of further catalogs, by name.
        spark_config: further settings of the in-process session.
        poll_interval: seconds, at the most, between two questions whether a statement has ended.
        connect_timeout: seconds that one attempt to connect to a server may take.
        response_timeout: seconds that a server may be silent after a question; a statement may take longer.
        catalog_timeout: seconds that a run waits for a catalog that does not answer.
        ssl_verify: whether a server has to prove with its certificate who it is, where ``use_ssl`` is set.
        ssl_ca_file: the certificates of the authorities that are trusted, in PEM format; None for those that
            this machine trusts.
    """

    catalog: Optional[str] = None
    catalog_properties: dict[str, Any] = field(default_factory=dict)
    catalogs: dict[str, Any] = field(default_factory=dict)
    spark_config: dict[str, Any] = field(default_factory=dict)
    poll_interval: float = 5  # type: ignore[assignment]
    connect_timeout: float = 60  # type: ignore[assignment]
    response_timeout: float = 120
    catalog_timeout: float = 60
    ssl_verify: bool = True
    ssl_ca_file: Optional[str] = None

    @classmethod
    def __pre_deserialize__(cls, data: Any) -> Any:
        """Refuse keys that are near misses of ours, or stand in the wrong place; warn of other new ones."""
        known = {setting.name for setting in fields(cls)}
        for key in data:
            belongs = "spark_config" if str(key).startswith("spark.") else "catalog_properties"
            if key not in known | _KEYS_OF_DBT and (key in KNOWN or belongs == "spark_config"):
                raise ProfileError(
                    str(key), f"`{key}` is no setting of the profile itself: it belongs under `{belongs}`."
                )
            meant = closest(str(key), known) if key not in _KEYS_OF_DBT else None
            if meant is not None:
                raise ProfileError(str(key), f"The profile has no setting `{key}`. {did_you_mean(meant)}")
            if key not in known and key not in _KEYS_OF_DBT:
                warn(f"The profile's setting `{key}` means nothing to sparkevolve, and is not used.")
        for text in _without_effect(data, {setting.name: setting.default for setting in fields(cls)}):
            warn(text)
        return super().__pre_deserialize__(data)

    @classmethod
    def validate(cls, data: Any) -> None:
        """See whether an output of the profile has what it has to, each of its type.

        Raises:
            ProfileError: which setting is wrong. Its value may be a secret, or hold all of them.
        """
        _learn(data)
        given = data.get(CATALOGS)
        for name in given if isinstance(given, Mapping) else ():
            _check_name(name)
        try:
            super().validate(data)
        except ValidationError as exc:
            path = ".".join(str(part) for part in exc.absolute_path)
            raise ProfileError(path, _what_is_wrong(path, exc)) from None

    def __post_init__(self) -> None:
        _learn(vars(self))
        if self.method not in _METHODS:
            given = getattr(self.method, "value", self.method)
            shown = "and this one has none" if given is None else f"not {given!r}"
            raise ProfileError("method", f"`method` of a sparkevolve profile is session or thrift, {shown}.")
        if not self.catalog or not _CATALOG_NAME.fullmatch(self.catalog):
            # The name that other adapters of several catalogs have for it.
            hint = f": write `catalog` in place of `database`, which is {self.database!r}"
            what_it_is = f"it is {self.catalog!r}"
            if self.catalog is None:
                what_it_is = f"this one has none{hint if self.database else ''}"
            raise ProfileError(
                "catalog",
                f"`catalog` of a sparkevolve profile names the Iceberg catalog in letters, digits and "
                f"underscores, such as lake; {what_it_is}.",
            )
        _check_spark_takes(self.catalog, "catalog")
        if self.database not in (None, self.catalog):
            raise ProfileError(
                "database",
                f"`database` is {self.database!r} and `catalog` is {self.catalog!r}: leave `database` out.",
            )
        self._check_numbers()
        self._check_catalogs()
        if self.host is not None and self.host.startswith("[") and self.host.endswith("]"):
            # An IPv6 address as in a URL.
            self.host = self.host[1:-1]
        if self.host is not None and not self.host.strip():
            raise ProfileError("host", "`host` of the profile names no server.")
        for key, value in self.spark_config.items():
            if not isinstance(value, str | bool | int | float):
                raise ProfileError(
                    "spark_config",
                    f"`{key}` in `spark_config` has to be a string, a number, or true or false, but is "
                    f"{_TYPES[_YAML_TYPES.get(type(value), 'null')]}.",
                )
            meant = near_miss_of_spark(str(key), self.catalog_names)
            if meant is not None:
                raise ProfileError(
                    "spark_config",
                    f"`spark_config` has `{key}`, which Spark does not read. {did_you_mean(meant)}",
                )
        if self.method == SparkConnectionMethod.SESSION and self.host is None:
            self.host = "in-process"
        self._check_installed()
        self.database = None
        # dbt-spark turns ANSI mode off whatever the user says; here it is off unless the user says on.
        wanted = self.server_side_parameters.get(_ANSI, self.spark_config.get(_ANSI))
        super().__post_init__()
        if wanted is not None:
            self.server_side_parameters[_ANSI] = str(wanted).lower()
        self.database = self.catalog
        self._base_dir = Path.cwd()
        self._authorities: dict[str | None, str | None] = {}
        settings, *further = self.all_catalog_settings()
        for each in (settings, *further):
            each.check()
        if self.method == SparkConnectionMethod.SESSION:
            _check_java((settings, *further))
            self._check_cluster((settings, *further))
            self._check_embedded((settings, *further))
        else:
            _check_shared((settings, *further))
        keys = {*self.spark_config, *self.server_side_parameters}
        catalogs = {key.split(".")[3] for key in keys if key.startswith("spark.sql.catalog.")}
        catalogs.update(self.catalog_names)
        # Of a REST catalog that is not opened yet, what its properties tell.
        can = capabilities_of(settings.known)
        problem = schema_problem(
            str(self.schema),
            self.catalog,
            catalogs,
            kind=can.kind.value,
            is_nested=can.has_nested_schemas,
            takes_name=can.takes_schema,
            names=can.names.value,
        )
        if problem:
            raise ProfileError("schema", f"`schema` of the profile is {self.schema!r}, and {problem}")

    def _check_installed(self) -> None:
        """See whether there is what a way of connecting needs: dbt-spark would name its own extras.

        Raises:
            ProfileError: there is not.
        """
        method = SparkConnectionMethod(self.method).value
        module = {"thrift": "pyhive", "session": "pyspark"}[method]
        if find_spec(module) is None:
            raise ProfileError(
                "method",
                f"`method: {method}` of the profile needs the Python module `{module}`, which is not there: "
                f"run `pip install 'dbt-sparkevolve[{method}]'`.",
            )

    def _check_numbers(self) -> None:
        """Refuse numbers with which nothing works, or a loop never waits.

        Raises:
            ProfileError: which setting is one.
        """
        for timeout in ("connect_timeout", "response_timeout", "catalog_timeout", "query_timeout"):
            seconds = getattr(self, timeout)
            if seconds is not None and not seconds > 0:
                raise ProfileError(
                    timeout,
                    f"`{timeout}` in the profile has to be more than 0 seconds, and is "
                    f"{seconds!r}: nothing answers in no time.",
                )
            if seconds is not None and seconds > _MOST_SECONDS:
                raise ProfileError(
                    timeout,
                    f"`{timeout}` in the profile is {seconds!r}: it can be {_MOST_SECONDS} seconds at most.",
                )
        if not 0 < self.poll_interval <= _MOST_SECONDS:
            raise ProfileError(
                "poll_interval",
                f"`poll_interval` in the profile is {self.poll_interval!r}: it has to be a number of seconds "
                "above 0.",
            )
        if self.connect_retries < 0:
            raise ProfileError(
                "connect_retries",
                f"`connect_retries` in the profile is {self.connect_retries}: it has to be 0 or more.",
            )
        if not 0 <= self.port <= _LAST_PORT:
            raise ProfileError(
                "port", f"`port` in the profile is {self.port}: it has to be a number up to {_LAST_PORT}."
            )

    def _check_cluster(self, catalogs: Sequence[CatalogSettings]) -> None:
        """See whether the executors reach the catalogs' files.

        Raises:
            ProfileError: they do not.
        """
        for each in catalogs if not is_local(self.spark_config) else ():
            setting = each.place.setting
            if each.embedded:
                raise ProfileError(
                    "spark_config",
                    f"`spark.master` in `spark_config` names a cluster, and the profile has no `{setting}`: "
                    "the embedded catalog keeps its files on this machine, where the executors would not "
                    f"find them. Give `{setting}`, with a `warehouse` that this machine and all executors "
                    "reach.",
                )

    def _check_embedded(self, catalogs: Sequence[CatalogSettings]) -> None:
        """See whether Spark's settings place a catalog elsewhere of which the profile has no properties.

        PyIceberg would take the embedded one, as after a move from dbt-spark that changes the type alone.

        Raises:
            ProfileError: they do.
        """
        for each in catalogs:
            for setting in ("spark_config", "server_side_parameters"):
                given = getattr(self, setting) if each.embedded else {}
                placing = [f"spark.sql.catalog.{each.name}{key}" for key in _PLACING]
                stated = [key for key in placing if key in given and given[key] != each.spark.get(key)]
                if stated:
                    raise ProfileError(
                        setting,
                        f"`{setting}` of the profile has `{stated[0]}`, and the profile has no "
                        f"`{each.place.setting}`: Spark would find the tables of `{each.name}` there, and "
                        f"PyIceberg look for them in the embedded catalog. State the catalog in "
                        f"`{each.place.setting}`, from which Spark's settings follow, and leave those out "
                        f"that begin with `spark.sql.catalog.{each.name}`.",
                    )

    def _check_catalogs(self) -> None:
        """See whether each further catalog has a name that tells it apart, and properties.

        Raises:
            ProfileError: one has not. Its properties may be secrets, and so may what stands in their place.
        """
        taken = {str(self.catalog).lower(): f"the profile's `catalog`, {self.catalog!r}"}
        for name, properties in self.catalogs.items():
            setting = f"{CATALOGS}.{name}"
            if not isinstance(properties, Mapping | None):
                given = _TYPES[_YAML_TYPES.get(type(properties), "null")]
                raise ProfileError(
                    setting,
                    f"`{setting}` in the profile has to be a mapping of PyIceberg's properties of the "
                    f"catalog `{name}`, but is {given}. `{CATALOGS}` has the name of each further catalog, "
                    "and its properties below that.",
                )
            _check_name(name)
            if name.lower() in taken:
                raise ProfileError(
                    setting,
                    f"`{CATALOGS}` of the profile has {name!r}, which is the name of {taken[name.lower()]}"
                    f"{'' if name == self.catalog else ', in other letters: dbt does not tell them apart'}. "
                    "State each catalog once.",
                )
            taken[name.lower()] = f"another one there, {name!r}"
            kind = str((properties or {}).get("type", "")).lower()
            if name == SPARK_CATALOG and kind != "hive":
                raise ProfileError(
                    setting,
                    f"`{CATALOGS}` of the profile has {SPARK_CATALOG!r}, which is Spark's own catalog and "
                    "keeps its schemas in Spark or in a Hive metastore: it needs `type: hive`. "
                    "What is in it can be read, and tables of other formats and views can be built in it, "
                    "without being stated; give an Iceberg catalog another name.",
                )

    @property
    def type(self) -> str:
        """The adapter's name."""
        return "sparkevolve"

    @property
    def unique_field(self) -> str:
        """What dbt's anonymous statistics hash to count installations."""
        return str(self.host)

    def set_base_dir(self, base_dir: Path) -> None:
        """Say where the project lies: the embedded catalog is kept in it, wherever dbt is run from."""
        self._base_dir = base_dir.absolute()

    @property
    def base_dir(self) -> Path:
        """The folder in which ``.sparkevolve`` lies."""
        return self._base_dir

    @property
    def default_namespace(self) -> str:
        """The schema as Iceberg's catalogs take the one that is current."""
        return ".".join(namespace(self.schema))

    @property
    def catalog_names(self) -> tuple[str, ...]:
        """The names of the catalogs that the profile states, its own first."""
        return (str(self.catalog), *map(str, self.catalogs))

    @property
    def cached_catalogs(self) -> list[str]:
        """The catalogs of whose tables Spark keeps what it has read, as the profile has it."""
        given: dict[str, Any] = dict(self.server_side_parameters)
        if self.method == SparkConnectionMethod.SESSION:
            of_catalogs = {
                key: text for each in self.all_catalog_settings() for key, text in each.spark.items()
            }
            given = {**of_catalogs, **self.spark_config, **given}
        return [
            name
            for name in self.catalog_names
            if str(given.get(f"spark.sql.catalog.{name}.cache-enabled", "")).strip().lower() == "true"
        ]

    def catalog_settings(self) -> CatalogSettings:
        """Return the profile's own catalog as Spark and PyIceberg need it.

        Raises:
            ProfileError: ``catalog_properties`` do not describe one that both can share.
        """
        return self._resolved(Place(str(self.catalog)), self.catalog_properties)

    def all_catalog_settings(self) -> tuple[CatalogSettings, ...]:
        """Return each catalog that the profile states, its own first.

        Raises:
            ProfileError: the properties of one do not describe a catalog that both can share.
        """
        further = (self._resolved(Place.of_further(name), given) for name, given in self.catalogs.items())
        return (self.catalog_settings(), *further)

    def _resolved(self, place: Place, properties: Mapping[str, Any] | None) -> CatalogSettings:
        settings = catalog_settings.resolve(place.name, properties or {}, self._base_dir, place)
        # Certificates that are renewed under way would give the nodes that are left another session.
        authorities = self._authorities.setdefault(settings.ca_file, settings.authorities)
        settings = replace(settings, authorities=authorities)
        settings = self._with_locks(settings)
        if self.method == SparkConnectionMethod.SESSION:
            return settings
        # A server has Spark's settings from its operator.
        return replace(settings, lacking_spark=(), tuning=())

    def _with_locks(self, settings: CatalogSettings) -> CatalogSettings:
        """Return a catalog with what Spark is told, beside its properties, of whether it takes locks.

        PyIceberg has to do the same: of two writers of which one takes none, neither sees the other.
        """
        is_session = self.method == SparkConnectionMethod.SESSION
        told: dict[str, Any] = {**(self.spark_config if is_session else {}), **self.server_side_parameters}
        key = f"spark.sql.catalog.{settings.name}.{LOCKS_OF_CATALOG}"
        # What is said of one catalog wins over what is said of all, which is read where Spark starts.
        said = told.get(key, told.get(LOCKS_OF_ALL) if is_session and key not in settings.spark else None)
        if settings.kind != "hive" or said is None:
            return settings
        return replace(settings, spark={**settings.spark, key: property_text(said)})

    def __repr__(self) -> str:
        """Return what is no secret of the profile."""
        return f"{type(self).__name__}({dict(self.connection_info())})"

    def _connection_keys(self) -> tuple[str, ...]:
        # What `dbt debug` shows. `catalog_properties` and `spark_config` may hold secrets.
        reach = ("host", "port", "user") if self.method == SparkConnectionMethod.THRIFT else ()
        further = (CATALOGS,) if self.catalogs else ()
        return ("method", *reach, "catalog", *further, "database", "schema")

    def connection_info(self, *, with_aliases: bool = False) -> Iterable[tuple[str, Any]]:
        """Return what `dbt debug` shows; of further catalogs their names, since the rest may be secret."""
        for key, value in super().connection_info(with_aliases=with_aliases):
            yield key, ", ".join(self.catalogs) if key == CATALOGS else value


def _check_shared(catalogs: Sequence[CatalogSettings]) -> None:
    """See whether the profile says how PyIceberg reaches the catalogs that a server's operator has set up.

    Raises:
        ProfileError: it does not: PyIceberg would take an embedded one.
    """
    for each in catalogs:
        if each.embedded:
            stated = each.place.setting
            lacks = f"has `{stated}` empty" if each.place.is_further else f"has no `{stated}`"
            raise ProfileError(
                each.place.setting,
                f"The profile {lacks}, and with `method: thrift` the catalog `{each.name}` is one of the "
                "server's: dbt would look for its tables in an embedded catalog, of which the server knows "
                "nothing. State how PyIceberg reaches the same one, such as `{type: rest, uri: "
                f"https://catalog.internal, warehouse: {each.name}}}`.",
            )


def _without_effect(data: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[str]:
    """Yield what to say of settings that the way of connecting does not use.

    Args:
        data: an output of the profile.
        defaults: those of all settings. One that has its default has been left out, as far as one can tell.
    """
    given = {name for name in data if name in defaults and data[name] not in (None, defaults[name])}
    if str(data.get("host", "")).strip().lower() in _NO_HOST:
        given.discard("host")
    of_servers = [name for name in _OF_SERVERS if name in given]
    if data.get("method") == SparkConnectionMethod.SESSION and of_servers:
        yield (
            f"{_named(of_servers)} no effect: with `method: session`, Spark runs in the process of dbt. "
            "For a server, set `method: thrift`."
        )
    of_session = {key for key in data.get("spark_config") or () if key != _ANSI}
    if data.get("method") == SparkConnectionMethod.THRIFT and of_session:
        yield (
            f"{_named(['spark_config'])} no effect: with `method: thrift`, Spark is as the server's operator "
            "has set it up. What a connection may set itself goes into `server_side_parameters`."
        )
    unused = [name for name in _OF_DBT_SPARK_ALONE if name in given]
    if unused:
        yield (
            f"{_named(unused)} no effect: dbt-spark connects, or sends a statement again, in ways that "
            "sparkevolve does not have."
        )


def _named(settings: Sequence[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in settings)
    return f"{listed} in the profile {'has' if len(settings) == 1 else 'have'}"


def _check_name(name: object) -> None:
    """See whether a further catalog can have a name.

    Raises:
        ProfileError: it cannot.
    """
    if not isinstance(name, str) or not _CATALOG_NAME.fullmatch(name):
        raise ProfileError(
            CATALOGS,
            f"`{CATALOGS}` of the profile has a catalog {name!r}: the name of a catalog consists of letters, "
            "digits and underscores, such as lake.",
        )
    _check_spark_takes(name, CATALOGS)


def _check_spark_takes(name: str, setting: str) -> None:
    """See whether Spark looks for a catalog under a name.

    Raises:
        ProfileError: it means something else by it, whatever is set for a catalog of that name.
    """
    if name != SPARK_CATALOG and name.lower() in (SPARK_CATALOG, "global_temp"):
        raise ProfileError(
            setting,
            f"`{setting}` of the profile names {name!r}, by which Spark means something of its own, in any "
            "letters, and never a catalog that is stated. Give the catalog another name.",
        )


def _learn(data: Mapping[Any, Any]) -> None:
    """Take note of the secrets of a profile. The name that somebody gives a catalog does not make it one."""
    own = {key: value for key, value in data.items() if key != CATALOGS}
    catalogs = data.get(CATALOGS)
    further = catalogs.values() if isinstance(catalogs, Mapping) else (catalogs,)
    learn(own, *({"": properties} for properties in further))


def _check_java(catalogs: Sequence[CatalogSettings]) -> None:
    """See whether the catalogs can share one Java.

    Raises:
        ProfileError: two say different things of which Spark's Java has one for all, or what one says of
            AWS's credentials would be used for another that leaves them to the environment.
    """
    said = {name: each for each in reversed(catalogs) for name in each.java_properties}
    for each in catalogs:
        for name, other in said.items():
            value = each.java_properties.get(name)
            differs = value is not None and value != other.java_properties[name]
            if differs or (value is None and name.startswith("aws.") and each.asks_for_aws_credentials):
                raise ProfileError(
                    each.place.setting,
                    f"The catalogs `{each.name}` and `{other.name}` of the profile cannot be in one session "
                    f"of Spark: its Java has one `{name}` for all, and they do not say the same of it. State "
                    "the same credentials for both, give one of them a target of its own, or use a Thrift "
                    "server.",
                )


# JSON schema's names of types, as one writes them in YAML.
_TYPES = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a mapping of keys to values",
    "array": "a list",
    "null": "nothing",
}
_YAML_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}


def _what_is_wrong(path: str, error: ValidationError) -> str:
    """Say what is wrong with a setting, and not what it is."""
    if error.validator == "required":
        return str(error.message)  # the name of what is missing
    if error.validator == "enum":
        return f"`{path}` in the profile has to be {' or '.join(_METHODS)}, but is something else."
    schemas = [error.schema, *error.schema.get("anyOf", ())]
    wanted = [_TYPES[schema["type"]] for schema in schemas if schema.get("type") in _TYPES]
    given = _TYPES[_YAML_TYPES.get(type(error.instance), "null")]
    return f"`{path}` in the profile has to be {' or '.join(wanted)}, but is {given}."
