#!/usr/bin/env bash
# Lint, types, docstring check, the documentation site and all tests, on a machine with only Python 3.10 or newer and bash.
#
# Usage: bash tools/run_tests.sh [--fast] [pytest arguments]
#   --fast   while you write: no site, and no test that trains, starts processes or steps whole models
#
# The active environment is used where there is one, else `.venv` is made; everything the project declares is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fast=
if [ "${1:-}" = --fast ]; then
    fast=yes
    shift
fi

source tools/setup_venv.sh
setup_venv weak dev

cores=$(env -u OMP_NUM_THREADS nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) # nproc heeds the variable
workers=$((cores < 4 ? cores : 4))
# One thread a worker: more threads than free cores slow torch down many times over.
export OMP_NUM_THREADS=1

echo "== ruff";      python -m ruff check .; python -m ruff format --check .
echo "== mypy";      python -m mypy
echo "== pydoclint"; python .ci/docstrings.py --quiet mmseg_cct tools
if [ -n "$fast" ]; then
    set -- -m 'not slow' "$@"
else
    # A warning, as a link that leads nowhere, is an error. The variable silences an advertisement.
    echo "== mkdocs"; NO_MKDOCS_2_WARNING=1 python -m mkdocs build --strict
fi
# A worker that is done takes tests from the others.
echo "== pytest";    python -m pytest -n "$workers" --dist worksteal "$@"
