"""What a node has done: the text of dbt's line, and data for `run_results.json` and the JSON log."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from dbt.adapters.contracts.connection import AdapterResponse

from dbt.adapters.sparkevolve.counts import counted
from dbt.adapters.sparkevolve.iceberg.row_counts import Commits, Counted
from dbt.adapters.sparkevolve.load.letters import Letters
from dbt.adapters.sparkevolve.redaction import clean
from dbt.adapters.sparkevolve.settings import Strategy

_OF_DBT = frozenset({"_message", "code", "query_id"})
_LISTS = tuple(
    f"columns_{kind}" for kind in ("added", "widened", "relaxed", "padded", "kept", "left_out", "lost")
)
_MERGING = (Strategy.MERGE, Strategy.SNAPSHOT)


@dataclass
class Response(AdapterResponse):
    """dbt's response to the last statement of a node, with what the node has done. What is not known is None.

    Attributes:
        rows_inserted: rows that the table did not have.
        rows_updated: rows that it had under the same key, of a `merge`.
        rows_deleted: rows that it had and has not any more, or that others took the place of.
        columns_added: paths of columns and fields, and so on.
        columns_widened: those with a wider type.
        columns_relaxed: those that may be NULL from now on.
        columns_renamed: new names by the old paths.
        columns_padded: those that the model does not return, and that get NULL or a default in each row.
        columns_kept: those that it does not return, and that keep the value of a row that is replaced.
        columns_left_out: those that it returns, and that the table has not got.
        columns_lost: those that a table which was replaced had before.
        schema_id: the table's schema, by Iceberg's number.
        snapshot_id: the snapshot that readers see. A text: JSON readers round so long numbers.
        warnings: what the node has warned of.
        dead_letters: see ``Letters.data``.
    """

    rows_inserted: Optional[int] = None
    rows_updated: Optional[int] = None
    rows_deleted: Optional[int] = None
    columns_added: list[str] = field(default_factory=list)
    columns_widened: list[str] = field(default_factory=list)
    columns_relaxed: list[str] = field(default_factory=list)
    columns_renamed: dict[str, str] = field(default_factory=dict)
    columns_padded: list[str] = field(default_factory=list)
    columns_kept: list[str] = field(default_factory=list)
    columns_left_out: list[str] = field(default_factory=list)
    columns_lost: list[str] = field(default_factory=list)
    schema_id: Optional[int] = None
    snapshot_id: Optional[str] = None
    warnings: list[str] = field(default_factory=list)
    dead_letters: Optional[dict[str, Any]] = None

    def data(self) -> dict[str, Any]:
        """Return this as plain data, without what is dbt's own."""
        return {name: value for name, value in self.to_dict(omit_none=True).items() if name not in _OF_DBT}


@dataclass(frozen=True)
class Rows:
    """How many rows a load has inserted, updated and deleted; None where that is not known for certain."""

    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None


def rows_of(counts: Counted | None, strategy: Strategy, batch: int) -> Rows:
    """Return what commits have done to rows, which say less than their strategy knows.

    Args:
        counts: of the commits of the load; None if they are not known.
        strategy: how it loads.
        batch: how many rows it had to load.
    """
    if strategy in _MERGING:
        if counts is None or counts.removed is None:
            return Rows()
        inserted = counts.added - counts.removed
        # Where whole files go, rows are written again that nothing has happened to.
        return Rows(inserted, None if counts.rewrites else counts.removed, 0)
    if counts is None or counts.removed is None:
        return Rows(batch)
    deleted = counts.removed - (counts.added - batch)
    return Rows(batch, None, deleted if deleted >= 0 else None)


