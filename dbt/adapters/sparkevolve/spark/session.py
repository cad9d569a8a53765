"""The Spark sessions of this process: started with Iceberg and its catalog, one for each profile."""

import logging
import re
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.sparkevolve.errors import ProfileError, SparkStartError, UnsupportedVersionError
from dbt.adapters.sparkevolve.iceberg import embedded
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings
from dbt.adapters.sparkevolve.interrupts import INTERRUPTS
from dbt.adapters.sparkevolve.redaction import safe
from dbt.adapters.sparkevolve.spark.downloads import PACKAGES, Downloads, one_at_a_time
from dbt.adapters.sparkevolve.spark.jars import iceberg_runtime, iceberg_version, note_resolved
from dbt.adapters.sparkevolve.spark.java import provide_java, user_home
from dbt.adapters.sparkevolve.spark.java_output import JavaOutput, is_users_own
from dbt.adapters.sparkevolve.spark.java_properties import JavaProperties
from dbt.adapters.sparkevolve.spark.launch import own_properties, private_submit_args
from dbt.adapters.sparkevolve.spark.locks import check_locks, limit_waiting
from dbt.adapters.sparkevolve.spark.session_config import check_warehouses, session_config
from dbt.adapters.sparkevolve.spark.session_errors import alive
from dbt.adapters.sparkevolve.spark.settings_checks import check_extensions, check_settings
from dbt.adapters.sparkevolve.warning import warn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = AdapterLogger("SparkEvolve")

# 1.11 is the oldest whose JDBC catalog can share a SQLite file (apache/iceberg #15462).
OLDEST_ICEBERG_FOR_SQLITE = (1, 11)


