#!/usr/bin/env bash
# Distributed evaluation on one or several machines, on GPUs (NCCL) or CPUs (gloo).
# Usage: [NNODES=1 NODE_RANK=0 MASTER_ADDR=127.0.0.1 PORT=29500] bash tools/dist_test.sh CONFIG CHECKPOINT PROCESSES [options of test.py]
set -euo pipefail
CONFIG=${1:?usage: dist_test.sh CONFIG CHECKPOINT PROCESSES [options of test.py]}
CHECKPOINT=${2:?usage: dist_test.sh CONFIG CHECKPOINT PROCESSES [options of test.py]}
PROCESSES=${3:?usage: dist_test.sh CONFIG CHECKPOINT PROCESSES [options of test.py]}
case $PROCESSES in
    0 | *[!0-9]*)
        echo "error: PROCESSES=$PROCESSES; expected a whole number, as in: bash tools/dist_test.sh CONFIG CHECKPOINT 4" >&2
        exit 2
        ;;
esac
export PYTHONSAFEPATH=1 # no module of the current folder
TOOLS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

PYTHONPATH=$TOOLS/..${PYTHONPATH:+:$PYTHONPATH} exec python -m torch.distributed.run \
    --nnodes="${NNODES:-1}" \
    --node_rank="${NODE_RANK:-0}" \
    --master_addr="${MASTER_ADDR:-127.0.0.1}" \
    --master_port="${PORT:-29500}" \
    --nproc_per_node="$PROCESSES" \
    "$TOOLS/test.py" "$CONFIG" "$CHECKPOINT" --launcher pytorch "${@:4}"
