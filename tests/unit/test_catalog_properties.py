"""Which properties of a catalog are known, and which are near misses of one."""

import pytest
from pyiceberg import io
from pyiceberg.catalog import rest

from dbt.adapters.sparkevolve.iceberg.catalog_properties import KNOWN, near_miss


def test_every_property_of_pyiceberg_is_known() -> None:
    """A new version of it brings new ones."""
    prefixes = ("client.", "s3.", "hdfs.", "adls.", "gcs.", "glue.", "rest.", "hf.")
    constants = {
        value
        for module in (io, rest)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str) and value.startswith(prefixes) and value not in prefixes
    }
    assert len(constants) > 50
    assert constants - KNOWN == set()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("warehose", "warehouse"),
        ("wharehouse", "warehouse"),
        ("s3.acess-key-id", "s3.access-key-id"),
        ("s3.access_key_id", "s3.access-key-id"),
        ("credentials", "credential"),
        ("Uri", "uri"),
        ("oauth2_server_uri", "oauth2-server-uri"),
        ("s3.regiom", "s3.region"),
    ],
)
def test_a_near_miss_is_found(name: str, meant: str) -> None:
    assert near_miss(name) == meant


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_no_known_name_is_a_near_miss(name: str) -> None:
    assert near_miss(name) is None


@pytest.mark.parametrize("name", ["header.tokn", "py-io-imp", "jdbc.usr", "flag", "hadoop.x"])
def test_a_name_that_is_free_is_no_near_miss(name: str) -> None:
    assert near_miss(name) is None
