"""A run that is killed, fails or meets others between its dead letters and its rows."""

from typing import Any

import pytest

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter
from tests.functional.dead_letters.reading import ids
from tests.functional.harness import Scenario
from tests.functional.intruders import Intrude, append, intrude
from tests.functional.samples import history
from tests.functional.worker import Worker

__all__ = ["intrude"]

OLD = "select 1 as id, 10 as n"
NEW = "select id, n from values (2, '20'), (3, 'x'), (4, 'y'), (4, 'y') as source(id, n)"
NEW_ROWS = [(1, 10), (2, 20)]
BAD = [3, 4, 4]
CONFIG: dict[str, Any] = {"on_bad_rows": "dead_letter"}
APPEND = {"unique_key": None}
DIRECT = {"publish": "direct"}
OVERWRITE = {"incremental_strategy": "insert_overwrite", "partition_by": ["id"], "unique_key": None}
# The step after (or before) which the process is killed, the model's config, its rows and letters then.
KILLS: list[tuple[str, dict[str, Any], list[Any], list[int]]] = [
    ("letters written", {}, [(1, 10)], []),
    ("letters published", {}, [(1, 10)], BAD),
    ("letters published", APPEND, [(1, 10)], BAD),
    ("letters published", OVERWRITE, [(1, 10)], BAD),
    ("letters published", DIRECT, [(1, 10)], BAD),
    ("published", {}, NEW_ROWS, BAD),
]


@pytest.mark.core
def test_two_runs_at_once_and_a_process_that_is_killed(scenario: Scenario) -> None:
    """Killed are all models at once in one process, each when it is at its step.

    Before that, another process runs a batch whose letters this one has written; and this one fails then.
    """
    models = {f"m{number}": kill for number, kill in enumerate(KILLS)}
    shared: dict[str, dict[str, Any]] = {"shared": {}}
    for name, config in [*((name, kill[1]) for name, kill in models.items()), *shared.items()]:
        scenario.model(OLD, name, **CONFIG, **config, commit_retries=0)
    scenario.run()
    for name, config in [*((name, kill[1]) for name, kill in models.items()), *shared.items()]:
        scenario.model(NEW, name, **CONFIG, **config, commit_retries=0)
    with Worker() as worker:
        publish = IcebergCatalog.publish

        def publish_late(self: IcebergCatalog, relation: Any, *args: Any, **kwargs: Any) -> Any:
            if relation.identifier in shared:
                assert ids(scenario, f"{relation.identifier}_dlt") == BAD
                outcomes = worker.run(scenario, ("run", "-s", relation.identifier))
                assert [outcome.success for outcome in outcomes] == [True], outcomes
            return publish(self, relation, *args, **kwargs)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(IcebergCatalog, "publish", publish_late)
            run = scenario.dbt("run", "--threads", "1", "-s", *shared)
        assert "Completed with 1 error" in run.log, run.log
        for name in shared:
            assert (scenario.rows(name), ids(scenario, f"{name}_dlt")) == (NEW_ROWS, BAD), name
            assert list(scenario.table(f"{name}_dlt").metadata.refs) == ["main"]
        worker.run_until_killed(scenario, {name: kill[0] for name, kill in models.items()})
    found = {name: (scenario.rows(name), ids(scenario, f"{name}_dlt")) for name in models}
    assert found == {name: (rows, bad) for name, (_, _, rows, bad) in models.items()}

    scenario.run("-s", *models)
    found = {name: (scenario.rows(name), ids(scenario, f"{name}_dlt")) for name in models}
    assert found == dict.fromkeys(models, (NEW_ROWS, BAD))
    tables = [*models, *shared]
    assert scenario.tables() == sorted([*tables, *(f"{name}_dlt" for name in tables)])
    refs = {ref for name in scenario.tables() for ref in scenario.table(name).metadata.refs}
    assert refs == {"main"}


