"""How changes of a table become one commit of PyIceberg."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, Table, Transaction
from pyiceberg.table.update import (
    AddSchemaUpdate,
    SetCurrentSchemaUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import (
    DoubleType,
    FloatType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

from dbt.adapters.sparkevolve.evolution import record
from dbt.adapters.sparkevolve.evolution.changes import (
    AddColumn,
    AddField,
    Change,
    RelaxNotNull,
    RemoveDefault,
    RenameField,
    SchemaChange,
    SetDefault,
    SetDoc,
    SetProperty,
    WidenType,
)
from dbt.adapters.sparkevolve.evolution.column_properties import changed_properties
from dbt.adapters.sparkevolve.evolution.defaults import single_precision
from dbt.adapters.sparkevolve.evolution.names import Path, fold
from dbt.adapters.sparkevolve.evolution.table_properties import COMMENT_PROPERTY
from dbt.adapters.sparkevolve.evolution.types import fields_within
from dbt.adapters.sparkevolve.iceberg import guards
from dbt.adapters.sparkevolve.times import iso


def commit_changes(
    table: Table,
    changes: Sequence[Change],
    invocation_id: str,
    source: str,
    seen_ms: int = 0,
    padded: Sequence[Path] = (),
) -> None:
    """Commit the changes; the catalog checks that the schema is still the one they were decided on for.

    Args:
        table: the table, loaded directly before.
        changes: the changes; none are no commit.
        invocation_id: of the dbt command, for the record.
        source: the fingerprint of the batch, for the record.
        seen_ms: see ``guards.commit``.
        padded: paths that the batch lacks, for the record.
    """
    if not changes:
        return
    with _in_short(table, seen_ms, changes).transaction() as transaction:
        properties = {c.name: c.value for c in changes if isinstance(c, SetProperty)}
        if properties:
            transaction.set_properties(properties)
        of_schema = [change for change in changes if not isinstance(change, SetProperty)]
        if not of_schema:
            return
        for part in filter(None, _in_turn(of_schema)):
            with _schema_update(transaction) as update:
                for change in part:
                    _stage(update, change)
        defaults = record.changed_defaults(
            table.properties, table.schema(), transaction.table_metadata.schema()
        )
        if defaults is not None:
            transaction.set_properties({record.OWN_DEFAULTS: defaults})
        _record(
            table,
            transaction,
            lambda schema_id, at: record.new_properties(
                schema_id, of_schema, invocation_id, at, source, padded
            ),
        )


def _record(table: Table, transaction: Transaction, properties: Callable[[int, str], dict[str, str]]) -> None:
    """Record a new schema; one that leads back to an older schema has the record of who made that.

    Args:
        table: the table before.
        transaction: what has made the schema.
        properties: returns the record of a schema by its id, made at a time.
    """
    known = {schema.schema_id for schema in table.metadata.schemas}
    added = {schema.schema_id for schema in transaction.table_metadata.schemas} - known
    if not added:
        return
    now = iso(datetime.now(timezone.utc))
    outdated = record.outdated_properties(table.properties)
    if outdated:
        transaction.remove_properties(*outdated)
    # Of two only the last one is committed, under the id of the first, see ``_without_steps``.
    transaction.set_properties(properties(min(added), now))


def commit_docs(table: Table, comment: str | None, docs: Mapping[str, str], invocation_id: str = "") -> None:
    """Commit descriptions of a table, if not None, and of columns by their exact names.

    Args:
        table: the table, loaded directly before.
        comment: its description.
        docs: those of its columns.
        invocation_id: of the dbt command, for the record.
    """
    with _in_short(table, 0).transaction() as transaction:
        if docs:
            with _schema_update(transaction) as update:
                for name, doc in docs.items():
                    update.update_column((name,), doc=doc)
            # Otherwise what others have changed before would pass for what a run has seen.
            now = (table.properties, table.metadata.schemas, table.metadata.current_schema_id)
            if record.is_known(*now) or record.is_replaced_by(table.properties, invocation_id):
                changes = [SetDoc((name,), doc) for name, doc in docs.items()]
                untold = record.untold(*now)

                def properties(schema_id: int, at: str) -> dict[str, str]:
                    entry = record.new_properties(schema_id, changes, invocation_id, at, "")
                    if untold is None:
                        return entry
                    return entry | dict([record.looked_at({**table.properties, **entry}, untold)])

                _record(table, transaction, properties)
        if comment is not None:
            transaction.set_properties({COMMENT_PROPERTY: comment})


def _in_turn(changes: Sequence[SchemaChange]) -> tuple[list[SchemaChange], ...]:
    """Return the changes that PyIceberg can make at once, those after them, and those after these.

    It adds no field under a name that another one has, though the same change renames that; it changes no
    field that the same change adds; and it takes a default for one of the type that the column had before, so
    that a number beyond an int would become the greatest int.
    """
    renames = {c.path: c.new_name for c in changes if isinstance(c, RenameField)}
    left = {tuple(map(fold, path)) for path in renames}
    first: list[SchemaChange] = []
    then: list[SchemaChange] = []
    last: list[SchemaChange] = []
    added: set[Path] = set()
    widened = {change.path for change in changes if isinstance(change, WidenType)}
    for change in changes:
        if isinstance(change, AddColumn):
            added.add(change.path)
        elif isinstance(change, SetDefault) and change.path in added:
            last.append(change)
            continue
        elif isinstance(change, SetDefault) and change.path in widened:
            last.append(replace(change, path=(renames.get(change.path, change.path[0]),)))
            continue
        is_added = isinstance(change, AddColumn | AddField)
        if not is_added or tuple(map(fold, change.path)) not in left:
            first.append(change)
        elif isinstance(change, AddField):
            parent = (renames.get(change.path[: i + 1], name) for i, name in enumerate(change.path[:-1]))
            then.append(replace(change, path=(*parent, change.path[-1])))
        else:
            then.append(change)
    return first, then, last


@contextmanager
def _schema_update(transaction: Transaction) -> Iterator[UpdateSchema]:
    """Change the schema, and with it the properties that name columns."""
    before = transaction.table_metadata
    with transaction.update_schema() as update:
        # PyIceberg would let a new column read what files without field ids have of another one.
        update._name_mapping = None
        yield update
    schemas = (before.schema(), transaction.table_metadata.schema())
    changed, outdated = changed_properties(before.properties, *schemas)
    if outdated:
        transaction.remove_properties(*outdated)
    if changed:
        transaction.set_properties(changed)


def _in_short(table: Table, seen_ms: int, changes: Sequence[Change] = ()) -> Table:
    """Return the table without what a change of its schema does not look at.

    A transaction of PyIceberg 0.12 copies the metadata with all that is in it about ten times: a second,
    after a hundred runs with a column more in each. The commit is made to the whole table.
    """
    metadata = table.metadata
    slim: dict[str, Any] = {name: [] for name in ("snapshots", "snapshot_log", "statistics")}
    if any(isinstance(change, AddColumn | AddField) for change in changes):
        # A new field has a new id, so what comes out is no older schema; the newest one gives the next id.
        newest = max(schema.schema_id for schema in metadata.schemas)
        needed = {metadata.current_schema_id, newest}
        slim["schemas"] = [schema for schema in metadata.schemas if schema.schema_id in needed]
    in_short = metadata.model_copy(update=slim)
    catalog: Any = _Whole(table, seen_ms)
    return Table(table.name(), in_short, table.metadata_location, table.io, catalog, table.config)


class _Whole:
    """Stands for the catalog of a table in short: what is committed to it is committed to the whole table."""

    def __init__(self, table: Table, seen_ms: int) -> None:
        self._table = table
        self._seen_ms = seen_ms

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit, see PyIceberg's ``Catalog``."""
        changes = _with_exact_defaults(self._table.schema(), _without_steps(updates))
        return guards.commit(
            self._table, requirements, changes, seen_ms=self._seen_ms, decided_on_schema=True
        )

    def _delete_old_metadata(self, *_: Any) -> None:
        """PyIceberg asks for this after each commit; it is done in ``guards.commit``."""


