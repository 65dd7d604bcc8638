#!/usr/bin/env bash
# A real Grid Engine of one host on this machine: `eval "$(gridengine.sh up DIR)"`, work with it, `gridengine.sh down DIR`.
# Everything it has lies in DIR; ports are free ones; nothing of the system changes. Needs root.
set -euo pipefail

say() { printf 'gridengine.sh: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

[ $# -eq 2 ] || fail "found '$*', wanted: up DIR or down DIR"
action=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd)
PATH=$PATH:/usr/sbin
host=$(hostname)
export SGE_ROOT=$dir/root SGE_CELL=cell

[ "$(id -u)" -eq 0 ] || fail "sge_execd starts jobs for others: needs root"
for program in sge_qmaster sge_execd qconf qsub; do
  command -v "$program" >/dev/null || fail "no $program: install tests/labs/packages-gridengine.txt"
done

# Two free ports in a row, below those that the kernel hands out.
choose_ports() {
  for _ in $(seq 50); do
    SGE_QMASTER_PORT=$((20000 + RANDOM % 10000))
    SGE_EXECD_PORT=$((SGE_QMASTER_PORT + 1))
    (exec 3<>"/dev/tcp/127.0.0.1/$SGE_QMASTER_PORT") 2>/dev/null && continue
    (exec 3<>"/dev/tcp/127.0.0.1/$SGE_EXECD_PORT") 2>/dev/null && continue
    export SGE_QMASTER_PORT SGE_EXECD_PORT
    return
  done
  fail "no two free ports in a row"
}

# As Debian's package does for the whole system. The name of this host may resolve to localhost.
make_cell() {
  local folder common=$SGE_ROOT/$SGE_CELL/common
  mkdir -p "$common" "$dir/qmaster/job_scripts" "$dir/database" "$dir/execd"
  for folder in bin lib util utilbin; do ln -sfn "/var/lib/gridengine/$folder" "$SGE_ROOT/$folder"; done
  cat >"$common/bootstrap" <<CONF
Version: 6.2
admin_user none
default_domain none
ignore_fqdn false
spooling_method berkeleydb
spooling_lib libspoolb
spooling_params $dir/database
binary_path /usr/sbin
qmaster_spool_dir $dir/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
CONF
  echo "$host" >"$common/act_qmaster"
  echo "$host localhost" >"$common/host_aliases"
  /usr/share/gridengine/scripts/init_cluster "$SGE_ROOT" "$SGE_CELL" "$dir/database" root >&2
}

# Jobs of root, and a parallel environment of two slots, as the documentation has it.
configure() {
  qconf -sconf | sed "/^#/d; s#^execd_spool_dir .*#execd_spool_dir $dir/execd#; s#^min_\([ug]id\) .*#min_\1 0#" >"$dir/global"
  qconf -Mconf "$dir/global"
  qconf -as "$host"
  cat >"$dir/environment" <<CONF
pe_name mpi
slots 2
user_lists NONE
xuser_lists NONE
start_proc_args NONE
stop_proc_args NONE
allocation_rule \$fill_up
control_slaves TRUE
job_is_first_task FALSE
urgency_slots min
accounting_summary FALSE
qsort_args NONE
CONF
  qconf -Ap "$dir/environment"
  qconf -sq | sed "s#^qname .*#qname all.q#; s#^hostlist .*#hostlist $host#; s#^slots .*#slots 2#
    s#^pe_list .*#pe_list mpi#; s#^shell_start_mode .*#shell_start_mode unix_behavior#
    s#^load_thresholds .*#load_thresholds NONE#" >"$dir/queue"
  qconf -Aq "$dir/queue"
}

# The daemons of this cell, by their environment, and what they have started.
stop() {
  local own
  for own in /proc/[0-9]*; do
    if tr '\0' '\n' 2>/dev/null <"$own/environ" | grep -qxF "SGE_ROOT=$SGE_ROOT" && [ "${own#/proc/}" -ne $$ ]; then
      [[ "$(tr '\0' ' ' <"$own/cmdline")" =~ sge_(qmaster|execd|shepherd) ]] || continue
      kill -9 "${own#/proc/}" 2>/dev/null || true
    fi
  done
}

case $action in
up)
  trap 'stop' ERR
  trap 'stop; exit 130' INT TERM
  choose_ports
  make_cell
  sge_qmaster >&2
  for _ in $(seq 100); do qconf -sconf >/dev/null 2>&1 && break || sleep 0.1; done
  configure >&2
  sge_execd >&2
  echo "export SGE_ROOT=$SGE_ROOT SGE_CELL=$SGE_CELL SGE_QMASTER_PORT=$SGE_QMASTER_PORT SGE_EXECD_PORT=$SGE_EXECD_PORT"
  ;;
down)
  stop
  rm -rf "$dir"
  ;;
*) fail "found '$action', wanted up or down" ;;
esac
