#!/usr/bin/env bash
# The dbt package with older and newer dbt than the tests have: the dbt-spark of hosted platforms, and their dbt-core.
set -euo pipefail
cd "$(dirname "$0")/.."
base=$PWD/.venv
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT

# What differs goes before what the environment of the tests has already.
layer() {
    "$base/bin/python" -m venv --clear "$venv"
    "$base/bin/python" -c 'import site; print(f"import site; site.addsitedir({site.getsitepackages()[0]!r})")' \
        > "$("$venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')/base.pth"
    # The folder `dbt.adapters` that is found first is the one that counts.
    adapters=$("$base/bin/python" -c 'from importlib.metadata import version; print(version("dbt-adapters"))')
    "$venv/bin/python" -m pip install --quiet --ignore-installed --no-deps "dbt-adapters==$adapters" "$@"
}

run() {
    "$venv/bin/python" -c "import dbt.version, dbt.adapters.spark.__version__ as s; print('dbt-core', dbt.version.__version__, 'dbt-spark', s.version)"
    "$venv/bin/python" -m pytest "$@" tests/functional/package/test_load.py::test_columns_come_and_go
}

layer dbt-spark==1.10.3
run

# Without its dependencies: dbt-core 1.12 wants a parser that its package downloads from elsewhere while it is installed.
layer dbt-spark==1.10.3 dbt-core==1.12.0
"$venv/bin/python" -m pip install --quiet metricflow python-dotenv 'click>=8.3,<9' 2>&1 | grep -v 'ERROR: pip.s dependency\|^dbt-' || true
run --profile thrift
