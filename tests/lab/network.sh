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
# to start commands with, or none.
set -euo pipefail

HOSTS="h0 h1 h2 h3 h4 h5 h6 h7"
RATE=100mbit
BURST=1600 # bytes that pass at once: one frame

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
  [ -s "$folder/$1.pid" ] && tr '\0' ' ' <"/proc/$(cat "$folder/$1.pid")/cmdline" 2>/dev/null |
    grep -qF -- "$(title "$1") infinity"
}

# A cable from a host to the switch. Both ends are as fast; the host has room for what it wants to send, a port of the
# switch has not. Frames are cut to size before they are counted.
plug() { # HOST ADDRESS QUEUE
  local switch
  switch=$(cat "$folder/switch.pid")
  on switch ip link add "$1" type veth peer name eth0 netns "$(cat "$folder/$1.pid")"
  on switch ip link set "$1" master br0 gso_max_segs 1 up
  on switch tc qdisc add dev "$1" root tbf rate $RATE burst $BURST limit "$3"
  on "$1" ip address add "$2/24" dev eth0
  on "$1" ip link set eth0 gso_max_segs 1 up
  on "$1" ip link set lo up
  # What every machine has, whichever it prefers; and what one connection learnt is not kept for the next.
  on "$1" sh -c 'cd /proc/sys/net/ipv4 && echo reno >tcp_congestion_control && echo 1 >tcp_no_metrics_save'
  on "$1" tc qdisc add dev eth0 root tbf rate $RATE burst $BURST limit 1514000
}

up() {
  local queue=${1:-32768} number=0 host priority
  [ "$(id -u)" -eq 0 ] || die "network namespaces need root"
  mkdir -p "$folder"
  [ -e "$folder/switch.pid" ] && die "$folder is up already"
  trap down EXIT
  echo "127.0.0.1 localhost" >"$folder/hosts"
  for host in $HOSTS head; do
    number=$((number + 1))
    echo "10.99.0.$number $host" >>"$folder/hosts"
  done
  hold switch
  on switch ip link add br0 type bridge
  on switch ip link set br0 up
  number=0
  for host in $HOSTS head; do
    number=$((number + 1))
    hold "$host"
    plug "$host" "10.99.0.$number" "$queue"
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
  local file net other
  for file in "$folder"/*.pid; do
    if [ -e "$file" ] && holds "$(basename "$file" .pid)"; then
      net=$(readlink "/proc/$(cat "$file")/ns/net")
      for other in /proc/[0-9]*; do
        [ "$(readlink "$other/ns/net" 2>/dev/null)" != "$net" ] || kill -KILL "${other#/proc/}" 2>/dev/null || true
      done
      while holds "$(basename "$file" .pid)"; do sleep 0.01; done
    fi
    rm -f "$file"
  done
  rm -f "$folder"/*.err "$folder/agent" "$folder/hosts"
}

case ${1:-} in
  up) up "${3:-}" ;;
  run) exec nsenter --target "$(cat "$folder/head.pid")" --net --uts --mount --wd="$PWD" -- "${@:3}" ;;
  drops) on switch tc -s qdisc show dev "$3" | sed -n 's/.*dropped \([0-9]*\).*/\1/p' ;;
  down) down ;;
  *) die "wanted up, run, drops or down" ;;
esac
