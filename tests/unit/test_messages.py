"""What the texts of other programs mean, and what of them a person reads."""

import socket
import sqlite3
from collections.abc import Callable

import pytest
from pyiceberg.exceptions import CommitFailedException, ServiceUnavailableError, TooManyRequestsError
from sqlalchemy.exc import InternalError, OperationalError

from dbt.adapters.sparkevolve import messages
from dbt.adapters.sparkevolve.messages import (
    answer_of,
    is_conflict_in_pyiceberg,
    is_snapshot_gone,
    located,
    may_be_outage_in_spark,
    outage,
    refusal,
    server_message,
    short_message,
)

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

# Iceberg's client of a REST catalog, whose connection was lost after it had sent a commit.
NO_ANSWER = (
    "org.apache.spark.SparkException: Writing job aborted\n"
    "Caused by: org.apache.iceberg.exceptions.RESTException: Error occurred while processing POST request"
)

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
        pytest.param(
            "java.lang.NoClassDefFoundError: org/apache/iceberg/rest.ListResponse\n"
            "\tat org.apache.iceberg.rest.RESTSessionCatalog.listTables(RESTSessionCatalog.java:1)\n"
            "Caused by: java.lang.ClassNotFoundException: org.apache.iceberg.rest.ListResponse\n"
            "\t... 9 more",
            "java.lang.NoClassDefFoundError: org/apache/iceberg/rest.ListResponse\n"
            "Caused by: java.lang.ClassNotFoundException: org.apache.iceberg.rest.ListResponse",
            id="a class that is not found",
        ),
        pytest.param(
            "java.net.UnknownHostException: catalog.internal",
            "java.net.UnknownHostException: catalog.internal",
            id="nothing but a name",
        ),
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


def test_an_exception_without_a_text_is_told_by_its_class() -> None:
    assert answer_of(TimeoutError()) == "TimeoutError"
    assert answer_of(OSError("disk full")) == "disk full"


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


def operational(text: str) -> Exception:
    return OperationalError("SELECT 1", {}, RuntimeError(text))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (operational("could not translate host name"), "its name cannot be resolved"),
        (operational("FATAL:  the database system is starting up"), "it is starting or stopping"),
        (operational("server closed the connection unexpectedly"), "it closed the connection"),
        (operational("unable to open database file"), "its file cannot be opened"),
        # PyMySQL, mysqlclient, psycopg 3.
        (operational("(2013, 'Lost connection to MySQL server during query')"), "it closed the connection"),
        (
            operational("(2006, 'MySQL server has gone away (BrokenPipeError(32))')"),
            "it closed the connection",
        ),
        (operational("(2006, '')"), "it closed the connection"),
        (operational("(1927, 'Connection was killed')"), "it closed the connection"),
        (operational("(0, '')"), "it closed the connection"),
        (operational("the connection is lost"), "it closed the connection"),
        (operational("(2013, 'Lost connection … during query (timed out)')"), "it does not answer"),
        (operational("(1053, 'Server shutdown in progress')"), "it is starting or stopping"),
        (operational("FATAL:  the database system is in recovery mode"), "it is starting or stopping"),
        (
            operational("FATAL:  terminating connection due to administrator command"),
            "it is starting or stopping",
        ),
        (operational("(1040, 'Too many connections')"), "it takes no more connections"),
        (operational("FATAL:  sorry, too many clients already"), "it takes no more connections"),
        (
            InternalError("COMMIT", {}, RuntimeError("other words"), connection_invalidated=True),
            "it closed the connection",
        ),
        (operational("(1317, 'Query execution was interrupted')"), None),
        # What was asked says nothing of why there is no answer.
        (OperationalError("SELECT 'timed out'", {"name": "refused"}, RuntimeError("no such table")), None),
        (operational("database is locked"), "another program has locked its file"),
        (operational('FATAL:  password authentication failed for user "me"'), None),
        (ConnectionRefusedError(111, "x"), "it refuses connections"),
        (ConnectionResetError(104, "x"), "it closed the connection"),
        (TimeoutError("x"), "it does not answer"),
        (socket.gaierror(-2, "x"), "its name cannot be resolved"),
        (FileNotFoundError("connection refused"), None),
        (ValueError("connection refused"), None),
    ],
)
def test_what_is_an_outage(error: Exception, reason: str | None) -> None:
    assert outage(error) == reason


