"""dbt's ``catalogs.yml`` and ``catalog_name``: they name catalogs of the profile, and say nothing else."""

from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.catalogs import (  # type: ignore[attr-defined]
    CatalogIntegrationClient,
    CatalogWriteIntegrationConfig,
)

from dbt.adapters.sparkevolve.errors import CatalogNameError, CatalogsFileError
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings, Place, resolve
from dbt.adapters.sparkevolve.integrations import INTEGRATIONS, check, check_name

SECRET = "correct-horse-battery"
REST = {
    "type": "rest",
    "uri": "http://h/",
    "warehouse": "s3://w",
    "token": SECRET,
    "rest.sigv4-enabled": True,
}
END = ". What a catalog is stands in the profile, for Spark and PyIceberg alike. Nothing was read or written."


@pytest.fixture
def stated(tmp_path: Path) -> list[CatalogSettings]:
    """An embedded catalog, and a REST catalog beside it."""
    return [resolve("lake", {}, tmp_path), resolve("archive", REST, tmp_path, Place.of_further("archive"))]


def entry(name: str = "archive", type_: str = "iceberg_rest", **said: Any) -> CatalogWriteIntegrationConfig:
    """Return what dbt makes of a catalog's active write integration `w`."""
    return CatalogWriteIntegrationConfig(name=name, catalog_type=type_, catalog_name="w", **said)


@pytest.mark.parametrize(
    "config",
    [
        entry(),
        entry(type_="REST", table_format="ICEBERG", file_format="parquet", external_volume="s3://w"),
        entry(adapter_properties={"uri": "http://h/", "token": SECRET, "rest.sigv4-enabled": True}),
        entry("lake", "sql", table_format="iceberg"),
    ],
)
def test_an_entry_may_repeat_the_profile(
    config: CatalogWriteIntegrationConfig, stated: list[CatalogSettings]
) -> None:
    check(config, stated)
    client = CatalogIntegrationClient(INTEGRATIONS)
    integration = client.add(config)
    assert integration.allows_writes
    relation = integration.build_relation(None)  # type: ignore[arg-type]
    assert (relation.catalog_name, str(relation.table_format).lower()) == (config.name, "iceberg")


@pytest.mark.parametrize(
    "properties",
    [
        {"type": "sql", "uri": "sqlite:////w/catalog.db", "warehouse": "file:///w"},
        {"type": "rest", "uri": "http://h/", "s3.endpoint": "http://s3/", "s3.path-style-access": True},
        {
            "type": "rest",
            "uri": "http://h/",
            "spark": {"s3.endpoint": "http://a", "cache-enabled": False},
            "pyiceberg": {"s3.endpoint": "http://b"},
        },
        {
            "type": "rest",
            "uri": "http://h/",
            "auth": {"type": "basic", "basic": {"username": "u", "password": 1}},
        },
    ],
)
def test_an_entry_may_repeat_what_pyiceberg_gets_in_another_form(
    properties: dict[str, Any], tmp_path: Path
) -> None:
    stated = [resolve("lake", properties, tmp_path)]
    said = {name: value for name, value in properties.items() if name != "type"}
    check(entry("lake", properties["type"], adapter_properties=said), stated)
    with pytest.raises(CatalogsFileError, match="its `uri` in `adapter_properties` is another one"):
        check(entry("lake", properties["type"], adapter_properties={"uri": "http://other/"}), stated)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (entry("gone"), "the profile states `lake`, `archive` only: state it under `catalogs:` there"),
        (
            entry("Archive"),
            "the profile states `lake`, `archive` only: state it under `catalogs:` there",
        ),
        (
            entry(type_="hive"),
            "its `catalog_type` is 'hive', and the type in `catalogs.archive` of the profile is 'rest'",
        ),
        (
            entry("lake", "unity"),
            "its `catalog_type` is 'unity', and the type in `catalog_properties` of the profile is 'sql'",
        ),
        (
            entry(table_format="delta"),
            "its `table_format` is 'delta', and all tables of an Iceberg catalog are 'iceberg'",
        ),
        (
            entry(file_format="orc"),
            "its `file_format` is 'orc', and new tables have Parquet files; a model sets another one as "
            "`write.format.default` in `tblproperties`",
        ),
        (
            entry(external_volume="s3://other"),
            "its `external_volume` is not the `warehouse` in `catalogs.archive` of the profile",
        ),
        (
            entry(adapter_properties={"token": f"{SECRET}-2"}),
            "its `token` in `adapter_properties` is another one than in `catalogs.archive` of the profile",
        ),
        (
            entry(adapter_properties={"scope": "x"}),
            "it has `scope` in `adapter_properties`, which `catalogs.archive` of the profile has not: state "
            "it there",
        ),
    ],
)
def test_an_entry_that_says_something_else_is_refused_by_name(
    config: CatalogWriteIntegrationConfig, why: str, stated: list[CatalogSettings]
) -> None:
    with pytest.raises(CatalogsFileError) as raised:
        check(config, stated)
    assert raised.value.msg == (
        f"catalogs.yml: the write integration 'w' of the catalog '{config.name}' contradicts the profile: "
        f"{why}{END}"
    )
    assert (raised.value.catalog, raised.value.integration) == (config.name, "w")
    assert SECRET not in str(raised.value)


def test_what_one_side_alone_gets_is_compared_too(tmp_path: Path) -> None:
    properties = {"type": "rest", "uri": "http://h/", "spark": {"token": SECRET}}
    stated = [resolve("lake", properties, tmp_path)]
    end = f" `catalog_properties` of the profile{END}"
    for said, why in (
        ({"spark": {"token": "x"}}, "its `spark` in `adapter_properties` is another one than in"),
        ({"spark": SECRET}, "its `spark` in `adapter_properties` is another one than in"),
    ):
        with pytest.raises(CatalogsFileError) as raised:
            check(entry("lake", "rest", adapter_properties=said), stated)
        assert str(raised.value.msg).endswith(f"contradicts the profile: {why}{end}")
    with pytest.raises(CatalogsFileError, match="it has `pyiceberg` in `adapter_properties`, which"):
        check(entry("lake", "rest", adapter_properties={"pyiceberg": {"token": "x"}}), stated)


def test_a_model_is_in_the_catalog_that_it_names() -> None:
    names = ("lake", "archive")
    check_name("model.p.m", None, "third", names)
    check_name("model.p.m", "archive", "archive", names)
    for name, database, why in (
        ("gone", "gone", "the profile states 'lake', 'archive' only: state it under `catalogs:` there"),
        (
            "archive",
            "lake",
            "it would be built in 'lake', which `database` or the macro `generate_database_name` says: leave "
            "one of the two out",
        ),
    ):
        with pytest.raises(CatalogNameError) as raised:
            check_name("model.p.m", name, database, names)
        assert raised.value.msg == (
            f"model.p.m has `catalog_name: {name}`, and {why}. Nothing was read or written."
        )
