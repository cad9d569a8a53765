#!/usr/bin/env bash
# The functional tests of the column rules, a replay of dead letters and the integration project, on Spark 3.5.
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
"$venv/bin/python" -m pytest \
  tests/functional/columns/test_added_and_removed.py \
  tests/functional/dead_letters/test_replay.py::test_values_without_a_place_and_conditions_that_are_none \
  tests/functional/dead_letters/test_values.py::test_which_letters_are_of_the_same_row \
  tests/functional/test_integration_project.py