@pytest.mark.parametrize(("status", "reason"), [(503, "it answers with HTTP 503"), (500, None), (404, None)])
def test_an_answer_is_an_outage_only_if_a_gateway_gives_it(status: int, reason: str | None) -> None:
    from pyiceberg.exceptions import ServerError
    from requests import HTTPError, Response

    response = Response()
    response.status_code = status
    error = ServerError("x")
    error.__cause__ = HTTPError("connection refused", response=response)
    assert outage(error) == reason


def test_a_refusal_is_no_outage() -> None:
    error = operational('connection to server failed: FATAL:  password authentication failed for user "me"\n')
    assert refusal(error) == 'password authentication failed for user "me"'
    assert refusal(sqlite3.OperationalError("no")) == "its file cannot be opened (no)"
    assert refusal(ValueError("no")) is None


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("org.apache.iceberg.jdbc.UncheckedSQLException: Failed to connect: jdbc:postgresql", True),
        ("Connect to http://h:1 [h/127.0.0.1] failed: Connection refused", True),
        ("Service unavailable: busy", True),
        ("Error occurred while processing POST request\nCaused by: h:1 failed to respond", True),
        ("[TABLE_OR_VIEW_NOT_FOUND] The table or view `t` cannot be found.", False),
    ],
)
def test_what_may_be_an_outage_in_spark(message: str, expected: bool) -> None:
    assert may_be_outage_in_spark(message) == expected


class _Status:
    errorMessage = "told by the server"


class _Response:
    status = _Status()


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RuntimeError(_Response()), "told by the server"),
        (RuntimeError("plain"), "plain"),
        (RuntimeError(), ""),
        (OSError(111, "refused"), "[Errno 111] refused"),
    ],
)
def test_the_message_of_an_exception_is_the_servers_if_it_has_one(error: Exception, text: str) -> None:
    assert server_message(error) == text


