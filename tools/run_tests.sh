#!/usr/bin/env bash
# Lint, types, docstring check, the documentation site and all tests, on a machine with only Python 3.10-3.12, a C++ compiler and bash.
# Usage: bash tools/run_tests.sh [pytest arguments]
# The active environment is used where there is one, else `.venv` is made; everything the project declares is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

source tools/setup_venv.sh
setup_venv weak dev

# More threads than free cores slow torch down many times over.
export OMP_NUM_THREADS=1

echo "== ruff";      python -m ruff check .
echo "== mypy";      python -m mypy
echo "== pydoclint"; pydoclint --quiet mmseg_cct tools
# A warning, as a link that leads nowhere, is an error. The variable silences an advertisement.
echo "== mkdocs";    NO_MKDOCS_2_WARNING=1 python -m mkdocs build --strict
echo "== pytest";    python -m pytest "$@"
