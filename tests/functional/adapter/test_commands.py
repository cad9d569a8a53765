"""Commands and flags of dbt: debug, show, --empty, --sample, unit tests, query comments, ephemeral models."""

import re
from pathlib import Path
from typing import Any

import pytest
from dbt.cli.main import seed
from dbt.tests.adapter.dbt_debug.test_dbt_debug import (
    BaseDebugInvalidProjectPostgres,
    BaseDebugPostgres,
    BaseDebugProfileVariable,
)
from dbt.tests.adapter.dbt_show.test_dbt_show import (
    BaseShowDoesNotHandleDoubleLimit,
    BaseShowLimit,
    BaseShowSqlHeader,
)
from dbt.tests.adapter.empty import _models
from dbt.tests.adapter.empty.test_empty import (
    BaseTestEmpty,
    BaseTestEmptyInlineSourceRef,
    BaseTestEmptySeedFlag,
    MetadataWithEmptyFlag,
)
from dbt.tests.adapter.ephemeral.test_ephemeral import (
    BaseEphemeralErrorHandling,
    BaseEphemeralMulti,
    BaseEphemeralNested,
)
from dbt.tests.adapter.query_comment.test_query_comment import (
    BaseEmptyQueryComments,
    BaseMacroArgsQueryComments,
    BaseMacroInvalidQueryComments,
    BaseMacroQueryComments,
    BaseNullQueryComments,
    BaseQueryComments,
)
from dbt.tests.adapter.sample_mode.test_sample_mode import BaseSampleModeTest
from dbt.tests.adapter.unit_testing.test_case_insensitivity import BaseUnitTestCaseInsensivity
from dbt.tests.adapter.unit_testing.test_invalid_input import BaseUnitTestInvalidInput
from dbt.tests.adapter.unit_testing.test_quoted_reserved_word_column_names import (
    BaseUnitTestQuotedReservedWordColumnNames,
    my_model_sql,
    test_my_model_csv_fixtures_yml,
)
from dbt.tests.adapter.unit_testing.test_types import (
    BaseUnitTestingTypes,
    BaseUnitTestingVarcharFixtureNoTruncation,
)
from dbt.tests.util import check_relations_equal, run_dbt


class TestDebug(BaseDebugPostgres):
    # The other outputs of the base's profile are wrong in Postgres' ways.
    @pytest.fixture(scope="class")
    def profiles_config_update(
        self, dbt_profile_target: dict[str, Any], unique_schema: str
    ) -> dict[str, Any]:
        good = {**dbt_profile_target, "schema": unique_schema}
        outputs = {
            "default": good,
            "nopass": {key: value for key, value in good.items() if key != "catalog"},
            "wronguser": {
                **good,
                "catalog_properties": {"type": "sql", "uri": "sqlite:////nowhere/catalog.db"},
            },
            "none_target": None,
        }
        return {"test": {"outputs": outputs, "target": "default"}}


class TestDebugProfileVariable(BaseDebugProfileVariable):
    def test_ok(self, project: Any) -> None:
        run_dbt(["debug"])
        assert "ERROR" not in self.capsys.readouterr().out


class TestDebugInvalidProject(BaseDebugInvalidProjectPostgres):
    pass


class TestShowLimit(BaseShowLimit):
    pass


class TestShowSqlHeader(BaseShowSqlHeader):
    pass


class TestShowDoesNotHandleDoubleLimit(BaseShowDoesNotHandleDoubleLimit):
    DATABASE_ERROR_MESSAGE = "PARSE_SYNTAX_ERROR"


class TestEmptyFlag(BaseTestEmpty):
    pass


class TestEmptyFlagInlineSourceRef(BaseTestEmptyInlineSourceRef):
    pass


@pytest.mark.skipif(
    not any(parameter.name == "empty" for parameter in seed.params),
    reason="this dbt-core has no `dbt seed --empty`",
)
class TestEmptyFlagSeed(BaseTestEmptySeedFlag):
    pass


