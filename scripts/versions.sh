#!/usr/bin/env bash
# What:  the functional tests of the column rules, audits and replays of dead letters and the integration project,
#        and one of the dbt package, with other versions than those that development has locked: one corner of what
#        the package's metadata admit.
# Usage: scripts/versions.sh oldest | spark-3.5 | spark-4.0 | dbt-1.12
# Why:   docs/compatibility.md says which versions work. CI runs `oldest`; run the others before a release.
set -euo pipefail
cd "$(dirname "$0")/.."
corner=${1:?which corner: oldest, spark-3.5, spark-4.0 or dbt-1.12}
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
pip() { "$venv/bin/pip" --quiet "$@"; }

# Everything as it is locked but for these: requirements of pip.
with() {
    names=$(printf '%s\n' "$@" | sed -E 's/[<>=].*//' | paste -sd '|')
    grep -vE "^($names|py4j)==" requirements-dev.txt > "$venv/requirements.txt"
    pip install --requirement "$venv/requirements.txt" "$@"
    pip install --no-deps --editable .
}

"${PYTHON:-python3}" -m venv "$venv"
pip install --upgrade pip
case "$corner" in
    # The floors of setup.py.
    oldest) pip install --requirement requirements-oldest.txt; pip install --no-deps --editable . ;;
    spark-3.5) with 'pyspark>=3.5,<3.6' ;;
    spark-4.0) with 'pyspark>=4.0,<4.1' ;;
    # One of its dependencies downloads from elsewhere while it is installed, and is not needed here.
    dbt-1.12)
        with 'dbt-core<1.12'
        pip install --no-deps --upgrade 'dbt-core>=1.12,<1.13'
        pip install metricflow python-dotenv 'click>=8.3,<9' 2>&1 | grep -v 'ERROR: pip.s dependency\|^dbt-' || true ;;
    *) echo "no such corner: $corner" >&2; exit 2 ;;
esac
"$venv/bin/python" scripts/provide_java.py
"$venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

names = ("dbt-core", "dbt-adapters", "dbt-common", "dbt-spark", "pyiceberg", "jinja2", "pyspark")
print("with", ", ".join(f"{name} {version(name)}" for name in names))
PYTHON
"$venv/bin/python" -m pytest \
  tests/functional/package/test_load.py::test_each_of_several_buckets_counts \
  tests/functional/columns/test_added_and_removed.py \
  tests/functional/dead_letters/test_replay.py::test_values_without_a_place_and_conditions_that_are_none \
  tests/functional/dead_letters/test_replay.py::test_a_key_is_loaded_once_whatever_rows_the_predicates_leave_out \
  tests/functional/backfill/test_statements.py::test_an_explain_says_why_an_update_cannot_be_planned \
  tests/functional/publication/test_audits.py \
  tests/functional/dead_letters/test_values.py::test_which_letters_are_of_the_same_row \
  tests/functional/test_integration_project.py
