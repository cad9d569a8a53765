"""Commits to Iceberg's tables by its own Java library, in the Java of a Spark session in this process."""

from typing import TYPE_CHECKING, Any

from dbt.adapters.sparkevolve.iceberg.newer_format import Commit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def commit(session: "SparkSession", catalog: str, what: Commit) -> bool:
    """Make one commit, once: as a REST catalog's server does, with the library that it would use.

    Args:
        session: the session.
        catalog: the name of its catalog.
        what: the commit.

    Returns:
        Whether it was made: not if the table has other metadata than were seen.

    Raises:
        Exception: what py4j raises: also of a conflict, and where Java does not know if it has committed.
    """
    context: Any = session.sparkContext
    jvm, java = context._jvm, session._jsparkSession
    levels = context._gateway.new_array(jvm.java.lang.String, len(what.table))
    for number, name in enumerate(what.table):
        levels[number] = name
    identifier = jvm.org.apache.iceberg.catalog.TableIdentifier.of(levels)
    tables = java.sessionState().catalogManager().catalog(catalog).icebergCatalog()
    operations = tables.loadTable(identifier).operations()
    # The catalog may keep tables that it has loaded before.
    seen = operations.refresh()
    if what.seen is not None and str(seen.metadataFileLocation()) != what.seen:
        return False
    request = jvm.org.apache.iceberg.rest.requests.UpdateTableRequestParser.fromJson(what.request)
    for requirement in request.requirements():
        requirement.validate(seen)
    builder = jvm.org.apache.iceberg.TableMetadata.buildFrom(seen)
    for update in request.updates():
        update.applyTo(builder)
    operations.commit(seen, builder.build())
    return True
