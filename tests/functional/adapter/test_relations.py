"""Names of relations, the cache, the catalog, and relations that change their kind."""

from typing import Any

import pytest
from dbt.tests.adapter.aliases import fixtures as alias_fixtures
from dbt.tests.adapter.aliases.test_aliases import (
    BaseAliasErrors,
    BaseAliases,
    BaseSameAliasDifferentDatabases,
    BaseSameAliasDifferentSchemas,
)
from dbt.tests.adapter.caching.test_caching import (
    BaseCachingLowercaseModel,
    BaseCachingSelectedSchemaOnly,
    BaseCachingUppercaseModel,
    BaseNoPopulateCache,
)
from dbt.tests.adapter.catalog import files as catalog_files
from dbt.tests.adapter.catalog.relation_types import CatalogRelationTypes
from dbt.tests.adapter.column_types.test_column_types import BaseColumnTypes
from dbt.tests.adapter.concurrency.test_concurrency import BaseConcurrency
from dbt.tests.adapter.relations.test_changing_relation_type import BaseChangeRelationTypeValidator
from dbt.tests.adapter.relations.test_dropping_schema_named import BaseDropSchemaNamed
from dbt.tests.adapter.simple_copy.test_copy_uppercase import BaseSimpleCopyUppercase


class StringLiteralInSpark:
    # The base casts with `::text`.
    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {
            "cast.sql": "{% macro string_literal(s) %}cast('{{ s }}' as string){% endmacro %}",
            "expect_value.sql": alias_fixtures.MACROS__EXPECT_VALUE_SQL,
        }


class TestAliases(StringLiteralInSpark, BaseAliases):
    pass


class TestAliasErrors(BaseAliasErrors):
    pass


class TestSameAliasDifferentSchemas(StringLiteralInSpark, BaseSameAliasDifferentSchemas):
    pass


class TestSameAliasDifferentDatabases(StringLiteralInSpark, BaseSameAliasDifferentDatabases):
    pass


class TestCachingLowercaseModel(BaseCachingLowercaseModel):
    pass


class TestCachingUppercaseModel(BaseCachingUppercaseModel):
    pass


class TestCachingSelectedSchemaOnly(BaseCachingSelectedSchemaOnly):
    pass


class TestNoPopulateCache(BaseNoPopulateCache):
    pass


class TestCatalogRelationTypes(CatalogRelationTypes):
    # Spark has no materialized views, and dbt-spark's words for the other kinds are not Postgres'.
    @pytest.fixture(scope="class", autouse=True)
    def models(self) -> dict[str, str]:
        return {"my_table.sql": catalog_files.MY_TABLE, "my_view.sql": catalog_files.MY_VIEW}

    @pytest.mark.parametrize(
        ("node_name", "relation_type"),
        [("seed.test.my_seed", "table"), ("model.test.my_table", "table"), ("model.test.my_view", "view")],
    )
    def test_relation_types_populate_correctly(self, docs: Any, node_name: str, relation_type: str) -> None:
        super().test_relation_types_populate_correctly(docs, node_name, relation_type)


class TestColumnTypesOfTable(BaseColumnTypes):
    """``is_integer()`` and so on, for a table, whose types come from Iceberg's schema."""

    materialized = "table"

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        columns = {
            "smallint_col": ("smallint", ["integer", "number"]),
            "int_col": ("int", ["integer", "number"]),
            "bigint_col": ("bigint", ["integer", "number"]),
            "float_col": ("float", ["float", "number"]),
            "double_col": ("double", ["float", "number"]),
            "decimal_col": ("decimal(10,2)", ["numeric", "number"]),
            "string_col": ("string", ["string", "not number"]),
            "varchar_col": ("varchar(20)", ["string", "not number"]),
        }
        casts = ", ".join(f"cast('1' as {dtype}) as {name}" for name, (dtype, _) in columns.items())
        checks = {name: checks for name, (_, checks) in columns.items()}
        tests = [{"is_type": {"column_map": checks}}]
        return {
            "model.sql": f"{{{{ config(materialized='{self.materialized}') }}}} select {casts}",
            "schema.yml": {"version": 2, "models": [{"name": "model", "data_tests": tests}]},
        }

    def test_run_and_test(self, project: Any) -> None:
        self.run_and_test()


class TestColumnTypesOfView(TestColumnTypesOfTable):
    """The same for a view, whose types come from DESCRIBE."""

    materialized = "view"


class TestConcurrency(BaseConcurrency):
    pass


@pytest.mark.core
class TestChangeRelationTypes(BaseChangeRelationTypeValidator):
    pass


class TestDropSchemaNamed(BaseDropSchemaNamed):
    pass


class TestSimpleCopyUppercase(BaseSimpleCopyUppercase):
    # The base's profile is Postgres'.
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, profile_target: dict[str, Any]) -> dict[str, Any]:
        return dict(profile_target)
