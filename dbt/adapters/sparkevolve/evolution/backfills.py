"""Where a backfill of a column is: what a table's properties say of it, so that it can go on after a kill."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

PREFIX = "sparkevolve.backfill."
# What is kept of a long `value` or `where`, for people; the fingerprint tells them apart.
_SHOWN = 500
# Published or not, these were tried last; there are as many as a run tries again.
_MOST_TRIED = 20

# The values of a key as texts, None for NULL.
Bound = tuple["str | None", ...]


class SpoiledPosition(ValueError):
    """A property of ours whose text is not one that we have written."""


@dataclass(frozen=True)
class Request:
    """What a backfill is asked to do: two that are equal are one, which goes on where the other has stopped.

    Attributes:
        column: the path of the column, as the table spells it.
        value: the SQL of the value.
        where: the SQL of the condition; empty for all rows.
        batch_by: by what rows are put in an order, as a person reads it.
        only_null: whether values that are there stay.
        key: the same as ``batch_by``, by field ids.
        by_ids: the same as ``value`` and ``where``, by field ids where they name columns; None for these as
            they are.
    """

    column: str
    value: str
    where: str
    batch_by: tuple[str, ...]
    only_null: bool
    key: tuple[str, ...] = ()
    by_ids: tuple[str, str] | None = None

    @property
    def fingerprint(self) -> str:
        """A short text that differs for another request, and not for other names of the same columns.

        As far as ``by_ids`` has found them: not of columns that a subquery names.
        """
        return self._fingerprint_of(*(self.by_ids or (self.value, self.where)))

    def is_of(self, position: "Position") -> bool:
        """Tell whether a position is that of this request."""
        # Of positions that older versions have noted, by texts alone.
        by_names = self._fingerprint_of(self.value, self.where)
        return position.fingerprint in (self.fingerprint, by_names)

    def _fingerprint_of(self, value: str, where: str) -> str:
        text = json.dumps([value, where, list(self.key), self.only_null])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class UnknownPosition(ValueError):
    """Nobody can tell any more whether what was noted of a position has become visible."""


# Whether a snapshot that was made from another one was published; None if that is not known any more.
WasPublished = Callable[[int, int | None], bool | None]


@dataclass(frozen=True)
class Tried:
    """A batch whose rows and position did not become visible in one commit.

    Attributes:
        snapshot: what was to be published.
        after: where the backfill is if it was.
        batches: how many batches are done then.
        rows: how many rows these have changed.
        finished: whether there are no more then.
        base: the snapshot that it was made from; None if that is not known.
    """

    snapshot: int
    after: Bound
    batches: int
    rows: int
    finished: bool
    base: int | None = None


@dataclass(frozen=True)
class Refresh:
    """A full refresh whose commit replaces all rows, and cannot remove the position with them.

    Attributes:
        snapshot: what was to be published; None if the rows went straight into the table.
        base: what the table's branch was at before; None if it had no snapshot.
    """

    snapshot: int | None
    base: int | None


@dataclass(frozen=True)
class Position:
    """Where a backfill is.

    Attributes:
        fingerprint: of what was asked for.
        column: the path of the column, as it was spelled.
        value: the beginning of the SQL of the value.
        where: the beginning of the SQL of the condition.
        batch_by: by what rows are put in an order.
        only_null: whether values that are there stay.
        until: the last key, as it was when the backfill began.
        after: the last key of the batches that are done.
        batches: how many these are.
        rows: how many rows they have changed.
        finished: whether there are no more.
        at: when the last one was made, in ISO 8601, UTC.
        invocation_id: of the dbt command that made it.
        snapshot: one that has the rows of these batches, and the rows that they were counted in; None if it
            is not known.
        tried: what may have been published since.
        refreshes: full refreshes that may have been published since.
    """

    fingerprint: str
    column: str
    value: str
    where: str
    batch_by: tuple[str, ...]
    only_null: bool
    until: Bound
    after: Bound | None = None
    batches: int = 0
    rows: int = 0
    finished: bool = False
    at: str = ""
    invocation_id: str = ""
    snapshot: int | None = None
    tried: tuple[Tried, ...] = ()
    refreshes: tuple[Refresh, ...] = ()

    def advanced(self, after: Bound, rows: int, *, finished: bool, at: str, invocation_id: str) -> "Position":
        """Return the position after one more batch.

        Args:
            after: its last key.
            rows: how many rows it has changed.
            finished: whether it was the last one.
            at: when it was made.
            invocation_id: of the dbt command that made it.
        """
        return replace(
            self,
            after=after,
            batches=self.batches + 1,
            rows=self.rows + rows,
            finished=finished,
            at=at,
            invocation_id=invocation_id,
            tried=(),
        )

    def published(self, snapshot: int, awaited: Iterable[Refresh]) -> "Position":
        """Return the position after a batch whose commit was a compare-and-swap of the table's branch.

        Args:
            snapshot: what the commit has published.
            awaited: full refreshes that had not happened when it was made; see ``awaited``.
        """
        return replace(self, snapshot=snapshot, refreshes=tuple(replace(n, base=snapshot) for n in awaited))

    def trying(self, snapshot: int, then: "Position", base: int | None = None) -> "Position":
        """Return this position with the note that ``snapshot`` is about to be published, and what is then.

        Args:
            snapshot: what is about to be published.
            then: the position if it was.
            base: the snapshot that it was made from.
        """
        note = Tried(snapshot, then.after or (), then.batches, then.rows, then.finished, base)
        return replace(self, tried=(*self.tried, note)[-_MOST_TRIED:])

    def refreshing(self, snapshot: int | None, base: int | None) -> "Position":
        """Return this position with the note that a full refresh is about to replace all rows."""
        return replace(self, refreshes=(*self.refreshes, Refresh(snapshot, base))[-_MOST_TRIED:])

    @property
    def unnoted(self) -> "Position":
        """The same position without what was noted of what may have come since."""
        return replace(self, tried=(), refreshes=())

    def settled(self, head: int | None, was_published: WasPublished) -> "Position | None":
        """Return the position as it is, whichever of the snapshots that were noted was published.

        Where nobody knows that any more, a batch that fills what is NULL can be done once more, and so can
        all of them. A full refresh that goes straight into the table and has not happened may be under way:
        its note stays.

        Args:
            head: what the table's branch is at.
            was_published: tells whether a snapshot has become visible.

        Returns:
            The position; None if no row is any more one that the backfill has filled.

        Raises:
            UnknownPosition: it is not known, and to fill rows once more would not be the same.
        """
        if self.refreshes:
            answers = [self._was_refreshed(note, head, was_published) for note in self.refreshes]
            if True in answers or (None in answers and self.only_null):
                return None
            if None in answers:
                raise UnknownPosition("a full refresh")
        waiting = tuple(replace(note, base=head) for note in self.refreshes if note.snapshot is None)
        is_unknown = False
        for note in reversed(self.tried):
            answer = was_published(note.snapshot, self.snapshot if note.base is None else note.base)
            if answer:
                return replace(
                    self,
                    after=note.after,
                    batches=note.batches,
                    rows=note.rows,
                    finished=note.finished,
                    snapshot=note.snapshot,
                    tried=(),
                    refreshes=waiting,
                )
            is_unknown = is_unknown or answer is None
        if is_unknown and not self.only_null:
            raise UnknownPosition("its last batch")
        return replace(self, refreshes=waiting)

    def _was_refreshed(self, note: Refresh, head: int | None, was_published: WasPublished) -> bool | None:
        if note.snapshot is not None:
            return was_published(note.snapshot, note.base)
        # What has come since may be the full refresh, or what others have committed, unless it is a batch.
        batches = [tried.snapshot for tried in self.tried if tried.base == note.base]
        return False if head in (note.base, *batches) else None

    @property
    def text(self) -> str:
        """The position as a property has it, without what a Spark SQL literal may lack: `'` and `${`."""
        text = json.dumps(asdict(self), ensure_ascii=True, sort_keys=True)
        return text.replace("'", r"\u0027").replace("${", r"\u0024{")


def begun(request: Request, until: Bound, snapshot: int | None) -> Position:
    """Return the position of a backfill that has done nothing yet.

    Args:
        request: what it is asked to do.
        until: the last key.
        snapshot: that in which the rows were counted.
    """
    return Position(
        request.fingerprint,
        request.column,
        request.value[:_SHOWN],
        request.where[:_SHOWN],
        request.batch_by,
        request.only_null,
        until,
        snapshot=snapshot,
    )


def property_of(field_id: int) -> str:
    """Return the name of the property that says where the backfill of a column is."""
    return f"{PREFIX}{field_id}"


def properties_in(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of those of a table's properties that say where backfills are."""
    return tuple(name for name in properties if name.startswith(PREFIX))


