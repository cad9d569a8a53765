"""Schemas that dbt makes as a command begins: which may be made at once, and which dbt leaves out."""

import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

from dbt.adapters.base.relation import BaseRelation

from dbt.adapters.sparkevolve.relation import namespace

Levels = tuple[str, ...]


class NewSchemas:
    """What is known of schemas since dbt has listed those of their catalogs. Safe to share between threads.

    dbt compares the names of schemas in lower case before it makes any: of ``Shop`` and ``shop`` it makes one
    only, and neither beside the other if that is there.

    Args:
        name_of: returns the name of the catalog that a database means.
        folds: tells whether that catalog takes names that differ in case only for one.
    """

    def __init__(self, name_of: Callable[[str | None], str], folds: Callable[[str], bool]) -> None:
        self._name_of = name_of
        self._folds = folds
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._known: dict[str, frozenset[Levels]] = {}
        self._lock = threading.Lock()

    def note_listed(self, database: str | None, schemas: Iterable[str]) -> None:
        """Take note of the schemas that a catalog has, none of which lies in another one."""
        self._note(self._name_of(database), {(schema,) for schema in schemas})

    @contextmanager
    def making(self, schema: BaseRelation) -> Generator[None, None, None]:
        """Let nobody make another schema with the same outermost one while this one is made.

        dbt makes all of them at once, and may know one by two names, or two that lie in a third: where two
        make the same, the catalog fails the second, IF NOT EXISTS or not.
        """
        levels = namespace(schema.schema)
        catalog = self._name_of(schema.database)
        # Of two names that differ in case only, the catalog may make one schema.
        outermost = levels[0].lower() if levels else ""
        with self._locks.setdefault((catalog, outermost), threading.Lock()):
            yield
        self._note(catalog, {levels[:end] for end in range(1, len(levels) + 1)})

    def is_left_out(self, relation: BaseRelation) -> bool:
        """Tell whether the schema of a relation was taken for one whose name has other letters."""
        catalog, levels = self._name_of(relation.database), namespace(relation.schema)
        known = self._known.get(catalog, frozenset())
        if levels in known or self._folds(catalog):
            return False
        return _lower(levels) in map(_lower, known)

    def _note(self, catalog: str, schemas: Iterable[Levels]) -> None:
        with self._lock:
            self._known[catalog] = self._known.get(catalog, frozenset()).union(schemas)


def _lower(levels: Levels) -> Levels:
    # As dbt does it: `casefold` would take straße for strasse.
    return tuple(level.lower() for level in levels)
