"""Variables of a run, given with `--vars` or in `dbt_project.yml`: those that are read, and near misses."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dbt.adapters.sparkevolve.errors import VariableError
from dbt.adapters.sparkevolve.suggestions import closest, did_you_mean, is_slip

FREEZE_SCHEMA = "sparkevolve_freeze_schema"
"""The variable of a run in which the schema of no table may change."""
PLAN_ONLY = "sparkevolve_plan_only"
"""The variable of a run that says what it would do, and does nothing."""
KNOWN = (FREEZE_SCHEMA, PLAN_ONLY)
_PREFIX = "sparkevolve"
# The files of a project in which dbt lets a variable be read, and folders that are none of its.
_READING = (".yml", ".yaml", ".sql", ".py", ".md")
_FOREIGN_FOLDERS = frozenset({"target", "logs", "node_modules", "site-packages", "__pycache__"})
_WORDS_FOR_TRUE = frozenset({"true", "yes", "on", "1"})
_WORDS_FOR_FALSE = frozenset({"false", "no", "off", "0"})


def is_on(variable: str, value: object) -> bool:
    """Tell whether a variable that is given with `--vars` is on, in any of YAML's words for that.

    Args:
        variable: its name.
        value: its value; False where it is not given.

    Raises:
        VariableError: it is neither on nor off: whoever misspells a stop wants one.
    """
    found = switch(value)
    if found is None:
        raise VariableError(variable, value)
    return found


def switch(value: object) -> bool | None:
    """Return what a value means that is to be true or false, as YAML's words for that; None if it is neither.

    A text is read as what it says: what comes from a variable of the environment is one, and so is what
    stands in quotes.
    """
    text = str(value).strip().lower() if isinstance(value, bool | int | str) else ""
    return text in _WORDS_FOR_TRUE if text in _WORDS_FOR_TRUE | _WORDS_FOR_FALSE else None


def whole_number(value: object) -> int | None:
    """Return the whole number from 0 that a value is, or that a text says; None if it is none."""
    if isinstance(value, bool):
        return None
    text = str(value).strip() if isinstance(value, int | str) else ""
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None


def unread(variables: Mapping[str, Any], is_read: Callable[[str], bool]) -> list[str]:
    """Return what to say of variables that look like ours and that nobody reads, one text each.

    Args:
        variables: all that are given, by name. What stands there for a package of its own is left out.
        is_read: tells whether the project, or a package of it, reads a variable.
    """
    known = " and ".join(f"`{name}`" for name in KNOWN)
    found = []
    for name, value in variables.items():
        near = _meant(name)
        is_ours = re.match(rf"{_PREFIX}(?![a-z0-9])", name.lower()) or near is not None
        if name in KNOWN or not is_ours or isinstance(value, Mapping) or is_read(name):
            continue
        hint = f" {did_you_mean(near)}" if near is not None else ""
        found.append(f"The variable `{name}` has no effect: sparkevolve reads {known}.{hint}")
    return found


def _meant(name: str) -> str | None:
    """Return which of our variables a name is a near miss of: without the prefix, which makes all alike."""
    slips = [known for known in KNOWN if is_slip(name, known)]
    if slips:
        return slips[0]
    if not name.lower().startswith(_PREFIX):
        return None
    rests = {known.removeprefix(_PREFIX).strip("_"): known for known in KNOWN}
    near = closest(name[len(_PREFIX) :].strip("_-"), rests)
    return None if near is None else rests[near]


def is_read_in(name: str, folder: Path) -> bool:
    """Tell whether a file of a project, or of a package, calls dbt's `var` with a name.

    Args:
        name: the variable's.
        folder: where the project is.
    """
    # Quotes may be those of YAML, twice or behind a backslash.
    call = re.compile(rf"var\s*\(\s*[\\'\"]+{re.escape(name)}[\\'\"]")
    for parent, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if f not in _FOREIGN_FOLDERS and not f.startswith(".")]
        for file in files:
            if file.lower().endswith(_READING):
                try:
                    text = Path(parent, file).read_text(encoding="utf-8", errors="replace")
                except OSError:
                    continue
                if call.search(text):
                    return True
    return False


def is_quoted_in(name: str, texts: Iterable[str]) -> bool:
    """Tell whether one of the texts has a name in quotes, as where a variable is read."""
    return any(f"{quote}{name}{quote}" in text for text in texts for quote in "'\"")
