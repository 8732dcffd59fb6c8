#!/usr/bin/env bash
# The Kubernetes manifests of `troupe launch --manifests`, run as a kubelet would run them, on three simulated hosts (network namespaces): each pod has the
# command, environment, files, user and limits of its manifest, process 1 and the names of the headless Service. A node is killed and comes back, the head is
# evicted and continues its run, and every Job completes. What else a kubelet does (images, cgroups, policies) is not tested.
# Usage: pods_test.sh <troupe program> <scratch folder>     exit code 77: this machine lacks what hosts.sh takes
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
[ $# = 2 ] || { sed -n 5p "$0" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "skipped: pods of another user need root"; exit 77; }
python3 -c 'import yaml' 2>/dev/null || { echo "skipped: python3-yaml is not installed"; exit 77; }
setpriv --reuid 1000 --regid 1000 --clear-groups test -x "$1" || { echo "skipped: user 1000 cannot reach $1"; exit 77; }
rm -rf "$2"
mkdir -p "$2"
PYTHONDONTWRITEBYTECODE=1 exec bash "$here/hosts.sh" -N 3 python3 "$here/pods.py" "$(realpath "$1")" "$(realpath "$2")"
