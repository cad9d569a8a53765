"""Which of a model's properties its table lacks, and what is done about them."""

from typing import Any

import pytest

from dbt.adapters.sparkevolve.errors import ModelConfigError
from dbt.adapters.sparkevolve.evolution.changes import SetProperty
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.evolution.policy import TableFacts
from dbt.adapters.sparkevolve.evolution.table_properties import property_changes, property_text
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from dbt.adapters.sparkevolve.iceberg.staging import staging_properties
from dbt.adapters.sparkevolve.load.batch_plan import plan_batch
from dbt.adapters.sparkevolve.model_config import check
from tests.unit.conftest import MakeTable
from tests.unit.helpers import columns, model_settings

ANY_SCHEMA = "write.spark.accept-any-schema"


@pytest.fixture
def batch(lake: IcebergCatalog, make_table: MakeTable) -> StagedBatch:
    return lake.staged_batch(
        make_table(columns("id int, n int"), name="staged", properties=staging_properties(()))
    )


def test_what_differs_is_set_and_the_rest_is_left_alone() -> None:
    actual = {"a": "1", "same": "x", "other": "y", "owner": "me"}
    configured = {"a": "2", "same": "x", "b": "", "format-version": "3", "owner": "you"}
    assert property_changes(configured, actual) == (SetProperty("a", "2"), SetProperty("b", ""))
    assert [property_text(value) for value in (True, False, 1, 0.5, "True")] == [
        "true",
        "false",
        "1",
        "0.5",
        "True",
    ]
    assert str(SetProperty("a'", "1")) == r"set property 'a\'' to '1'"


@pytest.mark.parametrize(
    ("configured", "chosen", "facts", "reason"),
    [
        (
            {"format-version": "1"},
            {},
            TableFacts(),
            "`tblproperties` say that `format-version` is 1, and the table has 2. A run does not change "
            "that, because nobody can take it back.",
        ),
        (
            {"owner": "you"},
            {},
            TableFacts(properties={"owner": "me"}),
            "`tblproperties` set `owner` to 'you', and Spark or Iceberg keeps that elsewhere than in the "
            "properties of a table, so it would have no effect.",
        ),
        (
            {ANY_SCHEMA: "TRUE"},
            {"strategy": "merge", "unique_key": "id"},
            TableFacts(),
            "`tblproperties` set `write.spark.accept-any-schema`, with which Spark can run no MERGE, the "
            "incremental_strategy of the model.",
        ),
    ],
)
def test_what_no_run_sets_is_refused(
    batch: StagedBatch,
    configured: dict[str, str],
    chosen: dict[str, Any],
    facts: TableFacts,
    reason: str,
) -> None:
    wanted = model_settings(**chosen, tblproperties=configured)
    plan = plan_batch(batch, wanted, {}, columns("id int"), facts)
    assert [refusal.reason for refusal in plan.refusals] == [reason]
    assert plan.changes == ()


def test_a_model_may_take_back_what_no_merge_works_with(batch: StagedBatch) -> None:
    wanted = model_settings(strategy="merge", unique_key="id", tblproperties={ANY_SCHEMA: "false"})
    facts = TableFacts(properties={ANY_SCHEMA: "true"})
    plan = plan_batch(batch, wanted, {}, columns("id int, n int"), facts)
    assert (plan.refusals, plan.changes) == ((), (SetProperty(ANY_SCHEMA, "false"),))


def test_a_table_that_pyiceberg_cannot_commit_to_gets_properties_too(batch: StagedBatch) -> None:
    wanted = model_settings(tblproperties={"a": "1", "format-version": "3", ANY_SCHEMA: "false"})
    facts = TableFacts(format_version=3, is_atomic=False, properties={ANY_SCHEMA: "true"})
    merge = model_settings(wanted, strategy="merge", unique_key="id")
    plan = plan_batch(batch, merge, {}, columns("id int, n int"), facts)
    assert (plan.refusals, plan.warnings) == ((), ())
    assert plan.changes == (SetProperty("a", "1"), SetProperty(ANY_SCHEMA, "false"))


