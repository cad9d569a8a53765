"""Texts of errors, and the facts that they keep."""

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
    UnreadableAuditError,
    WarningsError,
)
from dbt.adapters.sparkevolve.evolution.plan import Refusal


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
        "The batch cannot be loaded into `t`, and no row was written to it. This run has changed the table "
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
    error = EvolutionRefusedError("`lake`.`db`.`t`", refusals, may_be_replaced=True)
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
        "committed to the table meanwhile, and the run could not go on from the snapshot that it had "
        "started from. The table's rows are theirs, none of this run's is visible. Run the model again when "
        "the table is quieter, or raise `commit_retries`."
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


def test_warnings_that_are_errors_are_all_named() -> None:
    error = WarningsError(["one", "two"], "nothing was written")
    assert error.msg == (
        "Warnings are errors in this run (`--warn-error`, or `warn_error_options`), so nothing was written:\n"
        "  * one\n  * two"
    )
    assert WarningsError(["one"]).msg == (
        "Warnings are errors in this run (`--warn-error`, or `warn_error_options`):\n  * one"
    )


def test_an_audit_that_cannot_be_evaluated_is_named() -> None:
    error = UnreadableAuditError("`lake`.`db`.`t`", "idd > 0", "[UNRESOLVED_COLUMN] ...")
    assert error.msg == (
        "The batch of `lake`.`db`.`t` was not published, since Spark cannot evaluate one of the model's "
        "audits: idd > 0\nSpark says: [UNRESOLVED_COLUMN] ...\nThe rows of the table are as they were."
    )
    assert (error.relation, error.audit) == ("`lake`.`db`.`t`", "idd > 0")


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
