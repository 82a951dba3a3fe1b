#!/usr/bin/env bash
# Trains a supervised baseline and CCT on synthetic scenes, on the same labelled images for the same iterations
# with the same seed, evaluates both and writes work_dirs/demo/report/report.html. Needs Python 3.10 or newer and
# bash, and is faster with a C++ compiler: two minutes on one CPU core after the installation.
#
# Usage: bash tools/demo.sh [SEED]     (default: 0; another seed writes to work_dirs/demo_seed<SEED>)
#
# A second call skips what is done, and starts a training over if it was stopped or its configs have
# changed since.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seed=${1:-0}
case $seed in
    '' | *[!0-9]*)
        echo "error: SEED=$seed; expected a whole number, as in: bash tools/demo.sh 1" >&2
        exit 2
        ;;
esac
out=work_dirs/demo
[ "$seed" = 0 ] || out=work_dirs/demo_seed$seed

source tools/setup_venv.sh
setup_venv

# The networks are small: a second thread saves little, and costs many times more on a busy machine.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
export PYTHONUNBUFFERED=1

train() {  # train METHOD TITLE
    local method=$1 title=$2 dir=$out/$1 log=$out/$1.log origin
    # A run belongs to the files that define it: with another version of them it would be another run.
    origin=$(cat configs/demo/*.py configs/methods/supervised.py mmseg_cct/datasets/shapes*.py \
        configs/_base_/{default_runtime,models/cct,datasets/shapes,schedules/cct}.py | cksum)
    if [ "$(cat "$dir/.done" 2>/dev/null)" = "$origin" ]; then
        echo "$title: trained already in $dir (delete it to train again), skipped"
        return
    fi
    [ ! -d "$dir" ] || echo "$title: $dir was stopped early or is of another version, starting over"
    rm -rf "$dir"
    echo "$title: training in $dir, log in $log"
    if ! python -u tools/train.py configs/demo/cct_shapes.py --method "$method" --work-dir "$dir" \
        --cfg-options "randomness.seed=$seed" 2>&1 | tee "$log" | progress; then
        echo "error: the training stopped; the end of $log:" >&2
        tail -n 15 "$log" >&2
        exit 1
    fi
    echo "$origin" >"$dir/.done"
}

progress() {  # the lines of a log that say how far it is, in short
    sed -un \
        -e 's/.*Iter(train) *\[ *\([0-9/]*\)\].*eta: \([0-9:]*\).*decode\.loss_ce: \([0-9.]*\).*/  iteration \1, left \2, supervised loss \3/p' \
        -e 's/.*Iter(val).*mIoU: \([0-9.]*\).*/  mIoU on val \1 %/p'
}

SECONDS=0
mkdir -p "$out"
# Two demos at once would remove each other's runs.
if ! mkdir "$out/.running" 2>/dev/null; then
    echo "error: $out: another demo is running here (after a crash: rmdir $out/.running)" >&2
    exit 1
fi
trap 'rmdir "$out/.running"' EXIT
train supervised 'supervised baseline'
train cct 'CCT'
python -W ignore tools/report.py supervised="$out/supervised" CCT="$out/cct" --out "$out/report"
echo "Open $out/report/report.html for curves and pictures. This took $((SECONDS / 60)) min $((SECONDS % 60)) s."
