# Functions for scripts that hosts.sh runs. Source it with `set -euo pipefail`. A host is identified by its number.
PATH=$PATH:/usr/sbin:/sbin
[ -n "${TROUPE_HOSTS:-}" ] || { echo "host_tools.sh: there are no hosts; start this by hosts.sh" >&2; exit 2; }

host_address() { echo "10.77.0.$(($1 + 1))"; }

# on_host NUMBER COMMAND…: runs it in the host's namespaces, in this folder. `"${enter[@]}" COMMAND… &` after `enter_host NUMBER` does the same, with its process in $!.
on_host() {
  local enter
  enter_host "$1"
  "${enter[@]}" "${@:2}"
}
enter_host() { enter=(nsenter -t "$(<"/run/hosts/host$1.pid")" -n -u -i -m --wd="$PWD" --); }

# link_rate NUMBER MBIT: limits both directions of the host's link; 0: no limit.
link_rate() {
  local rate=$2 burst=$(($2 * 1250 > 16000 ? $2 * 1250 : 16000)) # bytes: ten milliseconds' worth
  if [ "$rate" = 0 ]; then
    tc qdisc delete dev "port$1" root
    on_host "$1" tc qdisc delete dev eth0 root
  else
    tc qdisc replace dev "port$1" root tbf rate "${rate}mbit" burst "$burst" latency 50ms
    on_host "$1" tc qdisc replace dev eth0 root tbf rate "${rate}mbit" burst "$burst" latency 50ms
  fi
}

# Pulls the cable: no packet reaches or leaves the host, and the host is not notified.
link_down() { ip link set "port$1" down; }
link_up() { ip link set "port$1" up; }

# cut_hosts A B: drops what A and B send each other; mend_host A: removes every cut of A.
cut_hosts() {
  local peer
  peer=$(host_address "$2")
  on_host "$1" nft -f - <<RULES
add table inet partition
add chain inet partition in { type filter hook input priority 0; }
add chain inet partition out { type filter hook output priority 0; }
add rule inet partition in ip saddr $peer drop
add rule inet partition out ip daddr $peer drop
RULES
}
mend_host() { on_host "$1" nft delete table inet partition; }

# link_delay RELAY NUMBER DELAY_MS LOSS_PERCENT: sends the frames of its link through a program in each direction (the kernel has no netem). Call it again
# to change the values. RELAY: the path of frame_relay.
link_delay() {
  local relay=$1 number=$2 wish=/run/hosts/host$2.relay
  if [ ! -p "$wish" ]; then
    mkfifo "$wish"
    ip link add name "in$number" type veth peer name "out$number"
    ip link set "port$number" nomaster
    ip link set "in$number" master switch up
    ip link set "out$number" up
    local end
    for end in port out; do # the addresses of this side are the switch's alone
      echo 8 >"/proc/sys/net/ipv4/conf/$end$number/arp_ignore"
    done
    on_host "$number" ip link set eth0 gso_max_segs 1 # frames, not bundles of them
    "$relay" "port$number" "out$number" <>"$wish" >"$wish.out" 2>&1 &
    echo $! >"$wish.pid"
  fi
  echo "$3 $4" >"$wish"
  local said="delay $3 ms, loss $4 %"
  for _ in $(seq 250); do
    [ "$(tail -n 1 "$wish.out")" = "$said" ] && return
    kill -0 "$(<"$wish.pid")" 2>/dev/null || break
    sleep 0.02
  done
  echo "host_tools.sh: the relay of host$number does not say \"$said\": $(cat "$wish.out")" >&2
  return 1
}

# Processes on the hosts except sshd and its session processes, one per line.
processes_on_hosts() {
  local number name process words
  for ((number = 0; number < TROUPE_HOSTS; ++number)); do
    name=host$number
    for process in $(pids_on_host "$number"); do
      [ "$process" != "$(<"/run/hosts/$name.pid")" ] || continue
      words=$(ps -o args= -p "$process") || continue
      case $words in sshd:* | /usr/sbin/sshd\ * | "") continue ;; esac
      echo "$name: process $process: $words"
    done
  done
}
pids_on_host() {
  local net pid
  net=$(readlink "/proc/$(<"/run/hosts/host$1.pid")/ns/net")
  for pid in /proc/[0-9]*; do
    [ "$(readlink "$pid/ns/net" 2>/dev/null)" = "$net" ] && echo "${pid#/proc/}"
  done
  return 0
}

# Listening sockets on the hosts except those of sshd, and segments of shared memory, one per line.
sockets_on_hosts() {
  local number
  for ((number = 0; number < TROUPE_HOSTS; ++number)); do
    on_host "$number" ss -Htuln | awk -v host="host$number" '$5 !~ /:2222$/ { print host ": socket " $1 " " $5 }'
  done
}
segments_on_hosts() {
  local number
  for ((number = 0; number < TROUPE_HOSTS; ++number)); do
    on_host "$number" find /dev/shm -mindepth 1 -printf "host$number: shared memory %f\n"
    on_host "$number" awk -v host="host$number" 'NR > 1 { print host ": System V segment " $1 }' /proc/sysvipc/shm
  done
}
left_on_hosts() {
  processes_on_hosts
  sockets_on_hosts
  segments_on_hosts
}

# wait_for SECONDS COMMAND…: waits until the command succeeds; fails if it does not by then.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.05
  done
}