@dataclass
class NodeResult:
    """What a node has done so far.

    Attributes:
        rows: what it has done to rows.
        loaded: how many rows it has loaded; None if that is not known.
        columns: see ``columns_of`` and ``not_returned``.
        schema_id: the table's schema.
        snapshot_id: the snapshot that readers see.
        warnings: what it has warned of.
    """

    rows: Rows = field(default_factory=Rows)
    loaded: int | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    schema_id: int | None = None
    snapshot_id: int | None = None
    warnings: list[str] = field(default_factory=list)

    def note_commits(self, commits: Commits, strategy: Strategy, batch: int) -> None:
        """Take note of the commits of a load.

        Args:
            commits: what is known of them.
            strategy: how it loads.
            batch: how many rows it had to load.
        """
        self.rows = rows_of(commits.counts, strategy, batch)
        self.loaded = batch
        self.schema_id, self.snapshot_id = commits.schema_id, commits.head

    def note_rows(self, rows: int) -> None:
        """Take note of how many rows a table was made with, where that is known without its commits."""
        self.rows, self.loaded = Rows(rows), rows

    def note_creation(self, commits: Commits) -> None:
        """Take note of a table that was made with its rows."""
        self.schema_id, self.snapshot_id = commits.schema_id, commits.head
        if commits.counts is not None:
            self.note_rows(commits.counts.added)

    def response(self, response: AdapterResponse, letters: Letters | None) -> Response:
        """Return dbt's response to the node's last statement with all of this.

        Args:
            response: that response.
            letters: the rows of the batch that were set aside.
        """
        bad = letters if letters is not None and letters.bad else None
        known = [number for number in (self.rows.inserted, self.rows.updated) if number is not None]
        return Response(
            self.text(str(response), bad.bad if bad else 0),
            response.code,
            sum(known) if known else response.rows_affected,
            response.query_id,
            rows_inserted=self.rows.inserted,
            rows_updated=self.rows.updated,
            rows_deleted=self.rows.deleted,
            schema_id=self.schema_id,
            snapshot_id=None if self.snapshot_id is None else str(self.snapshot_id),
            # dbt cleans what it logs, and no file.
            warnings=_once(map(clean, self.warnings)),
            dead_letters=bad.data() if bad else None,
            **self.columns,
        )

    def text(self, status: str, bad: int = 0) -> str:
        """Return dbt's line about the node: ``OK 28,258 rows, +2 columns, 1 padded``.

        Args:
            status: what it is without that.
            bad: how many rows were set aside.
        """
        parts = [] if self.loaded is None else [_rows(self.loaded)]
        added = len(self.columns.get("columns_added", ()))
        if added:
            parts.append(f"+{counted(added, 'column')}")
        for kind in ("widened", "renamed", "padded", "kept", "lost"):
            number = len(self.columns.get(f"columns_{kind}", ()))
            parts += [f"{number} {kind}"] if number else []
        if bad:
            parts.append(f"{_rows(bad)} set aside")
        return f"{status} {', '.join(parts)}" if parts and status == "OK" else status


def together(batches: Sequence[Response]) -> Response:
    """Return what several batches of one table have done together.

    A number is left out if it is not known of one of them. So are the schema and the snapshot: batches in
    parallel tell in another order than they are published in.
    """
    columns: dict[str, Any] = {}
    for name in _LISTS:
        columns[name] = _once(path for batch in batches for path in getattr(batch, name))
    columns["columns_renamed"] = {old: new for b in batches for old, new in b.columns_renamed.items()}
    letters = [batch.dead_letters for batch in batches if batch.dead_letters]
    bad = sum(each["rows"] for each in letters)
    inserted = _sum(batch.rows_inserted for batch in batches)
    result = NodeResult(Rows(inserted), inserted, columns)
    return Response(
        result.text("OK", bad),
        rows_affected=_sum(batch.rows_affected for batch in batches),
        rows_inserted=inserted,
        rows_updated=_sum(batch.rows_updated for batch in batches),
        rows_deleted=_sum(batch.rows_deleted for batch in batches),
        warnings=_once(text for batch in batches for text in batch.warnings),
        dead_letters={"table": letters[0]["table"], "rows": bad} if letters else None,
        **columns,
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    found = list(numbers)
    known = [number for number in found if number is not None]
    return sum(known) if len(known) == len(found) else None


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _rows(number: int) -> str:
    return f"{number:,} {'row' if number == 1 else 'rows'}"
