#!/usr/bin/env bash
# A real Slurm of four nodes on this machine: `eval "$(slurm.sh up DIR)"`, work with it, `slurm.sh down DIR`. Everything
# it has lies in DIR (a short path: sockets are in it); ports are free ones; nothing of the system changes. Needs root.
# A topology.conf that lies in DIR already says which switches its nodes n0 to n3 are on. LAB_NODES names other nodes. With
# LAB_NETWORK, a folder of network.sh, its hosts of these names are the nodes, and the controller runs on its head.
# LAB_GPUS=N: each node has N GPUs for Slurm, which are /dev/null; LAB_THIN_GPUS=M: those of the feature thin have M.
# LAB_LOSSES=yes: nodes are lost on purpose, which is noticed within seconds. Otherwise a busy machine is no lost node.
set -euo pipefail

say() { printf 'slurm.sh: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

[ $# -eq 2 ] || fail "found '$*', wanted: up DIR or down DIR"
action=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd)
export SLURM_CONF=$dir/slurm.conf
unset SLURM_JOB_ID
read -ra nodes <<<"${LAB_NODES:-n0 n1 n2 n3}"

[ "$(id -u)" -eq 0 ] || fail "slurmd starts jobs for others: needs root"
for program in munged slurmctld slurmd scontrol srun; do
  PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || fail "no $program: install tests/labs/packages-slurm.txt"
done
PATH=$PATH:/usr/sbin

on() { # HOST COMMAND…
  local there=()
  [ -z "${LAB_NETWORK:-}" ] ||
    there=(nsenter --target "$(cat "$LAB_NETWORK/$1.pid")" --net --uts --mount --wd="$PWD" --)
  "${there[@]}" "${@:2}"
}

address() { # HOST
  if [ -z "${LAB_NETWORK:-}" ]; then echo 127.0.0.1 && return; fi
  awk -v host="$1" '$2 == host { print $1 }' "$LAB_NETWORK/hosts"
}

# A free port for the controller and each node, in a row, below those that the kernel hands out.
free_ports() {
  local first port
  for _ in $(seq 50); do
    first=$((20000 + RANDOM % 10000))
    for port in $(seq "$first" $((first + ${#nodes[@]}))); do
      (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && continue 2
    done
    echo "$first" && return
  done
  fail "no $((${#nodes[@]} + 1)) free ports in a row"
}

configure() {
  local host port
  host=$(on head hostname -s)
  port=$(free_ports)
  mkdir -p "$dir/state" "$dir/spool"
  cat >"$SLURM_CONF" <<CONF
ClusterName=lab
SlurmctldHost=$host($(address head))
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket,cred_expire=$([ -n "${LAB_LOSSES:-}" ] && echo 5 || echo 120)
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmctldPidFile=$dir/slurmctld.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmdLogFile=$dir/slurmd-%n.log
SlurmdSpoolDir=$dir/spool/%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=${LAB_TASKS:-task/none}
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=1
# A job at its limit and a hung step are noticed within seconds here; sites wait minutes.
SlurmdTimeout=$([ -n "${LAB_LOSSES:-}" ] && echo 10 || echo 300)
KillWait=3
UnkillableStepTimeout=30
SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_min_interval=0
$([ -z "${LAB_GPUS:-}" ] || echo GresTypes=gpu)
TopologyPlugin=topology/$([ -e "$dir/topology.conf" ] && echo tree || echo none)
$(for i in "${!nodes[@]}"; do
    echo "NodeName=${nodes[i]} NodeHostname=$(on "${nodes[i]}" hostname -s) NodeAddr=$(address "${nodes[i]}")" \
      "Port=$((port + 1 + i)) CPUs=2 RealMemory=8000 $(gres_of "$i")" \
      "Feature=$([ "$i" -lt 2 ] && echo fat || echo thin)"
  done)
PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  [ -z "${LAB_GPUS:-}" ] || configure_gpus >"$dir/gres.conf"
}

# Of the two fat nodes LAB_GPUS, of the thin ones LAB_THIN_GPUS, or as many.
count_gpus() { [ "$1" -lt 2 ] && echo "${LAB_GPUS:-0}" || echo "${LAB_THIN_GPUS:-${LAB_GPUS:-0}}"; }

gres_of() { [ "$(count_gpus "$1")" -eq 0 ] || echo "Gres=gpu:$(count_gpus "$1")"; }

configure_gpus() {
  local number node
  for number in $(seq 0 $((LAB_GPUS - 1))); do
    ln -sf /dev/null "$dir/card$number" # Slurm wants devices
  done
  for node in "${!nodes[@]}"; do
    for number in $(seq 0 $(($(count_gpus "$node") - 1))); do
      echo "NodeName=${nodes[node]} Name=gpu File=$dir/card$number"
    done
  done
}

# Snakemake's jobs lose SLURM_CONF, as all SLURM_*, which on a cluster nobody needs: its file lies where Slurm looks.
wrap_commands() {
  local command
  mkdir -p "$dir/bin"
  for command in sacct sacctmgr sbatch scancel scontrol sinfo squeue srun; do
    printf '#!/bin/sh\nexport SLURM_CONF=%q\nexec %q "$@"\n' "$SLURM_CONF" "$(command -v "$command")" >"$dir/bin/$command"
    chmod +x "$dir/bin/$command"
  done
}

start_munged() {
  [ -s "$dir/munge.key" ] || (umask 077 && head -c 1024 /dev/urandom >"$dir/munge.key")
  munged --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" --pid-file="$dir/munged.pid" \
    --log-file="$dir/munged.log" --seed-file="$dir/munge.seed" --num-threads=2
}

alive() { [ -s "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null; }

start_nodes() {
  for node in "${nodes[@]}"; do on "$node" slurmd -N "$node"; done
}

# Until all are idle.
wait_idle() {
  for _ in $(seq 300); do
    [ "$(on head sinfo -h -N -t idle -o %N 2>/dev/null | wc -l)" -eq "${#nodes[@]}" ] && return
    sleep 0.1
  done
  fail "the nodes did not come up; see $dir/*.log"
}

# The daemons by their pid files; then what jobs have left behind, which has this Slurm's commands on PATH and its own
# job. The driver of a job has no SLURM_CONF.
stop() {
  on head scancel --user=root 2>/dev/null || true
  for file in "$dir"/slurmctld.pid "$dir"/slurmd-*.pid "$dir"/munged.pid; do
    if alive "$file"; then kill -9 "$(cat "$file")" 2>/dev/null || true; fi
    rm -f "$file"
  done
  local own
  for own in /proc/[0-9]*; do
    if tr '\0' '\n' 2>/dev/null <"$own/environ" | grep -qF "$dir/" &&
      { [[ "$(tr '\0' ' ' <"$own/cmdline")" == slurmstepd* ]] ||
        tr '\0' '\n' <"$own/environ" | grep -q '^SLURM_JOB_ID='; }; then
      kill -9 "${own#/proc/}" 2>/dev/null || true
    fi
  done
}

case $action in
up)
  trap 'stop' ERR
  trap 'stop; exit 130' INT TERM
  configure
  wrap_commands
  start_munged
  on head slurmctld
  start_nodes
  wait_idle
  echo "export PATH=$dir/bin:\$PATH SLURM_CONF=$SLURM_CONF"
  ;;
down)
  stop
  rm -rf "$dir"
  ;;
*) fail "found '$action', wanted up or down" ;;
esac