def test_letters_are_taken_back_if_the_rows_are_not_published(scenario: Scenario, intrude: Intrude) -> None:
    """Another writer is faster by a moment: after the letters were published."""
    scenario.model(OLD, **CONFIG, commit_retries=0)
    scenario.run()
    scenario.model(NEW, **CONFIG, commit_retries=0)
    real = IcebergCatalog.publish

    def publish(self: IcebergCatalog, relation: Any, *args: Any, **kwargs: Any) -> Any:
        if relation.identifier == "t":
            append(scenario, [{"id": 9, "n": 90}])
        return real(self, relation, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IcebergCatalog, "publish", publish)
        run = scenario.fail()
    assert "other writers" in run.message
    assert ids(scenario, "t_dlt") == []
    assert scenario.rows() == [(1, 10), (9, 90)]
    assert scenario.tables() == ["t", "t_dlt"]
    # The next one has letters before it that stay.
    scenario.run()
    assert ids(scenario, "t_dlt") == BAD
    scenario.model("select 5 as id, 'z' as n union all select 6, '60'", **CONFIG, commit_retries=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IcebergCatalog, "publish", publish)
        scenario.fail()
    assert ids(scenario, "t_dlt") == BAD

    # Also if somebody has removed them meanwhile: there is nothing to take back, and nothing to warn of.
    def publish_without(self: IcebergCatalog, relation: Any, *args: Any, **kwargs: Any) -> Any:
        if relation.identifier == "t":
            stamp = scenario.sql(f"select max(loadedAt) from {scenario.relation('t_dlt')}")[0][0]
            scenario.sql(f"delete from {scenario.relation('t_dlt')} where loadedAt = timestamp'{stamp}'")
        return publish(self, relation, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IcebergCatalog, "publish", publish_without)
        run = scenario.fail()
    assert ids(scenario, "t_dlt") == BAD
    assert [text for text in run.warnings if "may still have" in text] == []
    assert list(scenario.table("t_dlt").metadata.refs) == ["main"]
    # With a further attempt it begins again, and the letters are there once.
    scenario.model("select 5 as id, 'z' as n union all select 6, '60'", **CONFIG, commit_retries=4)
    intrude(IcebergCatalog, "has_moved", lambda: append(scenario, [{"id": 8, "n": 80}]), after=True)
    scenario.run()
    assert ids(scenario, "t_dlt") == [*BAD, 5]
    assert (6, 60) in scenario.rows()
    assert list(scenario.table("t_dlt").metadata.refs) == ["main"]


def test_direct_letters_are_taken_back_if_the_load_fails(scenario: Scenario) -> None:
    scenario.model(OLD, **CONFIG, **APPEND, **DIRECT)
    scenario.run()
    scenario.model(NEW, **CONFIG, **APPEND, **DIRECT)
    execute = SparkEvolveAdapter.execute

    def break_before_insert(self: SparkEvolveAdapter, sql: str, *args: Any, **kwargs: Any) -> Any:
        if sql.strip().startswith(f"INSERT INTO {scenario.relation()} "):
            # Others write letters too: those stay.
            append(
                scenario,
                [{"messageId": "other", "payload": "eyJpZCI6N30=", "failureReason": "", "modelName": "o"}],
                "t_dlt",
            )
            change = scenario.table().transaction()
            change.set_properties({"write.data.path": "file:///dev/null/nowhere"})
            change.commit_transaction()
            execute(self, f"refresh table {scenario.relation()}")
        return execute(self, sql, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkEvolveAdapter, "execute", break_before_insert)
        scenario.fail()
    assert ids(scenario, "t_dlt") == [7]
    repair = scenario.table().transaction()
    repair.remove_properties("write.data.path")
    repair.commit_transaction()
    scenario.run()
    assert ids(scenario, "t_dlt") == [3, 4, 4, 7]
    assert scenario.rows() == NEW_ROWS


def test_letters_of_a_table_that_is_not_made_are_taken_back(scenario: Scenario) -> None:
    audit = {"sql": "n > 0", "severity": "row"}
    config = {**CONFIG, "audits": audit, "tblproperties": {"write.data.path": "file:///dev/null/x"}}
    scenario.model("select 1 as id, -1 as n union all select 2, 2", **config)
    scenario.fail()
    assert scenario.tables() == ["t_dlt"]
    assert ids(scenario, "t_dlt") == []
    scenario.model("select 1 as id, -1 as n union all select 2, 2", **CONFIG, audits=audit)
    scenario.run()
    assert scenario.rows() == [(2, 2)]
    assert ids(scenario, "t_dlt") == [1]