@pytest.mark.parametrize(
    ("tells", "text"),
    [
        (messages.is_spark_stopped, "Job 3 cancelled because SparkContext was shut down"),
        (messages.is_spark_stopped, "Cannot call methods on a stopped SparkContext."),
        (messages.is_grant_unknown, "Operation not allowed: GRANT(line 1, pos 8)"),
        (
            messages.is_grant_unknown,
            "[INVALID_STATEMENT_OR_CLAUSE] The statement or clause: GRANT is not valid. SQLSTATE: 42601",
        ),
        (messages.is_relation_not_found, "[TABLE_OR_VIEW_NOT_FOUND] The table or view `t` cannot be found."),
        (messages.is_relation_not_found, "Table or view not found: lake.db.t"),
        (messages.has_nothing_to_list, "[SCHEMA_NOT_FOUND] The schema `lake`.`db` cannot be found."),
        (messages.has_nothing_to_list, "Namespace does not exist: db"),
        (
            messages.has_nothing_to_list,
            "[MISSING_CATALOG_ABILITY.VIEWS] Catalog `lake` does not support views.",
        ),
        (
            messages.is_merge_ambiguous,
            "[MERGE_CARDINALITY_VIOLATION] The ON search condition of the MERGE statement matched",
        ),
        (messages.is_without_answer, "Answer from Java side is empty"),
        (messages.is_conflict_in_spark, "Cannot commit: stale table metadata"),
        (
            messages.is_conflict_in_spark,
            "Requirement failed: branch main has changed: expected id 1 != 2; Commit failed",
        ),
        (messages.is_conflict_in_spark, "Cannot use branch (does not exist): sparkevolve_x"),
        (messages.is_conflict_in_spark, "Failed to update table shop.t from catalog lake"),
        (
            messages.is_conflict_in_spark,
            "bad gateway\nCannot determine whether the commit was successful or not",
        ),
        (messages.is_conflict_in_spark, "[SQLITE_BUSY] The database file is locked (database is locked)"),
        (messages.is_conflict_in_spark, "Metadata location db/t/v1.json\nto write has changed"),
        (
            messages.is_conflict_in_spark,
            "Found conflicting files that can contain records matching true: [f]",
        ),
        (messages.is_conflict_in_spark, "Found new conflicting delete files that can apply to records: [f]"),
        (messages.is_conflict_in_spark, "Missing required files to delete: file:/lake/t/f.parquet"),
        (messages.is_log_unsorted, "[BUG] Expected sorted snapshot log entries."),
        (messages.is_name_not_found, PY4J),
        (
            messages.is_commit_unknown,
            "org.apache.iceberg.exceptions.CommitStateUnknownException: timed out",
        ),
        (messages.is_commit_unknown, NO_ANSWER),
        (messages.is_commit_unknown, "Caused by: UncheckedSQLException: Database Connection failed"),
        (messages.is_commit_unknown, "Caused by: UncheckedSQLException: Database Connection timeout"),
        (messages.is_commit_unknown, "Caused by: UncheckedSQLException: Unknown failure\nCaused by: EOF"),
    ],
)
def test_what_a_text_means(tells: Callable[[str], bool], text: str) -> None:
    """That of one sign, and of none of the others."""
    others = {messages.is_spark_stopped, messages.is_grant_unknown, messages.is_relation_not_found}
    others |= {messages.has_nothing_to_list, messages.is_merge_ambiguous, messages.is_conflict_in_spark}
    others |= {messages.is_log_unsorted, messages.is_out_of_memory, messages.is_snapshot_gone}
    others |= {messages.is_name_not_found}
    assert tells(text)
    if tells is messages.is_commit_unknown:
        # A step of a load is done again after that too, on a new branch.
        others -= {messages.is_conflict_in_spark}
    assert [other.__name__ for other in others - {tells} if other(text)] == []
    assert not tells("An error occurred while calling o1.sql. Trace:\npy4j.Py4JException: no such method")


def test_of_a_locked_sqlite_it_is_known_that_it_has_committed_nothing() -> None:
    text = (
        "UncheckedSQLException: Unknown failure\nCaused by: org.sqlite.SQLiteException: [SQLITE_BUSY] locked"
    )
    assert messages.is_conflict_in_spark(text)
    assert not messages.is_commit_unknown(text)


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("Commit failed: Timed out after 2034 ms waiting for lock on shop.orders", ("shop", "orders")),
        ("(last answer: Timed out after 9 ms waiting for lock on shop.orders_2). None", ("shop", "orders_2")),
        ("Timed out after 9 ms waiting for lock on shop.orders.\nThe catalog", ("shop", "orders")),
        ("Could not acquire the lock on shop.orders, lock request ended in state ABORT", ("shop", "orders")),
        ("Failed to acquire lock for ('shop', 'orders'), state: 2", ("shop", "orders")),
        ("Timed out after 2034 ms", None),
    ],
)
def test_a_lock_that_somebody_holds_is_no_conflict(text: str, table: tuple[str, str] | None) -> None:
    assert messages.table_of_held_lock(text) == table
    assert not messages.is_conflict_in_spark(text)


