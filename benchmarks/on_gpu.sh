#!/usr/bin/env bash
# What wants a GPU, in one call: all tests, then the GPU tables of docs/performance.md.
#
# Usage: bash benchmarks/on_gpu.sh OUT
#   OUT   folder of the results: a log of each step in OUT/logs, figures in OUT/tables
#
# Call it again to go on: steps that are done (OUT/done) are skipped. A step that fails is reported,
# and the others follow.
#
# Environment:
#   REFERENCE   clone of the authors' public code, measured beside the plugin
#   DEVICE      cuda (default) or cpu
#   SIZE=tiny   sizes that take minutes on a CPU, to try the script out: its figures mean nothing
set -uo pipefail

case ${1:-} in
    '' | -*)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
esac
mkdir -p "$1/logs" "$1/done" "$1/tables" || exit 1
out=$(cd "$1" && pwd)
reference=${REFERENCE:+$(realpath "$REFERENCE")}
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
device=${DEVICE:-cuda}
export PYTHONUNBUFFERED=1 PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-4}
[ "$device" = cuda ] || export CUDA_VISIBLE_DEVICES=

failed=()
step() {  # step NAME COMMAND...: runs it unless it is done, with a log
    local name=$1 code
    shift
    if [ -e "$out/done/$name" ]; then
        echo "$name: done already, skipped"
        return
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
}

common=(--device "$device" --threads 1)
branch=(python benchmarks/auxiliary_branch.py "${common[@]}")
whole=(python benchmarks/train_step.py "${common[@]}")
kernel=(python benchmarks/triton_kernel.py)  # registers, time of each configuration, correctness
[ -z "$reference" ] || branch+=(--reference "$reference")
dtypes=(float32 tf32 float16 bfloat16)  # trainings run in tf32 (torch's default)
variants=(merged channels_last merged+channels_last)
compiled=()
tests=(tests -n 4 --dist worksteal)
gpu_tests=(tests -m gpu)
if [ "${SIZE:-}" = tiny ]; then
    dtypes=(float32 bfloat16)
    kernel+=(--archs 90 --types fp16)
    branch+=(--repeats 1 --decoders 15 --classes 3 --channels 8 --images 1 --size 4 4 --no-compile)
    whole+=(--repeats 1 --images 2 --size 32 32 --no-compile)
    tests=(tests/models/layers/test_channel_dropout.py)
    gpu_tests=(tests/models/layers/test_chunking.py)
else
    branch+=(--images 10)
    kernel+=(--gpu)
    whole+=(--images 10 --size 320 320)
    compiled=(bfloat16+compiled_encoder+channels_last)
fi

step machine python -m torch.utils.collect_env
step tests env OMP_NUM_THREADS=1 python -m pytest -q -p no:cacheprovider "${tests[@]}"
step tests-gpu env OMP_NUM_THREADS=1 MMSEG_CCT_TEST_GPU=1 \
    python -m pytest -q -p no:cacheprovider "${gpu_tests[@]}"
step kernel "${kernel[@]}"
# what a training takes as it is, with --amp, and with --amp --compile
step step-amp "${whole[@]}" --dtype "${dtypes[1]}" --method cct-strong \
    --variants bfloat16 "${compiled[@]}" --json "$out/tables/step-amp.json"
for dtype in "${dtypes[@]}"; do
    step "branch-$dtype" "${branch[@]}" --dtype "$dtype" --tables main \
        --json "$out/tables/branch-$dtype.json"
    step "step-r50-$dtype" "${whole[@]}" --dtype "$dtype" --variants "${variants[@]}" \
        --json "$out/tables/step-r50-$dtype.json"
done
step branch-growth "${branch[@]}" --dtype "${dtypes[1]}" --tables scaling \
    --json "$out/tables/branch-growth.json"
step step-mbv2 "${whole[@]}" --config configs/cct/cct_mbv2_camvid_50.py --dtype "${dtypes[1]}" \
    --variants "${variants[@]}" --json "$out/tables/step-mbv2.json"
step step-methods "${whole[@]}" --dtype "${dtypes[1]}" --method cct-plus unimatch fixmatch \
    --json "$out/tables/step-methods.json"
[ "${#failed[@]}" = 0 ] || { echo "failed: ${failed[*]}; the same command tries them again"; exit 1; }
