"""The plans of a dbt command as files: data for programs, and a table for a person who decides."""

import json
import re
import threading
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.invocation import get_invocation_id

from dbt.adapters.sparkevolve.__version__ import version
from dbt.adapters.sparkevolve.counts import counted
from dbt.adapters.sparkevolve.files import replace_file
from dbt.adapters.sparkevolve.redaction import clean
from dbt.adapters.sparkevolve.times import iso

logger = AdapterLogger("SparkEvolve")

JSON_FILE = "sparkevolve_plan.json"
MARKDOWN_FILE = "sparkevolve_plan.md"
# The number of the layout, which goes up when a name goes or means something else.
FORMAT = 1
_MOST_IN_CELL = 10
_TEXTS = ("changes", "defaults", "warnings", "refusals")
_COLUMNS = "| model | status | changes | gets no value from the model | read by |\n|---|---|---|---|---|"
# A name in backticks, in which two stand for one.
_QUOTED = re.compile("`((?:[^`]|``)+)`")
_IN_CODE = re.compile(r"[`|<>&\\]")
_MARKUP = re.compile(r"[`|<>&\\*\[\]]")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
_NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
UNKNOWN = (
    "What reads a table from outside of this project, by a name that a macro makes, or through a column that "
    "was given another name on its way, is not known."
)


class PlanFile:
    """The files of a command, which are written again with each model: several threads plan at once.

    Args:
        folder: dbt's folder for what it makes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._models: dict[str, dict[str, Any]] = {}

    def add(self, plan: Mapping[str, Any]) -> None:
        """Add the plan of a model, see ``Preview``."""
        self._write({**plan, **_cleaned(plan), "status": status_of(plan)})

    def add_failure(self, unique_id: str, text: str) -> None:
        """Add that a model could not be planned, and why, unless its plan is there."""
        if unique_id not in self._models:
            self._write({"unique_id": unique_id, "status": "not planned", "error": clean(text)})

    def add_none(self) -> None:
        """Add that a node is not planned: what an earlier command has left is not taken for this one's."""
        if not self._models:
            self._write()

    def _write(self, *added: dict[str, Any]) -> None:
        with self._lock:
            self._models.update({str(model["unique_id"]): model for model in added})
            models = [self._models[unique_id] for unique_id in sorted(self._models)]
            metadata = {
                "format": FORMAT,
                "invocation_id": get_invocation_id(),
                "generated_at": iso(datetime.now(timezone.utc)),
                "adapter_version": version,
            }
            text = json.dumps({"metadata": metadata, "models": models}, indent=2, ensure_ascii=False)
            try:
                replace_file(self._folder / JSON_FILE, text + "\n")
                replace_file(self._folder / MARKDOWN_FILE, markdown(models))
            except OSError as exc:
                logger.warning(f"The plan could not be written to {self._folder}: {exc}")


def _cleaned(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts of a plan without secrets: dbt cleans what it logs, and no file."""
    listed = {key: [clean(text) for text in plan[key]] for key in _TEXTS if key in plan}
    values = {path: clean(value) for path, value in plan.get("removed_get", {}).items()}
    # A column may be padded with a default.
    projections = [
        {**projection, "expression": clean(projection["expression"])}
        for projection in plan.get("projections", ())
    ]
    found = listed | ({"removed_get": values} if values else {})
    return found | ({"projections": projections} if projections else {})


def status_of(plan: Mapping[str, Any]) -> str:
    """Return what a plan comes to: ``refused``, ``new table``, ``changes`` or ``no change``."""
    if plan["refusals"]:
        return "refused"
    if plan.get("creates"):
        return "new table"
    return "changes" if plan["changes"] else "no change"


def markdown(models: list[dict[str, Any]]) -> str:
    """Return plans as a table in Markdown, with what is refused and warned of below it."""
    refused = sum(model["status"] in ("refused", "not planned") for model in models)
    changed = sum(model["status"] in ("changes", "new table") for model in models)
    head = f"{counted(len(models), 'incremental model')}, {changed} with changes, {refused} refused."
    lines = ["## Plan of the schemas", "", head, "", _COLUMNS]
    lines += [_row(model) for model in models]
    notes = [
        f"* **{_cell(model['unique_id'])}**: {kind}{_cell(text)}"
        for model in models
        for kind, texts in (
            ("", [model["error"]] if "error" in model else model["refusals"]),
            ("warning: ", model.get("warnings", ())),
        )
        for text in texts
    ]
    lines += ["", *notes] if notes else []
    if any(model.get("readers") for model in models):
        lines += ["", UNKNOWN]
    return "\n".join(lines) + "\n"


def _row(model: Mapping[str, Any]) -> str:
    changes = [*model.get("changes", ()), *(f"loses {name}" for name in model.get("columns_lost", ()))]
    padded = [f"{path}: {value}" for path, value in model.get("removed_get", {}).items()]
    readers = dict.fromkeys(f"{reader['column']}: {reader['node']}" for reader in model.get("readers", ()))
    cells = (
        f"{_cell(model['unique_id'])}",
        str(model["status"]),
        *(_several(texts) for texts in (changes, padded, list(readers))),
    )
    return f"| {' | '.join(cells)} |"


def _several(texts: list[str]) -> str:
    shown = [_cell(text) for text in texts[:_MOST_IN_CELL]]
    more = len(texts) - len(shown)
    return "<br>".join([*shown, *([f"and {more} more"] if more else [])])


def _cell(text: object) -> str:
    """Return a text as one line that is no markup: names and values are others', and may look like some.

    A name in backticks stays in them unless it has a character, such as a pipe, that Markdown cannot write
    there.
    """
    parts = _QUOTED.split(" ".join(str(text).split()))
    return "".join(
        (f"`{part}`" if _IN_CODE.search(part) is None else f"<code>{_entities(_PUNCTUATION, part)}</code>")
        if number % 2
        else _entities(_MARKUP, part)
        for number, part in enumerate(parts)
    )


def _entities(characters: re.Pattern[str], text: str) -> str:
    return characters.sub(lambda found: _NAMED.get(found[0], f"&#{ord(found[0])};"), text)
