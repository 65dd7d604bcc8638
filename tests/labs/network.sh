#!/usr/bin/env bash
# Eight hosts on one machine: network namespaces with names of their own behind a switch of 100 Mbit/s.
#
#   network.sh up FOLDER [QUEUE]     starts them; QUEUE is what a port of the switch can hold, in bytes
#   network.sh run FOLDER COMMAND…   runs a command on the head, which is on the same switch
#   network.sh drops FOLDER HOST     packets that the switch's port to a host has thrown away
#   network.sh down FOLDER           ends all that runs on them, and them
#
# Every namespace is held by one process, and by nothing else: no name, no address and no interface of this machine is
# taken. FOLDER/agent is what ssh is elsewhere: `agent HOST COMMAND…`. A host starts commands with an empty environment
# and in another folder, as a machine does that is reached by ssh. Needs root.
#
# Hosts have processors of their own, so what runs on these goes before all else, in turns on one processor of this
# machine: that is plenty for 100 Mbit/s, if ranks give way while they wait. LAB_PRIORITY tells the agent another command
# to start commands with, or none; LAB_HOSTS and LAB_RATE name other hosts and another rate, LAB_MTU the
# size of a frame: the first that comes to an idle port costs nothing.
set -euo pipefail

HOSTS=${LAB_HOSTS:-h0 h1 h2 h3 h4 h5 h6 h7}
RATE=${LAB_RATE:-100mbit}
MTU=${LAB_MTU:-1500}
BURST=$((MTU + 100)) # bytes that pass at once: one frame

folder=$(realpath -m "$2")

die() {
  echo "network.sh: $*" >&2
  exit 1
}

on() { # HOST COMMAND…
  local pid
  pid=$(cat "$folder/$1.pid") || die "$folder is not up"
  nsenter --target "$pid" --net --uts --mount --wd="$PWD" -- "${@:2}"
}

# A process that holds the namespaces of a host. Its name is how it is known again: by the time of `down` its number may
# be somebody else's.
hold() { # NAME
  unshare --net --uts --mount --propagation slave bash -c \
    'hostname "$1" && mount --bind "$2/hosts" /etc/hosts && echo $$ >"$2/$1.pid" && exec -a "$0" sleep infinity' \
    "$(title "$1")" "$1" "$folder" </dev/null >/dev/null 2>"$folder/$1.err" &
  disown
  for _ in $(seq 200); do
    holds "$1" && return
    sleep 0.02
  done
  die "host $1 does not start: $(cat "$folder/$1.err")"
}

title() { echo "commodel-lab-$1-of-$folder"; }

holds() { # NAME
  [ -s "$folder/$1.pid" ] && tr '\0' ' ' 2>/dev/null <"/proc/$(cat "$folder/$1.pid")/cmdline" |
    grep -qF -- "$(title "$1") infinity"
}

# A cable from a host to the switch. Both ends are as fast; the host has room for what it wants to send, a port of the
# switch has not. Frames are cut to size before they are counted.
plug() { # HOST ADDRESS QUEUE
  local switch
  switch=$(cat "$folder/switch.pid")
  on switch ip link add "$1" mtu $MTU type veth peer name eth0 mtu $MTU address "$(card "$2")" netns "$(cat "$folder/$1.pid")"
  on switch ip link set "$1" master br0 gso_max_segs 1 up
  on switch tc qdisc add dev "$1" root tbf rate $RATE burst $BURST limit "$3"
  on "$1" ip address add "$2/16" dev eth0
  on "$1" ip link set eth0 gso_max_segs 1 up
  on "$1" ip link set lo up
  on "$1" ip -batch "$folder/neighbours"
  # What every machine has, whichever it prefers; and what one connection learnt is not kept for the next.
  on "$1" sh -c 'cd /proc/sys/net/ipv4 && echo reno >tcp_congestion_control && echo 1 >tcp_no_metrics_save'
  on "$1" tc qdisc add dev eth0 root tbf rate $RATE burst $BURST limit 1514000
}

address() { echo "10.99.$(($1 / 256)).$(($1 % 256))"; }

card() { # ADDRESS
  IFS=. read -r _ _ high low <<<"$1"
  printf '02:00:00:63:%02x:%02x' "$high" "$low"
}

up() {
  local queue=${1:-32768} number=0 host address priority
  [ "$(id -u)" -eq 0 ] || die "network namespaces need root"
  mkdir -p "$folder"
  [ -e "$folder/switch.pid" ] && die "$folder is up already"
  trap down EXIT
  echo "127.0.0.1 localhost" >"$folder/hosts"
  for host in $HOSTS head; do
    number=$((number + 1))
    address=$(address $number)
    echo "$address $host" >>"$folder/hosts"
    # All namespaces of a machine share one table of neighbours, too small for many hosts; these are not counted in it.
    echo "neigh replace $address lladdr $(card "$address") dev eth0 nud permanent" >>"$folder/neighbours"
  done
  hold switch
  on switch ip link add br0 type bridge
  on switch ip link set br0 up
  number=0
  for host in $HOSTS head; do
    number=$((number + 1))
    hold "$host"
    plug "$host" "$(address $number)" "$queue"
  done
  priority="taskset -c $(taskset -cp $$ | sed 's/.*[ ,-]//') chrt -r 1"
  $priority true 2>/dev/null || priority=""
  cat >"$folder/agent" <<EOF
#!/bin/sh
# agent [-OPTIONS] HOST COMMAND…: what ssh is elsewhere.
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1
shift
exec nsenter --target "\$(cat "$folder/\$host.pid")" --net --uts --mount --wd=/ -- \\
  env -i HOME=/root USER=root LOGNAME=root SHELL=/bin/sh PATH=/usr/bin:/bin \${LAB_PRIORITY-$priority} /bin/sh -c "\$*"
EOF
  chmod 755 "$folder/agent"
  trap - EXIT
}

# Whoever is in a namespace of ours is ours.
down() {
  local file net link
  local -A ours=()
  for file in "$folder"/*.pid; do
    [ -e "$file" ] && holds "$(basename "$file" .pid)" && ours[$(readlink "/proc/$(cat "$file")/ns/net")]=1
  done
  while read -r net link; do
    [ -z "${ours[$net]:-}" ] || kill -KILL "$(cut -d/ -f3 <<<"$link")" 2>/dev/null || true
  done < <(find /proc/[0-9]*/ns/net -maxdepth 0 -printf '%l %p\n' 2>/dev/null)
  for file in "$folder"/*.pid; do
    while [ -e "$file" ] && holds "$(basename "$file" .pid)"; do sleep 0.01; done
    rm -f "$file"
  done
  rm -f "$folder"/*.err "$folder/agent" "$folder/hosts" "$folder/neighbours"
}

case ${1:-} in
  up) up "${3:-}" ;;
  run) exec nsenter --target "$(cat "$folder/head.pid")" --net --uts --mount --wd="$PWD" -- "${@:3}" ;;
  drops) on switch tc -s qdisc show dev "$3" | sed -n 's/.*dropped \([0-9]*\).*/\1/p' ;;
  down) down ;;
  *) die "wanted up, run, drops or down" ;;
esac
