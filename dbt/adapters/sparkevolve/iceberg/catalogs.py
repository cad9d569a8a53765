"""The Iceberg catalogs of a profile, by name: whoever works on a relation asks for the one that it is in."""

import re
from collections.abc import Callable, Sequence

from dbt.adapters.sparkevolve.errors import ForeignCatalogError, StatementError
from dbt.adapters.sparkevolve.evolution.names import quote
from dbt.adapters.sparkevolve.iceberg.access import UnstatedAccess
from dbt.adapters.sparkevolve.iceberg.capabilities import capabilities_of
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings
from dbt.adapters.sparkevolve.iceberg.lost_answers import put_back
from dbt.adapters.sparkevolve.iceberg.newer_format import CommitsInSpark
from dbt.adapters.sparkevolve.messages import (
    catalog_of_what_is_missing,
    is_database_answer_in_spark,
    is_rest_answer_in_spark,
)
from dbt.adapters.sparkevolve.suggestions import closest, did_you_mean


class Catalogs:
    """The catalogs that a profile states. Safe to share between threads: each opens itself at first use.

    Attributes:
        own: the profile's ``catalog``, in which a relation is that names none.
    """

    def __init__(self, stated: Sequence[IcebergCatalog]) -> None:
        """Open none yet.

        Args:
            stated: each of them, the profile's ``catalog`` first.
        """
        self._stated = {catalog.name: catalog for catalog in stated}
        self.own = stated[0]
        self._folding = {
            catalog.name for catalog in stated if capabilities_of(catalog.access.settings.known).folds_names
        }

    def commit_in(self, spark: Callable[[str], CommitsInSpark]) -> None:
        """Say what commits to the tables that PyIceberg cannot commit to, by the name of their catalog."""
        for name, catalog in self._stated.items():
            catalog.commit_in(spark(name))

    @property
    def all(self) -> tuple[IcebergCatalog, ...]:
        """All of them, the profile's own first."""
        return tuple(self._stated.values())

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, the profile's own first."""
        return tuple(self._stated)

    def has(self, database: str | None) -> bool:
        """Tell whether a relation with this database is in one of them."""
        return database is None or database in self._stated

    def name_of(self, database: str | None) -> str:
        """Return the name of the catalog that a relation with this database is in."""
        return database or self.own.name

    def identity_of(self, database: str | None) -> tuple[str, ...]:
        """Return what the names have in common under which a profile states one catalog."""
        name = self.name_of(database)
        stated = self._stated.get(name)
        return (name,) if stated is None else stated.access.settings.identity

    def of(self, database: str | None) -> IcebergCatalog:
        """Return the catalog that relations with this database are in.

        In one that the profile does not state nothing is found, and what needs more than that raises a
        ``ForeignCatalogError``.
        """
        if database is None:
            return self.own
        stated = self._stated.get(database)
        if stated is not None:
            return stated
        return _Unstated(database, self.names)

    def folds(self, name: str) -> bool:
        """Tell whether the catalog of a name takes names that differ in case only for one."""
        return name in self._folding

    def check_name(self, database: str | None, users: Sequence[str] = ()) -> None:
        """See whether a name means one of them though it is spelled otherwise.

        Args:
            database: the name.
            users: what of the project says that it is there, if that is known.

        Raises:
            ForeignCatalogError: it is the name of one in other letters.
        """
        bare = (database or self.own.name).strip("`")
        if bare not in self._stated and bare.lower() in map(str.lower, self._stated):
            others = f" (and {len(users) - 1} more)" if len(users) > 1 else ""
            what = f"{users[0]}{others}" if users else "What this command builds or reads"
            raise ForeignCatalogError(what, bare, self.names)

    def check_at_start(self) -> None:
        """See whether the profile's own answers, in which each connection begins.

        Raises:
            CatalogUnavailableError: it does not, or it refuses the profile's user.
        """
        self.own.check()

    def check_before(self, sql: str) -> None:
        """See whether the catalogs answer that a statement names as relations are rendered.

        Spark itself takes minutes to say that one is away, and says it in Java's words. One that nothing
        names is not asked.

        Raises:
            CatalogUnavailableError: one does not answer, or refuses the profile's user.
        """
        for name, catalog in self._stated.items():
            if catalog is not self.own and _names(sql, name):
                catalog.check()

    def check_after(self, error: StatementError, sql: str) -> None:
        """See whether a catalog is away, after a statement of Spark's that may have failed for that.

        Raises:
            CatalogUnavailableError: one is.
            StatementError: the same, with the name of the one catalog whose answer it is, or with those that
                the profile states, where a table was looked for in none of them.
        """
        # By hand it may have been written without quotes.
        named = {name for name in self._stated if re.search(rf"(?<!\w){name}(?!\w)", sql)}
        for name, catalog in self._stated.items():
            if catalog is self.own or name in named:
                catalog.check_after(error)
        for is_answer, kind in ((is_rest_answer_in_spark, "rest"), (is_database_answer_in_spark, "sql")):
            asked = [self._stated[name] for name in named if self._stated[name].access.settings.kind == kind]
            if len(asked) == 1 and is_answer(error.msg):
                where = f"`{asked[0].name}` at {asked[0].access.settings.where}"
                text = f"{error.msg}\nSpark has asked the Iceberg catalog {where}."
                # It may not have answered.
                raise StatementError(text, error.statement, is_fate_unknown=error.is_fate_unknown) from error
        for name in named:
            told = put_back(self._stated[name].access, error.msg, sql)
            if told:
                raise StatementError(f"{error.msg}\n{told}", error.statement) from error
            holders = self._stated[name].access.holders_of_lock(error.msg)
            if holders:
                text = f"{error.msg}\n{holders}."
                raise StatementError(text, error.statement, is_fate_unknown=error.is_fate_unknown) from error
        self._check_missing(error)

    def _check_missing(self, error: StatementError) -> None:
        """See whether a table that Spark does not find was looked for in a catalog that is stated.

        Raises:
            StatementError: it was not, and maybe in none.
        """
        missing = catalog_of_what_is_missing(error.msg)
        if missing is None or missing in self._stated or missing == "spark_catalog":
            return
        meant = closest(missing, self.names)
        question = f"{did_you_mean(meant)} " if meant else ""
        raise StatementError(
            f"{error.msg}\nThe profile states no catalog `{missing}`, but "
            f"{', '.join(map(quote, self.names))}. {question}Where Spark has none of that name either, it "
            "takes the name for a schema's: correct the `database` of the source, or whatever the name is "
            "from.",
            error.statement,
        ) from error


class _Unstated(IcebergCatalog):
    """A catalog of Spark's of which the profile says nothing."""

    def __init__(self, name: str, stated: Sequence[str]) -> None:
        settings = CatalogSettings(name, {"type": ""}, {})
        super().__init__(settings)
        self.access = UnstatedAccess(settings, stated)


def _names(sql: str, catalog: str) -> bool:
    quoted = quote(catalog)
    return f"{quoted}.`" in sql or sql.rstrip().endswith(quoted)