class TestMetadataWithEmptyFlag(MetadataWithEmptyFlag):
    # Without the model that drops a column, which Spark's macro refuses; and Spark has no varchar without
    # length.
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "schema.yml": _models.SCHEMA,
            "control.sql": _models.CONTROL,
            "get_columns_in_relation.sql": _models.GET_COLUMNS_IN_RELATION,
            "alter_column_type.sql": _models.ALTER_COLUMN_TYPE.replace("varchar", "string"),
            "alter_relation_comment.sql": _models.ALTER_RELATION_COMMENT,
            "alter_column_comment.sql": _models.ALTER_COLUMN_COMMENT,
            "truncate_relation.sql": _models.TRUNCATE_RELATION,
        }

    @pytest.mark.parametrize(
        "model",
        [
            "control",
            "get_columns_in_relation",
            "alter_column_type",
            "alter_relation_comment",
            "alter_column_comment",
            "truncate_relation",
        ],
    )
    def test_run(self, project: Any, model: str) -> None:
        super().test_run(project, model)


class TestSampleMode(BaseSampleModeTest):
    pass


class TestUnitTestingTypes(BaseUnitTestingTypes):
    # Spark's literals.
    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return [
            ["1", "1"],
            ["2.0", "2.0"],
            ["'12345'", "12345"],
            ["'string'", "string"],
            ["true", "true"],
            ["date '2011-11-11'", "2011-11-11"],
            ["timestamp '2013-11-03 00:00:00-0'", "2013-11-03 00:00:00-0"],
            ["array(1, 2, 3)", "'array(1, 2, 3)'"],
            ["map('10', 't', '20', NULL)", """'map("10", "t", "20", NULL)'"""],
            ['named_struct("a", 1, "b", 2)', """'named_struct("a", 1, "b", 2)'"""],
        ]


class TestUnitTestingVarchar(BaseUnitTestingVarcharFixtureNoTruncation):
    pass


class TestUnitTestCaseInsensitivity(BaseUnitTestCaseInsensivity):
    pass


class TestUnitTestInvalidInput(BaseUnitTestInvalidInput):
    pass


class TestUnitTestQuotedReservedWord(BaseUnitTestQuotedReservedWordColumnNames):
    # Spark's quotes.
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": my_model_sql,
            "my_upstream_model.sql": "select 1 as `GROUP`",
            "unit_tests.yml": test_my_model_csv_fixtures_yml,
        }


class TestQueryComments(BaseQueryComments):
    pass


class TestMacroQueryComments(BaseMacroQueryComments):
    pass


class TestMacroArgsQueryComments(BaseMacroArgsQueryComments):
    pass


class TestMacroInvalidQueryComments(BaseMacroInvalidQueryComments):
    pass


class TestNullQueryComments(BaseNullQueryComments):
    pass


class TestEmptyQueryComments(BaseEmptyQueryComments):
    pass


class TestEphemeralErrorHandling(BaseEphemeralErrorHandling):
    pass


def compiled(project: Any, name: str) -> str:
    """The SQL that a model was built with, on one line."""
    path = Path(project.project_root) / "target" / "run" / "test" / "models" / f"{name}.sql"
    return " ".join(path.read_text().split())


class TestEphemeralMulti(BaseEphemeralMulti):
    # The base compares with Postgres' CREATE VIEW.
    def test_ephemeral_multi(self, project: Any) -> None:
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        check_relations_equal(project.adapter, ["seed", "dependent", "double_dependent", "super_dependent"])
        sql = compiled(project, "double_dependent")
        assert sql.startswith(
            f"create or replace view `lake`.`{project.test_schema}`.`double_dependent` as with"
        )
        assert sql.count("__dbt__cte__base as (") == 1


class TestEphemeralNested(BaseEphemeralNested):
    def test_ephemeral_nested(self, project: Any) -> None:
        assert len(run_dbt(["run"])) == 2
        sql = compiled(project, "root_view")
        assert re.search(r"with __dbt__cte__ephemeral_level_two as \(.*\), __dbt__cte__ephemeral as \(", sql)
