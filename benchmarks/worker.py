"""A dbt process that builds what it is told to, with one of the two adapters, and says how long it took.

It reads one JSON object a line: `{"model": sql, "config": {...}, "name": ...}`; it answers with the seconds
that dbt's node took, or with its error.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import yaml
from dbt.cli.main import dbtRunner

from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from dbt.adapters.sparkevolve.spark.jars import iceberg_runtime
from dbt.adapters.sparkevolve.spark.session_config import EXTENSIONS

PROJECT = {
    "name": "bench",
    "version": "1.0.0",
    "profile": "bench",
    "flags": {"send_anonymous_usage_stats": False},
}


def profile(adapter: str, folder: Path, memory: str) -> dict[str, Any]:
    """Return a profile on a session in this process: the same Spark settings for both adapters."""
    catalog = {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": f"file://{folder}/warehouse",
    }
    common = {"spark.driver.memory": memory, "spark.sql.shuffle.partitions": "4"}
    if adapter == "sparkevolve":
        return {
            "type": "sparkevolve",
            "method": "session",
            "schema": "bench",
            "catalog": "lake",
            "catalog_properties": catalog,
            "spark_config": common,
            "threads": 1,
        }
    import pyspark

    settings = resolve("lake", catalog, folder)
    settings.prepare()
    return {
        "type": "spark",
        "method": "session",
        "host": "unused",
        "schema": "bench",
        "threads": 1,
        "server_side_parameters": {
            **settings.spark,
            **common,
            "spark.master": "local[*]",
            "spark.jars.packages": f"{iceberg_runtime(pyspark.__version__)},org.xerial:sqlite-jdbc:3.50.3.0",
            "spark.sql.extensions": EXTENSIONS,
            "spark.sql.defaultCatalog": "lake",
        },
    }


def main(adapter: str, folder: Path, memory: str) -> None:
    """Answer each line of the standard input."""
    (folder / "models").mkdir(parents=True)
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(PROJECT))
    target = profile(adapter, folder, memory)
    (folder / "profiles.yml").write_text(yaml.safe_dump({"bench": {"target": "t", "outputs": {"t": target}}}))
    os.chdir(folder)
    for line in sys.stdin:
        order = json.loads(line)
        model = folder / "models" / f"{order['name']}.sql"
        model.write_text("{{ config(**" + repr(order["config"]) + ") }}\n" + order["model"] + "\n")
        where = ["--project-dir", str(folder), "--profiles-dir", str(folder), "--quiet"]
        result = dbtRunner().invoke(["run", "--select", order["name"], *where])
        if result.success:
            answer: dict[str, Any] = {"seconds": result.result[0].execution_time}
        else:
            answer = {"error": str(result.exception or result.result[0].message)}
        print("ANSWER " + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