class SessionRegistry:
    """The Spark sessions of this process: one for each configuration, all in one Spark application.

    Spark has one context in a process. A second profile gets a session of its own in it, so that two
    catalogs of one name do not become one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[tuple[object, ...], SparkSession] = {}
        self._started_with = _StartedWith()
        self._java = JavaProperties()

    def get(
        self,
        settings: CatalogSettings,
        spark_config: Mapping[str, Any],
        parameters: Mapping[str, str],
        base_dir: Path,
        schema: str | None = None,
        further: Sequence[CatalogSettings] = (),
    ) -> "SparkSession":
        """Return the session for a profile, started if need be.

        Args:
            settings: the profile's own catalog.
            spark_config: the profile's ``spark_config``.
            parameters: the profile's ``server_side_parameters``.
            base_dir: the folder in which ``.sparkevolve`` lies.
            schema: the current schema of the session, which need not exist yet.
            further: the other catalogs that the profile states.

        Raises:
            JavaNotFoundError: no Java that Spark runs on.
            UnsupportedVersionError: a Spark or an Iceberg that does not fit.
            ProfileError: a SQL catalog has no warehouse, Spark would not start with other settings, or would
                take no locks where PyIceberg does.
        """
        import pyspark

        catalogs = (settings, *further)
        key = session_key(catalogs, spark_config, parameters, base_dir, schema)
        with self._lock:
            known = self._sessions.get(key)
            if known is not None and known.sparkContext._jsc is not None:
                self._java.say(known.sparkContext._gateway, catalogs, base_dir / embedded.FOLDER)
                return known

            def configured() -> dict[str, str]:
                config = session_config(settings, spark_config, pyspark.__version__, base_dir, further)
                config.update(parameters)
                if schema is not None:
                    config.setdefault(f"spark.sql.catalog.{settings.name}.default-namespace", schema)
                check_warehouses(catalogs, config)
                check_settings(spark_config, pyspark.__version__)
                return config

            with one_at_a_time(configured) as config, alive():
                # Spark keeps the folder of its default database there, whichever the catalog.
                embedded.make_private(base_dir / embedded.FOLDER)
                settings.prepare()
                session = _start(config, self._started_with, starting_text(config, catalogs))
                self._java.say(session.sparkContext._gateway, catalogs, base_dir / embedded.FOLDER)
                stated = {*map(str, spark_config), *parameters, "spark.jars", PACKAGES}
                self._started_with.warn_of_what_stays(session, config, stated)
                _check_iceberg(session, catalogs)
                check_extensions(session, config)
                check_locks(session, catalogs)
                limit_waiting(session, [each.name for each in catalogs if each.kind == "hive"])
            self._sessions[key] = session
            return session


def session_key(
    catalogs: Sequence[CatalogSettings],
    spark_config: Mapping[str, Any],
    parameters: Mapping[str, str],
    base_dir: Path,
    schema: str | None,
) -> tuple[object, ...]:
    """Return what two profiles have to have in common to share a session.

    It says what is asked for, and not what it comes to: that changes once jars have been downloaded. What
    Spark's Java alone is told counts too, such as credentials or certificates that are new since the last run
    here.

    Args:
        catalogs: those that the profile states, its own first.
        spark_config: the profile's.
        parameters: the profile's ``server_side_parameters``.
        base_dir: the folder in which ``.sparkevolve`` lies.
        schema: the current schema of the session.
    """
    said = (part for each in catalogs for part in (each.spark, each.java_properties))
    asked = (
        tuple(sorted((str(name), str(value)) for name, value in part.items()))
        for part in (*said, spark_config, parameters)
    )
    # Java's connections to a catalog trust whom they trusted as the session first asked it.
    trusted = ((each.ca_file, each.authorities) for each in catalogs)
    of_catalogs = ((each.name, each.packages, each.bundles) for each in catalogs)
    return (*of_catalogs, *trusted, base_dir, schema, *asked)


class _StartedWith:
    """What Spark was started with in this process, which each of its later sessions begins with.

    Attributes:
        config: the settings of the first profile; none if the program had started Spark.
        defaults: those that Spark has from its own file, for all profiles.
    """

    def __init__(self) -> None:
        self.config: Mapping[str, str] = {}
        self.defaults: Mapping[str, str] = {}
        self._said: set[tuple[str, str]] = set()

    def note(self, config: Mapping[str, str], defaults: Mapping[str, str]) -> None:
        """Take note of a start."""
        self.config, self.defaults, self._said = dict(config), defaults, set()

    def take_back(self, session: "SparkSession", config: Mapping[str, str]) -> None:
        """Take from a new session what only the first profile says, where that can be."""
        from pyspark.errors import PySparkException

        for name in self.config.keys() - config.keys():
            try:
                if name in self.defaults:
                    session.conf.set(name, self.defaults[name])
                else:
                    session.conf.unset(name)
            except PySparkException:
                pass  # one of the whole process

    def warn_of_what_stays(
        self, session: "SparkSession", config: Mapping[str, str], stated: Collection[str]
    ) -> None:
        """Warn of settings that cannot be what a profile says, since Spark keeps them to its end.

        Args:
            session: the profile's session.
            config: its settings.
            stated: the names of those that the user may have stated.
        """
        context = session.sparkContext.getConf()
        for name in sorted(config.keys() & stated):
            # Hadoop's settings are read where Spark began with them, though a session lets them be set.
            of_session = not name.startswith("spark.hadoop.")
            # A default is checked against the type of the setting, and an empty text is no number.
            now = str((session.conf if of_session else context).get(name, None) or "")
            several = name.startswith("spark.jars")
            wanted, runs = (_names_in(text) if several else {text} for text in (config[name], now))
            if not wanted <= runs:
                self._warn(name, config[name], "of this profile has no effect: Spark runs with another value")
        for name in sorted(self.config.keys() - config.keys()):
            if name.startswith("spark.hadoop.") and self.defaults.get(name) != self.config[name]:
                what = "of another profile of this process has its effect for this one too"
                self._warn(name, self.config[name], what)

    def _warn(self, name: str, value: str, what: str) -> None:
        if (name, value) not in self._said:
            self._said.add((name, value))
            warn(f"`{name}` {what}, and keeps it until this process ends. Use one process for each profile.")


def _names_in(jars: str) -> set[str]:
    """Return the names of files in a list; Spark knows one that it has downloaded itself by another path."""
    return {jar.strip().rpartition("/")[2] for jar in jars.split(",")}


def starting_text(config: Mapping[str, str], catalogs: Sequence[CatalogSettings]) -> str:
    """Return what is said when Spark is about to be started, which takes some seconds.

    Args:
        config: the settings of the session.
        catalogs: those that the profile states.
    """
    import pyspark

    version = iceberg_version(config)
    iceberg = f" with Iceberg {version}" if version else ""
    places = ", ".join(f"{each.name} in {each.where}" for each in catalogs)
    noun = "catalog" if len(catalogs) == 1 else "catalogs"
    return f"Starting Spark {pyspark.__version__}{iceberg}, {noun} {places}"


def _start(config: Mapping[str, str], started_with: _StartedWith, starting: str) -> "SparkSession":
    from pyspark import SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    # PySpark 4 writes each failed statement to stderr, as JSON with the whole stack; dbt reports it anyway.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    if SparkContext._active_spark_context is None:
        provide_java()
        logger.info(starting)
        if SparkContext._gateway is None:
            _launch(config)
        builder = SparkSession.builder
        for key, value in config.items():
            builder = builder.config(key, value)
        with INTERRUPTS.deferred():
            session = builder.getOrCreate()
        started_with.note(config, _own_defaults(session))
        return session
    # Another session of ours, or one that the program had before dbt was called in it.
    session = SparkSession.builder.getOrCreate().newSession()
    started_with.take_back(session, config)
    for key, value in config.items():
        try:
            # Not isModifiable(): it denies each setting that Spark does not know, a catalog's among them.
            session.conf.set(key, value)
        except PySparkException:
            logger.debug(f"{key} cannot be set any more in this process")
    return session


def _own_defaults(session: "SparkSession") -> dict[str, str]:
    """Return the settings in the file that Spark reads them from by itself."""
    from pyspark.find_spark_home import _find_spark_home

    jvm: Any = session.sparkContext._jvm
    properties = jvm.java.util.Properties()
    properties.load(jvm.java.io.StringReader(own_properties(_find_spark_home())))  # type: ignore[no-untyped-call]
    return {str(name): str(properties.getProperty(name)).strip() for name in properties.stringPropertyNames()}


def _launch(config: Mapping[str, str]) -> None:
    """Start Spark's Java and its context; SparkSession's builder would put each setting on a command line.

    Raises:
        SparkStartError: Java has ended before Spark could be reached.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.find_spark_home import _find_spark_home
    from pyspark.java_gateway import launch_gateway

    home: str = _find_spark_home()  # type: ignore[no-untyped-call]
    downloads = Downloads(config)
    output = None if is_users_own(config, home) else JavaOutput(downloads.watch)
    with private_submit_args(config, home) as fds, downloads:
        popen: dict[str, Any] = {"pass_fds": fds}
        if output is not None:
            output.begin()
            popen |= output.popen
        try:
            # It may be downloading jars, and nothing has begun.
            with INTERRUPTS.admitted():
                gateway = launch_gateway(popen_kwargs=popen)  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as exc:
            if output is None:
                raise
            output.started()
            raise SparkStartError(output.last_words()) from safe(exc)
        if output is not None:
            output.started()
    # It leaves a handler of Ctrl-C, which would ask Java something while an answer is awaited.
    with INTERRUPTS.deferred():
        context = SparkContext(conf=SparkConf().setAll(list(config.items())), gateway=gateway)
    if PACKAGES in config:
        ivy_home = Path(config.get("spark.jars.ivy") or user_home())
        note_resolved(context.getConf().get("spark.jars", ""), config, ivy_home)


def _check_iceberg(session: "SparkSession", catalogs: Sequence[CatalogSettings]) -> None:
    jvm: Any = session.sparkContext._jvm
    try:
        version = str(jvm.org.apache.iceberg.IcebergBuild.version())
    except TypeError as exc:
        raise ProfileError(
            "spark_config",
            "Spark runs in this process without Iceberg's runtime. Start it through the profile, or start it "
            f"with `spark.jars.packages` = {iceberg_runtime(session.version)}.",
        ) from exc
    in_files = [each.name for each in catalogs if each.sqlite_file is not None]
    if not in_files:
        return
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OLDEST_ICEBERG_FOR_SQLITE:
        raise UnsupportedVersionError(
            "Iceberg",
            version,
            "1.11 and newer",
            f"the catalog `{in_files[0]}` is a SQLite file, and older runtimes keep a read transaction "
            "open on it, so that others see it stale and fail with SQLITE_BUSY (apache/iceberg #15462).",
        )


SESSIONS = SessionRegistry()
