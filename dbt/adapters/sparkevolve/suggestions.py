"""Which known name someone meant who wrote another one; pure."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

# How much of two names has to be the same, from 0 to 1. `full_refresh` and `full_refresh_schema`, two
# settings that exist, have 0.77.
_CLOSE = 0.8


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that ``name`` is a near miss of.

    A near miss differs by a few letters (``catalog_propertis``), by case, by hyphens for underscores
    (``removed-columns``), or by the order of its words (``columns_removed``).

    Args:
        name: what was written.
        known: all names that mean something, someone else's too if they are in order where ``name`` stands.

    Returns:
        The best match; None if ``name`` itself is known, or if nothing comes close.
    """
    names = list(known)
    if name in names:
        return None
    best: tuple[float, str] | None = None
    for candidate in names:
        score = _likeness(name, candidate)
        if score >= _CLOSE and (best is None or score > best[0]):
            best = (score, candidate)
    return best[1] if best else None


def did_you_mean(suggestion: str) -> str:
    """Return the question in which an error ends that rests on ``closest``."""
    return f"Did you mean `{suggestion}`?"


def _likeness(given: str, candidate: str) -> float:
    words, others = _words(given), _words(candidate)
    if sorted(words) == sorted(others):
        return 1.0
    return SequenceMatcher(None, "_".join(words), "_".join(others), autojunk=False).ratio()


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
