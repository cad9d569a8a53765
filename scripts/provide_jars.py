"""Have Spark download its jars, which several processes of the tests are about to use at once."""

import tempfile
from pathlib import Path

from dbt.adapters.sparkevolve.iceberg.catalog_settings import JDBC_DRIVERS, resolve
from dbt.adapters.sparkevolve.spark.session import SESSIONS

with tempfile.TemporaryDirectory() as folder:
    drivers = {"spark.jars.packages": ",".join(dict.fromkeys(JDBC_DRIVERS.values()))}
    SESSIONS.get(resolve("lake", {}, Path(folder)), drivers, {}, Path(folder)).stop()
