#!/usr/bin/env bash
# Distributed training on one or several machines, on GPUs (NCCL) or CPUs (gloo).
# Usage: [NNODES=1 NODE_RANK=0 MASTER_ADDR=127.0.0.1 PORT=29500] bash tools/dist_train.sh CONFIG PROCESSES [options of train.py]
set -euo pipefail
CONFIG=${1:?usage: dist_train.sh CONFIG PROCESSES [options of train.py]}
PROCESSES=${2:?usage: dist_train.sh CONFIG PROCESSES [options of train.py]}
case $PROCESSES in
    0 | *[!0-9]*)
        echo "error: PROCESSES=$PROCESSES; expected a whole number, as in: bash tools/dist_train.sh CONFIG 4" >&2
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
    "$TOOLS/train.py" "$CONFIG" --launcher pytorch "${@:3}"
