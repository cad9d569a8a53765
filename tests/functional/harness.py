"""A dbt project in a few lines, run in-process, whose tables are read back by PyIceberg."""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from dbt.cli.main import dbtRunner, dbtRunnerResult
from dbt.deprecations import reset_deprecations
from dbt_common.events.base_types import EventMsg
from dbt_common.invocation import get_invocation_id
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

SqlRunner = Callable[[str], list[tuple[Any, ...]]]

PRESERVE = "append_new_columns_preserve"
# How dbt begins a warning, in colours or not.
_MARK = re.compile(r"^\[(\x1b\[33m)?WARNING(\x1b\[0m)?\]: ")


def session_runner(profile_target: dict[str, Any], folder: Path) -> SqlRunner:
    """Return a runner in a Spark session of its own, inside the Spark application that dbt uses."""
    from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
    from dbt.adapters.sparkevolve.spark.session import SESSIONS

    settings = resolve("lake", profile_target["catalog_properties"], folder)
    session = SESSIONS.get(
        settings, {**profile_target["spark_config"], "spark.sql.test.runner": "true"}, {}, folder
    )
    return lambda sql: [tuple(row) for row in session.sql(sql).collect()]


def thrift_runner(profile_target: dict[str, Any]) -> SqlRunner:
    """Return a runner on a connection of its own to the Thrift server."""
    from pyhive import hive

    connection = hive.connect(host="127.0.0.1", port=profile_target["port"], username="test", database="lake")

    def run(sql: str) -> list[tuple[Any, ...]]:
        cursor = connection.cursor()
        cursor.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []

    return run


class Run:
    """What one dbt command did.

    Attributes:
        result: dbt's own answer.
        invocation_id: dbt's id of the command, which is the last one of this process.
        log: the text of all events, of level debug too, one a line.
        warnings: the texts of those that are warnings, without what marks them as such.
        shown: the texts of those that dbt shows on the console.
    """

    def __init__(
        self, result: dbtRunnerResult, log: str, warnings: Sequence[str] = (), shown: Sequence[str] = ()
    ) -> None:
        self.result = result
        self.invocation_id = get_invocation_id()
        self.log = log
        self.warnings = warnings
        self.shown = shown

    @property
    def success(self) -> bool:
        """Whether dbt would exit with 0."""
        return self.result.success

    @property
    def message(self) -> str:
        """The message of the exception, or of the first node that failed; empty after a success."""
        if self.result.exception is not None:
            return str(self.result.exception)
        for node in self.result.result or ():
            if str(node.status) in ("error", "fail"):
                return str(node.message)
        return ""

    @property
    def said(self) -> dict[str, str]:
        """The message of each node by its name."""
        return {node.node.name: str(node.message) for node in self.result.result or ()}

    def done(self, name: str) -> tuple[str, dict[str, Any]]:
        """What dbt's line says of a node, and its response as `run_results.json` has it, without []s."""
        (result,) = (result for result in self.result.result if result.node.name == name)
        found = {key: value for key, value in result.adapter_response.items() if value not in ([], {})}
        assert found.pop("_message") == result.message
        return str(result.message), found


