"""What is said of a failure after the rows of a run are visible."""

from dbt.adapters.sparkevolve.load.outcome import Outcome, steps_of


def test_a_failure_says_what_was_done_and_what_was_not() -> None:
    outcome = Outcome("`t`", True, steps=steps_of(docs=True, grants=True, hooks=["x"]))
    outcome.begin("grants")
    outcome.begin("descriptions")
    error = outcome.error("No such role")
    assert error.msg == (
        "No such role\nThis happened after the load: what this run has loaded into `t` is visible, and "
        "stays. Done since then: grants. Not done, or in part: descriptions. Not begun: post-hooks. Running "
        "the model again would add the rows that it returns once more, so do by hand what is missing."
    )
    assert (error.done, error.failed, error.not_begun) == (("grants",), "descriptions", ("post-hooks",))
    assert error.adds_again
    outcome.is_refreshed = True
    assert outcome.error("No such role").msg.endswith(
        "Another full refresh is safe, and does all of this; a run without one would add the rows that the "
        "model returns once more."
    )


def test_steps_with_nothing_to_do_are_not_mentioned() -> None:
    outcome = Outcome("`t`", steps=steps_of(docs=False, grants=False, hooks=[]))
    for step in ("grants", "descriptions", "post-hooks"):
        outcome.begin(step)
    assert outcome.error("Lost").msg == (
        "Lost\nThis happened after the load: what this run has loaded into `t` is visible, and stays. "
        "Running the model again is safe: it adds no row twice, and does all of this."
    )
