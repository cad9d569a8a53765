#!/usr/bin/env bash
# The functional tests of the column rules and the integration project, on Spark 3.5.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
"${PYTHON:-python3}" -m venv "$venv"
grep -v '^pyspark==\|^py4j==' requirements-dev.txt > "$venv/requirements.txt"
"$venv/bin/pip" install --quiet --upgrade pip
"$venv/bin/pip" install --quiet --requirement "$venv/requirements.txt" 'pyspark>=3.5.9,<3.6'
"$venv/bin/pip" install --quiet --no-deps --editable .
"$venv/bin/python" scripts/provide_java.py
"$venv/bin/python" -m pytest tests/functional/columns/test_added_and_removed.py tests/functional/test_integration_project.py
