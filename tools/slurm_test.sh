#!/usr/bin/env bash
# Evaluation under Slurm, one process per GPU; with GPUS_PER_NODE=0 on CPUs (gloo), GPUS then is the number of processes.
# Usage: [GPUS=4 GPUS_PER_NODE=(4, or GPUS if fewer) CPUS_PER_TASK=5 SRUN_ARGS=] bash tools/slurm_test.sh PARTITION JOB_NAME CONFIG CHECKPOINT [options of test.py]
set -euo pipefail
PARTITION=${1:?usage: slurm_test.sh PARTITION JOB_NAME CONFIG CHECKPOINT [options of test.py]}
JOB_NAME=${2:?usage: slurm_test.sh PARTITION JOB_NAME CONFIG CHECKPOINT [options of test.py]}
CONFIG=${3:?usage: slurm_test.sh PARTITION JOB_NAME CONFIG CHECKPOINT [options of test.py]}
CHECKPOINT=${4:?usage: slurm_test.sh PARTITION JOB_NAME CONFIG CHECKPOINT [options of test.py]}
TOOLS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
GPUS=${GPUS:-4}
GPUS_PER_NODE=${GPUS_PER_NODE:-$((GPUS < 4 ? GPUS : 4))}
WHERE=()
[ "$GPUS_PER_NODE" = 0 ] || WHERE=(--gres=gpu:"$GPUS_PER_NODE" --ntasks-per-node="$GPUS_PER_NODE")

# SRUN_ARGS holds several words, so it is not quoted.
# shellcheck disable=SC2086
PYTHONPATH=$TOOLS/..${PYTHONPATH:+:$PYTHONPATH} exec srun -p "$PARTITION" \
    --job-name="$JOB_NAME" \
    ${WHERE[@]+"${WHERE[@]}"} \
    --ntasks="$GPUS" \
    --cpus-per-task="${CPUS_PER_TASK:-5}" \
    --kill-on-bad-exit=1 \
    ${SRUN_ARGS:-} \
    python -u "$TOOLS/test.py" "$CONFIG" "$CHECKPOINT" --launcher slurm "${@:5}"