def read(properties: Mapping[str, str], field_id: int) -> Position | None:
    """Return where the backfill of a column is; None if there is none.

    Raises:
        SpoiledPosition: the property is not one that we have written.
    """
    text = properties.get(property_of(field_id))
    if text is None:
        return None
    try:
        found: dict[str, Any] = json.loads(text)
        tried = [
            Tried(
                note["snapshot"],
                tuple(note["after"]),
                note["batches"],
                note["rows"],
                note["finished"],
                note.get("base"),
            )
            for note in found.pop("tried")
        ]
        refreshes = [Refresh(note["snapshot"], note["base"]) for note in found.pop("refreshes", ())]
        for name in ("batch_by", "until"):
            found[name] = tuple(found[name])
        found["after"] = None if found["after"] is None else tuple(found["after"])
        return Position(**found, tried=tuple(tried), refreshes=tuple(refreshes))
    except (ValueError, TypeError, KeyError, AttributeError) as exc:
        raise SpoiledPosition(text) from exc


def refreshed(properties: Mapping[str, str], snapshot: int | None, base: int | None) -> dict[str, str | None]:
    """Return the positions of a table with the note that a full refresh is about to replace all rows.

    Args:
        properties: the table's.
        snapshot: what is about to be published; None if the rows go straight into the table.
        base: what the table's branch is at before.
    """
    return {
        name: position.refreshing(snapshot, base).text
        for name, position in _positions(properties)
        if position is not None
    }