class Scenario:
    """A dbt project with one schema.

    Attributes:
        schema: the schema in which it builds.
        sql: runs a statement beside dbt; returns its rows.
        writes_artifacts: whether dbt writes `manifest.json` and `run_results.json`, which `dbt retry` and
            `--state` need. That takes a third of what dbt itself does in a command.
    """

    def __init__(
        self, folder: Path, schema: str, profile: dict[str, Any], sql: SqlRunner, lake: Catalog
    ) -> None:
        self.folder = folder
        self.schema = schema
        self._namespace = tuple(schema.split("."))
        self.sql = sql
        self._lake = lake
        self._profile = profile
        self.writes_artifacts = False
        (folder / "models").mkdir(parents=True)
        self.write_project()
        (folder / "profiles.yml").write_text(
            yaml.safe_dump({"case": {"target": "t", "outputs": {"t": {**profile, "schema": schema}}}})
        )

    def write_project(self, **settings: Any) -> None:
        """Write ``dbt_project.yml`` with these settings besides the necessary ones."""
        project = {
            "name": "case",
            "version": "1.0.0",
            "profile": "case",
            "flags": {"send_anonymous_usage_stats": False, "write_json": False},
        }
        (self.folder / "dbt_project.yml").write_text(yaml.safe_dump({**project, **settings}))

    def file(self, path: str, text: str) -> None:
        """Write a file of the project."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def model(self, sql: str, name: str = "t", **config: Any) -> None:
        """Write a model: incremental, with the key ``id`` and our mode, unless ``config`` says else.

        A config of None takes the default away.
        """
        defaults = {"materialized": "incremental", "unique_key": "id", "on_schema_change": PRESERVE}
        chosen = {key: value for key, value in {**defaults, **config}.items() if value is not None}
        self.file(f"models/{name}.sql", "{{ config(**" + repr(chosen) + ") }}\n" + sql + "\n")

    def dbt(self, *arguments: str) -> Run:
        """Run a dbt command in this project."""
        lines: list[str] = []
        warnings: list[str] = []
        shown: list[str] = []

        def keep(event: EventMsg) -> None:
            lines.append(event.info.msg)
            if event.info.level == "warn":
                warnings.append(_MARK.sub("", event.info.msg))
            if event.info.level != "debug":
                shown.append(event.info.msg)

        # dbt sums up those of all commands of a process, which has one command outside of tests.
        reset_deprecations()
        artifacts = ["--write-json"] if self.writes_artifacts else []
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            result = dbtRunner(callbacks=[keep]).invoke(
                [
                    *arguments,
                    *artifacts,
                    "--project-dir",
                    str(self.folder),
                    "--profiles-dir",
                    str(self.folder),
                ]
            )
        finally:
            os.chdir(before)
        return Run(result, "\n".join(lines), warnings, shown)

    def run(self, *arguments: str) -> Run:
        """``dbt run``, which has to succeed."""
        run = self.dbt("run", *arguments)
        assert run.success, run.message or run.log
        return run

    def fail(self, *arguments: str) -> Run:
        """``dbt run``, which has to fail."""
        run = self.dbt("run", *arguments)
        assert not run.success, run.log
        return run

    def relation(self, name: str = "t") -> str:
        """The rendered name of a table."""
        return f"{self._rendered_schema}.`{name}`"

    def table(self, name: str = "t") -> Table:
        """The table, read by PyIceberg from the catalog now."""
        return self._lake.load_table((*self._namespace, name))

    def tables(self) -> list[str]:
        """The names of all Iceberg tables in the schema: a staged batch would be among them."""
        return sorted(identifier[-1] for identifier in self._lake.list_tables(self._namespace))

    def columns(self, name: str = "t") -> list[str]:
        """The column names in table order."""
        return [field.name for field in self.table(name).schema().fields]

    def at(self, name: str = "t") -> dict[str, Any]:
        """Where a table is, as a response has it."""
        metadata = self.table(name).metadata
        return {"schema_id": metadata.current_schema_id, "snapshot_id": str(metadata.current_snapshot_id)}

    def types(self, name: str = "t") -> dict[str, str]:
        """The Iceberg type of each column, as text."""
        return {field.name: str(field.field_type) for field in self.table(name).schema().fields}

    def field_ids(self, name: str = "t") -> dict[str, int]:
        """The field id of each column."""
        return {field.name: field.field_id for field in self.table(name).schema().fields}

    def docs(self, name: str = "t") -> dict[str, str | None]:
        """The description of each column."""
        return {field.name: field.doc for field in self.table(name).schema().fields}

    def rows(self, name: str = "t") -> list[tuple[Any, ...]]:
        """All rows in table order of columns, sorted; NULL sorts first."""
        arrow = self.table(name).scan().to_arrow()
        rows = [tuple(row.values()) for row in arrow.to_pylist()]
        return sorted(rows, key=lambda row: [(value is not None, str(type(value)), value) for value in row])

    def schemas(self, name: str = "t") -> int:
        """How many schemas the table has had: a schema commit adds one."""
        return len(self.table(name).metadata.schemas)

    def snapshots(self, name: str = "t") -> list[int]:
        """The ids of all snapshots, oldest first."""
        return [snapshot.snapshot_id for snapshot in self.table(name).metadata.snapshots]

    def state(self, name: str = "t") -> tuple[Any, ...]:
        """All that a refused run must leave as it was: where the metadata is, and the rows."""
        return (self.table(name).metadata_location, self.rows(name))

    def clean_up(self) -> None:
        """Remove the schema and the project."""
        for row in self.sql(f"show views in {self._rendered_schema}") if self._exists() else ():
            self.sql(f"drop view {self.relation(row[1])}")
        for name in self.tables() if self._exists() else ():
            self.sql(f"drop table {self.relation(name)}")
        self.sql(f"drop schema if exists {self._rendered_schema}")
        shutil.rmtree(self.folder)

    def _exists(self) -> bool:
        return self._lake.namespace_exists(self._namespace)

    @property
    def _rendered_schema(self) -> str:
        return ".".join(f"`{name}`" for name in ("lake", *self._namespace))


def sort_rows(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Sort rows as ``Scenario.rows`` does."""
    return sorted(rows, key=lambda row: [(value is not None, str(type(value)), value) for value in row])