def test_properties_are_one_commit_with_the_columns_and_none_without_a_difference(
    batch: StagedBatch, lake: IcebergCatalog, make_table: MakeTable
) -> None:
    target = make_table(columns("id int"), properties={"a": "1", "kept": "x"})

    def evolve(**properties: str) -> EvolutionPlan:
        settings = model_settings(tblproperties=properties)
        return lake.evolve(
            target,
            lambda schema, facts: plan_batch(batch, settings, {}, schema, facts),
            0,
            source=batch.schema,
            invocation_id="i",
        )

    commits = len(lake.load(target).metadata.metadata_log)
    changes = [str(change) for change in evolve(a="2").changes]
    assert changes == ["add column `n` int", "set property 'a' to '2'"]
    table = lake.load(target)
    assert len(table.metadata.metadata_log) == commits + 1
    record = {name: text for name, text in table.properties.items() if name.startswith("sparkevolve.")}
    assert list(record) == ["sparkevolve.schema.1"]
    assert "property" not in record["sparkevolve.schema.1"]
    # Properties alone neither make a schema nor touch the record of the one that is there.
    evolve(b="3")
    table = lake.load(target)
    assert dict(table.properties) == {"a": "2", "b": "3", "kept": "x", **record}
    assert [schema.schema_id for schema in table.metadata.schemas] == [0, 1]
    assert evolve(a="2", b="3").changes == ()
    assert lake.load(target).metadata_location == table.metadata_location


def test_our_own_properties_are_not_for_models() -> None:
    config = {"tblproperties": {"x": "1", "SparkEvolve.schema.1": "{}"}}
    with pytest.raises(ModelConfigError) as raised:
        check("model.p.m", {}, (), config)
    assert "SparkEvolve.schema.1" in str(raised.value)
    assert "Properties with this prefix are kept by sparkevolve itself." in str(raised.value)


READS = "merge-on-read"


@pytest.mark.parametrize(
    ("chosen", "properties", "version", "mode"),
    [
        ({"unique_key": "id"}, {"write.delete.mode": READS}, 1, "write.delete.mode"),
        ({"unique_key": "id"}, {"write.delete.mode": "Merge-On-Read"}, 1, "write.delete.mode"),
        ({"unique_key": "id"}, {"write.delete.mode": READS}, 2, None),
        ({"unique_key": "id"}, {"write.merge.mode": READS}, 1, None),
        ({"unique_key": "id"}, {}, 1, None),
        ({}, {"write.delete.mode": READS}, 1, None),
        ({"strategy": "merge", "unique_key": "id"}, {"write.merge.mode": READS}, 1, "write.merge.mode"),
        ({"strategy": "merge", "unique_key": "id"}, {"write.delete.mode": READS}, 1, None),
        ({"strategy": "merge"}, {"write.merge.mode": READS}, 1, None),
        ({"strategy": "append", "bookkeeping": ["x"]}, {"write.merge.mode": READS}, 1, "write.merge.mode"),
        ({"strategy": "microbatch", "event_time": "n"}, {"write.delete.mode": READS}, 1, "write.delete.mode"),
        ({"strategy": "append"}, {"write.delete.mode": READS, "write.merge.mode": READS}, 1, None),
        ({"strategy": "insert_overwrite"}, {"write.delete.mode": READS}, 1, None),
        # What the model sets reaches the table in the same commit as the columns.
        (
            {"unique_key": "id", "tblproperties": {"write.delete.mode": "copy-on-write"}},
            {"write.delete.mode": READS},
            1,
            None,
        ),
        (
            {"unique_key": "id", "tblproperties": {"write.delete.mode": READS}},
            {},
            1,
            "write.delete.mode",
        ),
    ],
)
def test_a_table_without_files_of_deleted_rows_is_not_made_to_need_them(
    batch: StagedBatch, chosen: dict[str, Any], properties: dict[str, str], version: int, mode: str | None
) -> None:
    facts = TableFacts(format_version=version, properties=properties)
    plan = plan_batch(batch, model_settings(**chosen), {}, columns("id int, n int"), facts)
    assert [str(refusal) for refusal in plan.refusals] == (
        [
            f"The table has Iceberg's format version 1 and `{mode}` = 'merge-on-read', for which Iceberg "
            "needs version 2, so Spark can delete no rows of it. Set "
            f"`tblproperties: {{{mode}: copy-on-write}}` in the model, or upgrade the table: `ALTER TABLE … "
            "SET TBLPROPERTIES ('format-version' = '2')`."
        ]
        if mode
        else []
    )
