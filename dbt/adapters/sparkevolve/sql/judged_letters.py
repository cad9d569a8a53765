"""Dead letters that were read back and judged: the queries of which go in, which stay, and why."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pyiceberg.schema import Schema
from pyiceberg.types import UUIDType

from dbt.adapters.sparkevolve.evolution.names import quote, string_literal
from dbt.adapters.sparkevolve.sql import dead_letters, replay
from dbt.adapters.sparkevolve.sql.replay import Own

NEWER_ROW = "the table has rows of this key that were loaded after it"
DELETED_ROW = "rows of this key that the table had were deleted after it was written"
FORGOTTEN = "the table has rows of this key, and when they were loaded is not known any more"
EXCLUDED = (
    "the table has rows of this key that `incremental_predicates` leave out, and would have the key twice"
)
BEFORE_OTHERS = (
    "another dead letter of this key is newer, and `incremental_predicates` would leave out this one's row"
)
# Why a letter stays whose key has something newer: what `overwrite` is for.
OUTDATED = (replay.NEWER_LETTER, NEWER_ROW, DELETED_ROW, FORGOTTEN)


@dataclass(frozen=True)
class Chunk:
    """Letters that are loaded in one commit.

    Attributes:
        number: the number of their chunk.
        absent: the places, in the table's schema, of the columns that they do not have.
    """

    number: int
    absent: str


@dataclass(frozen=True)
class JudgedLetters:
    """Letters that were read back, of which is known which can be loaded.

    Attributes:
        staged: the rendered name of the letters as rows.
        judgement: what was asked of each.
        table: the rendered name of the answers.
        schema: the schema of the table that they are for.
        own: what the columns beside those are called.
    """

    staged: str
    judgement: dead_letters.Judgement
    table: str
    schema: Schema
    own: Own

    @property
    def _good(self) -> str:
        return self.judgement.good(self.table)

    @property
    def _judged_bad(self) -> str:
        """The query of the letters whose rows are bad: ``letter``, ``reason``."""
        return (
            f"SELECT get_json_object(`id`, '$.{self.own.letter}') AS `letter`,\n"
            "  array_join(`reasons`, '; ') AS `reason`\n"
            f"FROM (\n{self.judgement.letters(self.table)}\n) AS `bad`"
        )

    @property
    def bad(self) -> str:
        """The query of the letters that stay, each with one new reason: ``letter``, ``reason``."""
        own = ", ".join(string_literal(reason) for reason in OUTDATED)
        return (
            f"SELECT `letter`, max(`reason`) AS `reason` FROM (\n{self._judged_bad}\nUNION ALL\n"
            f"SELECT `{self.own.letter}`, `{self.own.problem}` FROM {self.staged}\n"
            f"WHERE `{self.own.problem}` IS NOT NULL AND NOT `{self.own.problem}` IN ({own})\n"
            ") AS `staying` GROUP BY `letter`"
        )

    @property
    def _staying(self) -> str:
        """The query of the letters that stay: ``letter``, ``reason``."""
        return (
            f"{self._judged_bad}\nUNION ALL\nSELECT `{self.own.letter}`, `{self.own.problem}` "
            f"FROM {self.staged} WHERE `{self.own.problem}` IS NOT NULL"
        )

    @property
    def reasons(self) -> str:
        """The query of how many letters stay, by reason."""
        return f"SELECT `reason`, count(*) FROM (\n{self._staying}\n) AS `staying` GROUP BY `reason`"

    def reasons_of_gone(self, ids: str) -> str:
        """Return the query of how many letters would stay, by reason, and are none of those of a query."""
        there = f"LEFT ANTI JOIN (\n{ids}\n) AS `there` ON `staying`.`letter` = `there`.`letter`"
        return (
            f"SELECT `reason`, count(*) FROM (\n{self._staying}\n) AS `staying`\n{there}\nGROUP BY `reason`"
        )

    def count_gone(self, ids: str) -> str:
        """Return the query of how many letters are none of those of a query."""
        return f"SELECT count(*) FROM (\n{self._gone(ids)}\n) AS `gone`"

    def gone(self, ids: str) -> str:
        """Return the query of the ids of these letters, each with how many it is."""
        return f"SELECT `letter`, count(*) FROM (\n{self._gone(ids)}\n) AS `gone` GROUP BY `letter`"

    def _gone(self, ids: str) -> str:
        all_ = f"SELECT `{self.own.letter}` AS `letter` FROM {self.staged}"
        return (
            f"SELECT `judged`.`letter` FROM (\n{all_}\n) AS `judged`\n"
            f"LEFT ANTI JOIN (\n{ids}\n) AS `there` ON `judged`.`letter` = `there`.`letter`"
        )

    @property
    def chunks(self) -> str:
        """The query of the numbers of the chunks that have rows to load, and what these lack."""
        items = f"`{self.own.chunk}`, `{self.own.absent}`"
        return f"SELECT DISTINCT {items} FROM (\n{self._good}\n) AS `good` ORDER BY {items}"

    def ids(self, chunk: Chunk) -> str:
        """Return the query of the ids of the letters of a chunk."""
        letter = f"`{self.own.letter}`"
        ids = f"SELECT DISTINCT {letter} FROM (\n{self._good}\n) AS `good` WHERE {self._of(chunk)}"
        if not self.judgement.audits:
            return ids
        # Equal letters are removed by one id, and an audit need not say the same of each.
        return f"{ids}\nAND NOT {letter} IN (SELECT `letter` FROM (\n{self._judged_bad}\n) AS `bad`)"

    def times(self, chunk: Chunk) -> str:
        """Return the query of when they were written, in microseconds since the epoch."""
        loaded = f"`{self.own.loaded}`"
        return f"SELECT DISTINCT {loaded} FROM (\n{self._good}\n) AS `good` WHERE {self._of(chunk)}"

    def at(self, chunk: Chunk, loaded: int | None = None) -> str:
        """Return the query of the letters of a chunk, or of those that were written at a time."""
        where = self._of(chunk) if loaded is None else f"{self._of(chunk)} AND `{self.own.loaded}` = {loaded}"
        return f"{self.stored} WHERE {where}"

    @property
    def stored(self) -> str:
        """The query of the letters with their values as the table has them, by which rows are found."""
        # Whatever a uuid is written like, it is read in small letters.
        items = [
            f"lower({quote(f.name)}) AS {quote(f.name)}"
            if isinstance(f.field_type, UUIDType)
            else quote(f.name)
            for f in self.schema.fields
        ]
        own = [f"`{self.own.letter}`", f"`{self.own.loaded}`"]
        return f"SELECT {', '.join([*items, *own])} FROM (\n{self._good}\n) AS `good`"

    def rows(self, ids: Iterable[str], absent: Collection[str]) -> str:
        """Return the query of the rows of letters, with the columns of the table but those they lack."""
        present = [f.name for f in self.schema.fields if f.name not in absent]
        names = ", ".join(f"`{name.replace('`', '``')}`" for name in present)
        return f"SELECT {names} FROM (\n{self._good}\n) AS `good` WHERE {self._among(ids)}"

    def unknown(self, ids: Iterable[str]) -> str:
        """Return the query of how many letters have values that the table has no place for, by paths."""
        return (
            f"SELECT `{self.own.unknown}`, count(*) FROM {self.staged}\n"
            f"WHERE `{self.own.unknown}` <> '' AND {self._among(ids)} GROUP BY `{self.own.unknown}`"
        )

    def count(self, ids: Iterable[str]) -> str:
        """Return the query of how many rows letters have."""
        return f"SELECT count(*) FROM (\n{self._good}\n) AS `good` WHERE {self._among(ids)}"

    def _of(self, chunk: Chunk) -> str:
        """Return the condition that a letter is one of a chunk."""
        return f"`{self.own.chunk}` = {chunk.number} AND `{self.own.absent}` = '{chunk.absent}'"

    def _among(self, ids: Iterable[str]) -> str:
        """Return the condition that a letter is one of some."""
        listed = ", ".join(map(string_literal, ids))
        return f"`{self.own.letter}` IN ({listed})" if listed else "false"
