#!/usr/bin/env bash
# Run the README's install command as it is printed, with an empty home folder; then put the built wheel alone in the
# place of what it installed; `dbt parse` and one `dbt run` find every macro. Then parse with dbt-core 1.12 too,
# installed without its dependencies, of which one is not in every package registry.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/build"
"$work/build/bin/pip" install --quiet build
"$work/build/bin/python" -m build --quiet --wheel --outdir "$work/dist" .

"${PYTHON:-python3}" -m venv "$work/venv"
pip="$work/venv/bin/pip"
command=$(sed -n "/^## Install/,/^## /{/^pip install /p}" README.md | head -n 1)
test -n "$command"
echo "$command"
mkdir "$work/home"
# What was downloaded before may be used; nothing else of this user is.
(
    export PIP_CACHE_DIR="${PIP_CACHE_DIR:-$("$pip" cache dir)}" PATH="$work/venv/bin:$PATH" HOME="$work/home"
    PIP_QUIET=1 bash -c "$command"
)
"$pip" uninstall --quiet --yes dbt-sparkevolve
"$pip" install --quiet --no-deps "$(echo "$work"/dist/*.whl)"
"$pip" check
"$work/venv/bin/python" scripts/provide_java.py

mkdir -p "$work/project/models"
cd "$work/project"
cat > dbt_project.yml <<'YAML'
name: smoke
version: 1.0.0
profile: smoke
YAML
cat > profiles.yml <<'YAML'
smoke:
  target: dev
  outputs:
    dev:
      type: sparkevolve
      method: session
      schema: analytics
      threads: 2
      catalog: lake
YAML
cat > models/orders.sql <<'SQL'
{{ config(materialized='incremental', unique_key='id', on_schema_change='append_new_columns_preserve') }}
select 1 as id, {{ "'red' as colour" if var('v', 1) == 1 else "2 as doors" }}
SQL
dbt="$work/venv/bin/dbt"
# Not through a pipe into grep -q, which would end dbt before it has ended itself.
"$dbt" --version > "$work/version"
grep 'sparkevolve' "$work/version"
"$dbt" parse
"$dbt" debug
"$dbt" run
"$dbt" run --vars 'v: 2'
"$work/venv/bin/python" - <<'PYTHON'
from pathlib import Path

from pyiceberg.catalog import load_catalog

lake = load_catalog("lake", type="sql", uri=f"sqlite:///{Path('.sparkevolve/catalog.db').absolute()}")
rows = lake.load_table("analytics.orders").scan().to_arrow().to_pylist()
assert rows == [{"id": 1, "colour": None, "doors": 2}], rows
print("1 passed, 0 failed")
PYTHON

"$pip" install --quiet --no-deps 'dbt-core>=1.12,<1.13' metricflow
"$pip" install --quiet python-dotenv opentelemetry-api sqlglot
rm -rf target
"$dbt" --version > "$work/version"
grep 'installed: 1.12' "$work/version"
"$dbt" parse
"$dbt" run --vars 'v: 2'
