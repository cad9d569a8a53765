"""What is checked of a backfill before anything is written: its table, its texts, its value's type."""

from collections.abc import Sequence

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.errors import NOTHING_WRITTEN, OperationError, may_be_of_expression
from dbt.adapters.sparkevolve.evolution.history import names_of_others
from dbt.adapters.sparkevolve.evolution.names import fold, path_text
from dbt.adapters.sparkevolve.evolution.policy import Condition
from dbt.adapters.sparkevolve.evolution.table_properties import UPDATE_MODE, allows_mode
from dbt.adapters.sparkevolve.evolution.types import fields_within, named_by_sql, type_text
from dbt.adapters.sparkevolve.iceberg.base import Base
from dbt.adapters.sparkevolve.iceberg.branch_names import refused_names
from dbt.adapters.sparkevolve.iceberg.catalog import LoadedTable
from dbt.adapters.sparkevolve.load.backfill_batch import Arguments
from dbt.adapters.sparkevolve.load.queries import type_of_value
from dbt.adapters.sparkevolve.messages import planning_problem
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.spark.interface import Spark
from dbt.adapters.sparkevolve.sql import backfill as sql
from dbt.adapters.sparkevolve.sql import branch_statements, spark_types, splitting
from dbt.adapters.sparkevolve.sql.mentions import mentions
from dbt.adapters.sparkevolve.warning import warn


