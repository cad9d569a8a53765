"""What the nodes of one dbt command share."""

import threading
from dataclasses import dataclass, field

from dbt.adapters.sparkevolve.load.batch_sums import BatchSums


@dataclass
class SharedByThreads:
    """What the nodes of one dbt command share.

    Attributes:
        told_of_differences: the dbt commands and tables for which was said what of the model the table does
            not have.
        told_of_not_null: those for which was said that a contract's NOT NULL is not applied.
        batch_sums: what the batches of microbatch models have done together.
    """

    told_of_differences: set[tuple[str, str]] = field(default_factory=set)
    told_of_not_null: set[tuple[str, str]] = field(default_factory=set)
    batch_sums: BatchSums = field(default_factory=BatchSums)
    _turns: dict[str, threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_first(self, told: set[tuple[str, str]], of: tuple[str, str]) -> bool:
        """Note in one of the sets that something was told, and tell whether no thread had told it yet."""
        with self._lock:
            is_first = of not in told
            told.add(of)
            return is_first

    def turn_at(self, table: str) -> threading.Lock:
        """Return what one thread at a time holds while it loads into a table."""
        return self._turns.setdefault(table, threading.Lock())
