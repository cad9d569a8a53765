#!/usr/bin/env bash
# Build what a release would upload into a folder, and check it: metadata and README as PyPI takes them, and that the
# source archive alone makes the same wheel.
# Usage: scripts/release_check.sh FOLDER; python has `build` and `twine`.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:?which folder}
# The wheel is built from the source archive.
"${PYTHON:-python}" -m build --outdir "$folder" .
"${PYTHON:-python}" -m twine check --strict "$folder"/*
