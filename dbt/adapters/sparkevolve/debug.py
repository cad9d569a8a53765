"""What `dbt debug` tests: whether Spark answers, and whether both sides see the same catalogs."""

import uuid
from collections.abc import Callable

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.counts import counted
from dbt.adapters.sparkevolve.errors import RunCancelledError
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs
from dbt.adapters.sparkevolve.messages import answer_of
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.spark.interface import Spark
from dbt.adapters.sparkevolve.spark.versions import versions

logger = AdapterLogger("SparkEvolve")


class ConnectionTest:
    """A test of all that a profile names: what is broken hides nothing else.

    Args:
        catalogs: the profile's.
        spark: the session or server.
        connect: opens the connection to it.
    """

    def __init__(self, catalogs: Catalogs, spark: Spark, connect: Callable[[], object]) -> None:
        self._catalogs = catalogs
        self._spark = spark
        self._connect = connect
        self._broken: dict[str, str] = {}

    def run(self) -> None:
        """Show and test Spark and each catalog.

        Raises:
            DbtRuntimeError: what does not work; it names each catalog that does not.
        """
        for catalog in self._catalogs.all:
            self._try(catalog, catalog.check)
        own = self._catalogs.own.name
        not_connected = ""
        if own not in self._broken:
            try:
                # By itself, since who asks for versions goes on without an answer.
                self._connect()
                logger.info(f"  {versions(self._spark, own)}")
            except RunCancelledError:
                raise
            except DbtRuntimeError as exc:
                not_connected = str(exc.msg)
        spark_answers = own not in self._broken and not not_connected
        for catalog in self._catalogs.all:
            if catalog.name not in self._broken:
                self._try(catalog, lambda: _show(catalog))  # noqa: B023  # called at once
            if catalog.name not in self._broken and spark_answers:
                self._try(catalog, lambda: self._probe(catalog))  # noqa: B023
            if catalog.name in self._broken:
                logger.info(f"  catalog `{catalog.name}`: {catalog.places}: does not work, see below")
        self._end(not_connected)

    def _try(self, catalog: IcebergCatalog, step: Callable[[], None]) -> None:
        try:
            step()
        except RunCancelledError:
            raise
        except DbtRuntimeError as exc:
            self._note(catalog, str(exc.msg))
        except Exception as exc:
            self._note(catalog, answer_of(exc))

    def _note(self, catalog: IcebergCatalog, text: str) -> None:
        # A database, of which its own answer may tell, can have the name of the catalog in it.
        is_named = f"catalog `{catalog.name}`" in text or f"`{catalog.stated_by}`" in text
        self._broken[catalog.name] = text if is_named else f"`{catalog.name}`: {text}"

    def _end(self, not_connected: str) -> None:
        names, all_names = list(self._broken), self._catalogs.names
        parts = [not_connected] if not_connected else []
        if names and len(all_names) > 1:
            parts.append(
                f"Of {counted(len(all_names), 'catalog')}, {len(names)} cannot be worked with: "
                f"{', '.join(f'`{name}`' for name in names)}."
            )
        parts += self._broken.values()
        if self._catalogs.own.name in names and len(all_names) > len(names):
            parts.append(
                f"Spark was not asked, since each connection begins in the catalog "
                f"`{self._catalogs.own.name}`: the others were tested through PyIceberg alone."
            )
        if parts:
            raise DbtRuntimeError("\n".join(parts))

    def _probe(self, catalog: IcebergCatalog) -> None:
        probe = SparkEvolveRelation.create(
            database=catalog.name, schema=f"sparkevolve_debug_{uuid.uuid4().hex[:12]}"
        ).without_identifier()
        self._spark.run(f"create schema {probe}")
        try:
            if not catalog.namespace_exists(str(probe.schema)):
                stated = catalog.stated_by
                raise DbtRuntimeError(
                    f"Spark's catalog `{catalog.name}` is not the one that `{stated}` of the profile "
                    f"describe: PyIceberg does not see a schema that Spark has just made ({probe}). Make "
                    f"`{stated}` say what spark.sql.catalog.{catalog.name}.* says in the settings of the "
                    "server or, with `method: session`, in `spark_config` and Spark's own files."
                )
        finally:
            self._spark.run(f"drop schema {probe}")


def _show(catalog: IcebergCatalog) -> None:
    can = catalog.capabilities
    logger.info(f"  catalog `{catalog.name}`: {can.kind.value}, {catalog.places}")
    logger.info("    what the adapter takes this catalog to do (how that is known is in dbt's log file):")
    for fact in can.facts:
        logger.info(f"      {fact.text}")
        logger.debug(f"{catalog.name}: {fact}")
