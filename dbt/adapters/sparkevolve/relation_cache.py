"""What dbt knows of relations while a command runs."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.cache import RelationsCache

Schema = tuple[str, str]


class Name(NamedTuple):
    """The name of a relation, as it is written."""

    database: str
    schema: str
    identifier: str


class ExactRelationsCache(RelationsCache):
    """dbt's cache, which tells names apart that differ in case, and takes no database for the own catalog.

    Iceberg catalogs tell such names apart: dbt's own cache would take the one for the other, and a table that
    it does not find for missing. Where a catalog does not, as a Hive metastore, a name is known by its lower
    case: it would be listed twice, and a table that is dropped by the one name be there by the other.

    Nothing is dropped with another relation here, so it knows of no links.

    Attributes:
        relations: what is known, by name.
        schemas: those of which all is known: database and name.
    """

    def __init__(
        self, own: str, log_cache_events: bool = False, folds: Callable[[str], bool] = lambda catalog: False
    ) -> None:
        """Know nothing yet.

        Args:
            own: the name of the profile's catalog.
            log_cache_events: as dbt's own has it.
            folds: tells whether a catalog takes names that differ in case only for one.
        """
        super().__init__(log_cache_events)
        self.relations: dict[Name, BaseRelation] = {}  # type: ignore[assignment]
        self._own = own
        self._folds = folds
        self._changes: dict[Schema, int] = {}

    def _schema(self, database: str | None, schema: str | None) -> Schema:
        catalog = database or self._own
        return catalog, self._folded(catalog, schema or "")

    def _name(self, relation: BaseRelation) -> Name:
        catalog, schema = self._schema(relation.database, relation.schema)
        return Name(catalog, schema, self._folded(catalog, str(relation.identifier)))

    def _folded(self, catalog: str, name: str) -> str:
        return name.lower() if self._folds(catalog) else name

    def __contains__(self, schema_id: tuple[str | None, str | None]) -> bool:
        """Tell whether all of a schema is known."""
        return self._schema(*schema_id) in self.schemas

    def changes(self, database: str | None, schema: str | None) -> int:
        """Return how often something of a schema has changed: a list that was begun before is a late one."""
        return self._changes.get(self._schema(database, schema), 0)

    def fill(self, database: str | None, schema: str, relations: Iterable[BaseRelation]) -> None:
        """Take note of all that a schema has."""
        with self.lock:
            self.drop_schema(database, schema)
            for relation in relations:
                self.add(relation)
            self.add_schema(database, schema)

    def get_relations(self, database: str | None, schema: str | None) -> list[Any]:
        """Return what a schema has, as far as that is known."""
        wanted = self._schema(database, schema)
        with self.lock:
            return [relation for name, relation in self.relations.items() if name[:2] == wanted]

    def update_schemas(self, schemas: Iterable[tuple[str | None, str]]) -> None:
        """Take note that all of some schemas is known."""
        for each in schemas:
            self.add_schema(*each)

    def add_schema(self, database: str | None, schema: str | None) -> None:
        """Take note that all of a schema is known."""
        with self.lock:
            self.schemas.add(self._schema(database, schema))

    def add(self, relation: BaseRelation) -> None:
        """Take note of a relation, unless there is one of that name. That lists no schema."""
        with self.lock:
            name = self._changed(relation)
            named = relation.replace(path=relation.path.replace(database=name.database))
            self.relations.setdefault(name, named)

    def drop(self, relation: BaseRelation) -> None:
        """Forget a relation."""
        with self.lock:
            self.relations.pop(self._changed(relation), None)

    def rename(self, old: BaseRelation, new: BaseRelation) -> None:
        """Take note that a relation has another name."""
        with self.lock:
            known = self.relations.pop(self._changed(old), new)
            self.drop(new)
            self.add(known.replace(path=new.path))

    def drop_schema(self, database: str | None, schema: str | None) -> None:
        """Forget a schema, and what it has."""
        with self.lock:
            place = self._schema(database, schema)
            self._changes[place] = self._changes.get(place, 0) + 1
            for relation in self.get_relations(database, schema):
                self.drop(relation)
            self.schemas.discard(place)

    def clear(self) -> None:
        """Forget everything."""
        with self.lock:
            for relation in list(self.relations.values()):
                self.drop(relation)
            self.schemas.clear()

    def add_link(self, referenced: Any, dependent: Any) -> None:
        """Take no note of what is dropped with what."""

    def dump_graph(self) -> dict[str, list[str]]:
        """Return the names of all that is known."""
        with self.lock:
            return {".".join(name): [] for name in self.relations}

    def _changed(self, relation: BaseRelation) -> Name:
        name = self._name(relation)
        schema = name[:2]
        self._changes[schema] = self._changes.get(schema, 0) + 1
        return name
