"""Which known name someone meant who wrote another one; pure."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

# How much of two names has to be the same, from 0 to 1. `full_refresh` and `full_refresh_schema`, two
# settings that exist, have 0.77.
_CLOSE = 0.8
# Up to how many letters a word is short, so that each letter counts, and up to how many one may be wrong.
_SHORT_WORD = 4
_MIDDLE_WORD = 7


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


def is_slip(given: str, known: str) -> bool:
    """Tell whether someone meant ``known``, or gave a setting of their own a name that resembles it.

    A slip has the same words, each with a letter or two wrong, in another form or order, or written as one.
    Another word is none, however much it resembles (``column_name`` and ``column_renames``, ``event_type``
    and ``event_time``), nor is a part of the name that is a word itself (``partition``).
    """
    words, others = _words(given), _words(known)
    joined, wanted = "".join(words), "".join(others)
    if sorted(words) == sorted(others) or joined == wanted:
        return True
    if len(words) == len(others):
        is_phrase = len(words) > 1
        return all(_is_same_word(a, b, is_phrase) for a, b in zip(words, others, strict=True))
    left_out = [word for word in others if word not in words]
    is_shortened = len(words) > 1 and [word for word in others if word in words] == words
    return (is_shortened and all(map(_is_short, left_out))) or _letters_wrong(joined, wanted) == 1


def _is_same_word(given: str, known: str, is_phrase: bool) -> bool:
    if _singular(given) == _singular(known) or (is_phrase and _stem(given) == _stem(known)):
        return True
    wrong, shorter = _letters_wrong(given, known), min(len(given), len(known))
    if shorter <= _SHORT_WORD:
        # With one letter exchanged it is another word: type and time, size and side.
        return wrong == 1 and (len(given) != len(known) or sorted(given) == sorted(known))
    return wrong <= (1 if shorter <= _MIDDLE_WORD else 2)


def _is_short(word: str) -> bool:
    return len(word) <= 2


def _singular(word: str) -> str:
    return re.sub(r"ies\Z", "y", word) if word.endswith("ies") else re.sub(r"(?<=sh)es\Z|(?<!s)s\Z", "", word)


def _stem(word: str) -> str:
    return re.sub(r"(?<=\w{4})(?:ing|ed|es|s|d|e)\Z", "", word)


def _letters_wrong(one: str, other: str) -> int:
    """Return how many letters are missing, too many, wrong or exchanged with their neighbour."""
    rows = [list(range(len(other) + 1))]
    for i, a in enumerate(one, start=1):
        row = [i]
        for j, b in enumerate(other, start=1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]
