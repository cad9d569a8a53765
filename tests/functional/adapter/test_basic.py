"""The suites of dbt-tests-adapter that every adapter has to pass."""

from typing import Any

import pytest
from dbt.tests.adapter.basic import files
from dbt.tests.adapter.basic.expected_catalog import (
    base_expected_catalog,
    expected_references_catalog,
    no_stats,
)
from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.basic.test_empty import BaseEmpty
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_incremental import (
    BaseIncremental,
    BaseIncrementalBadStrategy,
    BaseIncrementalNotSchemaChange,
)
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import BaseSingularTestsEphemeral
from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import BaseSnapshotTimestamp
from dbt.tests.adapter.basic.test_table_materialization import BaseTableMaterialization
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection
from dbt.tests.util import AnyInteger, AnyString, run_dbt


@pytest.mark.core
class TestSimpleMaterializations(BaseSimpleMaterializations):
    pass


class TestSingularTests(BaseSingularTests):
    pass


class TestSingularTestsEphemeral(BaseSingularTestsEphemeral):
    pass


@pytest.mark.writes_artifacts
class TestEmpty(BaseEmpty):
    pass


class TestEphemeral(BaseEphemeral):
    pass


@pytest.mark.core
class TestIncremental(BaseIncremental):
    pass


class TestIncrementalNotSchemaChange(BaseIncrementalNotSchemaChange):
    # The base's model says sync_all_columns, which drops columns, and which we refuse. What the test is
    # about, a text that gets longer, is the same with a policy that we have.
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        sql = files.incremental_not_schema_change_sql.replace("sync_all_columns", "append_new_columns")
        return {"incremental_not_schema_change.sql": sql}


class TestIncrementalBadStrategy(BaseIncrementalBadStrategy):
    # The base expects dbt's message about a macro that is missing; ours names what is allowed.
    def test_incremental_invalid_strategy(self, project: Any) -> None:
        run_dbt(["seed"])
        (result,) = run_dbt(["run"], expect_pass=False)
        assert 'incremental_strategy is "bad_strategy" in model.incremental.incremental' in result.message
        assert "Allowed are: delete+insert, append" in result.message


@pytest.mark.core
class TestGenericTests(BaseGenericTests):
    pass


class TestSnapshotCheckCols(BaseSnapshotCheckCols):
    pass


class TestSnapshotTimestamp(BaseSnapshotTimestamp):
    pass


class TestAdapterMethods(BaseAdapterMethod):
    pass


class TestTableMaterialization(BaseTableMaterialization):
    pass


class TestValidateConnection(BaseValidateConnection):
    pass


FIGURES = {
    "rows": ("Row count", "Number of rows"),
    "bytes": ("Approximate size", "Bytes of the files of data and of deletes"),
    "files": ("Data files", "Number of data files"),
    "last_modified": ("Last modified", "When rows were last changed, in UTC"),
    "snapshots": ("Snapshots", "Those kept, of all branches"),
    "format_version": ("Format version", "Iceberg's version of the table"),
}


def with_owners_and_figures(catalog: dict[str, Any]) -> dict[str, Any]:
    """Expect an owner and figures of each table: Iceberg notes who made it, and of a view it does not."""
    for kind in ("nodes", "sources"):
        for node in catalog[kind].values():
            if node["metadata"]["type"] == "table":
                node["metadata"]["owner"] = AnyString()
                node["stats"] = {**node["stats"], **figures_of_the_seed()}
    return catalog


def figures_of_the_seed() -> dict[str, Any]:
    """What is told of a table of one row, which was made a moment ago."""
    values = {"rows": 1, "files": 1, "snapshots": 1, "format_version": 2, "last_modified": AnyString()}
    figures = {
        id: {
            "id": id,
            "label": label,
            "value": values.get(id, AnyInteger()),
            "description": description,
            "include": True,
        }
        for id, (label, description) in FIGURES.items()
    }
    has_stats = {**no_stats()["has_stats"], "value": True}
    return {**figures, "has_stats": has_stats}


@pytest.mark.core
@pytest.mark.writes_artifacts
class TestDocsGenerate(BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any) -> dict[str, Any]:
        return with_owners_and_figures(
            base_expected_catalog(
                project,
                role=None,
                id_type="bigint",
                text_type="string",
                time_type="timestamp",
                view_type="view",
                table_type="table",
                model_stats=no_stats(),
            )
        )


@pytest.mark.writes_artifacts
class TestDocsGenReferences(BaseDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any) -> dict[str, Any]:
        return with_owners_and_figures(
            expected_references_catalog(
                project,
                role=None,
                id_type="bigint",
                text_type="string",
                time_type="timestamp",
                bigint_type="bigint",
                view_type="view",
                table_type="table",
                model_stats=no_stats(),
            )
        )
