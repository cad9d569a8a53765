"""How a table comes into being with its rows where the catalog makes none that way."""

import re
from collections.abc import Mapping

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.invocation import get_invocation_id

from dbt.adapters.sparkevolve.errors import FirstRunReplacedError, HiddenRowsError
from dbt.adapters.sparkevolve.evolution.names import string_literal
from dbt.adapters.sparkevolve.iceberg.base import WAP_ENABLED
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.load.node import Node
from dbt.adapters.sparkevolve.load.queries import Queries
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.spark.interface import Spark
from dbt.adapters.sparkevolve.sql import dead_letters
from dbt.adapters.sparkevolve.sql.ddl import create_empty

logger = AdapterLogger("SparkEvolve")

# As `tblproperties` writes it.
_WAP_CLAUSE = re.compile(rf"'{re.escape(WAP_ENABLED)}' = '([^']*)'")


class Creation:
    """Makes tables empty first, where they cannot be made with their rows.

    Args:
        catalog: the catalog.
        spark: where the node runs.
        node: the node that runs.
    """

    def __init__(self, catalog: IcebergCatalog, spark: Spark, node: Node) -> None:
        self._catalog = catalog
        self._spark = spark
        self._node = node

    def begin(self, relation: SparkEvolveRelation, query: str, clauses: str, *, is_new: bool = False) -> bool:
        """Let a table be made from a query, and tell whether it has to be by replacing one made for that.

        Args:
            relation: the table.
            query: returns its rows.
            clauses: what its CREATE TABLE says between its columns and the query.
            is_new: whether nobody else knows its name.

        Raises:
            HiddenRowsError: readers would not see its rows, and no longer those that it replaces.
        """
        if not is_new:
            self.refuse_hidden(relation, clauses)
        if not self._catalog.is_made_empty(relation):
            return False
        if not (is_new or self._catalog.is_to_be_made(relation)):
            # One with rows is replaced by who knows of it only: a statement that makes a table fails here, as
            # it does in every catalog where another run has made it meanwhile.
            return False
        queries = Queries(self._spark, self._catalog.capabilities.reads_types, self._node)
        columns = queries.stored_columns(relation, query)
        if not is_new:
            self._node.made_empty.append(relation)
        self._spark.run(create_empty(str(relation), columns, clauses))
        return True

    def refuse_hidden(self, relation: SparkEvolveRelation, clauses: str) -> None:
        """Refuse to make a table whose rows the session would keep out of its ``main``.

        A table that is new may get them on the branch that the session names; one that is replaced has no
        ``main`` from then on, and readers no rows.

        Args:
            relation: the table.
            clauses: what its CREATE TABLE says between its columns and the query.

        Raises:
            HiddenRowsError: it would be made so.
        """
        given = _WAP_CLAUSE.search(clauses)
        replaced = self._node.table
        if not self._catalog.makes_wap_enabled(given and given[1], replaced):
            return
        has_rows = replaced is not None and replaced.metadata.current_snapshot_id is not None
        for setting in ("spark.wap.id", "spark.wap.branch") if has_rows else ("spark.wap.id",):
            if self._spark.setting(setting) is not None:
                raise HiddenRowsError(str(relation), setting, is_there=replaced is not None)

    def check(self, relation: SparkEvolveRelation) -> None:
        """See whether a table, if it was made by replacing an empty one, has replaced nothing else.

        Its rows are visible: whatever this ends with, they stay, and so does what was set aside of them.

        Raises:
            FirstRunReplacedError: between the two statements another run has made the table, and filled it.
        """
        if relation not in self._node.made_empty:
            return
        replaced = self._catalog.replaced_snapshot(relation, get_invocation_id())
        if replaced is not None:
            name = str(relation.include(database=False))
            raise FirstRunReplacedError(str(relation), self._catalog.name, name, replaced)

    def stage(self, relation: SparkEvolveRelation, query: str, properties: Mapping[str, str]) -> None:
        """Stage what a query returns, under a new name, with properties that need no quoting."""
        location = self._catalog.location_for(relation)
        clauses = dead_letters.batch_clauses(properties, string_literal(location) if location else None)
        replaces = self.begin(relation, query, clauses, is_new=True)
        self._spark.run(dead_letters.create_batch(str(relation), query, clauses, replaces=replaces))

    def give_back(self) -> None:
        """Remove what was made empty for the node, and was not replaced: the node has failed."""
        for relation in self._node.made_empty:
            try:
                self._catalog.remove_unfilled(relation, get_invocation_id())
            except Exception as exc:
                logger.warning(
                    f"{relation} was made without rows, and could not be removed: {exc} The next run of "
                    f"`{self._node.name}` takes it for no table."
                )
