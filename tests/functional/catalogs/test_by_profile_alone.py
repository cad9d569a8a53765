"""Catalogs by the profile alone: REST with signed requests on S3, Glue, Spark's own in Hive; and a cluster.

What is in the profile is what docs/catalogs.md prints, but for addresses, warehouses and keys.

dbt runs in a process of its own: Spark gets its jars when it starts, and only then.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyiceberg.catalog import Catalog, load_catalog

from dbt.adapters.sparkevolve.iceberg.metastore import COMPARES_TYPES
from tests.functional.cluster import StandaloneCluster
from tests.functional.harness import PRESERVE
from tests.functional.metastore import HiveMetastore
from tests.functional.object_stores import SECRET, Moto, SeaweedFs, program

pytestmark = pytest.mark.servers


class LenientMetastore(HiveMetastore):
    """One whose operator lets structs evolve, as has to be before Hive 3."""

    further_settings: Mapping[str, str] = {**HiveMetastore.further_settings, COMPARES_TYPES: "false"}


# The server, a program that it needs, and the name of the catalog.
SERVERS = {
    "rest-sigv4": (SeaweedFs, "weed", "lake"),
    "glue": (Moto, "moto_server", "lake"),
    "spark_catalog": (LenientMetastore, "java", "spark_catalog"),
    "standalone": (StandaloneCluster, "java", "lake"),
}

# Several dbt commands with one Spark; each is a line of JSON on stdin.
RUNNER = """
import json, sys
from dbt.cli.main import dbtRunner
for line in sys.stdin:
    arguments = json.loads(line)
    if not dbtRunner().invoke(arguments).success:
        sys.exit("failed: " + " ".join(arguments))
"""
STRATEGIES = {
    "by_key": {"unique_key": "id", "incremental_strategy": "delete+insert"},
    "straight": {"unique_key": "id", "incremental_strategy": "delete+insert", "publish": "direct"},
    "merged": {"unique_key": "id", "incremental_strategy": "merge"},
    "appended": {"incremental_strategy": "append"},
    "windowed": {"incremental_strategy": "insert_overwrite", "partition_by": ["id"]},
}
MODEL = """
{% if var('step') == 1 %}
select 1 as id, 10 as v, timestamp'2024-01-02 03:04:05 UTC' as at, named_struct('x', 1) as s, 'g' as gone
{% else %}
select 1 as id, 5000000000 as v, timestamp'2024-01-02 03:04:05 UTC' as at,
  named_struct('x', 2, 'y', 3) as s, 'n' as n
union all select 2, 20, null, null, 'm'
{% endif %}
"""
AT = datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
ROWS = [(1, 5000000000, AT, {"x": 2, "y": 3}, None, "n"), (2, 20, None, None, None, "m")]
# Where nothing of the first run is replaced.
FIRST = (1, 10, AT, {"x": 1, "y": None}, "g", None)


@pytest.fixture(params=SERVERS)
def place(
    request: pytest.FixtureRequest, method: str, tmp_path: Path
) -> Iterator[tuple[str, dict[str, str], dict[str, str]]]:
    """The name of a catalog, the profile's properties of it, and its settings of Spark."""
    if method != "session":
        pytest.skip("a Thrift server has its jars from its operator")
    server, needed, name = SERVERS[request.param]
    if server in (SeaweedFs, Moto):
        pytest.importorskip("boto3")
    if program(needed) is None:
        pytest.skip(f"needs {needed}")
    (tmp_path / "server").mkdir()
    with server(tmp_path / "server") as running:  # type: ignore[attr-defined]
        if isinstance(running, StandaloneCluster):
            yield name, running.properties, running.spark_config
            # All that Spark did to rows was done there.
            assert len(running.executors()) == 1
        else:
            yield name, running.properties, {}


def rows(catalog: Catalog, name: str) -> list[tuple[Any, ...]]:
    found = catalog.load_table(("shop", name)).scan().to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=lambda row: (row[0], row[4] is None))


