"""The bad rows of a batch: what is known of them, and what is said of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.schema import Schema

from dbt.adapters.sparkevolve.counts import agreeing, counted
from dbt.adapters.sparkevolve.evolution.names import Path
from dbt.adapters.sparkevolve.iceberg.base import Base
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation

MOST_REASONS = 100
MOST_SAMPLES = 10
# How many characters of an id, and of a reason, a line has; and how many the data have of an id.
_LONGEST_IN_LINE = 200
_LONGEST = 1000


@dataclass(frozen=True)
class Reason:
    """Why rows cannot be placed.

    Attributes:
        text: the reason.
        rows: how many rows have it, maybe beside others.
        samples: the ids of some of these rows.
    """

    text: str
    rows: int
    samples: tuple[str, ...]


@dataclass(frozen=True)
class PublishedLetters:
    """What a run has written to the dead letters.

    Attributes:
        base: the state of their table before.
        head: the snapshot that was published.
        claim: the name of the tag without which they may not be taken back any more.
        invocation_id: of the dbt command.
        loaded_micros: when they were written, in microseconds since the epoch; no two publications of a
            command have the same.
    """

    base: Base
    head: int
    claim: str
    invocation_id: str
    loaded_micros: int


@dataclass
class Letters:
    """A batch whose bad rows are told from the good ones.

    Attributes:
        target: the model's table.
        relation: the table for dead letters.
        staged: the batch as the model returned it.
        good: the batch without them, which is loaded; the same one if there are none.
        model: the model's name.
        query: the query of the bad rows; None if there are none.
        rows: how many rows the batch has, the bad ones too.
        bad: how many bad ones.
        reasons: why they are, most frequent first.
        location: the literal of where the table for dead letters is to be; None if the catalog chooses.
        table: the schema of the model's table that was looked at; None if there was no table.
        filled: folded paths at which no good row has a NULL.
        published: what was written of them; None before that, and after it was taken back.
        is_written: whether there is nothing more to write.
        stay: whether they are not taken back, whatever the node ends with.
    """

    target: SparkEvolveRelation
    relation: SparkEvolveRelation
    staged: SparkEvolveRelation
    good: SparkEvolveRelation
    model: str
    query: str | None = None
    rows: int = 0
    bad: int = 0
    reasons: tuple[Reason, ...] = ()
    location: str | None = None
    table: Schema | None = None
    filled: frozenset[Path] = frozenset()
    published: PublishedLetters | None = None
    is_written: bool = field(default=False)
    stay: bool = field(default=False)

    @property
    def shown(self) -> Sequence[Reason]:
        """The reasons that are named one by one."""
        return self.reasons[:MOST_REASONS]

    @property
    def others(self) -> Sequence[Reason]:
        """The reasons that are only counted."""
        return self.reasons[MOST_REASONS:]

    def data(self) -> dict[str, Any]:
        """Return what is known of the bad rows as plain data."""
        found: dict[str, Any] = {
            "table": str(self.relation),
            "rows": self.bad,
            "of": self.rows,
            "reasons": [
                {"reason": r.text, "rows": r.rows, "samples": [_cut(s, _LONGEST) for s in r.samples]}
                for r in self.shown
            ],
        }
        if self.others:
            found["other_reasons"] = {"reasons": len(self.others), "rows": sum(r.rows for r in self.others)}
        return found

    @property
    def lines(self) -> str:
        """How many bad rows there are of each reason, one reason a line."""
        lines = [
            f"  * {one_line(r.text)}: {counted(r.rows, 'row')}, such as {', '.join(map(one_line, r.samples))}"
            for r in self.shown
        ]
        if self.others:
            rows = counted(sum(r.rows for r in self.others), "row")
            lines.append(f"  * {counted(len(self.others), 'other reason')}: {rows}")
        return "\n".join(lines)

    @property
    def refusal(self) -> str:
        """What a person is told of the bad rows of a run that fails over them."""
        return f"{self.bad} of {counted(self.rows, 'row')} cannot be placed in {self.target}:\n{self.lines}"

    @property
    def text(self) -> str:
        """What a person is told of the bad rows."""
        return (
            f"{self.bad} of {counted(self.rows, 'row')} could not be placed and "
            f"{agreeing(self.bad, 'is', 'are')} in {self.relation}:\n{self.lines}"
        )


def reasons_of(found: Sequence[tuple[Any, ...]]) -> tuple[Reason, ...]:
    """Return the reasons that ``sql.dead_letters.by_reason`` has found, in its order."""
    samples: dict[str, list[str]] = {}
    numbers: dict[str, int] = {}
    for text, number, id_ in found:
        samples.setdefault(str(text), []).append(str(id_))
        numbers[str(text)] = int(number)
    return tuple(
        Reason(text, number, tuple(samples[text][:MOST_SAMPLES])) for text, number in numbers.items()
    )


def one_line(text: str, longest: int = _LONGEST_IN_LINE) -> str:
    """Return a text as one line of a log: no characters that break or colour it, and not too many."""
    # A blank is a blank, and what has no shape is written as Python does.
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))
    return _cut(shown, longest)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest] + "…"
