# Sourced by tools/demo.sh and tools/run_tests.sh. Defines
#
#   setup_venv [EXTRA...]   a Python 3.10-3.13 environment with this project and the named extras installed
#
# The active environment (venv or conda) is used where there is one, else `.venv` in the project root is made. After the
# call `python` is that environment's. A second call with nothing changed installs nothing.

_python_runs() {  # _python_runs COMMAND: it starts, has a supported version and can make environments
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

_find_python() {
    local candidate found=""
    for candidate in python3.12 python3.11 python3.10 python3.13 python3 python; do
        if _python_runs "$candidate"; then
            # Debian and Ubuntu ship ensurepip, which `venv` needs, in a package of its own.
            if "$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then
                echo "$candidate"
                return 0
            fi
            found=$candidate
        fi
    done
    if [ -n "$found" ]; then
        echo "error: $found cannot make virtual environments; install its venv module" \
            "(Debian, Ubuntu: apt install $found-venv)" >&2
    else
        echo "error: no Python 3.10 to 3.13 on PATH; install one, or activate an environment that has one" >&2
    fi
    return 1
}

setup_venv() {
    local root python env extras wanted stamp
    root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || return 1

    env=${VIRTUAL_ENV:-}
    if [ -z "$env" ] && [ -n "${CONDA_PREFIX:-}" ] && [ "${CONDA_DEFAULT_ENV:-base}" != base ]; then
        env=$CONDA_PREFIX
    fi
    if [ -n "$env" ]; then
        echo "environment: $env (active)"
        if ! _python_runs "$env/bin/python"; then
            echo "error: $env/bin/python does not run or is not Python 3.10 to 3.13; deactivate it" >&2
            return 1
        fi
    else
        env=$root/.venv
        echo "environment: $env"
        # An environment whose interpreter has gone, or whose making was cut short, is made anew.
        if ! _python_runs "$env/bin/python" || ! "$env/bin/python" -m pip --version >/dev/null 2>&1; then
            python=$(_find_python) || return 1
            "$python" -m venv --clear "$env" || return 1
        fi
        export VIRTUAL_ENV=$env
    fi
    export PATH=$env/bin:$PATH
    hash -r

    extras=$(IFS=,; echo "$*")
    wanted="$root $(cat "$root"/setup.py "$root"/pyproject.toml "$root"/mmseg_cct/stack.py | cksum)"
    stamp=$env/.mmseg_cct${extras:+-$extras}.installed
    if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
        echo "installed already: mmseg_cct${extras:+[$extras]}"
        return 0
    fi
    echo "installing mmseg_cct${extras:+[$extras]} and what it needs (PyTorch included: some 6 GB, minutes) ..."
    python -m pip install --quiet --disable-pip-version-check --no-input -e "$root${extras:+[$extras]}" || {
        echo "error: the installation into $env failed; pip's message is above" >&2
        return 1
    }
    echo "$wanted" >"$stamp"
}