def withdrawn(properties: Mapping[str, str], head: int | None) -> dict[str, str | None]:
    """Return the positions of a table without the note of a full refresh that has failed.

    Args:
        properties: the table's.
        head: what the table's branch is at. If that is not what it was at before, the note stays: nobody
            knows that the full refresh has not replaced the rows all the same.
    """
    found: dict[str, str | None] = {}
    for name, position in _positions(properties):
        notes = list(position.refreshes) if position is not None else []
        if position is not None and Refresh(None, head) in notes:
            notes.remove(Refresh(None, head))
            found[name] = replace(position, refreshes=tuple(notes)).text
    return found


def awaited(properties: Mapping[str, str], field_id: int, head: int | None) -> tuple[Refresh, ...]:
    """Return the full refreshes that are to go straight into a table and had not happened at ``head``.

    Args:
        properties: the table's.
        field_id: the id of the column of whose backfill the notes are.
        head: a snapshot that the table's branch is, or was, at.
    """
    try:
        position = read(properties, field_id)
    except SpoiledPosition:
        return ()
    notes = position.refreshes if position is not None else ()
    return tuple(note for note in notes if note.snapshot is None and note.base == head)


def replaced(properties: Mapping[str, str], has_rows: Callable[[int], bool]) -> dict[str, str | None]:
    """Return what removes the positions of a table after a full refresh.

    Args:
        properties: the table's.
        has_rows: tells whether a snapshot has the rows of the full refresh, as one that came after it: then
            the backfill was begun after it, too.
    """
    return {
        name: None
        for name, position in _positions(properties)
        if position is None or position.snapshot is None or not has_rows(position.snapshot)
    }


def _positions(properties: Mapping[str, str]) -> Iterator[tuple[str, Position | None]]:
    """Yield the properties that tell of backfills, and what they tell; None if it is not of our writing."""
    for name in properties_in(properties):
        number = name.removeprefix(PREFIX)
        try:
            yield name, read(properties, int(number)) if number.isdecimal() else None
        except SpoiledPosition:
            yield name, None


def lost_by_restore(properties: Mapping[str, str], field_ids: Iterable[int]) -> list[str]:
    """Return the names of positions of which nobody knows any more which rows are filled.

    A column that was dropped meanwhile is NULL in files that were rewritten without it. Where a backfill
    fills what is NULL it may begin again; another one fills no row twice if it goes on.

    Args:
        properties: the table's.
        field_ids: the ids of the fields that are put back.
    """
    found = []
    for field_id in field_ids:
        try:
            position = read(properties, field_id)
        except SpoiledPosition:
            continue
        if position is not None and position.only_null:
            found.append(property_of(field_id))
    return found