@pytest.mark.parametrize(
    ("cause", "is_unknown"),
    [
        ("org.postgresql.util.PSQLException: ERROR: permission denied for table iceberg_tables", False),
        ("org.postgresql.util.PSQLException: ERROR: cannot execute UPDATE in a read-only transaction", False),
        ('org.postgresql.util.PSQLException: FATAL: password authentication failed for user "x"', False),
        ("org.postgresql.util.PSQLException: An I/O error occurred while sending to the backend.", True),
        ("org.postgresql.util.PSQLException: FATAL: terminating connection due to …", True),
        ("java.sql.SQLSyntaxErrorException: (conn=21) UPDATE command denied to user 'x'@'y'", False),
        ("java.sql.SQLInvalidAuthorizationSpecException: Access denied for user 'x'@'y'", False),
        ("java.sql.SQLException: (conn=5) The server is running with the --read-only option", False),
        ("java.sql.SQLException: (conn=5) Socket error", True),
    ],
)
def test_a_database_that_has_refused_has_committed_nothing(cause: str, is_unknown: bool) -> None:
    text = f"org.apache.iceberg.jdbc.UncheckedSQLException: Unknown failure\nCaused by: {cause}"
    assert messages.is_commit_unknown(text) is is_unknown
    assert messages.is_database_answer_in_spark(short_message(text))
    assert may_be_outage_in_spark(short_message(text))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CommitFailedException("Requirement failed"), True),
        (TooManyRequestsError("later"), True),
        (ServiceUnavailableError("later"), True),
        (ValueError("Cannot add snapshot with sequence number 3 older than last sequence number 3"), True),
        (ValueError("Cannot add a column"), False),
        (RuntimeError("Cannot add snapshot with sequence number 3"), False),
    ],
)
def test_what_is_a_conflict_for_pyiceberg(error: Exception, expected: bool) -> None:
    assert is_conflict_in_pyiceberg(error) is expected


def test_pyhive_s_failure_to_read_a_result_without_columns_is_told() -> None:
    with pytest.raises(TypeError) as raised:
        list(None)  # type: ignore[call-overload]  # what PyHive does with the columns of such a result
    assert messages.is_result_without_columns(raised.value)
    assert not messages.is_result_without_columns(TypeError("unsupported operand"))


LONG = "\n".join(f"  column_{n} as c{n}," for n in range(400))


def test_of_a_statement_that_spark_quotes_the_lines_around_the_marker_are_kept() -> None:
    text = (
        "[PARSE_SYNTAX_ERROR] Syntax error at or near '3'. SQLSTATE: 42601 (line 402, pos 4)\n\n"
        f"== SQL ==\nselect\n{LONG}\n  2 3 4 as b\n----^^^\nfrom t\n"
    )
    assert short_message(text) == (
        "[PARSE_SYNTAX_ERROR] Syntax error at or near '3'. SQLSTATE: 42601 (line 402, pos 4)\n\n"
        "== SQL ==\n…\n  column_398 as c398,\n  column_399 as c399,\n  2 3 4 as b\n----^^^\n…"
    )
    value = (
        "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n"
        "== SQL (line 1, position 8) ==\nselect 1/0\n       ^^^"
    )
    assert short_message(value + "\n\n\tat org.apache.spark.sql.X(Y.scala:1)\n") == value


def test_a_name_that_is_wrong_is_shown_where_it_stands() -> None:
    """Spark says in which line, and does not quote it."""
    message = "[UNRESOLVED_COLUMN] `nope` cannot be resolved. SQLSTATE: 42703; line 2 pos 6"
    assert located(message, "select id from t\nwhere nope = 1\n") == (
        f"{message}\n== SQL (line 2) ==\nwhere nope = 1\n------^^^"
    )
    far = located(message.replace("pos 6", "pos 306"), "select\n" + "x" * 300 + "where nope")
    assert far.splitlines()[2:] == ["…" + "x" * 74 + "where nope", "-" * 81 + "^^^"]
    for other in ("nothing of a line", message.replace("line 2", "line 9"), f"{message}\n== SQL ==\nx"):
        assert located(other, "select 1\nwhere nope = 1") == other
