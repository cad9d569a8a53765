"""Schemas that could not be made as a run began, since their catalog was away: only the nodes in it fail."""

import threading
from collections.abc import Generator
from contextlib import contextmanager

from dbt.adapters.base.relation import BaseRelation

from dbt.adapters.sparkevolve.errors import CatalogUnavailableError
from dbt.adapters.sparkevolve.relation import namespace
from dbt.adapters.sparkevolve.warning import warn_of_rest


class SchemasPutOff:
    """Schemas that are made once a node in them begins.

    dbt asks for the schemas of all nodes before it runs the first of them, and an error then ends the run.

    Args:
        own: the name of the profile's own catalog, without which nothing can run: connections begin in it.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        self._lock = threading.Lock()
        self._schemas: list[BaseRelation] = []
        self._said: set[str] = set()

    @contextmanager
    def outages(self, schema: BaseRelation | None = None) -> Generator[None, None, None]:
        """Go on without a further catalog that is away.

        Args:
            schema: what is made, and is put off then; None for a question.

        Raises:
            CatalogUnavailableError: the profile's own catalog is away.
        """
        try:
            yield
        except CatalogUnavailableError as exc:
            if exc.catalog == self._own:
                raise
            with self._lock:
                if schema is not None and schema not in self._schemas:
                    self._schemas.append(schema)
                if exc.catalog not in self._said:
                    self._said.add(exc.catalog)
                    warn_of_rest(f"{exc.msg} What is built in it, or reads from it, fails.")

    def of(self, relation: BaseRelation) -> list[BaseRelation]:
        """Return the schema of a relation, if it was put off: those that it lies in are made with it."""
        needed = (relation.database, namespace(relation.schema))
        with self._lock:
            return [each for each in self._schemas if (each.database, namespace(each.schema)) == needed]

    def made(self, schema: BaseRelation) -> None:
        """Forget a schema, which is there now."""
        with self._lock:
            if schema in self._schemas:
                self._schemas.remove(schema)
