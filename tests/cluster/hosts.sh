#!/usr/bin/env bash
# Runs a command among several simulated hosts: network namespaces of this machine, joined by virtual Ethernet and a bridge.
# Usage: hosts.sh [-N HOSTS] [--sshd] [--hide PATH]… [--disk PATH=MIB]… COMMAND [ARGUMENT…]      e.g. hosts.sh -N 3 --sshd bash
#   -N: number of hosts (default 2): host0 at 10.77.0.1, host1 at 10.77.0.2, …; the command runs beside them, at 10.77.0.254, and finds them by name.
#   --sshd: each host runs an OpenSSH server on port 2222, with keys made for it; `ssh -F $TROUPE_SSH_CONFIG host0` connects to it, and
#           TROUPE_SSH_PORT, TROUPE_SSH_IDENTITY, TROUPE_SSH_KNOWN_HOSTS give the same settings one by one.
#   --hide: mounts an empty folder over PATH on the hosts, but not for the command: its files must be copied there.
#   --disk: PATH is a file system of MIB mebibytes, in memory, shared by the hosts and the command: it can be filled up.
# A script sources host_tools.sh to run something on a host, to limit, delay, drop or cut its traffic, and to count what is left.
# Each host has its own name, address, /dev/shm and System V memory; files are shared. All of it is in namespaces that end with
# this process, however it ends: no interface, file or process outlives it, and any number of instances can run in parallel.
# Exit code: COMMAND's; 77 if this machine lacks what is needed (prints "skipped:").
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
PATH=$PATH:/usr/sbin:/sbin

skip() {
  echo "skipped: $1"
  exit 77
}

outside() {
  local program owner=()
  for program in unshare nsenter setpriv; do
    command -v "$program" >/dev/null || skip "$program is not installed; apt-get install --no-install-recommends util-linux"
  done
  for program in ip tc ss; do
    command -v "$program" >/dev/null || skip "$program is not installed; apt-get install --no-install-recommends iproute2"
  done
  if [ "$sshd" = 1 ]; then
    command -v sshd >/dev/null || skip "sshd is not installed; apt-get install --no-install-recommends openssh-server"
    [ "$(id -u)" = 0 ] || skip "an OpenSSH server in namespaces needs root"
  fi
  [ "$(id -u)" = 0 ] || owner=(--map-root-user)
  unshare "${owner[@]}" --net --mount --pid --fork true 2>/dev/null || skip "this kernel gives user $(id -un) no namespaces; run it as root"
  # Whichever process of the chain dies takes the rest with it: setpriv handles this script's death, --kill-child and the kernel the others.
  setpriv --pdeathsig KILL unshare "${owner[@]}" --net --mount --uts --ipc --pid --fork --kill-child=KILL --mount-proc \
    bash "$here/hosts.sh" "${words[@]}" <&0 &
  local instance=$!
  trap 'kill -KILL $instance' INT TERM
  local code=0
  wait "$instance" || code=$?
  exit "$code"
}

start_host() { # start_host NUMBER
  local name=host$1 pid
  unshare --net --uts --ipc --mount bash -c '
    hostname "$1" && mount -t tmpfs tmpfs /dev/shm && ip link set lo up || exit 1
    shift
    for path in "$@"; do mount -t tmpfs tmpfs "$path" || exit 1; done
    touch "/run/hosts/$(hostname).ready"
    exec sleep infinity' - "$name" ${hidden[@]+"${hidden[@]}"} </dev/null >/dev/null &
  pid=$!
  disown "$pid" # bash would say when it is killed
  for _ in $(seq 200); do
    [ -e "/run/hosts/$name.ready" ] && break
    kill -0 "$pid" 2>/dev/null || { echo "hosts.sh: $name ended" >&2; exit 1; }
    sleep 0.02
  done
  [ -e "/run/hosts/$name.ready" ] || { echo "hosts.sh: $name did not come up" >&2; exit 1; }
  echo "$pid" >"/run/hosts/$name.pid"
  ip link add name "port$1" type veth peer name eth0 netns "$pid"
  ip link set "port$1" master switch up
  nsenter -t "$pid" -n ip address add "10.77.0.$(($1 + 1))/24" dev eth0
  nsenter -t "$pid" -n ip link set eth0 up
}

