#!/usr/bin/env bash
# Everything that wants a GPU, in one call: all tests, the GPU tables of docs/performance.md, then
# ResNet-50 on CamVid at 360x480, supervised, CCT with its own target, CCT with a teacher, and CCT whose
# auxiliary decoders see a strong view, with 20, 50 and 100 labels, seed after seed until the time is up.
#
# Usage: bash benchmarks/on_gpu.sh OUT [HOURS]
#   OUT     folder of all results: a log of each step in OUT/logs, tables in OUT/tables, runs in
#           OUT/study, and summary.md
#   HOURS   time for the runs on CamVid, which begin last (default: 6); 0 leaves them out
#
# Call it again to go on: steps that are done (OUT/done) are skipped, runs that were stopped go on from
# their checkpoints. A step that fails is reported, and the others follow.
#
# Environment:
#   DATA        folder of CamVid (default: data/camvid)
#   WEIGHTS     ImageNet weights of a ResNet-50 in Caffe's layout, for cct_r50-caffe_camvid_50.py;
#               without it the weights that cct_r50_camvid_50.py names, which mmengine downloads
#   REFERENCE   clone of the authors' public code, measured beside the plugin
#   DEVICE      cuda (default) or cpu
#   SEEDS       seeds of the runs, in order (default: 0 1 2 3 4)
#   SIZE=tiny   sizes that take minutes on a CPU, to try the script out: its figures mean nothing
set -uo pipefail

usage() {
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
}

case ${1:-} in
    '' | -*)
        usage >&2
        exit 2
        ;;
esac
hours=${2:-6}
case $hours in
    *[!0-9]*)
        echo "error: HOURS=$hours; expected a whole number" >&2
        exit 2
        ;;
