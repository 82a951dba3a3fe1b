# Sourced by tools/demo.sh and tools/run_tests.sh. Defines
#
#   setup_venv [EXTRA...]   a Python environment (3.10 or newer) with this project and the named extras installed
#
# The active environment (venv or conda) is used where there is one, else `.venv` in the project root is made. After the
# call `python` is that environment's. A second call with nothing changed installs nothing.

_python_runs() {  # _python_runs COMMAND: it starts and is new enough
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1
}

_find_python() {  # `python3` first, which is the one that the person means
    local candidate found=
    for candidate in python3 python $(compgen -c python3. | grep -x 'python3\.[0-9]*' | sort -ru -t. -k2n); do
        if _python_runs "$candidate"; then
            # Debian and Ubuntu ship ensurepip, which `venv` needs, in a package of its own.
            "$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1 && echo "$candidate" && return
            found=${found:-$candidate}
        fi
    done
    if [ -n "$found" ]; then
        echo "error: $found cannot make environments; install its venv (Debian, Ubuntu: apt install $found-venv)" >&2
    else
        echo "error: no Python 3.10 or newer on PATH; install one, or activate an environment that has one" >&2
    fi
    return 1
}

setup_venv() {
    local root python env extras wanted stamp overwritten lacking
    root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || return 1

    env=${VIRTUAL_ENV:-}
    if [ -z "$env" ] && [ -n "${CONDA_PREFIX:-}" ] && [ "${CONDA_DEFAULT_ENV:-base}" != base ]; then
        env=$CONDA_PREFIX
    fi
    if [ -n "$env" ]; then
        echo "environment: $env (active)"
        _python_runs "$env/bin/python" || {
            echo "error: $env/bin/python does not run or is older than Python 3.10; deactivate it" >&2
            return 1
        }
    else
        env=$root/.venv
        echo "environment: $env"
        # An environment whose interpreter has gone, or whose making was cut short, is made anew.
        if ! _python_runs "$env/bin/python" || ! "$env/bin/python" -m pip --version >/dev/null 2>&1; then
            python=$(_find_python) && "$python" -m venv --clear "$env" || return 1
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
    overwritten=$(python -c 'import runpy, sys
print(*runpy.run_path(sys.argv[1])["distributions_to_overwrite"]())' "$root/mmseg_cct/stack.py") || return 1
    if [ -n "$overwritten" ]; then
        echo "error: $env has $overwritten, which this project's distributions would overwrite; deactivate it" \
            "(then .venv is made), or install beside them: docs/install.md, \"Which MMSegmentation\"" >&2
        return 1
    fi
    echo "installing mmseg_cct${extras:+[$extras]} and what it needs (PyTorch included: some 6 GB, minutes) ..."
    python -m pip install --quiet --disable-pip-version-check --no-input -e "$root${extras:+[$extras]}" || {
        echo "error: the installation into $env failed with $(python --version); pip's message is above" >&2
        return 1
    }
    lacking=$(python -c 'import cv2' 2>&1) || {
        echo "error: ${lacking##*$'\n'}; OpenCV needs it (Debian, Ubuntu: apt install libgl1 libglib2.0-0 libxcb1;" \
            "Fedora: dnf install mesa-libGL glib2 libxcb)" >&2
        return 1
    }
    case " $* " in *' weak '*) _install_crf ;; esac
    echo "$wanted" >"$stamp"
}

_install_crf() { # with the extra's Cython: the one that the distribution asks for knows no Python 3.13
    python -c 'import pydensecrf.densecrf' 2>/dev/null ||
        python -m pip install --quiet --disable-pip-version-check --no-build-isolation pydensecrf2 >/dev/null 2>&1 ||
        echo "note: no dense CRF (make_pseudo_labels --no-crf needs none); install a C++ compiler and Python's headers" \
            "(Debian, Ubuntu: apt install g++ python3-dev), then: pip install --no-build-isolation pydensecrf2" >&2
}
