"""What a Thrift session is opened with."""

from typing import Any

from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.spark.thrift import thrift_configuration


def configuration(**given: Any) -> dict[str, str]:
    output = {"method": "thrift", "host": "h", "schema": "analytics", "catalog": "lake"}
    catalog = {"catalog_properties": {"type": "rest", "uri": "http://h"}}
    return thrift_configuration(SparkEvolveCredentials.from_dict({**output, **catalog, **given}))


def test_a_thrift_session_has_the_catalog_and_the_schema_and_no_cache() -> None:
    assert configuration() == {
        "set:hiveconf:spark.sql.defaultCatalog": "lake",
        "set:hiveconf:spark.sql.catalog.lake.default-namespace": "analytics",
        "set:hiveconf:spark.sql.catalog.lake.cache-enabled": "false",
        "set:hiveconf:spark.sql.variable.substitute": "false",
        "set:hiveconf:spark.sql.ansi.enabled": "false",
    }


def test_what_the_profile_says_wins_in_a_thrift_session() -> None:
    given = {"spark.sql.catalog.lake.cache-enabled": "true", "spark.x": 5}
    assert configuration(server_side_parameters=given) == {
        **configuration(),
        "set:hiveconf:spark.sql.catalog.lake.cache-enabled": "true",
        "set:hiveconf:spark.x": "5",
    }


def test_no_catalog_property_is_sent_to_the_server() -> None:
    sent = configuration(catalog_properties={"type": "rest", "uri": "http://h", "token": "hidden"})
    assert sent == configuration()
