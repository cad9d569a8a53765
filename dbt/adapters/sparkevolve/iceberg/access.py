"""How a catalog is reached: opened at first use, asked in limited time, and its tables looked up."""

import os
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError
from pydantic import ValidationError as InvalidModel
from pyiceberg.catalog import AVAILABLE_CATALOGS, Catalog, CatalogType
from pyiceberg.catalog.rest import DEFAULT_ENDPOINTS, VIEW_ENDPOINTS
from pyiceberg.exceptions import (
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    NotInstalledError,
    ValidationError,
)
from pyiceberg.table import Table
from pyiceberg.utils.config import Config
from sqlalchemy.engine import Engine, create_engine

from dbt.adapters.sparkevolve.cancellation import Cancellation
from dbt.adapters.sparkevolve.errors import (
    CatalogAnswerError,
    CatalogUnavailableError,
    ForeignCatalogError,
    NotIcebergError,
    SparkEvolveError,
    UnreadableTableError,
)
from dbt.adapters.sparkevolve.iceberg.capabilities import Capabilities, capabilities_of
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings
from dbt.adapters.sparkevolve.iceberg.foreign_metadata import let_pyiceberg_read_foreign_metadata
from dbt.adapters.sparkevolve.iceberg.metastore import guard, holders_of_lock
from dbt.adapters.sparkevolve.iceberg.mysql import collation_of_names
from dbt.adapters.sparkevolve.iceberg.nessie import complete_commits
from dbt.adapters.sparkevolve.iceberg.newer_format import (
    CommitsInSpark,
    commits_in_spark,
    with_commits_in_spark,
)
from dbt.adapters.sparkevolve.iceberg.outages import Watch
from dbt.adapters.sparkevolve.messages import (
    answer_of,
    is_answer,
    is_conflict_in_pyiceberg,
    is_no_answer,
    may_be_outage_in_spark,
    outage,
    refusal,
    table_of_held_lock,
    what_is_invalid,
)
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation, namespace, table_identifier
from dbt.adapters.sparkevolve.warning import warn

logger = AdapterLogger("SparkEvolve")
Result = TypeVar("Result")
# Variables that the requests library looks at before what a session of it is told.
_BEFORE_CABUNDLE = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
let_pyiceberg_read_foreign_metadata()