esac
hours=$((10#$hours))  # 08 would be octal
mkdir -p "$1/logs" "$1/done" "$1/tables" "$1/study" || exit 1
out=$(cd "$1" && pwd)
data=${DATA:+$(cd "$DATA" 2>/dev/null && pwd)}
reference=${REFERENCE:+$(cd "$REFERENCE" 2>/dev/null && pwd)}
weights=${WEIGHTS:+$(realpath "$WEIGHTS")}
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
[ -n "${DATA:-}" ] || data=$PWD/data/camvid

device=${DEVICE:-cuda}
read -ra seeds <<<"${SEEDS:-0 1 2 3 4}"
if [ -n "${REFERENCE:-}" ] && [ -z "$reference" ]; then
    echo "error: REFERENCE=$REFERENCE: no such folder; expected a clone of the public code" >&2
    exit 2
fi
if [ -n "${WEIGHTS:-}" ] && [ ! -f "$weights" ]; then
    echo "error: WEIGHTS=$WEIGHTS: no such file; expected a checkpoint" >&2
    exit 2
fi
if [ "$hours" != 0 ] && [ ! -f "$data/train.txt" ]; then
    echo "error: DATA=${DATA:-data/camvid}: no train.txt in it; expected the folder of CamVid" >&2
    exit 2
fi
if [ "$device" = cuda ] && ! python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
    echo "error: torch finds no GPU; expected one, or DEVICE=cpu SIZE=tiny to try the script out" >&2
    exit 2
fi

export PYTHONUNBUFFERED=1 PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-4}
[ "$device" = cuda ] || export CUDA_VISIBLE_DEVICES=

failed=()
step() {  # step NAME COMMAND...: runs it unless it is done, with a log
    local name=$1 begin=$SECONDS code
    shift
    if [ -e "$out/done/$name" ]; then
        echo "$name: done already, skipped"
        return 0
    fi
    echo "$name: $(date '+%H:%M:%S'), log in $out/logs/$name.log"
    printf '$ %s\n' "$*" >"$out/logs/$name.log"
    "$@" >>"$out/logs/$name.log" 2>&1
    code=$?
    if [ "$code" = 0 ]; then
        touch "$out/done/$name"
    else
        failed+=("$name")
        echo "$name: failed with exit code $code: $(tail -n 1 "$out/logs/$name.log")"
    fi
    echo "$name: $((SECONDS - begin)) s"
    return "$code"
}

# ---------------------------------------------------------------------------------------- sizes
common=(--device "$device" --allow-busy --threads 1)
branch=(python benchmarks/auxiliary_branch.py "${common[@]}")
whole=(python benchmarks/train_step.py "${common[@]}")
[ -z "$reference" ] || { branch+=(--reference "$reference"); whole+=(--reference "$reference"); }
dtypes=(float32 tf32 float16 bfloat16)  # trainings run in tf32 (torch's default), --amp in float16
if [ "${SIZE:-}" = tiny ]; then
    dtypes=(float32 bfloat16)
    branch+=(--repeats 1 --decoders 7 --classes 3 --channels 8 --images 1 --size 4 4
        --map-sizes 4x4 --scale-decoders 7 14 --scale-classes 3 --scale-images 1 2
        --scale-strides 2 4 --no-compile)
    whole+=(--repeats 1 --images 2 --size 32 32 --no-compile)
    config=configs/cct/cct_mbv2-jpu_camvid-180x240_20.py
    tests=(tests/engine/test_schedules.py)
    gpu_tests=(tests/models/layers/test_transfer.py)
    options=(model.backbone.init_cfg=None train_cfg.max_iters=2 train_cfg.val_interval=2
        train_dataloader.batch_size=2 val_dataloader.dataset.indices=2
        test_dataloader.dataset.indices=2)
else
    branch+=(--images 10)
    whole+=(--images 10 --size 320 320)
    config=configs/cct/cct_r50_camvid_50.py
    tests=(tests -n 4 --dist worksteal)
    gpu_tests=(tests -m gpu)
    options=()
fi
for part in train_dataloader.dataset.labeled train_dataloader.dataset.unlabeled \
    val_dataloader.dataset test_dataloader.dataset; do
    options+=("$part.data_root=$data")
done
if [ -n "$weights" ]; then
    [ "${SIZE:-}" = tiny ] || config=configs/cct/cct_r50-caffe_camvid_50.py
    [ "${SIZE:-}" = tiny ] || options+=("model.backbone.init_cfg.checkpoint=$weights")
fi

# ---------------------------------------------------------------------------------------- steps
machine() {
    git log -1 --format='commit %H %cd' 2>/dev/null
    [ "$device" = cpu ] || nvidia-smi
    python -m torch.utils.collect_env
}
step machine machine
step tests env OMP_NUM_THREADS=1 python -m pytest -q -p no:cacheprovider "${tests[@]}"
step tests-gpu env OMP_NUM_THREADS=1 MMSEG_CCT_TEST_GPU=1 \
    python -m pytest -q -p no:cacheprovider "${gpu_tests[@]}"

for dtype in "${dtypes[@]}"; do
    step "branch-$dtype" "${branch[@]}" --dtype "$dtype" --tables main \
        --json "$out/tables/branch-$dtype.json"
done
step branch-perturbations "${branch[@]}" --dtype "${dtypes[1]}" --tables perturbations \
    --json "$out/tables/branch-perturbations.json"
step branch-growth "${branch[@]}" --dtype "${dtypes[1]}" --tables scaling \
    --json "$out/tables/branch-growth.json"

variants=(merged channels_last merged+channels_last)
[ "${SIZE:-}" = tiny ] || variants+=(compiled_encoder compiled_encoder+merged+channels_last)
for dtype in "${dtypes[@]}"; do
    step "step-r50-$dtype" "${whole[@]}" --dtype "$dtype" --variants "${variants[@]}" \
        --json "$out/tables/step-r50-$dtype.json"
done
step step-mbv2 "${whole[@]}" --config configs/cct/cct_mbv2_camvid_50.py --dtype "${dtypes[1]}" \
    --variants "${variants[@]}" --json "$out/tables/step-mbv2.json"
step step-methods "${whole[@]}" --dtype "${dtypes[1]}" --method cct-plus unimatch fixmatch \
    --json "$out/tables/step-methods.json"

# ----------------------------------------------------------------------------------------- runs
if [ "$device" != cpu ]; then  # a run on each GPU
    count=$(python -c 'import torch; print(torch.cuda.device_count())')
    gpus=(--gpus "${CUDA_VISIBLE_DEVICES:-$(seq -s , 0 $((count - 1)))}")
fi
end=$((SECONDS + hours * 3600))

runs() {  # runs SEED: within the time that is left, to go on with next time
    local left=$((end - SECONDS)) name=runs-seed$1
    if [ -e "$out/done/$name" ]; then
        echo "$name: done already, skipped"
        return 0
    fi
    if [ "$left" -le 0 ]; then
        late+=("$name")
        return 0
    fi
    # cct and cct-strong have a teacher
    if step "$name" timeout --signal INT --kill-after 60 "$left" \
        python tools/ablation.py "$config" --methods supervised own-target cct cct-strong \
        -n 20 50 100 --seeds "$1" \
        "${gpus[@]+"${gpus[@]}"}" --out "$out/study" --cfg-options "${options[@]}"; then
        return 0
    fi
    if [ "$SECONDS" -ge "$end" ]; then  # stopped, not failed
        unset 'failed[-1]'
        late+=("$name")
    fi
}

late=()
if [ "$hours" != 0 ]; then
    for seed in "${seeds[@]}"; do
        runs "$seed"
    done
fi

# -------------------------------------------------------------------------------------- summary
{
    echo "# On a GPU: $(date '+%Y-%m-%d'), $device${SIZE:+, SIZE=$SIZE: these figures mean nothing}"
    for log in "$out"/logs/{branch,step}*.log; do
        [ -e "$log" ] || continue
        printf '\n## %s\n\n' "$(basename "$log" .log)"
        printf '    %s\n\n' "$(head -n 1 "$log" | cut -c 3-)"
        # a table, an empty line before each
        grep -E '^(\||#|Plain over bank|.* over unimatch)|^$' "$log" | cat -s
    done
    if [ -e "$out/logs/tests.log" ]; then
        printf '\n## tests\n\n%s\n' "$(tail -n 1 "$out/logs/tests.log")"
    fi
    if [ -e "$out/study/ablation.md" ]; then
        printf '\n## CamVid\n\n'
        sed 's/^# /### /;s/](/](study\//' "$out/study/ablation.md"
    fi
    [ "${#late[@]}" = 0 ] || printf '\nNo time was left for: %s\n' "${late[*]}"
    [ "${#failed[@]}" = 0 ] || printf '\nFailed: %s\n' "${failed[*]}"
} >"$out/summary.md"
echo "wrote $out/summary.md"
[ "${#late[@]}" = 0 ] || echo "no time was left for ${#late[@]} seeds; the same command goes on from here"
[ "${#failed[@]}" = 0 ] || { echo "failed: ${failed[*]}; the same command tries them again"; exit 1; }