def _without_steps(updates: tuple[TableUpdate, ...]) -> tuple[TableUpdate, ...]:
    """Return the updates of a transaction without the schemas that only led to its last one."""
    steps = [update for update in updates if isinstance(update, AddSchemaUpdate)]
    if len(steps) < 2:
        return updates
    schema = steps[-1].schema_.model_copy(update={"schema_id": steps[0].schema_.schema_id})
    others = (u for u in updates if not isinstance(u, AddSchemaUpdate | SetCurrentSchemaUpdate))
    current = SetCurrentSchemaUpdate.model_validate({"schema-id": -1})
    return (AddSchemaUpdate(schema=schema), current, *others)


def _with_exact_defaults(before: Schema, updates: tuple[TableUpdate, ...]) -> tuple[TableUpdate, ...]:
    """Return the updates with what older rows have had in a float column that becomes a double.

    PyIceberg keeps the digits of a default, of which a double is another number than a float: without this,
    0.10000000149011612 would become 0.1 in these rows. Iceberg's Java library keeps the number, too.
    """
    numbers = {
        f.field_id: single_precision(f.initial_default)
        for _, f in fields_within(before.as_struct())
        if isinstance(f.field_type, FloatType) and f.initial_default is not None
    }
    if not numbers:
        return updates
    return tuple(
        AddSchemaUpdate(schema=_with_numbers(update.schema_, numbers))
        if isinstance(update, AddSchemaUpdate)
        else update
        for update in updates
    )


def _with_numbers(schema: Schema, numbers: Mapping[int, float]) -> Schema:
    """Return a schema whose doubles of these ids have these numbers in older rows."""

    def exact(type_: IcebergType) -> IcebergType:
        if isinstance(type_, StructType):
            return StructType(*map(exact_field, type_.fields))
        if isinstance(type_, ListType):
            element = exact(type_.element_type)
            return ListType(type_.element_id, element, element_required=type_.element_required)
        if isinstance(type_, MapType):
            key, value = exact(type_.key_type), exact(type_.value_type)
            return MapType(type_.key_id, key, type_.value_id, value, value_required=type_.value_required)
        return type_

    def exact_field(f: NestedField) -> NestedField:
        update: dict[str, Any] = {"field_type": exact(f.field_type)}
        if isinstance(f.field_type, DoubleType) and f.field_id in numbers:
            update["initial_default"] = numbers[f.field_id]
        return f.model_copy(update=update)

    return schema.model_copy(update={"fields": tuple(map(exact_field, schema.fields))})


def _stage(update: UpdateSchema, change: SchemaChange) -> None:
    # Paths are tuples: a dot in a name is part of it.
    if isinstance(change, AddColumn):
        default: Any = None if change.default is None else change.default.value
        update.add_column(change.path, change.type, doc=change.doc, required=False, default_value=default)
    elif isinstance(change, AddField):
        update.add_column(change.path, change.type, required=False)
    elif isinstance(change, WidenType):
        update.update_column(change.path, field_type=change.new)
    elif isinstance(change, RelaxNotNull):
        update.make_column_optional(change.path)
    elif isinstance(change, RenameField):
        update.rename_column(change.path, change.new_name)
    elif isinstance(change, SetDefault):
        update.set_default_value(change.path, change.default.value)
    elif isinstance(change, RemoveDefault):
        update.set_default_value(change.path, None)
    else:
        update.update_column(change.path, doc=change.doc)
