#!/usr/bin/env bash
# Tests the SSH launcher with OpenSSH servers on three hosts that do not have the build. Usage: ssh_launcher_test.sh BUILD_FOLDER TEST_PROGRAM
set -euo pipefail
cluster=$(dirname "$(readlink -f "$0")")/../../cluster
build=$(readlink -f "$1")
program=$(readlink -f "$2")
if [ "${3:-}" != inside ]; then
  exec "$cluster/hosts.sh" -N 3 --sshd --hide "$build" "$0" "$build" "$program" inside
fi
source "$cluster/host_tools.sh"
mkdir -p /run/hosts/remote
cd /run/hosts # the build folder is not on the hosts
"$program"

# A killed launcher leaves nothing of its nodes behind.
"$program" --no-skip --test-case="holds nodes until it is killed" >/run/hosts/holder &
holder=$!
wait_for 60 grep -q 'host1: works' /run/hosts/holder
wait_for 60 grep -q 'host0: works' /run/hosts/holder
disown $holder # bash would say that it was killed
kill -9 $holder
nothing_left() { [ -z "$(processes_on_hosts)$(ls -A /run/hosts/remote)" ]; }
wait_for 60 nothing_left || { echo "FAILED: after the launcher was killed there is $(left_on_hosts) $(ls /run/hosts/remote)"; exit 1; }
echo "passed: a launcher that is killed leaves nothing"
