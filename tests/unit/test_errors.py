"""Texts of errors: what is kept of an engine's answer, and the facts that our own exceptions keep."""

import pytest
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.sparkevolve import errors
from dbt.adapters.sparkevolve.errors import (
    AuditError,
    AuditFailure,
    ConnectionLostError,
    EvolutionRefusedError,
    PublishConflictError,
    PublishError,
    RepeatedKeyError,
    SparkEvolveError,
    StatementError,
    answer_of,
    is_snapshot_gone,
    short_message,
)
from dbt.adapters.sparkevolve.evolution.plan import Refusal

PY4J = """\
org.apache.iceberg.exceptions.ValidationException: Cannot find field 'x' in struct: struct<1: id: \
optional int>
\tat org.apache.iceberg.exceptions.ValidationException.check(ValidationException.java:49)
\tat org.apache.iceberg.expressions.NamedReference.bind(NamedReference.java:46)
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""

JOB = """\
org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 10.0 failed 1 times, \
most recent failure: Lost task 0.0 in stage 10.0 (TID 98) (node-1 executor driver): \
java.lang.IllegalArgumentException: Empty name
\tat org.apache.avro.Schema.validateName(Schema.java:1710)
\tat org.apache.spark.executor.Executor$TaskRunner.run(Executor.scala:876)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.$anonfun$abortStage$3(DAGScheduler.scala:3122)
Caused by: java.lang.IllegalArgumentException: Empty name
\tat org.apache.avro.Schema.validateName(Schema.java:1710)
\t... 3 more
"""

INTERNAL = """\
org.apache.spark.SparkException: [INTERNAL_ERROR] The Spark SQL phase optimization failed with an \
internal error. \
You hit a bug in Spark or the Spark plugins you use. SQLSTATE: XX000
\tat org.apache.spark.SparkException$.internalError(SparkException.scala:107)
Caused by: java.lang.RuntimeException: outer
\tat a.b.C.d(C.java:1)
\t... 5 more
Caused by: java.lang.NullPointerException: Cannot invoke "Object.hashCode()" because "key" is null
\tat java.base/java.util.Objects.hash(Objects.java:1)
"""

ANALYSIS = """\
[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `nope` cannot \
be resolved. \
Did you mean one of the following? [`id`, `x`]. SQLSTATE: 42703; line 1 pos 7;
'Project ['nope]
+- SubqueryAlias lake.db.t
   +- RelationV2[id#1, x#2] lake.db.t lake.db.t
"""

MISMATCH = """\
[DATATYPE_MISMATCH.INVALID_ORDERING_TYPE] Cannot resolve "(m <=> outer(d.m))" due to data type \
mismatch: The `<=>` \
does not support ordering on type "MAP<INT, INT>". SQLSTATE: 42K09; line 2 pos 97;
'DeleteFromTable exists#1436 []
:  +- 'Project [1 AS 1#1]
:     +- RelationV2[m#1]
"""

TREE = """\
[INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS] Cannot write to `lake`.`db`.`t`. SQLSTATE: 21S01;
Project [1 AS id#1]
+- OneRowRelation
"""

HIVE = """\
org.apache.hive.service.cli.HiveSQLException: Error running query: [TABLE_OR_VIEW_NOT_FOUND] \
org.apache.spark.sql.AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] The table or view `db`.`t` cannot be \
found. \
SQLSTATE: 42P01; line 1 pos 14;
'Project [*]
+- 'UnresolvedRelation [db, t], [], false

\tat org.apache.spark.sql.hive.thriftserver.HiveThriftServerErrors$.runningQueryError(X.scala:43)
\tat java.base/java.security.AccessController.doPrivileged(AccessController.java:712)
Caused by: org.apache.spark.sql.catalyst.ExtendedAnalysisException: [TABLE_OR_VIEW_NOT_FOUND] The table \
or view \
`db`.`t` cannot be found. SQLSTATE: 42P01; line 1 pos 14;
'Project [*]
+- 'UnresolvedRelation [db, t], [], false

\tat org.apache.spark.sql.catalyst.analysis.package$AnalysisErrorAt.tableNotFound(package.scala:92)
\t... 19 more
"""

PYSPARK = """\
[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0. SQLSTATE: 22012
== SQL (line 1, position 8) ==
select 1/0
       ^^^

JVM stacktrace:
org.apache.spark.SparkArithmeticException
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.divideByZeroError(QueryExecutionErrors.scala:203)
"""

CAUSE = """\
java.lang.RuntimeException: Failed to commit
\tat a.b.C.d(C.java:1)
Caused by: java.io.IOException: Failed to commit: no space left on device
\tat a.b.C.e(C.java:2)
"""


AWAITED = """\
org.apache.spark.SparkException: Exception thrown in awaitResult: \x20
Caused by: org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] no uuid: nope SQLSTATE: P0001
"""


@pytest.mark.parametrize(
    ("text", "short"),
    [
        pytest.param(AWAITED, "[USER_RAISED_EXCEPTION] no uuid: nope SQLSTATE: P0001", id="another thread"),
        pytest.param(
            f"org.apache.spark.SparkException: Exception thrown in awaitResult: {JOB}",
            "Empty name",
            id="a job of another thread",
        ),
        pytest.param(
            "org.apache.spark.SparkException: Exception thrown in awaitResult: ",
            "org.apache.spark.SparkException: Exception thrown in awaitResult:",
            id="nothing said",
        ),
        pytest.param(PY4J, "Cannot find field 'x' in struct: struct<1: id: optional int>", id="py4j"),
        pytest.param(JOB, "Empty name", id="failed job"),
        pytest.param(
            INTERNAL,
            "[INTERNAL_ERROR] The Spark SQL phase optimization failed with an internal error. You hit a "
            "bug in Spark "
            "or the Spark plugins you use. SQLSTATE: XX000\n"
            'Caused by: Cannot invoke "Object.hashCode()" because "key" is null',
            id="internal error",
        ),
        pytest.param(
            ANALYSIS,
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name "
            "`nope` cannot be "
            "resolved. Did you mean one of the following? [`id`, `x`]. SQLSTATE: 42703; line 1 pos 7",
            id="unresolved plan",
        ),
        pytest.param(
            MISMATCH,
            '[DATATYPE_MISMATCH.INVALID_ORDERING_TYPE] Cannot resolve "(m <=> outer(d.m))" due to data '
            "type mismatch: "
            'The `<=>` does not support ordering on type "MAP<INT, INT>". SQLSTATE: 42K09; line 2 pos 97',
            id="plan of a delete",
        ),
        pytest.param(
            TREE,
            "[INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS] Cannot write to `lake`.`db`.`t`. "
            "SQLSTATE: 21S01",
            id="resolved plan",
        ),
        pytest.param(
            HIVE,
            "[TABLE_OR_VIEW_NOT_FOUND] The table or view `db`.`t` cannot be found. SQLSTATE: 42P01; line "
            "1 pos 14",
            id="thrift",
        ),
        pytest.param(
            PYSPARK,
            "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0. SQLSTATE: "
            "22012\n"
            "== SQL (line 1, position 8) ==\nselect 1/0\n       ^^^",
            id="pyspark",
        ),
        pytest.param("HiveSQLException: Error running query: short", "short", id="bare class"),
        pytest.param("  padded \n", "padded", id="white space"),
        pytest.param("", "", id="empty"),
        pytest.param(
            "Two lines\nof it; and a second; sentence", "Two lines\nof it; and a second; sentence", id="lines"
        ),
        pytest.param("meet me\nat noon", "meet me\nat noon", id="a line that begins with at"),
    ],
)
def test_of_an_engines_answer_the_message_is_kept(text: str, short: str) -> None:
    assert short_message(text) == short


def test_a_cause_that_says_more_than_the_message_is_told() -> None:
    assert "no space left on device" in short_message(CAUSE)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (
            "cannot reach jdbc:postgresql://me:hidden@host:5432/db now",
            "cannot reach jdbc:postgresql://host:5432/db now",
        ),
        ("http://hidden@host and https://me:hidden@other/x", "http://host and https://other/x"),
        ("see https://docs.host/a@b and mail me@host", "see https://docs.host/a@b and mail me@host"),
        ("two //me@host", "two //me@host"),
    ],
)
def test_a_user_and_password_in_a_url_are_cut_out(text: str, short: str) -> None:
    assert short_message(text) == short


def test_a_password_with_characters_of_a_url_is_cut_out_whole() -> None:
    assert "hidden" not in short_message("no connection to postgresql://me:hid@hidden@host/db")


def test_a_long_message_is_cut() -> None:
    assert short_message("x" * 2000) == "x" * 2000
    assert short_message("x" * 2001) == "x" * 2000 + " ..."


def test_a_refused_evolution_lists_each_refusal() -> None:
    refusals = [
        Refusal(("a",), "A is wrong.", "Mend it."),
        Refusal(("b",), "B is, too.", "Leave it.", ("int",)),
    ]
    error = EvolutionRefusedError("`lake`.`db`.`t`", refusals)
    assert error.msg == (
        "The batch cannot be loaded into `lake`.`db`.`t`, and nothing was written to it:\n"
        "  * A is wrong. Mend it.\n"
        "  * B is, too. Leave it."
    )
    assert error.relation == "`lake`.`db`.`t`"
    assert (error.refusals, error.changed) == (tuple(refusals), ())
    again = EvolutionRefusedError("`t`", refusals[:1], changed=["add column `n` int", "rename `a` to `b`"])
    assert again.msg == (
        "The batch cannot be loaded into `t`, and no row was written to it. This run has changed its columns "
        "before (add column `n` int; rename `a` to `b`), and that stays:\n  * A is wrong. Mend it."
    )
    assert again.changed == ("add column `n` int", "rename `a` to `b`")


def test_a_lost_connection_says_that_the_fate_of_the_statement_is_not_known() -> None:
    error = ConnectionLostError("INSERT INTO t", "BrokenPipeError: gone")
    assert error.msg == (
        "The connection to Spark was lost while a statement ran (BrokenPipeError: gone). The server may "
        "still be "
        "running it, so it was not sent again: look at the table, then run the model again."
    )
    assert error.statement == "INSERT INTO t"


def test_a_failed_statement_is_a_database_error_and_keeps_its_text() -> None:
    error = StatementError("no such table", "select 1")
    assert isinstance(error, DbtDatabaseError)
    assert error.msg == "no such table"
    assert error.statement == "select 1"


@pytest.mark.parametrize(
    "answer",
    ["Java heap space", "Job aborted: java.lang.OutOfMemoryError: x", "GC overhead limit exceeded"],
)
def test_spark_s_lack_of_memory_is_said_in_plain_words(answer: str) -> None:
    error = StatementError(answer, "select 1")
    assert error.msg == (
        f"{answer}\nSpark ran out of memory. Give it more (`spark.driver.memory`, in `spark_config` with "
        "`method: session`), or look at what the query collects into one row or one task."
    )
    assert error.statement == "select 1"


def test_every_error_of_ours_is_one_that_dbt_shows() -> None:
    own = [e for e in vars(errors).values() if isinstance(e, type) and e.__module__ == errors.__name__]
    raised = [error for error in own if issubclass(error, BaseException)]
    assert {kind.__name__ for kind in own if kind not in raised} == {"AuditFailure"}
    assert len(raised) > 10
    assert all(issubclass(error, SparkEvolveError | DbtRuntimeError) for error in raised)


def test_an_evolution_that_a_full_refresh_was_refused_names_the_way_out() -> None:
    refusals = [Refusal(("a",), "A is wrong.", "Mend it.")]
    error = EvolutionRefusedError("`lake`.`db`.`t`", refusals, is_full_refresh=True)
    assert error.msg == (
        "The batch cannot be loaded into `lake`.`db`.`t`, and nothing was written to it:\n"
        "  * A is wrong. Mend it.\n"
        "With `full_refresh_schema: replace` the full refresh takes the model's columns as they are, and no "
        "others."
    )
    assert error.refusals == tuple(refusals)


def test_a_publication_that_always_met_others_says_how_often_it_was_tried() -> None:
    error = PublishConflictError("`lake`.`db`.`t`", 5)
    assert error.msg == (
        "The batch was loaded into `lake`.`db`.`t` 5 times, and each time other writers had committed to the "
        "table meanwhile, so it was not published: it would have undone what they did. The table's rows are "
        "theirs, none of this run's is visible. Run the model again when the table is quieter, or raise "
        "`commit_retries`."
    )
    assert (error.relation, error.attempts) == ("`lake`.`db`.`t`", 5)
    assert (
        "`t` once, and other writers had committed to the table meanwhile,"
        in PublishConflictError("`t`", 1).msg
    )


def test_a_batch_whose_base_expired_was_not_loaded() -> None:
    error = PublishConflictError("`lake`.`db`.`t`", 2, is_loaded=False)
    assert error.msg == (
        "It was tried to load the batch into `lake`.`db`.`t` 2 times, and each time other writers had "
        "committed to the table meanwhile, and the snapshot that the run had started from had expired. The "
        "table's rows are theirs, none of this run's is visible. Run the model again when the table is "
        "quieter, or raise `commit_retries`."
    )
    assert not error.is_loaded


@pytest.mark.parametrize(
    "text",
    ["last snapshot log entry at 1764345900000", "the latest metadata log entry timestamp 1764345900000"],
)
def test_clocks_that_differ_are_both_named(text: str) -> None:
    answer = f"Invalid update timestamp 1764345600000: before {text}"
    assert StatementError(answer, "insert").msg == (
        f"{answer}\nSpark's clock says 2025-11-28T16:00:00+00:00, and somebody has committed to the table at "
        "2025-11-28T16:05:00+00:00: Iceberg refuses a commit that is more than a minute behind the last one. "
        "Set the clock that is wrong; if it was the other one, commits succeed again from that time on."
    )


@pytest.mark.parametrize("wrong", ["1764355000000000", "99999999999999999999"])
def test_a_time_that_no_calendar_has_is_named_as_it_is(wrong: str) -> None:
    """Microseconds, which some writers take for milliseconds."""
    answer = f"Invalid update timestamp 1764345600000: before last updated timestamp {wrong}"
    message = StatementError(answer, "insert").msg
    assert f"somebody has committed to the table at {wrong} ms after 1970: Iceberg refuses" in message


@pytest.mark.parametrize("log", ["snapshot", "previous metadata"])
def test_a_table_that_a_clock_has_made_unreadable_says_what_helps(log: str) -> None:
    answer = f"[BUG] Expected sorted {log} log entries."
    assert StatementError(answer, "select").msg == (
        f"{answer}\nSomebody has committed to the table with a clock that was behind, and Iceberg cannot "
        "read that. An older metadata file of the table can be registered in the catalog instead."
    )


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("Cannot set sparkevolve_x to unknown snapshot: 7", True),
        ("Cannot find snapshot with ID 7", True),
        ("Cannot commit: stale table metadata", False),
    ],
)
def test_a_snapshot_that_has_expired_is_told_by_its_words(message: str, answer: bool) -> None:
    assert is_snapshot_gone(message) is answer


def test_a_publication_that_was_refused_keeps_the_answer() -> None:
    text = (
        "The batch was loaded into a branch of `lake`.`db`.`t` but could not be published. The catalog's "
        "answer: disk full. "
    )
    error = PublishError("`lake`.`db`.`t`", "disk full")
    assert error.msg == f"{text}Readers see the table as it was before; run again."
    assert (error.relation, error.snapshot_id) == ("`lake`.`db`.`t`", None)
    unknown = PublishError("`lake`.`db`.`t`", "disk full", 7)
    assert unknown.msg == (
        f"{text}Whether it was published all the same is not known, since the answer to a commit was lost. "
        "It was if this has a row: SELECT * FROM `lake`.`db`.`t`.history WHERE snapshot_id = 7. Running the "
        "model again is safe then too, unless it appends: its rows would be there twice."
    )
    assert (unknown.snapshot_id, unknown.ref) == (7, "main")
    assert "It was if snapshot 7 is the head of the branch audit, or an ancestor of it. Running" in str(
        PublishError("`t`", "disk full", 7, "audit").msg
    )


def test_audits_that_rows_fail_are_listed_with_some_of_the_rows() -> None:
    failures = [
        AuditFailure("x > 0", 1, ("id", "x"), (("7", None),)),
        AuditFailure("y is not null", 12, ("id",), (("1",), ("",), ("it's",))),
    ]
    error = AuditError("`lake`.`db`.`t`", failures)
    assert error.msg == (
        "The batch of `lake`.`db`.`t` was not published, since rows in it do not satisfy the model's audits. "
        "The rows of the table are as they were.\n"
        "  * x > 0: 1 row, such as id = 7, x = NULL\n"
        "  * y is not null: 12 rows, such as id = 1; id = ; id = it's"
    )
    assert error.relation == "`lake`.`db`.`t`"
    assert error.failures == tuple(failures)


def test_keys_that_are_repeated_are_shown_with_their_number() -> None:
    error = RepeatedKeyError("`lake`.`db`.`t`", ["Id", "day"], [["1", None, "2"], ["2", "x", "3"]])
    assert error.msg == (
        "The model returns several rows with the same unique_key, and `merge` cannot tell which of them is "
        "to update `lake`.`db`.`t`: Id = 1, day = NULL (2 rows); Id = 2, day = x (3 rows). No row was "
        "written. Return one row for each key, or use `incremental_strategy: delete+insert`, which replaces "
        "all rows of a key by those returned."
    )
    assert error.relation == "`lake`.`db`.`t`"
    assert error.unique_key == ("Id", "day")
    assert error.examples == (("1", None, "2"), ("2", "x", "3"))


def test_an_exception_without_a_text_is_told_by_its_class() -> None:
    assert answer_of(TimeoutError()) == "TimeoutError"
    assert answer_of(OSError("disk full")) == "disk full"
