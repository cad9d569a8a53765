"""Seeds: types, delimiters, encodings, refreshes."""

import re
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.simple_seed import fixtures, seeds, test_seed
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseBasicSeedTests,
    BaseSeedConfigFullRefreshOff,
    BaseSeedConfigFullRefreshOn,
    BaseSeedCustomSchema,
    BaseSeedParsing,
    BaseSeedSpecificFormats,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSeedWithWrongDelimiter,
    BaseSimpleSeedEnabledViaConfig,
    BaseSimpleSeedWithBOM,
    BaseTestEmptySeed,
)
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride
from dbt.tests.util import get_connection, run_dbt
from pyiceberg.catalog import Catalog

# Spark's types and quotes; and it does not store a text in a timestamp column.
EXPECTED_SQL = re.sub(
    r"'([^']+)'\)",
    r"timestamp '\1')",
    seeds.seeds__expected_sql.replace("TIMESTAMP WITHOUT TIME ZONE", "timestamp")
    .replace(" TEXT", " string")
    .replace('"', "`"),
)


class ExpectedInSpark:
    """Make the table that the seeds are compared with by Spark's SQL."""

    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:
        project.run_sql(EXPECTED_SQL.split(";")[0])
        project.run_sql(EXPECTED_SQL.split(";")[1])


class NoCascade(ExpectedInSpark):
    """A view stays when the table under it is dropped, where the base expects it to go."""

    def _check_relation_end_state(self, run_result: Any, project: Any, exists: bool) -> None:
        super()._check_relation_end_state(run_result, project, exists=True)  # type: ignore[misc]


class TestBasicSeeds(NoCascade, BaseBasicSeedTests):
    pass


class TestSeedConfigFullRefreshOn(NoCascade, BaseSeedConfigFullRefreshOn):
    pass


class TestSeedConfigFullRefreshOff(ExpectedInSpark, BaseSeedConfigFullRefreshOff):
    pass


class TestSeedCustomSchema(ExpectedInSpark, BaseSeedCustomSchema):
    pass


class TestSeedWithUniqueDelimiter(ExpectedInSpark, BaseSeedWithUniqueDelimiter):
    pass


class TestSeedWithEmptyDelimiter(ExpectedInSpark, BaseSeedWithEmptyDelimiter):
    pass


class TestSeedWithWrongDelimiter(ExpectedInSpark, BaseSeedWithWrongDelimiter):
    # The base expects a syntax error, of a column's bare name with pipes in it. We quote each name, so the
    # seed is what the file is by that delimiter: one column.
    def test_seed_with_wrong_delimiter(self, project: Any, lake: Catalog) -> None:
        run_dbt(["seed"])
        schema = lake.load_table((project.test_schema, "seed_pipe_separated")).schema()
        assert schema.column_names == ["seed_id|first_name|email|ip_address|birthday"]


class TestSimpleSeedEnabledViaConfig(BaseSimpleSeedEnabledViaConfig):
    # The base drops the schema by SQL with CASCADE, which an Iceberg catalog does not do.
    @pytest.fixture
    def clear_test_schema(self, project: Any) -> Any:
        yield
        with get_connection(project.adapter):
            relation = project.adapter.Relation.create(database=project.database, schema=project.test_schema)
            project.adapter.drop_schema(relation)


class TestSeedParsing(ExpectedInSpark, BaseSeedParsing):
    pass


class TestSimpleSeedWithBOM(ExpectedInSpark, BaseSimpleSeedWithBOM):
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        text = Path(test_seed.__file__).with_name("seed_bom.csv").read_text(encoding="utf-8")
        assert text.startswith("\ufeff")
        return {"seed_bom.csv": text}


class TestSeedSpecificFormats(BaseSeedSpecificFormats):
    # Where the base writes a large file: not into the repository.
    @pytest.fixture(scope="class")
    def test_data_dir(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("seeds") / "data"


class TestEmptySeed(BaseTestEmptySeed):
    pass


class TestSimpleSeedColumnOverride(BaseSimpleSeedColumnOverride):
    # Spark's names of the types.
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        types = {"text": "string", "integer": "bigint", "timestamp without time zone": "timestamp"}
        properties = re.sub(
            r"type: ([a-z ]+)",
            lambda match: f"type: {types.get(match[1], match[1])}",
            fixtures.properties__schema_yml,
        )
        return {"schema.yml": properties}

    @staticmethod
    def seed_enabled_types() -> dict[str, str]:
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types() -> dict[str, str]:
        return dict.fromkeys(("seed_id_str", "looks_like_a_bool", "looks_like_a_date"), "string")
