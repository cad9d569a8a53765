#!/usr/bin/env bash
# Run the README's install command as it is printed, with an empty home folder; then put the wheel that a release would
# upload in the place of what it installed, and run the README's first table, command by command, in the same home
# folder. Then go on with dbt-core 1.12, installed without its dependencies, of which one is not in every registry.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/build"
"$work/build/bin/pip" install --quiet build 'twine>=6.2'
PYTHON="$work/build/bin/python" scripts/release_check.sh "$work/dist"

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

repository=$PWD
mkdir "$work/project"
cd "$work/project"
export HOME="$work/home" PATH="$work/venv/bin:$PATH"
# Not through a pipe into grep -q, which would end dbt before it has ended itself.
dbt --version > "$work/version"
grep 'sparkevolve' "$work/version"
python "$repository/scripts/readme_commands.py" "$repository/README.md" "$work/project"
cd shop
python - <<'PYTHON'
from pathlib import Path

from pyiceberg.catalog import load_catalog

lake = load_catalog("lake", type="sql", uri=f"sqlite:///{Path('.sparkevolve/catalog.db').absolute()}")
rows = sorted(tuple(row.values()) for row in lake.load_table("analytics.orders").scan().to_arrow().to_pylist())
assert [row[0] for row in rows] == [1, 2, 3], rows
assert rows[1] == (2, "Bob", 45000000000, None, "web"), rows
print("1 passed, 0 failed")
PYTHON

"$pip" install --quiet --no-deps 'dbt-core>=1.12,<1.13' metricflow
"$pip" install --quiet python-dotenv opentelemetry-api sqlglot
rm -rf target
dbt --version > "$work/version"
grep 'installed: 1.12' "$work/version"
dbt parse
dbt run --vars 'release: 2'
