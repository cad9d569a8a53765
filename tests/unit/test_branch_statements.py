"""The text of the statements that cut, publish and remove branches."""

from dbt.adapters.sparkevolve.sql.branch_statements import branch_of, create_branch, drop_branch, fast_forward

TARGET, STAGED = "`lake`.`db`.`t`", "`lake`.`db`.`t__dbt_tmp_1`"


def test_branches_are_cut_written_and_removed_by_name() -> None:
    assert branch_of(TARGET, "b`1") == "`lake`.`db`.`t`.`branch_b``1`"
    assert create_branch(TARGET, "b", 7, 2880) == (
        "ALTER TABLE `lake`.`db`.`t` CREATE BRANCH `b` AS OF VERSION 7 RETAIN 2880 MINUTES"
    )
    assert create_branch(TARGET, "b`", None, 1) == (
        "ALTER TABLE `lake`.`db`.`t` CREATE BRANCH `b``` RETAIN 1 MINUTES"
    )
    assert create_branch("t", "b", 0, 1) == "ALTER TABLE t CREATE BRANCH `b` AS OF VERSION 0 RETAIN 1 MINUTES"
    assert drop_branch(TARGET, "b`") == "ALTER TABLE `lake`.`db`.`t` DROP BRANCH IF EXISTS `b```"


def test_a_branch_is_fast_forwarded_by_a_call_in_its_catalog() -> None:
    assert fast_forward("la`ke", "`it's`.`a.b`", "main", "b'1") == (
        "CALL `la``ke`.system.fast_forward(table => CAST(X'6069742773602e60612e6260' AS STRING), "
        "branch => 'main', to => CAST(X'622731' AS STRING))"
    )
