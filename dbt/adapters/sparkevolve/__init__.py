"""dbt-sparkevolve: incremental Iceberg models on Spark whose tables never lose a column."""

from dbt.adapters.base.plugin import AdapterPlugin

from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter
from dbt.adapters.sparkevolve.spark.connections import SparkEvolveConnectionManager  # noqa: F401
from dbt.include import sparkevolve

Plugin = AdapterPlugin(
    adapter=SparkEvolveAdapter,  # type: ignore[arg-type]
    credentials=SparkEvolveCredentials,
    include_path=sparkevolve.PACKAGE_PATH,
    dependencies=["spark"],
)
