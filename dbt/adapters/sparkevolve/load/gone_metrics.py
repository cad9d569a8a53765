"""Properties that set metrics of columns which a replacement has taken away.

``CREATE OR REPLACE TABLE`` leaves them, and Spark's ``SET TBLPROPERTIES`` then fails on the table.
"""

from collections.abc import Mapping

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.sparkevolve.evolution.column_properties import METRICS_PREFIX, metrics_of_none
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog, LoadedTable
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.warning import not_removed, warn_of_rest

logger = AdapterLogger("SparkEvolve")
# A change of properties conflicts with whatever else is committed to the table.
_RETRIES = 10


def removals(relation: SparkEvolveRelation, table: LoadedTable) -> dict[str, str | None]:
    """Return the removal of each such property of a table, and say so."""
    gone = metrics_of_none(table.properties, table.schema())
    for name in gone:
        logger.info(f"{relation}: removing the property {name}, since the table no longer has that column")
    return dict.fromkeys(gone)


def unset(
    catalog: IcebergCatalog,
    relation: SparkEvolveRelation,
    replaced: LoadedTable | None,
    configured: Mapping[str, object],
) -> None:
    """Remove these properties of a table that was just replaced; its rows are visible, so this never fails.

    Args:
        catalog: the catalog.
        relation: the table.
        replaced: the table before; None if there was none, or it is not known.
        configured: the node's ``tblproperties``, which the replacement has set.
    """
    before = replaced.properties if replaced is not None else {}
    if replaced is None or not any(name.startswith(METRICS_PREFIX) for name in (*before, *configured)):
        return
    try:
        catalog.change_properties(relation, lambda table: removals(relation, table), _RETRIES)
    except Exception as exc:
        what = f"What {relation} has as `{METRICS_PREFIX}…` for columns that it has no more"
        warn_of_rest(f"{not_removed(what, exc)} Until it is, Spark changes no property of the table.")
