"""Whether the commits of a session lock a table in a Hive metastore, and how long they wait for the lock."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings
from dbt.adapters.sparkevolve.iceberg.metastore import LOCKS_OF_ALL, LOCKS_OF_CATALOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCK_SECONDS = 30
_LOCK_TIMEOUT = "iceberg.hive.lock-timeout-ms"


def limit_waiting(session: "SparkSession", catalogs: Sequence[str]) -> None:
    """Have commits wait half a minute for a lock, see decision 133, unless anybody says how long.

    Iceberg takes the time from Hadoop's settings, which the profile, Spark's own file, ``core-site.xml`` and
    ``hive-site.xml`` may have for all catalogs. What is said of one catalog wins over those, so these
    are looked at first.

    Args:
        session: the session, which has opened none of the catalogs yet.
        catalogs: the names of those in a Hive metastore.
    """
    if not catalogs:
        return
    java: Any = session._jsparkSession
    if java.sessionState().newHadoopConf().get(_LOCK_TIMEOUT) is not None:
        return
    for name in catalogs:
        of_catalog = f"spark.sql.catalog.{name}.hadoop.{_LOCK_TIMEOUT}"
        if session.conf.get(of_catalog, None) is None:
            session.conf.set(of_catalog, str(LOCK_SECONDS * 1000))


def check_locks(session: "SparkSession", catalogs: Sequence[CatalogSettings]) -> None:
    """See whether Spark takes locks where PyIceberg does, by what Spark has from elsewhere than the profile.

    Args:
        session: the session.
        catalogs: those that the profile states.

    Raises:
        ProfileError: it does not: of two writers of which one takes none, neither sees the other.
    """
    in_metastores = [each for each in catalogs if each.kind == "hive"]
    if not in_metastores:
        return
    java: Any = session._jsparkSession
    name = LOCKS_OF_ALL.removeprefix("spark.hadoop.")
    is_on = bool(java.sessionState().newHadoopConf().getBoolean(name, True))
    said = str(is_on).lower()
    for each in in_metastores:
        is_stated = f"spark.sql.catalog.{each.name}.{LOCKS_OF_CATALOG}" in each.spark
        if not is_stated and is_on != each.takes_locks:
            raise each.place.error(
                f"does not say whether commits take locks, and Spark has `{name}: {said}` from a file of its "
                "own or of Hadoop's, which PyIceberg does not read: one of the two would lock, and the other "
                f"overwrite its commits. Put `{LOCKS_OF_CATALOG}: {said}` there, which both obey."
            )
