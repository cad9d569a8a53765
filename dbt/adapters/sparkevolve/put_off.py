"""Schemas that could not be made as a run began, as of a catalog that was away: their nodes alone fail."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.errors import CatalogUnavailableError, NoSuchCatalogError, StatementError
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
    def failures(self, catalog: str, schema: BaseRelation | None = None) -> Generator[None, None, None]:
        """Go on without a further catalog that is away, or that Spark cannot work with.

        Args:
            catalog: its name.
            schema: what is made in it, and is put off then; None for the question which ones it has.

        Raises:
            CatalogUnavailableError: the profile's own catalog is away.
            StatementError: Spark cannot work with that one.
        """
        try:
            yield
        except (CatalogUnavailableError, NoSuchCatalogError) as exc:
            if exc.catalog == self._own:
                raise
            self._go_on(schema, exc.catalog, exc.msg)
        except DbtRuntimeError as exc:
            # What helps against an error of Spark's has been raised from it.
            is_sparks = isinstance(exc, StatementError) or isinstance(exc.__cause__, StatementError)
            if catalog == self._own or not is_sparks:
                raise
            failed = f"list the schemas of the catalog `{catalog}`" if schema is None else f"make {schema}"
            said = str(exc.msg).strip().rstrip(".")
            self._go_on(schema, catalog, f"Spark could not {failed}: {said}.")

    def _go_on(self, schema: BaseRelation | None, catalog: str, text: str) -> None:
        with self._lock:
            if schema is not None and schema not in self._schemas:
                self._schemas.append(schema)
            # Once of a catalog: what cannot be listed cannot be made either.
            if catalog not in self._said:
                self._said.add(catalog)
                warn_of_rest(f"{text} What is built in it, or reads from it, fails.")

    def make(self, node: Any, relation: BaseRelation, make: Callable[[BaseRelation], None]) -> None:
        """Make the schema of a node if it was put off: those that it lies in are made with it.

        A test that stores no failures has none: it may read from other catalogs only.

        Args:
            node: it, as dbt has it.
            relation: its table or view, or that of the failures of a test.
            make: makes a schema.

        Raises:
            CatalogUnavailableError: their catalog is still away.
            NoSuchCatalogError: Spark does not have it.
            StatementError: Spark still cannot make it.
        """
        if not node.is_relational:
            return
        with self._lock:
            needed = [schema for schema in self._schemas if _place(schema) == _place(relation)]
        for schema in needed:
            make(schema)
            with self._lock:
                # Another thread may have made it, too.
                if schema in self._schemas:
                    self._schemas.remove(schema)


def _place(relation: BaseRelation) -> tuple[str | None, tuple[str, ...]]:
    return relation.database, namespace(relation.schema)
