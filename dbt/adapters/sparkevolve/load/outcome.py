"""What a node has done since its rows are visible: for what is said of a failure that comes after that."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dbt.adapters.sparkevolve.errors import AfterLoadError


@dataclass
class Outcome:
    """The end of a node, from the moment when readers see what it has loaded.

    Attributes:
        relation: the rendered name of its table or view.
        adds_again: whether running the model again would add the same rows once more.
        is_refreshed: whether it would not if that were a full refresh, as this run was.
        steps: what is still to be done, in order.
        done: what has been done.
        current: what is being done; empty before the first step.
    """

    relation: str
    adds_again: bool = False
    is_refreshed: bool = False
    steps: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    current: str = ""

    def begin(self, step: str) -> None:
        """Note that a step begins, if there is anything to do in it, and that the one before it is done."""
        if self.current:
            self.done.append(self.current)
        self.current = step if step in self.steps else ""
        if self.current:
            self.steps.remove(step)

    def error(self, cause: str) -> AfterLoadError:
        """Return the error that says what failed, and what has been done all the same."""
        return AfterLoadError(
            cause,
            self.relation,
            done=self.done,
            failed=self.current,
            not_begun=self.steps,
            adds_again=self.adds_again,
            is_refreshed=self.is_refreshed,
        )


def steps_of(*, docs: bool, grants: bool, hooks: Sequence[object]) -> list[str]:
    """Return what a node has to do once its rows are visible."""
    return [
        name
        for name, is_wanted in (("grants", grants), ("descriptions", docs), ("post-hooks", hooks))
        if is_wanted
    ]
