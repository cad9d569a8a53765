"""What macros get while dbt parses a project, when there is nothing to ask."""

from collections.abc import Callable


class Nothing:
    """Stands for an object of a run: each of its methods takes anything, and returns an empty text."""

    def __getattr__(self, name: str) -> Callable[..., str]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *arguments, **named: ""
