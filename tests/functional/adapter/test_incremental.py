"""Incremental models, with the suites that each other adapter is held to."""

from typing import Any

import pytest
from dbt.tests.adapter.incremental import fixtures
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import BaseMergeExcludeColumns
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import (
    BaseIncrementalOnSchemaChange,
    BaseIncrementalOnSchemaChangeSetup,
)
from dbt.tests.adapter.incremental.test_incremental_predicates import BaseIncrementalPredicates
from dbt.tests.adapter.incremental.test_incremental_unique_id import (
    BaseIncrementalUniqueKey,
    seeds__add_new_rows_sql,
    seeds__duplicate_insert_sql,
    seeds__seed_csv,
)
from dbt.tests.util import run_dbt

from tests.functional.adapter.modes import PublishDirect


class TestIncrementalOnSchemaChange(BaseIncrementalOnSchemaChange):
    """With ``append_new_columns_remove_one``, which dbt-spark cannot do."""

    # sync_all_columns means to drop columns, so here it has to fail, with an explanation, before any SQL.
    def test_run_incremental_sync_all_columns(self, project: Any) -> None:
        for model in ("incremental_sync_all_columns", "incremental_sync_remove_only"):
            results = run_dbt(["run", "--select", f"model_a {model}"], expect_pass=False)
            (refused,) = (result for result in results if result.status == "error")
            assert f"on_schema_change is 'sync_all_columns' in model.test.{model}" in refused.message
            assert "sparkevolve never drops one" in refused.message


class TestIncrementalOnSchemaChangeDirect(PublishDirect, TestIncrementalOnSchemaChange):
    pass


@pytest.mark.core
class TestIncrementalOnSchemaChangePreserve(BaseIncrementalOnSchemaChangeSetup):
    """The same with our name of the policy."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "model_a.sql": fixtures._MODELS__A,
            "incremental_append_new_columns_remove_one.sql": (
                fixtures._MODELS__INCREMENTAL_APPEND_NEW_COLUMNS_REMOVE_ONE.replace(
                    "'append_new_columns'", "'append_new_columns_preserve'"
                )
            ),
            "incremental_append_new_columns_remove_one_target.sql": (
                fixtures._MODELS__INCREMENTAL_APPEND_NEW_COLUMNS_REMOVE_ONE_TARGET
            ),
        }

    def test_run_incremental_append_new_columns_preserve(self, project: Any) -> None:
        self.run_incremental_append_new_columns_remove_one(project)


class TestIncrementalOnSchemaChangeAppend(BaseIncrementalOnSchemaChangeSetup):
    """The same without a key: no DELETE."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+incremental_strategy": "append"}}

    def test_run_incremental_append_new_columns(self, project: Any) -> None:
        self.run_incremental_append_new_columns(project)
        self.run_incremental_append_new_columns_remove_one(project)


class TestIncrementalOnSchemaChangeSpecialChars(BaseIncrementalOnSchemaChangeSetup):
    """Names with spaces, dots, dashes, and a keyword."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "model_a_special_chars.sql": fixtures._MODELS__A_SPECIAL_CHARS,
            "special_chars.sql": fixtures._MODELS__INCREMENTAL_APPEND_NEW_SPECIAL_CHARS,
            "special_chars_target.sql": fixtures._MODELS__INCREMENTAL_APPEND_NEW_SPECIAL_CHARS_TARGET,
        }

    def test_incremental_append_new_columns_with_special_characters(self, project: Any) -> None:
        self.run_twice_and_assert(None, "special_chars", "special_chars_target", project)


class TestIncrementalUniqueKey(BaseIncrementalUniqueKey):
    # Spark does not store a text in a date column, so the rows that the tests insert have to say `date`.
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {
            "seed.csv": seeds__seed_csv,
            "duplicate_insert.sql": seeds__duplicate_insert_sql.replace("'2022-", "date '2022-"),
            "add_new_rows.sql": seeds__add_new_rows_sql.replace("'2022-", "date '2022-"),
        }

    # The base lets the first run pass, as no other adapter looks at the key then. We refuse it already there.
    def fail_to_build_inc_missing_unique_key_column(self, incremental_model_name: str) -> tuple[Any, str]:
        run_dbt(["seed", "--select", "seed", "--full-refresh"])
        (result,) = run_dbt(["run", "--select", incremental_model_name, "--full-refresh"], expect_pass=False)
        assert "nothing was written" in result.message
        return result.status, result.message


class TestIncrementalUniqueKeyDirect(PublishDirect, TestIncrementalUniqueKey):
    pass


class TestIncrementalUniqueKeyMerge(TestIncrementalUniqueKey):
    """The same rows by `merge`."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+incremental_strategy": "merge"}}


class TestIncrementalPredicatesDeleteInsert(BaseIncrementalPredicates):
    pass


class TestPredicatesDeleteInsert(BaseIncrementalPredicates):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+predicates": ["id != 2"], "+incremental_strategy": "delete+insert"}}


class TestIncrementalPredicatesDeleteInsertDirect(PublishDirect, BaseIncrementalPredicates):
    pass


class TestIncrementalPredicatesMerge(BaseIncrementalPredicates):
    # As a part of MERGE's ON, where the target has a name.
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        predicates = ["DBT_INTERNAL_DEST.id != 2"]
        return {"models": {"+incremental_predicates": predicates, "+incremental_strategy": "merge"}}


class TestIncrementalPredicatesMergeDirect(PublishDirect, TestIncrementalPredicatesMerge):
    pass


class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    pass


class TestMergeExcludeColumnsDirect(PublishDirect, BaseMergeExcludeColumns):
    pass


class TestMicrobatch(BaseMicrobatch):
    pass


class TestMicrobatchDirect(PublishDirect, BaseMicrobatch):
    pass