class BackfillChecks:
    """Checks what a user has asked for; each method raises an ``OperationError`` that says what is wrong.

    Args:
        spark: where it runs.
        target: the table.
        given: what the user has asked for.
    """

    def __init__(self, spark: Spark, target: SparkEvolveRelation, given: Arguments) -> None:
        self._spark = spark
        self._target = target
        self._given = given

    def table(self, table: LoadedTable) -> None:
        """See whether Spark can update rows of the table."""
        version = table.metadata.format_version
        if not allows_mode(UPDATE_MODE, table.properties, version):
            raise OperationError(
                f"{self._target} has Iceberg's format version 1 and `{UPDATE_MODE}` = 'merge-on-read', for "
                "which Iceberg needs version 2, so Spark can update no rows of it. Set the mode to "
                "copy-on-write, or upgrade the table: `ALTER TABLE … SET TBLPROPERTIES ('format-version' = "
                "'2')`. Nothing was written."
            )

    def texts(self) -> None:
        """See whether Spark can read the texts of a user as what they are to be."""
        given = self._given
        for name, text in (("value", given.value), ("where", given.where)):
            problem = splitting.expression_problem(text) if text or name == "value" else ""
            if problem:
                raise OperationError(
                    f"`{name}` is not one SQL expression: {problem}. It is: {text}\nNothing was written."
                )
        self._spark.run(branch_statements.refresh_table(str(self._target)))
        if given.where:
            self._analyse("where", sql.rows_query(str(self._target), given.where))
        # As a condition, since an aggregate or a window function is refused there.
        self._analyse("value", sql.rows_query(str(self._target), f"({given.value}\n) IS NULL"))

    def branch(self, base: Base, field_id: int, batched_by: Sequence[int]) -> None:
        """See whether Iceberg can look for rows in the branch that is filled by all that it has to.

        By the column itself, too, since that may have to be NULL.

        Args:
            base: what is filled.
            field_id: the column's id.
            batched_by: the ids of the columns that ``batch_by`` names.
        """
        struct = base.table.schema().as_struct()
        named = [("`where`", m.path) for m in mentions(self._given.where) if m.is_of_table]
        for path, f in fields_within(struct):
            if f.field_id in batched_by:
                named.append(("`batch_by`", named_by_sql(struct, path)))
            if f.field_id == field_id and self._given.only_null:
                named.append(("`column`", named_by_sql(struct, path)))
        for refusal in refused_names(base, str(self._target), named):
            raise OperationError(f"{refusal} {NOTHING_WRITTEN[0]}")

    def names(self, table: LoadedTable, batched_by: Sequence[int]) -> None:
        """Warn of columns in a user's texts that older rows are without: another one had the name by then.

        Args:
            table: the table.
            batched_by: the ids of the columns that ``batch_by`` names.
        """
        schema = table.schema()
        others = names_of_others(table.metadata.schemas, schema)
        if not others:
            return
        value, condition = (
            Condition(text, mentions(text)) for text in (self._given.value, self._given.where)
        )
        for path, f in fields_within(schema.as_struct()):
            if f.field_id not in others:
                continue
            other = others[f.field_id]
            has_default = f.initial_default is not None
            is_read = "its default" if has_default else "NULL"
            uses = []
            named, old = named_by_sql(schema.as_struct(), path), fold(other[-1])
            if value.needs(named, old, is_null=False):
                uses.append((f"value` ({value.text.strip()}) names", "what they get is made of that"))
            if condition.needs(named, old, is_null=not has_default and len(named) == len(path)):
                uses.append((f"where` ({condition.text.strip()}) names", "`where` may leave them out"))
            if f.field_id in batched_by:
                uses.append(("batch_by` names", "they are all in one batch"))
            for use, effect in uses:
                warn(
                    f"{self._target}: `{use} {path_text(path)}, a name that {path_text(other)} had before: "
                    f"in rows from then it is {is_read} unless they were filled since, so that {effect}."
                )

    def _analyse(self, argument: str, query: str) -> None:
        try:
            self._spark.columns_of(spark_types.no_rows(query))
        except DbtRuntimeError as exc:
            if not may_be_of_expression(exc):
                raise
            raise self._unreadable(argument, str(exc.msg)) from exc

    def _unreadable(self, argument: str, message: str, *, is_both: bool = False) -> OperationError:
        text = self._given.value if argument == "value" else self._given.where
        names = f"`{argument}`"
        if is_both and self._given.where:
            # Spark has read them together.
            names, text = "`value` or `where`", f"{text}\nwhere {self._given.where}"
        return OperationError(
            f"{names} cannot be used as an expression of a row of {self._target}: "
            f"{_first_line(message)}\nIt is: {text}{_lost_quotes(text)}\nNothing was written."
        )

    def conversion(self, column: sql.Column) -> sql.Conversion:
        """Return how the value becomes one of the column's type, once Spark has read the whole UPDATE."""
        given = self._given
        source = type_of_value(self._spark, self._target, sql.value_query(str(self._target), given.value))
        found = sql.conversion(source, column.type)
        if found is None:
            raise OperationError(
                f"`value` is of another type than {path_text(column.path)} of {self._target}, which is "
                f"{type_text(column.type)}, and there is no cast between them that keeps each value or "
                f"fails. Say it in `value`, such as `CAST(… AS {type_text(column.type)})`. Nothing was "
                "written."
            )
        conditions = sql.row_conditions(column, given.where, only_null=given.only_null)
        update = sql.update_statement(
            str(self._target), column, checked_value(column, given.value, found), conditions
        )
        problem = planning_problem("\n".join(str(row[0]) for row in self._spark.rows(f"EXPLAIN {update}")))
        if problem:
            raise self._unreadable("value", problem, is_both=True)
        return found


def checked_value(column: sql.Column, value: str, convert: sql.Conversion) -> str:
    """Return the SQL of the new value of a column, which fails where something of a value would be lost."""
    what = f"A value does not fit into {path_text(column.path)} ({type_text(column.type)}): "
    return convert.checked(value, what)


def _lost_quotes(text: str) -> str:
    """Return what to say of a text without quotes, in which a user may have written some."""
    if "'" in text or '"' in text:
        return ""
    return "\nIf it had quotes, the shell has taken them away: they stay if `--args` is in double quotes."


def _first_line(message: str) -> str:
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()]
    return lines[0].split(" SQLSTATE:")[0].rstrip(" .;") + "." if lines else "Spark gives no reason."
