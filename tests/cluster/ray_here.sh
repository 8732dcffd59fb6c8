#!/usr/bin/env bash
# Runs a command next to a private Ray cluster, and shuts the cluster down afterwards.
# Usage: ray_here.sh PYTHON [--hosts] COMMAND [ARGUMENT…]      e.g. ray_here.sh venv/bin/python troupe launch …
#   PYTHON: has the package ray. --hosts: for use within hosts.sh: a Ray node on each of its hosts, the cluster's head on host0, and
#   a node without CPUs beside them; otherwise one node on this host. Each has 4 CPUs. COMMAND finds the cluster by RAY_ADDRESS, and PYTHON
#   by TROUPE_RAY_PYTHON.
# Ray's processes end with this script, or with hosts.sh. Their files are in a temporary folder.
# Exit code: COMMAND's; 77 if this machine lacks what is needed (prints "skipped:"); 1 if Ray does not start.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
[ $# -ge 2 ] || { sed -n 2,8p "$0" >&2; exit 2; }
"$1" -c 'import ray' 2>/dev/null || { echo "skipped: $1 has no package ray"; exit 77; }
if [ -z "${TROUPE_RAY_FOLDER:-}" ]; then
  TROUPE_RAY_FOLDER=$(mktemp -d "${TMPDIR:-/tmp}/ray.XXXXXX") # short: it is part of the paths of sockets
  export TROUPE_RAY_FOLDER
  trap 'rm -rf "$TROUPE_RAY_FOLDER"' EXIT
  apart=(unshare --pid --mount --ipc --fork --kill-child=KILL --mount-proc)
  [ "$2" != --hosts ] || apart=() # they are in such namespaces
  [ "$2" = --hosts ] || "${apart[@]}" true 2>/dev/null || { echo "skipped: this kernel gives user $(id -un) no namespaces; run it as root"; exit 77; }
  code=0
  "${apart[@]}" bash "$0" "$@" <&0 || code=$?
  exit "$code"
fi
folder=$TROUPE_RAY_FOLDER
unset TROUPE_RAY_FOLDER
python=$1
shift
export RAY_USAGE_STATS_ENABLED=0 RAY_DISABLE_IMPORT_WARNING=1 RAY_object_store_memory=100000000 PYTHONDONTWRITEBYTECODE=1
ray() { "$python" -c 'from ray.scripts.scripts import main; main()' "$@"; }
free_port='import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'
common=(--num-cpus 4 --num-gpus 0 --object-store-memory 100000000 --disable-usage-stats)
up() { # up NUMBER WORD…: logs
  if ! "${@:2}" >"$folder/start-$1" 2>&1; then
    echo "ray_here.sh: Ray did not come up:" >&2
    tail -n 20 "$folder/start-$1" >&2
    exit 1
  fi
}
if [ "${1:-}" = --hosts ]; then
  shift
  source "$here/host_tools.sh"
  port=$(on_host 0 "$python" -c "$free_port")
  for ((host = 0; host < TROUPE_HOSTS; ++host)); do
    address=$(host_address "$host")
    if [ "$host" = 0 ]; then
      where=(--head --port "$port" --include-dashboard=false --temp-dir "$folder")
    else
      where=(--address "$(host_address 0):$port")
    fi
    enter_host "$host"
    up "$host" "${enter[@]}" "$python" -c 'from ray.scripts.scripts import main; main()' start "${where[@]}" --node-ip-address "$address" "${common[@]}"
  done
  export RAY_ADDRESS=$(host_address 0):$port # a program of Ray needs a Ray node beside it
  up here ray start --address "$RAY_ADDRESS" --node-ip-address 10.77.0.254 "${common[@]}" --num-cpus 0
else
  port=$("$python" -c "$free_port")
  up 0 ray start --head --port "$port" --node-ip-address 127.0.0.1 --include-dashboard=false --temp-dir "$folder" "${common[@]}"
  export RAY_ADDRESS=127.0.0.1:$port
fi
export TROUPE_RAY_PYTHON=$python
code=0
"$@" || code=$?
exit "$code"
