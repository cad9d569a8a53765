"""Staged batches that earlier runs have left behind, also those that cannot be removed as a whole."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import ForbiddenError
from pyiceberg.table import Table

from dbt.adapters.sparkevolve.iceberg import purge
from dbt.adapters.sparkevolve.iceberg.staging import HOST, OWNER_PROPERTY
from tests.functional.harness import Scenario

LEFT = "t__dbt_tmp_0123456789ab"


def leave(scenario: Scenario, host: str = HOST) -> Table:
    """Make what a run that was killed leaves behind."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    owner = f"{host}:{child.pid}:{'0' * 32}"
    scenario.sql(f"drop table if exists {scenario.relation(LEFT)}")
    scenario.sql(
        f"create table {scenario.relation(LEFT)} using iceberg "
        f"tblproperties ('{OWNER_PROPERTY}' = '{owner}') "
        "as select 1 as id"
    )
    return scenario.table(LEFT)


def files(table: Table, pattern: str) -> list[Path]:
    folder = Path(table.location().removeprefix("file:").replace("//", "/"))
    return sorted(folder.rglob(pattern))


def test_a_batch_whose_files_are_gone_fails_no_run(scenario: Scenario) -> None:
    """It is dropped; where only a part is gone, the rest is said to be left."""
    scenario.model("select 1 as id, 10 as v")
    scenario.run()
    for number, (pattern, warns) in enumerate([("*.parquet", False), ("*.metadata.json", True)]):
        for path in files(leave(scenario), pattern):
            path.unlink()
        scenario.model(f"select 1 as id, {number} as v")
        run = scenario.run()
        assert scenario.tables() == ["t"], pattern
        assert scenario.rows() == [(1, number)]
        left = f"{scenario.relation(LEFT)} was dropped, but not all of its files could be removed"
        assert (left in run.log) is warns, pattern


def test_a_batch_that_may_not_be_removed_fails_no_run(
    scenario: Scenario, lake: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that is left over nor the run's own."""
    scenario.model("select 1 as id, 10 as v")
    scenario.run()
    leave(scenario)

    def forbid(self: Catalog, name: tuple[str, ...]) -> None:
        raise ForbiddenError("NotAuthorized: no")

    with monkeypatch.context() as patch:
        patch.setattr(type(lake), "purge_table", forbid)
        patch.setattr(type(lake), "drop_table", forbid)
        scenario.model("select 2 as id, 20 as v")
        run = scenario.run()
    assert scenario.rows() == [(1, 10), (2, 20)]
    staged = [name for name in scenario.tables() if name != "t"]
    assert LEFT in staged
    assert len(staged) == 2
    for name in staged:
        text = f"{scenario.relation(name)} could not be removed: the Iceberg catalog `lake` at "
        assert run.log.count(text) == 1
    assert run.log.count("could not be removed") == run.log.count("an error: NotAuthorized: no. ") == 2
    with monkeypatch.context() as patch:
        patch.setattr(type(lake), "purge_table", forbid)
        # Where it is not the catalog that deletes files.
        patch.setattr(purge, "delete_data_files", forbid)
        run = scenario.run()
    # What this process itself has staged is not left over while it lives.
    staged.remove(LEFT)
    assert scenario.tables() == ["t", *staged]
    assert len(re.findall("was dropped, but not all of its files could be removed", run.log)) == 2
    assert scenario.rows() == [(1, 10), (2, 20)]


def test_a_batch_of_another_machine_of_this_name_stays(scenario: Scenario) -> None:
    """Its process cannot be asked for here: whether it runs is not known."""
    scenario.model("select 1 as id, 10 as v")
    scenario.run()
    leave(scenario, re.sub("[0-9a-f]{32}", "0" * 32, HOST))
    scenario.run()
    assert scenario.tables() == ["t", LEFT]


def test_a_killed_snapshots_batch_is_removed_by_the_next_one(scenario: Scenario) -> None:
    """It is what an incremental model's is: nobody else would ever remove it."""
    config = "target_schema='" + scenario.schema + "', unique_key='id', strategy='check', check_cols='all'"
    scenario.file(
        "snapshots/t.sql",
        "{% snapshot t %}{{ config(" + config + ") }}select 1 as id, 10 as v{% endsnapshot %}",
    )
    scenario.dbt("snapshot")
    leave(scenario)
    run = scenario.dbt("snapshot")
    assert run.success, run.log
    assert scenario.tables() == ["t"]
    assert run.log.count(f"Removing {scenario.relation(LEFT)}, which an earlier run left behind") == 1
    assert scenario.sql(f"select id, v, dbt_valid_to from {scenario.relation('t')}") == [(1, 10, None)]


def dead_pid() -> int:
    """The id of a process of this host that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.core
def test_leftovers_of_dead_runs_are_removed(scenario: Scenario) -> None:
    scenario.model("select 1 as id")
    scenario.model("select 1 as id", name="t2")
    scenario.run()
    owners = {
        "t__dbt_tmp_0123456789ab": f"{HOST}:{dead_pid()}:{'a' * 32}",
        "t__dbt_tmp_0123456789ac": f"{HOST}:{os.getpid()}:{'b' * 32}",  # the number is taken again
        "t__dbt_tmp_aaaaaaaaaaaa": f"{HOST}:{os.getppid()}:{'c' * 32}",  # still runs
        "t__dbt_tmp_bbbbbbbbbbbb": f"another-host:{dead_pid()}:{'d' * 32}",  # may still run
        "t__dbt_tmp_cccccccccccc": None,  # looks like one
        "t2__dbt_tmp_0123456789ab": f"{HOST}:{dead_pid()}:{'e' * 32}",  # of another model, not run now
        "t__dbt_tmp_0123456789": f"{HOST}:{dead_pid()}:{'f' * 32}",  # not a name of ours
    }
    for name, owner in owners.items():
        properties = f"tblproperties ('{OWNER_PROPERTY}' = '{owner}')" if owner else ""
        scenario.sql(f"create table {scenario.relation(name)} using iceberg {properties} as select 7 as x")
    removed = {"t__dbt_tmp_0123456789ab", "t__dbt_tmp_0123456789ac"}
    run = scenario.run("--select", "t")
    assert scenario.tables() == sorted({"t", "t2", *owners} - removed)
    for name in removed:
        assert run.log.count(f"Removing {scenario.relation(name)}, which an earlier run left behind") == 1
    assert scenario.rows("t__dbt_tmp_cccccccccccc") == [(7,)]
    assert scenario.rows() == [(1,)]