class CatalogAccess:
    """One catalog, and the way to it.

    Safe to share between threads: PyIceberg's catalogs keep no state of a table, and the connection pool
    of a SQL catalog is shared by design.

    Attributes:
        settings: the catalog's.
        cancellation: what stops all that is done.
        watch: how it is asked.
        spark: what commits to the tables that PyIceberg cannot commit to; None if there is no Spark.
    """

    def __init__(self, settings: CatalogSettings, cancellation: Cancellation, timeout_seconds: float) -> None:
        """Open nothing yet.

        Args:
            settings: the catalog's.
            cancellation: what stops all that is done.
            timeout_seconds: how long the catalog may be away, or silent.
        """
        self.settings = settings
        self.cancellation = cancellation
        self.watch = Watch(settings, timeout_seconds, cancellation)
        self.spark: CommitsInSpark | None = None
        self._lock = threading.Lock()
        self._opened: Catalog | None = None
        self._capabilities: Capabilities | None = None
        self._folders: dict[str, str] = {}

    @property
    def capabilities(self) -> Capabilities:
        """What the catalog can do: once a process, and without a question of its own; see ``capabilities``.

        Raises:
            CatalogUnavailableError: it is a REST catalog that does not answer.
        """
        if self._capabilities is None:
            properties, endpoints = self.settings.known, None
            if self.settings.kind == "rest":
                opened = self.watch.ask(lambda: self.opened)
                properties, endpoints = {**opened.properties, "type": "rest"}, said_endpoints(opened)
            self._capabilities = capabilities_of(properties, endpoints)
        return self._capabilities

    @property
    def name(self) -> str:
        """The catalog's name."""
        return self.settings.name

    @property
    def opened(self) -> Catalog:
        """PyIceberg's catalog, opened at first use."""
        with self._lock:
            if self._opened is None:
                try:
                    self._opened = self._prepared()
                except Exception as exc:
                    is_ours = isinstance(exc, SparkEvolveError)
                    if outage(exc) is not None or (is_ours and not self.settings.place.is_further):
                        raise
                    # Of a further catalog, whatever it is, only what is in it fails.
                    raise self.watch.closed(exc, refusal(exc)) from exc
            return self._opened

    def _prepared(self) -> Catalog:
        self.settings.prepare()
        opened = self._open()
        _give_each_thread_a_connection(opened)
        guard(opened, self.settings.takes_locks)
        complete_commits(opened)
        return opened

    def _open(self) -> Catalog:
        """Open the catalog as the profile says, and say what of it does not reach both sides.

        PyIceberg's own configuration is left out: Spark knows nothing of it, so the two would differ.
        """
        settings = self.settings
        elsewhere = Config().get_catalog_config(settings.name)
        if elsewhere:
            warn(
                "PyIceberg's configuration (.pyiceberg.yaml, or variables PYICEBERG_CATALOG__"
                f"{settings.name.upper()}__…) has settings for a catalog `{settings.name}`: "
                f"{', '.join(sorted(elsewhere))}. They are not used, since Spark would not see them. Put "
                f"what is needed into `{settings.place.setting}` of the profile, such as with env_var()."
            )
        if settings.differences:
            warn(settings.differences)
        for name in _BEFORE_CABUNDLE:
            if settings.ca_file is not None and os.environ.get(name, settings.ca_file) != settings.ca_file:
                warn(
                    f"The environment has {name}, which the library below PyIceberg takes before "
                    f"`ssl.cabundle` of the catalog `{settings.name}`. Unset it, or name that file in it too."
                )
        try:
            found = AVAILABLE_CATALOGS[CatalogType(settings.kind)](settings.name, dict(settings.pyiceberg))
        except (ModuleNotFoundError, NotInstalledError) as exc:
            # PyIceberg says of any module of a SQL catalog that SQLAlchemy is not installed.
            missing = exc if isinstance(exc, ModuleNotFoundError) else exc.__cause__ or exc.__context__
            if not isinstance(missing, ModuleNotFoundError):
                raise
            raise settings.missing_module(str(missing.name).partition(".")[0]) from exc
        collation = collation_of_names(getattr(found, "engine", None))
        if collation is not None:
            raise settings.place.error(
                f"cannot be shared: its database compares names by the collation {collation}, for which "
                "different names are one, so that a table would be found under the name of another. Make the "
                "database with a collation that ends with _bin (ALTER DATABASE … COLLATE utf8mb4_bin), and "
                "convert iceberg_tables and iceberg_namespace_properties in it (ALTER TABLE … CONVERT TO "
                "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin). Nothing was built."
            )
        return found

    def check(self) -> None:
        """See whether the catalog answers, unless it has answered before.

        Raises:
            CatalogUnavailableError: it does not, or it refuses the profile's user.
        """
        if self.watch.has_answered:
            return
        catalog = self.watch.ask(lambda: self.opened)
        try:
            # Some are not asked anything when they are opened.
            self.watch.ask(lambda: catalog.namespace_exists(("default",)), is_waited_out=False)
        except CatalogUnavailableError:
            raise
        except Exception as exc:
            logger.debug(f"The catalog `{self.name}` does not tell whether it has a certain schema: {exc}")

    def check_after(self, error: Exception) -> None:
        """See whether the catalog is away, after a statement of Spark's that may have failed for that.

        Raises:
            CatalogUnavailableError: it is.
        """
        if not may_be_outage_in_spark(str(error)):
            return
        try:
            self.watch.ask(lambda: self.opened.namespace_exists(("default",)), is_waited_out=False)
        except CatalogUnavailableError as exc:
            raise exc from error
        except Exception as exc:
            logger.debug(f"Why a statement failed cannot be looked up in the catalog: {exc}")

    def holders_of_lock(self, message: str) -> str:
        """Return who holds the lock that an error's text is about, as a sentence; empty if nobody knows."""
        held = table_of_held_lock(message)
        if held is None or self.settings.kind != "hive":
            return ""
        try:
            said = self.watch.ask(lambda: holders_of_lock(self.opened, *held), is_waited_out=False)
        except Exception as exc:
            logger.debug(f"Who holds a lock cannot be looked up in the metastore: {exc}")
            return ""
        return f"The catalog `{self.name}` at {self.settings.where} says who holds it: {said}" if said else ""

    def load(self, relation: BaseRelation) -> Table:
        """Return the table, as it is in the catalog now.

        Raises:
            ForeignCatalogError: it is in another catalog.
            NotIcebergError: the catalog has no such table.
            UnreadableTableError: it has one whose metadata PyIceberg cannot read.
        """
        self.refuse_foreign(relation)
        table = self.find(relation)
        if table is None:
            raise NotIcebergError(str(relation), self.name, self.settings.place.setting)
        return table

    def refuse_foreign(self, relation: BaseRelation) -> None:
        """See whether a relation is in this catalog.

        Raises:
            ForeignCatalogError: it is in another one.
        """
        if relation.database not in (None, self.name):
            raise ForeignCatalogError(str(relation), str(relation.database), (self.name,))

    def find(self, relation: BaseRelation) -> Table | None:
        """Return the table, or None if the catalog has no such table: a view, another format, or nothing.

        Raises:
            UnreadableTableError: it has one whose metadata PyIceberg cannot read.
            CatalogAnswerError: it answers with an error.
        """
        if relation.database not in (None, self.name) or not (relation.schema and relation.identifier):
            return None
        try:
            table = self.watch.ask(lambda: self.opened.load_table(table_identifier(relation)))
            return with_commits_in_spark(
                table,
                self.opened,
                self.spark,
                self._load_again,
                writes_metadata=self.capabilities.writes_metadata,
            )
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except NoSuchPropertyException:
            # What a Hive metastore's or Glue's other tables look like to PyIceberg.
            return None
        except (ValidationError, InvalidModel) as exc:
            if is_no_answer(exc):
                raise self.answered(str(relation), exc) from exc
            # From a file it is the one, with the other as its cause, and from a REST catalog the other.
            raise UnreadableTableError(str(relation), what_is_invalid(exc)) from exc
        except Exception as exc:
            # Whether it is as busy as in a conflict is looked at where that matters.
            if is_conflict_in_pyiceberg(exc):
                raise
            if is_answer(exc):
                raise self.answered(str(relation), exc) from exc
            if isinstance(exc, ValueError | TypeError):
                # A value that is none of its type, or the address of a file that nobody has a way to.
                raise UnreadableTableError(str(relation), what_is_invalid(exc)) from exc
            raise

    def answered(self, what: str, exc: Exception, undone: str = "") -> CatalogAnswerError:
        """Return the error that says what the catalog has answered, see ``CatalogAnswerError``."""
        return CatalogAnswerError(what, self.name, self.settings.where, answer_of(exc), undone)

    def _ask_of(self, schema: str, question: Callable[[], Result]) -> Result:
        """Return the answer to a question of a schema.

        Raises:
            CatalogAnswerError: the catalog answers with an error.
        """
        try:
            return self.watch.ask(question)
        except Exception as exc:
            if not is_answer(exc):
                raise
            where = SparkEvolveRelation.create(self.name, schema).without_identifier()
            raise self.answered(str(where), exc) from exc

    def _load_again(self, name: tuple[str, ...]) -> Table:
        return self.watch.ask(lambda: self.opened.load_table(name))

    def commit(self, table: Table, call: Callable[[], None]) -> None:
        """Make a commit to a table.

        Args:
            table: the table.
            call: makes the commit: in Spark in this thread, whose connection it takes; otherwise in limited
                time, since PyIceberg's libraries would wait for a silent server for ever.

        Raises:
            CatalogUnavailableError: Spark has not made it, and the catalog is away.
            TimeoutError: the time is over. The call may still have an effect.
        """
        if not commits_in_spark(table):
            self.watch.limited(call)
            return
        try:
            call()
        except DbtRuntimeError as exc:
            self.check_after(exc)
            raise

    def find_readable(self, relation: BaseRelation) -> Table | None:
        """Return the table; None also if PyIceberg cannot read its metadata, and Spark has to be asked."""
        try:
            return self.find(relation)
        except UnreadableTableError as exc:
            logger.debug(exc.msg)
            return None

    def table_names(self, schema: str) -> frozenset[str]:
        """Return the names of the Iceberg tables in ``schema``; none if there is no such schema."""
        try:
            listed = self._ask_of(schema, lambda: self.opened.list_tables(namespace(schema)))
            return frozenset(identifier[-1] for identifier in listed)
        except NoSuchNamespaceError:
            return frozenset()

    def folder_of(self, schema: str) -> str:
        """Return where the tables of a schema are to be, which is asked once; empty if it does not say."""
        if schema not in self._folders:
            try:
                found = self._ask_of(schema, lambda: self.opened.load_namespace_properties(namespace(schema)))
            except NoSuchNamespaceError:
                return ""
            location = str(found.get("location") or "").rstrip("/")
            if not location:
                return ""
            self._folders[schema] = location
        return self._folders[schema]

    def namespace_exists(self, schema: str) -> bool:
        """Tell whether the catalog has the schema ``schema``."""
        return self._ask_of(schema, lambda: self.opened.namespace_exists(namespace(schema)))


