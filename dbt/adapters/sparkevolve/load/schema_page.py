"""One HTML file that shows what the tables of a project have been through, and loads nothing else."""

import base64
import hashlib
import json
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from dbt.adapters.sparkevolve.__version__ import version
from dbt.adapters.sparkevolve.counts import counted
from dbt.adapters.sparkevolve.errors import CatalogUnavailableError, OperationError
from dbt.adapters.sparkevolve.files import replace_file
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs
from dbt.adapters.sparkevolve.iceberg.table_story import table_story
from dbt.adapters.sparkevolve.operations import NamedNode
from dbt.adapters.sparkevolve.redaction import clean
from dbt.adapters.sparkevolve.times import iso
from dbt.include.sparkevolve import PACKAGE_PATH

logger = AdapterLogger("SparkEvolve")

_SOURCES = Path(PACKAGE_PATH) / "page"
FILE_NAME = "sparkevolve_schema.html"


@dataclass(frozen=True)
class Written:
    """A page that was written.

    Attributes:
        path: where.
        shown: the ids of the nodes whose tables it shows.
        reasons: why it shows nothing of others, by their id.
    """

    path: str
    shown: tuple[str, ...]
    reasons: Mapping[str, str]

    @property
    def text(self) -> str:
        """What to say of it."""
        lines = [f"{self.path}: {counted(len(self.shown), 'table')}"]
        return "\n".join(lines + [f"  {node}: {reason}" for node, reason in self.reasons.items()])

    @property
    def data(self) -> dict[str, Any]:
        """The same as data."""
        return {"path": self.path, "shown": list(self.shown), "not_shown": dict(self.reasons)}


class SchemaPage:
    """Writes the page; it asks catalogs for metadata only, and Spark for nothing.

    Args:
        catalogs: the catalogs of the profile.
        project: the name of the project.
        folder: where the project is.
        threads: how many tables are read at once.
    """

    def __init__(self, catalogs: Catalogs, project: str, folder: Path, threads: int) -> None:
        self._catalogs = catalogs
        self._project = project
        self._folder = folder
        self._threads = max(1, threads)
        self._away: dict[str | None, str] = {}

    def write(self, nodes: Sequence[NamedNode], path: Path) -> Written:
        """Write the page of some nodes, in place of what is there.

        Args:
            nodes: models, snapshots and seeds.
            path: where, from the project's folder.

        Raises:
            OperationError: it cannot be written there.
        """
        with ThreadPoolExecutor(self._threads) as threads:
            # What dbt logs goes by the context of its command.
            waiting = [threads.submit(copy_context().run, self.story, node) for node in nodes]
            try:
                stories = [one.result() for one in waiting]
            except BaseException:
                # Ctrl-C: it waits for the tables that are being read, and for no other.
                threads.shutdown(wait=False, cancel_futures=True)
                raise
        text = page(self._project, stories, iso(datetime.now(timezone.utc)))
        try:
            replace_file(self._folder / path, text)
        except OSError as exc:
            raise OperationError(
                f"The page cannot be written to {path}: {exc.strerror or exc}. Name another file: "
                "--args '{path: target/schema.html}'."
            ) from exc
        return Written(
            str(path),
            tuple(story["node"] for story in stories if "reason" not in story),
            {story["node"]: story["reason"] for story in stories if "reason" in story},
        )

    def story(self, node: NamedNode) -> dict[str, Any]:
        """Return what there is to show of a node's table, with a ``reason`` if that is nothing."""
        relation, database = node.relation, node.relation.database
        kind, _, name = node.unique_id.partition(".")
        known = {
            "node": node.unique_id,
            "kind": kind,
            "name": name.partition(".")[2],
            "relation": str(relation),
            "materialized": str(node.config.get("materialized") or kind),
            "on_schema_change": str(node.config.get("on_schema_change") or ""),
        }
        if database in self._away:
            return {**known, "reason": self._away[database]}
        try:
            table = self._catalogs.of(database).find(relation)
            if table is None:
                return {**known, "reason": _absent(node, self._catalogs)}
            return {**known, **table_story(table)}
        except CatalogUnavailableError as exc:
            self._away[database] = exc.msg
            return {**known, "reason": exc.msg}
        except DbtRuntimeError as exc:
            return {**known, "reason": exc.msg}
        except Exception as exc:
            # Metadata are files of others, in storage that may refuse them: the other tables are shown.
            logger.debug(f"{node.unique_id} cannot be shown: {traceback.format_exc()}")
            said = clean(f"{type(exc).__name__}: {exc}")
            return {**known, "reason": f"The metadata of {relation} cannot be read: {said}"}


def _absent(node: NamedNode, catalogs: Catalogs) -> str:
    database = node.relation.database or catalogs.own.name
    if not catalogs.has(database):
        return f"The profile does not state the catalog `{database}`."
    command = {"snapshot": "dbt snapshot", "seed": "dbt seed"}.get(node.unique_id.split(".")[0], "dbt run")
    return f"The catalog `{database}` has no such Iceberg table. `{command}` makes it."


def page(project: str, stories: Sequence[Mapping[str, Any]], at: str) -> str:
    """Return the page as HTML.

    Args:
        project: the name of the project.
        stories: what ``SchemaPage.story`` returns.
        at: when they were read.
    """
    kinds = ("html", "css", "js")
    sources = {kind: (_SOURCES / f"page.{kind}").read_text(encoding="utf-8") for kind in kinds}
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(sources["html"]).render(
        project=project,
        at=at,
        version=version,
        stories=stories,
        # These two are ours; what others have written is in the data, and nowhere else in a script.
        style=Markup(sources["css"]),
        script=Markup(sources["js"]),
        script_hash=_hash(sources["js"]),
        style_hash=_hash(sources["css"]),
        data=Markup(embedded({"project": project, "at": at, "models": list(stories)})),
    )


def embedded(data: object) -> str:
    """Return data as JSON that no HTML parser takes for anything but the text of a script."""
    text = json.dumps(data, separators=(",", ":"))
    # All that is not ASCII is escaped already: U+2028 and half a surrogate among it.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    """Return what a content security policy calls a script or a style sheet."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
