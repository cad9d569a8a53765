"""The settings that an in-process session is started with."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dbt.adapters.sparkevolve.credentials import is_local
from dbt.adapters.sparkevolve.evolution.table_properties import property_text
from dbt.adapters.sparkevolve.iceberg import embedded
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings
from dbt.adapters.sparkevolve.iceberg.storage import is_hadoops
from dbt.adapters.sparkevolve.redaction import SECRETS_OF_SPARK
from dbt.adapters.sparkevolve.spark.jars import bundled, iceberg_runtime, remove_broken_jars, resolved_jars
from dbt.adapters.sparkevolve.spark.java import user_home
from dbt.adapters.sparkevolve.spark.launch import is_known_elsewhere

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

# The address of a driver whose executors are on its own machine.
ONLY_HERE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def _of_sparks_own_catalog(settings: CatalogSettings) -> dict[str, str]:
    """Return what makes Spark's own catalog the Hive metastore that the profile says; nothing for others.

    Spark makes schemas there itself, and all that is not in Iceberg's format.
    """
    if settings.name != "spark_catalog" or settings.kind != "hive":
        return {}
    own = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": str(settings.pyiceberg.get("uri", "")),
    }
    if "warehouse" in settings.pyiceberg:
        own["spark.sql.warehouse.dir"] = str(settings.pyiceberg["warehouse"])
    return own


def session_config(
    settings: CatalogSettings,
    spark_config: Mapping[str, Any],
    spark_version: str,
    base_dir: Path,
    further: Sequence[CatalogSettings] = (),
) -> dict[str, str]:
    """Return all settings of the session; the profile's ``spark_config`` wins over ours.

    Jars are the exception: what the user names is loaded beside what the catalog needs, and a user's own
    Iceberg runtime takes the place of ours.

    Args:
        settings: the profile's own catalog, which is the current one.
        spark_config: the profile's.
        spark_version: such as ``4.1.4``.
        base_dir: the folder in which ``.sparkevolve`` lies.
        further: the other catalogs that the profile states.
    """
    catalogs = (settings, *further)
    own = {str(key): property_text(value) for key, value in spark_config.items()}
    named = own.get("spark.jars.packages", "").split(",")
    packages = [package.strip() for package in named if package.strip()]
    brought = ",".join(own.get(key, "") for key in ("spark.jars", "spark.jars.packages"))
    if "iceberg-spark-runtime" not in brought:
        packages.append(iceberg_runtime(spark_version))
    for package in dict.fromkeys(package for each in catalogs for package in each.packages):
        if package.split(":")[1] not in brought:
            packages.append(package)
    of_catalogs: dict[str, str] = {}
    for each in catalogs:
        of_catalogs |= _of_sparks_own_catalog(each)
        if not is_hadoops(each.pyiceberg, own):
            packages += bundled(each.bundles, ",".join([brought, *packages]))
            if each.file_io is not None:
                of_catalogs[f"spark.sql.catalog.{each.name}.io-impl"] = each.file_io
        of_catalogs |= each.spark
    config = {
        "spark.app.name": "dbt-sparkevolve",
        "spark.master": "local[*]",
        "spark.ui.enabled": "false",
        # dbt's own output is what the user reads.
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        **(ONLY_HERE if is_local(own) else {}),
        # Event logs have the settings.
        "spark.redaction.regex": SECRETS_OF_SPARK,
        # Without Hive: no metastore_db, no derby.log. Spark's own default database still wants a folder.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"file://{base_dir / embedded.FOLDER / 'spark-warehouse'}",
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.defaultCatalog": settings.name,
        # Otherwise Spark replaces ${...} in any text, descriptions included.
        "spark.sql.variable.substitute": "false",
        **of_catalogs,
        **own,
    }
    ivy_home = Path(config.get("spark.jars.ivy") or user_home())
    remove_broken_jars(packages, ivy_home)
    jars = resolved_jars(packages, ivy_home, config)
    if jars:
        # Resolved by an earlier run: Ivy would look again, say so in twenty lines, and need the network.
        config["spark.jars"] = ",".join(filter(None, [own.get("spark.jars"), *map(str, jars)]))
        config.pop("spark.jars.packages", None)
    elif packages:
        config["spark.jars.packages"] = ",".join(packages)
    if EXTENSIONS not in config["spark.sql.extensions"]:
        config["spark.sql.extensions"] += f",{EXTENSIONS}"
    return config


def check_warehouses(catalogs: Sequence[CatalogSettings], config: Mapping[str, str]) -> None:
    """See whether Spark's JDBC catalog, which does not start without a warehouse, gets one.

    Args:
        catalogs: those that the profile states.
        config: the settings of the session. Spark may have others from its file or from who started it.

    Raises:
        ProfileError: it does not.
    """
    for each in catalogs:
        key = f"spark.sql.catalog.{each.name}.warehouse"
        if each.kind == "sql" and not config.get(key) and not is_known_elsewhere(key):
            raise each.place.error(
                "has the type 'sql' and no `warehouse`, without which Spark cannot open it: the folder "
                "in which new schemas are made. Give `warehouse` as a whole address, such as "
                "s3://bucket/warehouse or file:///srv/lake/warehouse."
            )