def said_endpoints(catalog: Catalog) -> frozenset[str] | None:
    """Return the requests that a REST catalog says that it takes; None if it does not say.

    PyIceberg 0.12 asks when the catalog is opened. A server that says nothing it takes for one with the usual
    requests, which is no answer.
    """
    found = frozenset(catalog._supported_endpoints)  # type: ignore[attr-defined]
    if found - VIEW_ENDPOINTS == DEFAULT_ENDPOINTS:
        return None
    return frozenset(map(str, found))


class UnstatedAccess(CatalogAccess):
    """A catalog of Spark's of which the profile says nothing: PyIceberg finds nothing there."""

    def __init__(self, settings: CatalogSettings, stated: Sequence[str]) -> None:
        """Know its name only.

        Args:
            settings: the name.
            stated: the names of the catalogs that the profile states, its own first.
        """
        super().__init__(settings, Cancellation(), 0)
        self._stated = stated

    @property
    def capabilities(self) -> Capabilities:
        """What most catalogs can do: nothing is known of this one, and Spark says what it cannot do."""
        return capabilities_of({"type": "sql"})

    def check(self) -> None:
        """Ask nobody."""

    def check_after(self, error: Exception) -> None:
        """Ask nobody."""

    def refuse_foreign(self, relation: BaseRelation) -> None:
        """See ``CatalogAccess``: no relation is in a catalog that can be reached."""
        raise ForeignCatalogError(str(relation), self.name, self._stated)

    def find(self, relation: BaseRelation) -> Table | None:
        """Return nothing: Spark has to be asked."""
        return None

    def table_names(self, schema: str) -> frozenset[str]:
        """Return nothing: Spark has to be asked."""
        return frozenset()


def _give_each_thread_a_connection(catalog: Catalog) -> None:
    """Let no thread wait for another's connection to the database of a SQL catalog.

    PyIceberg 0.12 leaves SQLAlchemy's default, 15 connections for all threads. A thread that gets none within
    30 s fails, while each of the others may wait longer for the lock of a SQLite file. A thread has one
    connection at the most, so there are never more of them than threads.
    """
    engine = getattr(catalog, "engine", None)
    if isinstance(engine, Engine):
        own = create_engine(engine.url, echo=engine.echo, pool_pre_ping=True, max_overflow=-1)
        catalog.engine = own  # type: ignore[attr-defined]
        engine.dispose()
