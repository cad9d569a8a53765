"""What the error texts of other programs mean: of Spark, Iceberg, PyHive, py4j, PyIceberg, and databases.

Nothing else in this package looks into an error that another program wrote. Each function says whose text
it knows, and of which versions; ``docs/limits-of-others.md`` names the test that fails when it changes.
"""

import re
import socket
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from pydantic import ValidationError as InvalidModel
from pyiceberg.exceptions import CommitFailedException, ServiceUnavailableError, TooManyRequestsError

from dbt.adapters.sparkevolve.redaction import clean
from dbt.adapters.sparkevolve.times import iso_of

# The part of an answer that a person reads

# What a Spark server puts around the message: its own exception, the job's, the class of the one that
# matters (whose name in brackets follows again), the frames of the stack, the plan tree.
_FRAME = re.compile(r"^\s+(?:at [\w$.<>/]+\(|\.\.\. \d+ more|Suppressed: )|^JVM stacktrace:", re.MULTILINE)
_SERVER = re.compile(
    r"^(?:[\w.$]+(?:Exception|Error): +)?(?:Error running query|Failed to open new session): +"
)
# Of Spark's own threads, in front of the text of the cause, or with nothing but the cause after it.
_AWAIT = re.compile(r"^(?:[\w.$]+: +)?Exception thrown in awaitResult: *\n?")
_JOB = re.compile(
    r"^(?:[\w.$]+: )?Job aborted due to stage failure: .*?most recent failure: Lost task .*?"
    r"\(TID \d+\) \([^)]*\): ",
    re.DOTALL,
)
# It stays before a single word, such as the name of a class that is not found, which says nothing alone.
_CLASS = re.compile(r"^(?:\[[A-Z0-9_.]+\] )?(?:[a-z][\w$]*\.)+[A-Z]\w*(?:Exception|Error)\w*: *\n?(?=\S+\s)")
_PLAN = re.compile(r"(line \d+ pos \d+|SQLSTATE: \w{5});\n.*\Z", re.DOTALL)
# A statement that Spark quotes, to the end of the text or to what other parts of it begin with.
_QUOTED = re.compile(r"^(== SQL(?: \([^)\n]*\))? ==)\n(.*?)(?=\n\n?Caused by: |\Z)", re.DOTALL | re.MULTILINE)
_MARKER = re.compile(r"^[- ]*\^+\s*$")
_POSITION = re.compile(r"\bline (\d+),? pos (\d+)")
_LINES_BEFORE = 3
_LONGEST_LINE = 160
_LONGEST = 2000


def short_message(text: str) -> str:
    """Return the part of an engine's error text that a person reads, at most 2,000 characters.

    Stack traces and plan trees of Spark 3.5 to 4.1 are cut off, and secrets are masked. Of the statement that
    Spark quotes (``== SQL ==``), the lines around its marker are left. Where the message
    hides its cause (``[INTERNAL_ERROR] The Spark SQL phase optimization failed``), the last cause follows.
    """
    heads: list[str] = []
    for part in re.split(r"^Caused by: ", clean(text), flags=re.MULTILINE):
        head = _FRAME.split(part, maxsplit=1)[0].replace("\nDriver stacktrace:", "").strip()
        for noise in (_SERVER, _AWAIT, _JOB, _CLASS):
            head = noise.sub("", head, count=1)
        head = _PLAN.sub(r"\1", head).strip()
        if head and not any(head in known for known in heads):
            heads = [known for known in heads if known not in head] + [head]
    message = "\nCaused by: ".join(heads[:1] + heads[1:][-1:]) or clean(text).strip()
    message = _QUOTED.sub(_around_the_marker, message)
    return message if len(message) <= _LONGEST else message[:_LONGEST] + " ..."


