#!/usr/bin/env bash
# A Slurm of one node on the loopback, for tests/tools/test_launchers.py. Debian, Ubuntu: apt install slurm-wlm munge; as root.
#
# Usage: eval "$(bash tests/shared/local_slurm.sh start DIR)"     starts it; logs are in DIR; sets SLURM_CONF for sinfo, srun, sbatch
#        bash tests/shared/local_slurm.sh stop DIR
set -euo pipefail
usage='usage: local_slurm.sh start|stop DIR'
action=${1:?$usage}
mkdir -p "${2:?$usage}"
dir=$(cd "$2" && pwd)
export SLURM_CONF=$dir/slurm.conf

stop() {
    local name
    for name in slurmd slurmctld munged; do
        [ ! -f "$dir/$name.pid" ] || kill "$(cat "$dir/$name.pid")" 2>/dev/null || true
    done
}

start() {
    local host user
    host=$(hostname -s)
    user=$(id -un)
    mkdir -p "$dir/state" "$dir/spool"
    (umask 077 && head -c 128 /dev/urandom >"$dir/munge.key")
    # linuxproc and task/none need neither cgroups nor pinned cores, which containers do not have.
    cat >"$SLURM_CONF" <<EOF
ClusterName=local
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
AuthInfo=socket=$dir/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=local Nodes=ALL Default=YES MaxTime=INFINITE State=UP
EOF
    # --force: a socket in a folder that others may write to, and a root without a munge user
    munged --force --socket="$dir/munge.socket" --key-file="$dir/munge.key" --pid-file="$dir/munged.pid" \
        --seed-file="$dir/munge.seed" --log-file="$dir/munged.log" >&2
    slurmctld >&2
    slurmd >&2
    for _ in $(seq 60); do
        if sinfo --noheader --format=%T 2>/dev/null | grep -q idle; then
            echo "export SLURM_CONF=$SLURM_CONF"
            return
        fi
        sleep 0.5
    done
    echo "error: no idle node after 30 s; see the logs in $dir" >&2
    return 1
}

case $action in
    start | stop) "$action" ;;
    *) echo "error: $action; $usage" >&2; exit 2 ;;
esac