start_sshd() { # start_sshd NUMBER
  local name=host$1 address=10.77.0.$(($1 + 1)) pid
  local folder=/run/hosts/$name.ssh
  mkdir -m 700 "$folder"
  ssh-keygen -q -t ed25519 -N '' -C "$name" -f "$folder/key"
  cat >"$folder/sshd_config" <<CONF
Port 2222
ListenAddress $address
HostKey $folder/key
PidFile none
AuthorizedKeysFile /run/hosts/ssh/authorized_keys
StrictModes yes
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
PrintLastLog no
MaxStartups 100
CONF
  echo "[$address]:2222,[$name]:2222 $(cut -d ' ' -f 1,2 "$folder/key.pub")" >>/run/hosts/ssh/known_hosts
  printf 'Host %s %s\n  HostName %s\n' "$name" "$address" "$address" >>/run/hosts/ssh/config
  nsenter -t "$(<"/run/hosts/$name.pid")" -n -u -i -m --wd=/ /usr/sbin/sshd -D -E "$folder/log" -f "$folder/sshd_config" </dev/null &
  pid=$!
  disown "$pid"
  echo "$pid" >"/run/hosts/$name.sshd_pid"
  for _ in $(seq 200); do
    grep -q 'Server listening' "$folder/log" 2>/dev/null && return
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.02
  done
  echo "hosts.sh: sshd on $name did not come up:" >&2
  cat "$folder/log" >&2
  exit 1
}

inside() {
  mount -t tmpfs -o mode=755 tmpfs /run
  mount -t tmpfs tmpfs /dev/shm
  mkdir -m 755 /run/sshd /run/hosts
  { echo '127.0.0.1 localhost'; echo '10.77.0.254 outside'; for ((i = 0; i < hosts; ++i)); do echo "10.77.0.$((i + 1)) host$i"; done; } >/run/hosts/names
  mount --bind /run/hosts/names /etc/hosts
  for disk in ${disks[@]+"${disks[@]}"}; do mount -t tmpfs -o "size=${disk##*=}m" tmpfs "${disk%=*}"; done
  hostname outside
  ip link set lo up
  ip link add name switch type bridge
  ip address add 10.77.0.254/24 dev switch
  ip link set switch up
  export TROUPE_HOSTS=$hosts
  for ((i = 0; i < hosts; ++i)); do start_host "$i"; done
  if [ "$sshd" = 1 ]; then
    mkdir -m 700 /run/hosts/ssh
    export TROUPE_SSH_PORT=2222 TROUPE_SSH_IDENTITY=/run/hosts/ssh/id TROUPE_SSH_KNOWN_HOSTS=/run/hosts/ssh/known_hosts TROUPE_SSH_CONFIG=/run/hosts/ssh/config
    ssh-keygen -q -t ed25519 -N '' -C test -f "$TROUPE_SSH_IDENTITY"
    cp "$TROUPE_SSH_IDENTITY.pub" /run/hosts/ssh/authorized_keys
    for ((i = 0; i < hosts; ++i)); do start_sshd "$i"; done
    printf 'Host *\n  Port 2222\n  User %s\n  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n  StrictHostKeyChecking yes\n  BatchMode yes\n  LogLevel ERROR\n' \
      "$(id -un)" "$TROUPE_SSH_IDENTITY" "$TROUPE_SSH_KNOWN_HOSTS" >>"$TROUPE_SSH_CONFIG"
  fi
  local code=0
  "${command[@]}" || code=$?
  exit "$code"
}

words=("$@")
hosts=2
sshd=0
hidden=()
disks=()
while [ $# -gt 0 ]; do
  case $1 in
  -N) hosts=${2:-} && shift 2 ;;
  --sshd) sshd=1 && shift ;;
  --hide) hidden+=("$(readlink -f "$2")") && shift 2 ;;
  --disk)
    [[ "$2" =~ ^.+=[1-9][0-9]*$ && -d "${2%=*}" ]] || { echo "--disk is \"$2\"; it must be a folder that exists, \"=\" and a number of mebibytes" >&2; exit 2; }
    disks+=("$(readlink -f "${2%=*}")=${2##*=}") && shift 2
    ;;
  *) break ;;
  esac
done
[[ "$hosts" =~ ^[1-9][0-9]?$ ]] || { echo "-N is \"$hosts\"; it must be a number of hosts from 1 to 99" >&2; exit 2; }
[ $# -gt 0 ] || { sed -n 2,14p "$0" >&2; exit 2; }
command=("$@")
if [ $$ = 1 ]; then inside; else outside; fi