def _around_the_marker(found: re.Match[str]) -> str:
    """Return a quoted statement with the lines around the marker only, which is below what is wrong."""
    lines = found[2].split("\n")
    markers = [number for number, line in enumerate(lines) if _MARKER.match(line)]
    if not markers:
        return found[0]
    first, last = max(0, markers[0] - _LINES_BEFORE), markers[-1] + 1
    kept = [_short_line(line) for line in lines[first:last]]
    return "\n".join([found[1], *(["…"] if first else []), *kept, *(["…"] if lines[last:] else [])])


def _short_line(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "…"


def located(message: str, sql: str) -> str:
    """Return an error's text with the line of the statement that it is about, if it says only its number.

    Spark 3.5 to 4.1 quote the statement where it cannot be parsed or where a value is wrong, but not where a
    name is: ``line 3 pos 8``, the latter from 0.
    """
    found = _POSITION.search(message)
    lines = sql.split("\n")
    if found is None or "== SQL" in message or not 0 < int(found[1]) <= len(lines):
        return message
    line, at = lines[int(found[1]) - 1], int(found[2])
    cut = max(0, at - _LONGEST_LINE // 2)
    shown = ("…" if cut else "") + _short_line(line[cut:])
    marker = "-" * (at - cut + (1 if cut else 0)) + "^^^"
    return f"{message}\n== SQL (line {found[1]}) ==\n{shown}\n{marker}"


def answer_of(exc: BaseException | None) -> str:
    """Return an exception's text, see ``short_message``, or the name of its class if it has none.

    Of a page that PyIceberg quotes whole, since it is no answer of a catalog, its first words are left, and
    of what a database says, its own words without the statement.
    """
    strange = _strange_answer(exc)
    if strange is None and exc is not None and _DATABASE in _class_names(exc):
        strange = str(getattr(exc, "orig", exc))
    return short_message(str(exc) if strange is None else strange) or type(exc).__name__


# Spark

_OUT_OF_MEMORY = re.compile("Java heap space|OutOfMemoryError|GC overhead limit exceeded")
_SHUT_DOWN = re.compile("SparkContext was shut ?down|SparkContext has been shutdown|stopped SparkContext")
# Spark 3.5 in the first way, 4 in the second.
_NO_GRANTS = re.compile(r"Operation not allowed: GRANT|INVALID_STATEMENT_OR_CLAUSE.*\bGRANT\b", re.DOTALL)
# Spark 4 in the first way, 3.5 in the second.
_PLANNING_FAILED = re.compile(
    r"Error occurred during query planning[: \n]*|\A== Physical Plan ==\n(?:[\w$]+\.)+\w*Exception: "
)
_NAME_NOT_FOUND = re.compile(
    "table or view ((?:`(?:[^`]|``)+`\\.){2,}`(?:[^`]|``)+`) cannot be found", re.IGNORECASE
)
_RELATION_NOT_FOUND = re.compile("TABLE_OR_VIEW_NOT_FOUND|Table or view not found", re.IGNORECASE)
_NOTHING_TO_LIST = ("SCHEMA_NOT_FOUND", "Namespace does not exist", "MISSING_CATALOG_ABILITY")


def is_out_of_memory(message: str) -> bool:
    """Tell whether a statement failed because Spark's Java had no memory left (Java 17 and 21).

    A Spark that has run out of memory may say so, or end before it can.
    """
    return _OUT_OF_MEMORY.search(message) is not None


def is_download_failed(message: str) -> bool:
    """Tell whether Spark has not started because a jar could not be downloaded (Spark 3.5 to 4.1)."""
    return "unresolved dependency" in message or "UNRESOLVED DEPENDENCIES" in message


def is_spark_stopped(message: str) -> bool:
    """Tell whether a call failed because Spark's context was stopped (Spark 3.5 to 4.1)."""
    return _SHUT_DOWN.search(message) is not None


def is_grant_unknown(message: str) -> bool:
    """Tell whether Spark's own parser has refused a GRANT, which it does not know (Spark 3.5 and 4)."""
    return _NO_GRANTS.search(message) is not None


def is_relation_not_found(message: str, name: str = "") -> bool:
    """Tell whether a statement names a table or view that is not there (Spark 3.5 and 4).

    Args:
        message: the text of the error.
        name: the rendered name of the one that is meant; empty for any. A line of the statement, which may be
            quoted behind, may name others, too.
    """
    return _RELATION_NOT_FOUND.search(message) is not None and name in message.partition("\n== SQL")[0]


def catalog_of_what_is_missing(message: str) -> str | None:
    """Return the first part of the name of a table or view that is not there, if it has three.

    Texts of Spark 3.5 and 4.
    """
    found = _NAME_NOT_FOUND.search(message)
    return None if found is None else re.split(r"(?<=`)\.(?=`)", found[1])[0][1:-1].replace("``", "`")


def is_type_unreturnable(message: str) -> bool:
    """Tell whether a Thrift server has a query of a type that it cannot return, such as VARIANT."""
    return "Unrecognized type name" in message


def has_nothing_to_list(message: str) -> bool:
    """Tell whether SHOW TABLES or VIEWS failed because there is no such schema, or the catalog has no views.

    Spark 3.4 and newer name the error's class; Iceberg's REST catalog says it in its own words.
    """
    return any(sign in message for sign in _NOTHING_TO_LIST)


def planning_problem(explained: str) -> str:
    """Return why Spark cannot plan a statement, by what it answers to its EXPLAIN; empty if it can."""
    marker = _PLANNING_FAILED.search(explained)
    return explained[marker.end() :] if marker else ""


def is_merge_ambiguous(message: str) -> bool:
    """Tell whether a MERGE failed because several rows match one of the table (Spark 3.5 and 4)."""
    return "MERGE_CARDINALITY_VIOLATION" in message


# py4j and PyHive


def is_without_answer(message: str) -> bool:
    """Tell whether the text of a plain ``Py4JError`` is of a call that Java has not answered (py4j 0.10.9).

    An answer has Java's trace in it, or comes as a class of its own.
    """
    return "Trace:" not in message


def server_message(exc: Exception) -> str:
    """Return the server's message in an exception of PyHive 0.7, or the exception's own text."""
    status = getattr(exc.args[0], "status", None) if exc.args else None
    return str(getattr(status, "errorMessage", None) or exc)


def is_result_without_columns(exc: TypeError) -> bool:
    """Tell whether PyHive 0.7 has failed to read a result without columns.

    Spark 3.5's server sends one after a statement that returns nothing.
    """
    return "'NoneType' object is not iterable" in str(exc)


# Iceberg, in Spark

# When somebody else has committed first, or has removed the branch of a run, or when it cannot tell who has.
_CONFLICT = re.compile(
    r"table metadata refresh is required|cannot commit|metadata location .* has changed|commit failed"
    r"|cannot use branch \(does not exist\)|stale table metadata|CommitFailedException"
    r"|failed to update table|CommitStateUnknownException|cannot determine whether the commit was successful"
    r"|SQLITE_BUSY|database is locked"
    # Of a statement that checks whether others have changed what it has read.
    r"|found (?:new )?conflicting (?:delete |deleted )?files|missing required files to delete",
    re.IGNORECASE | re.DOTALL,
)
_SNAPSHOT_GONE = re.compile(
    r"unknown snapshot|cannot find snapshot|snapshot .{0,40}does not exist", re.IGNORECASE
)
# Times in milliseconds since the epoch.
_CLOCKS = re.compile(r"Invalid update timestamp (\S+): before [a-z -]+ (\d\S*)")
_UNSORTED = re.compile("Expected sorted (?:snapshot|previous metadata) log entries")


def is_conflict_in_spark(message: str) -> bool:
    """Tell whether a statement failed because another writer committed to its table at the same time.

    Or because nobody knows whether it has committed itself: on another branch it can be done again all the
    same. The short text of an error has no longer the names of exceptions.

    Texts of Iceberg 1.10 to 1.12, and of the SQLite driver that its JDBC catalog uses.
    """
    return _CONFLICT.search(message) is not None and table_of_held_lock(message) is None


# Iceberg 1.10 to 1.12, and PyIceberg 0.12. What stands behind a name may be of the text around.
_LOCK_HELD = re.compile(
    r"Timed out after \d+ ms waiting for lock on ([^\s.]+)\.([^\s,]*\w)"
    r"|Could not acquire the lock on ([^\s.]+)\.([^\s,]*\w)"
    r"|Failed to acquire lock for \('([^']+)', '([^']+)'\)"
)


def table_of_held_lock(message: str) -> tuple[str, str] | None:
    """Return the schema and the table whose lock a Hive metastore has given to another, if that is it."""
    found = _LOCK_HELD.search(message)
    if found is None:
        return None
    schema, table = (part for part in found.groups() if part is not None)
    return schema, table


# A catalog that answered so, or none: one by REST whose connection was lost, and one in a database. Of what
# the drivers of PostgreSQL and MySQL say then, Iceberg knows nothing. A locked SQLite has committed nothing,
# nor has a database that has refused the statement, or who asks.
_REFUSED = (
    "SQLITE_BUSY|database is locked|PSQLException: ERROR:"
    "|FATAL: +(?:password authentication|no pg_hba|role |database |sorry, too many|remaining connection)"
    "|SQL(?:SyntaxError|InvalidAuthorizationSpec|IntegrityConstraintViolation|TransactionRollback)Exception"
    "|--read-only option|Access denied for user"
)
_COMMIT_UNKNOWN = re.compile(
    r"CommitStateUnknownException|error occurred while processing POST request"
    rf"|Database Connection (?:failed|timeout)|Unknown failure(?!.*(?:{_REFUSED}))",
    re.IGNORECASE | re.DOTALL,
)


def is_commit_unknown(message: str) -> bool:
    """Tell whether a catalog has not told whether it has made a commit (Iceberg 1.10 to 1.12).

    Args:
        message: the whole text of the error: the names of exceptions count.
    """
    return _COMMIT_UNKNOWN.search(message) is not None


def is_snapshot_gone(message: str) -> bool:
    """Tell whether a statement failed because the snapshot that it starts from has expired meanwhile.

    Texts of Iceberg 1.10 to 1.12.
    """
    return _SNAPSHOT_GONE.search(message) is not None


def is_name_not_found(message: str) -> bool:
    """Tell whether a statement failed because Iceberg knows no column of a name that is in a filter.

    Texts of Iceberg 1.10 to 1.12.
    """
    return "Cannot find field '" in message


def clocks_that_differ(message: str) -> tuple[str, str] | None:
    """Return Spark's time and the later one of another writer, if Iceberg refused a commit for them.

    Texts of Iceberg 1.10 to 1.12. A time that no calendar has is returned in milliseconds.
    """
    found = _CLOCKS.search(message)
    return None if found is None else (_moment(found[1]), _moment(found[2]))


def _moment(milliseconds: str) -> str:
    moment = iso_of(int(milliseconds)) if milliseconds.isdecimal() else None
    return moment or f"{milliseconds} ms after 1970"


def is_log_unsorted(message: str) -> bool:
    """Tell whether Iceberg (1.10 to 1.12) cannot read a table whose logs a wrong clock has mixed up."""
    return _UNSORTED.search(message) is not None


def is_metastore_too_new(message: str) -> bool:
    """Tell whether a metastore has no more what Spark's client of Hive 2.3 calls (Hive 4.0)."""
    return "Invalid method name: 'get_table'" in message


# PyIceberg


def is_conflict_in_pyiceberg(exc: Exception) -> bool:
    """Tell whether something failed because someone else committed first, or because the catalog is busy.

    PyIceberg 0.12 reports some conflicts as a plain ValueError with this text. A catalog that answers 429 or
    503 asks to be asked again; each attempt looks first whether the one before has been made after all.
    """
    retryable = (CommitFailedException, TooManyRequestsError, ServiceUnavailableError)
    return isinstance(exc, retryable) or (
        isinstance(exc, ValueError) and "Cannot add snapshot with sequence number" in str(exc)
    )


# What PyIceberg 0.12 says before and after the text of an error that has not the form of the protocol's.
_OTHER_ERROR = re.compile(
    r"RESTError (\d{3}): (?:Received unexpected JSON Payload|Could not decode json payload): (.*?)"
    r"(?:, errors: [^\n]*)?\Z",
    re.DOTALL,
)
_MARKUP = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_FIRST_WORDS = 160
# Kinds of pydantic's errors.
_NO_ANSWER = {"json_invalid", "model_type", "missing"}


def is_answer(exc: BaseException) -> bool:
    """Tell whether a catalog, its database or what is in front of it has answered with an error.

    Knows the same clients as ``outage``, which has to be asked first: they raise such classes for both.
    """
    return is_no_answer(exc) or bool(_class_names(exc) & _ANSWERS)


def is_no_answer(exc: BaseException) -> bool:
    """Tell whether what a REST catalog answers is nothing of its protocol.

    Such as the page of a gateway, half an answer, or none: nothing is said of the table then, whose metadata
    may be read as well as ever. PyIceberg 0.12 raises pydantic's error for it, and Python's own for HTTP 501.
    """
    if isinstance(exc, NotImplementedError):
        return True
    return isinstance(exc, InvalidModel) and all(
        error["type"] in _NO_ANSWER and len(error["loc"]) < 2 for error in exc.errors()
    )


def _strange_answer(exc: BaseException | None) -> str | None:
    """Return an answer that is nothing of the protocol of REST catalogs, in short; None of another one."""
    if isinstance(exc, InvalidModel) and is_no_answer(exc):
        first = exc.errors()[0]
        said = first["input"] if isinstance(first["input"], str) else ""
        return f"no answer of a REST catalog ({first['msg']}){_first_words(said)}"
    found = _OTHER_ERROR.match(str(exc))
    return None if found is None else f"HTTP {found[1]}{_first_words(found[2])}"


def _first_words(page: str) -> str:
    # Of a secret that is cut, nobody would know the rest for one.
    words = " ".join(_MARKUP.sub(" ", clean(page)).split())
    shown = words if len(words) <= _FIRST_WORDS else f"{words[:_FIRST_WORDS]}…"
    return f": {shown}" if shown else ""


def what_is_invalid(exc: BaseException) -> str:
    """Return what is wrong with the metadata of a table, in the words of PyIceberg 0.12.

    Args:
        exc: pydantic's error, or one of PyIceberg's with that as its cause.
    """
    model = exc if isinstance(exc, InvalidModel) else exc.__cause__
    if not isinstance(model, InvalidModel):
        return answer_of(exc).rstrip(".")
    return "; ".join(dict.fromkeys(map(_of_one, model.errors())))


def _of_one(error: Mapping[str, Any]) -> str:
    """Return what is wrong with one value, and where that is, unless the words are of somebody who knew."""
    told = str(error["msg"])
    if told.startswith("Value error, "):
        return told.removeprefix("Value error, ")
    # A number at the beginning is the format version, by which pydantic has chosen.
    first, *rest = error["loc"] or ("",)
    place = ".".join(map(str, rest if isinstance(first, int) else (first, *rest)))
    return f"{place}: {told}" if place else told


# Catalogs that are away

# Answers of a gateway, or of a server that is starting, stopping or asked too often. Others are answers.
_HTTP_AWAY = (429, 502, 503, 504)
# What libraries say, each in its own words; the first that fits tells most.
_REASONS = {
    "its name cannot be resolved": re.compile(
        "could not translate host name|name resolution|Name or service not known|getaddrinfo failed"
        "|No address associated|nodename nor servname|failed to resolve|UnknownHostException",
        re.IGNORECASE,
    ),
    "it refuses connections": re.compile("refused|Could not connect to any of", re.IGNORECASE),
    "it is starting or stopping": re.compile(
        "is starting up|is shutting down|terminating connection|not yet accepting|in recovery mode"
        "|shutdown in progress",
        re.IGNORECASE,
    ),
    "it takes no more connections": re.compile(
        "too many clients|too many connections|remaining connection slots|max_user_connections", re.IGNORECASE
    ),
    "it does not answer": re.compile("timed? ?out|timeout expired|did not answer", re.IGNORECASE),
    "there is no way to it": re.compile("no route to host|unreachable", re.IGNORECASE),
    "it closed the connection": re.compile(
        "closed the connection|connection .*closed|Connection reset|Connection aborted|read 0 bytes"
        "|IncompleteRead"
        "|broken pipe|SSL SYSCALL error|Bad file descriptor|could not receive data|could not send data"
        # MySQL's clients; mysqlclient and PyMySQL have numbers without a text, too.
        r"|Lost connection|has gone away|Connection was killed|\(2006, ''\)|\(0, ''\)|connection is lost",
        re.IGNORECASE,
    ),
}
_LOCKED_FILE = re.compile(r"database (?:table )?is locked")
# What SQLite says after it has waited, which it does itself.
IS_LOCKED = "another program has locked its file"
_FILE = re.compile("unable to open database file|disk I/O error|readonly database|not a database")
# What Spark says when its Java library cannot reach the catalog.
_SPARK = re.compile(
    r"UncheckedSQLException|HttpHostConnectException|ConnectException|Connect to .* failed"
    r"|UnknownHostException|Connection (?:to \S+ )?refused|SocketTimeoutException|PSQLException"
    r"|MetaException|TTransportException"
    r"|Cannot (?:connect|communicate)|Failed to connect|RuntimeMetaException|SQLITE_CANTOPEN"
    r"|Service unavailable:|Error occurred while processing [A-Z]+ request"
)
# What Iceberg's Java library puts before the answer of a REST catalog, whose class is cut off. An object
# store, or a function of a user's, has such words in the middle of what it says.
_REST_IN_SPARK = re.compile(
    r"^(?:Caused by: )?(?:(?:Server error|Service (?:failed|unavailable)|Not authorized|Forbidden"
    r"|Malformed request|Unable to process): |Error occurred while processing [A-Z]+ request)",
    re.MULTILINE,
)
# What it says before what a driver of Java has said, whose classes are cut off.
_DATABASE_IN_SPARK = re.compile(
    r"^(?:Unknown failure|Database (?:Connection (?:failed|timeout)|warning)|Cannot initialize JDBC catalog"
    r"|Failed to (?:get (?:table|view) \S+ from catalog|execute(?! user)|insert|connect|rename|drop|list)\b"
    r"[^\n]*)"
    r"\nCaused by: ",
    re.MULTILINE,
)
# By name: which of these libraries is there depends on the catalog.
_MAY_BE_OUTAGE = {
    "requests.ConnectionError",
    "requests.Timeout",
    "urllib3.HTTPError",
    "sqlalchemy.OperationalError",
    "sqlalchemy.InterfaceError",
    "psycopg2.OperationalError",
    "pymysql.OperationalError",
    "MySQLdb.OperationalError",
    "thrift.TTransportException",
    "botocore.HTTPClientError",
}


_DATABASE = "sqlalchemy.DBAPIError"
_ANSWERS = {"pyiceberg.RESTError", _DATABASE, "thrift.TException", "botocore.ClientError"}
# Of the answers of a REST catalog; others say nothing of who asks.
_LETS_NOBODY_IN = {
    "pyiceberg.UnauthorizedError",
    "pyiceberg.ForbiddenError",
    "pyiceberg.AuthorizationExpiredError",
    "pyiceberg.OAuthError",
}


def outage(exc: BaseException) -> str | None:
    """Return why a catalog could not be reached, in a few words; None if it was reached.

    Knows the clients that PyIceberg 0.12 has for its catalogs: requests, SQLAlchemy with psycopg2, PyMySQL,
    mysqlclient, psycopg or SQLite, Thrift, botocore.
    """
    for part in _chain(exc):
        answer = getattr(part, "response", None)
        status = getattr(answer, "status_code", None)
        if isinstance(status, int):
            return f"it answers with HTTP {status}" if status in _HTTP_AWAY else None
        if not _may_be_outage(part):
            continue
        # Without the statement, which names what it pleases.
        text = str(getattr(part, "orig", None) or part)
        if _FILE.search(text):
            return "its file cannot be opened"
        if _LOCKED_FILE.search(text):
            return IS_LOCKED
        for reason, pattern in _REASONS.items():
            if pattern.search(text):
                return reason
        if isinstance(part, ConnectionRefusedError):
            return "it refuses connections"
        if isinstance(part, TimeoutError):
            return "it does not answer"
        if isinstance(part, socket.gaierror):
            return "its name cannot be resolved"
        # SQLAlchemy knows, by driver, after which errors a connection is of no use any more.
        if isinstance(part, ConnectionError) or getattr(part, "connection_invalidated", False):
            return "it closed the connection"
    return None


def asked_to_wait(exc: BaseException) -> float:
    """Return for how many seconds a catalog has asked to be left alone (``Retry-After``); 0 if it has not."""
    for part in _chain(exc):
        headers = getattr(getattr(part, "response", None), "headers", None) or {}
        said = str(headers.get("Retry-After", "")).strip()
        if said.isdecimal():
            return float(said)
        if said:
            try:
                return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
            except ValueError:
                return 0
    return 0


def refusal(exc: BaseException) -> str | None:
    """Return what a catalog that lets nobody in has answered, or what its file is; None if it is not that."""
    for part in _chain(exc):
        names = _class_names(part)
        if _DATABASE in names:
            said = str(getattr(part, "orig", part)).strip().splitlines()[0]
            return said.rpartition("FATAL:")[2].strip()
        if names & _LETS_NOBODY_IN:
            return answer_of(part).rstrip(".")
        if "sqlite3.Error" in names or (isinstance(part, OSError) and part.filename is not None):
            return f"its file cannot be opened ({part})"
    return None


def may_be_outage_in_spark(message: str) -> bool:
    """Tell whether a statement may have failed because Spark could not reach the catalog.

    Texts of the clients that Iceberg 1.10 to 1.12 has for its catalogs.
    """
    return _SPARK.search(message) is not None or is_database_answer_in_spark(message)


def is_rest_answer_in_spark(message: str) -> bool:
    """Tell whether a statement failed for what a REST catalog has answered (Iceberg 1.10 to 1.12)."""
    return _REST_IN_SPARK.search(message) is not None


def is_database_answer_in_spark(message: str) -> bool:
    """Tell whether a statement failed for what a SQL catalog's database has answered, or has not.

    Texts of Iceberg 1.10 to 1.12.
    """
    return _DATABASE_IN_SPARK.search(message) is not None


def _may_be_outage(exc: BaseException) -> bool:
    if isinstance(exc, ConnectionError | TimeoutError | socket.gaierror):
        return True
    if getattr(exc, "connection_invalidated", False):
        return True
    return bool(_class_names(exc) & _MAY_BE_OUTAGE)


def _class_names(exc: BaseException) -> set[str]:
    """Return the names of an exception's classes, each with the package that it is from."""
    return {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(exc).__mro__}


def _chain(exc: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [exc]
    while waiting:
        part = waiting.pop(0)
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        waiting += [part.__cause__, part.__context__ if not part.__suppress_context__ else None]