def test_too_many_bad_rows_publish_nothing(scenario: Scenario) -> None:
    scenario.model(OLD, **CONFIG, dead_letter_limit="50%")
    scenario.run()
    before = scenario.state()
    scenario.model(NEW, **CONFIG, dead_letter_limit="50%")
    run = scenario.fail()
    assert (
        f"3 of 4 rows cannot be placed in {scenario.relation()}, and dead_letter_limit is 50%. No row was "
        "written, neither to the table nor to its dead letters. By reason: "
        '* `n`: the value does not convert to int without loss: 3 rows, such as {"id":3}, {"id":4}'
    ) in " ".join(run.message.split())
    assert scenario.state() == before
    assert scenario.tables() == ["t"]
    scenario.model(NEW, **CONFIG, dead_letter_limit=3)
    scenario.run()
    assert ids(scenario, "t_dlt") == BAD


def test_a_column_of_which_no_value_converts_is_refused(scenario: Scenario) -> None:
    scenario.model(OLD, **CONFIG)
    scenario.run()
    before = scenario.state()
    scenario.model("select id, n from values (2, 'x'), (3, 'y'), (4, null) as source(id, n)", **CONFIG)
    assert (
        "Column `n` is int in the table, and the model returns string. Not even with `on_bad_rows: "
        "dead_letter`: none of the 2 values of this batch converts. If int holds all its values, cast it "
        "to int in the model; if not, return it under a new name, fill that for old rows, and retire the old "
        "name. To keep the old column under another name, and have its name for the new type, set "
        '`column_renames: {"n": n_old}`. The docs of dbt-sparkevolve have four questions to ask first, '
        'under "Change a type".'
    ) in " ".join(scenario.fail().message.split())
    scenario.model("select id, n from values (2, 'x'), (3, '3') as source(id, n)")
    assert (
        "If only some values do not fit, `on_bad_rows: dead_letter` sets their rows aside and loads the "
        'others: see "Dead letters" in the docs of dbt-sparkevolve.'
    ) in " ".join(scenario.fail().message.split())
    scenario.model("select 2 as id, array(1) as n", **CONFIG)
    assert "Column `n` is int in the table, and the model returns array<int>." in scenario.fail().message
    assert scenario.state() == before
    assert scenario.tables() == ["t"]
    # Replaced, so that no value has to convert.
    renames = {"column_renames": {"n": "n_old"}}
    scenario.model("select id, n from values (2, 'x'), (3, '3') as source(id, n)", **CONFIG, **renames)
    scenario.run()
    assert scenario.rows() == [(1, 10, None), (2, None, "x"), (3, None, "3")]
    assert scenario.tables() == ["t"]


def test_a_name_that_something_else_has_is_refused_before_anything_runs(scenario: Scenario) -> None:
    scenario.model(OLD, **CONFIG, dead_letter_suffix="_2")
    scenario.model("select 1 as id", name="t_2")
    text = f"Bad rows of {scenario.relation()} would go to {scenario.relation('t_2')}, and "
    assert f"{text}that is what model.case.t_2 builds." in scenario.fail("-s", "t").message
    scenario.model("select 1 as id", name="t_2", enabled=False)
    scenario.run("-s", "t")
    scenario.sql(f"create table {scenario.relation('t_2')} (id int) using iceberg")
    assert (
        f"{text}that table has no column `messageId` of the type string. Set another `dead_letter_suffix`, "
        "or move what is there. Nothing was written."
    ) in scenario.fail().message
    shown = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}")
    assert shown.success, shown.message
    assert "dead letters:" not in shown.log
    replayed = scenario.dbt("run-operation", "replay_dead_letters", "--args", "{model: t}")
    assert not replayed.success
    assert (
        f"The dead letters of {scenario.relation()} would be read from {scenario.relation('t_2')}, and that "
        "table has no column `messageId` of the type string. Rename or restore it there, or set another "
        "`dead_letter_suffix`. Nothing was loaded."
    ) in replayed.log
    scenario.sql(f"drop table {scenario.relation('t_2')}")
    scenario.sql(f"create view {scenario.relation('t_2')} as select 1 as id")
    assert f"{text}that is a view." in scenario.fail().message
    assert scenario.tables() == ["t"]
    assert len(history(scenario)) == 1
