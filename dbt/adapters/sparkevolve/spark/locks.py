"""How long the commits of a session wait for the lock of a table in a Hive metastore."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