def test_every_strategy_by_the_properties_of_pyiceberg_alone(
    place: tuple[str, dict[str, str], dict[str, str]], tmp_path: Path
) -> None:
    catalog_name, properties, spark_config = place
    project = tmp_path / "project"
    for folder in ("models", "seeds", "snapshots"):
        (project / folder).mkdir(parents=True)
    target = {
        "type": "sparkevolve",
        "method": "session",
        "schema": "shop",
        "catalog": catalog_name,
        "catalog_properties": properties,
        "spark_config": {"spark.sql.shuffle.partitions": 1, **spark_config},
    }
    (project / "profiles.yml").write_text(yaml.safe_dump({"case": {"target": "t", "outputs": {"t": target}}}))
    (project / "dbt_project.yml").write_text(
        "{name: case, version: '1.0.0', profile: case, flags: {send_anonymous_usage_stats: false}}\n"
    )
    for name, config in STRATEGIES.items():
        given = {"materialized": "incremental", "on_schema_change": PRESERVE, **config}
        if properties["type"] == "rest":
            # SeaweedFS 4.48 takes no table with partitions: "Invalid request body".
            given.pop("partition_by", None)
        (project / f"models/{name}.sql").write_text("{{ config(**" + repr(given) + ") }}\n" + MODEL)
    (project / "models/plain.sql").write_text(
        "{{ config(materialized='table') }} select id, {{ var('step') }} as step from {{ ref('by_key') }}"
    )
    (project / "models/properties.yml").write_text(
        "models: [{name: by_key, description: it's, columns: [{name: id, data_tests: [unique, not_null]}],"
        " config: {persist_docs: {relation: true, columns: true}, audits: ['id is not null']}}]\n"
    )
    (project / "seeds/cities.csv").write_text("id,name\n1,Kyjiw\n")
    (project / "snapshots/kept.sql").write_text(
        "{% snapshot kept %}{{ config(unique_key='id', strategy='check', check_cols=['step']) }}"
        "select * from {{ ref('plain') }}{% endsnapshot %}"
    )
    commands = [
        ["debug"],
        ["build", "--vars", "step: 1"],
        ["build", "--vars", "step: 2"],
        ["docs", "generate", "--vars", "step: 2"],
        ["run", "--vars", "step: 2", "--full-refresh", "--select", "merged", "plain"],
    ]
    places = ["--project-dir", str(project), "--profiles-dir", str(project)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input="\n".join(json.dumps([*command, *places]) for command in commands),
        capture_output=True,
        text=True,
        env={**environment, "AWS_EC2_METADATA_DISABLED": "true"},
        cwd=project,
        timeout=900,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert SECRET not in output + (project / "logs/dbt.log").read_text()

    catalog = load_catalog("lake", **properties)
    for name in ("by_key", "straight", "merged"):
        assert rows(catalog, name) == ROWS, name
    assert rows(catalog, "appended") == [FIRST, *ROWS]
    assert rows(catalog, "windowed") == ROWS
    assert catalog.load_table("shop.by_key").metadata.properties["comment"] == "it's"
    assert catalog.load_table("shop.plain").scan().to_arrow().to_pylist() == [
        {"id": 1, "step": 2},
        {"id": 2, "step": 2},
    ]
    versions = catalog.load_table("shop.kept").scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["step"], row["dbt_valid_to"] is None) for row in versions) == [
        (1, 1, False),
        (1, 2, True),
        (2, 2, True),
    ]
    assert catalog.load_table("shop.cities").scan().to_arrow().to_pylist() == [{"id": 1, "name": "Kyjiw"}]
    names = {*STRATEGIES, "plain", "kept", "cities"}
    assert {identifier[-1] for identifier in catalog.list_tables("shop")} == names
    for name in names:
        assert set(catalog.load_table(("shop", name)).metadata.refs) == {"main"}, name
    documented = json.loads((project / "target/catalog.json").read_text())["nodes"]
    assert list(documented["model.case.by_key"]["columns"]) == ["id", "v", "at", "s", "gone", "n"]
