#!/usr/bin/env bash
# Trains a plug-in agent on two hosts (network namespaces) by SSH: the installed program, at another place, and a plug-in built against the installed
# package. The hosts see neither the source nor the build. The run trains to its end and leaves nothing behind.
# Usage: own_agent_hosts_test.sh BUILD_FOLDER SOURCE_FOLDER DEPENDENCIES     exit code 77: this machine lacks what hosts.sh takes
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
if [ -z "${TROUPE_SSH_CONFIG:-}" ]; then
  build=$(realpath "$1") source=$(realpath "$2") dependencies=$(realpath "$3")
  bash "$here/hosts.sh" -N 2 --sshd true || exit
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  ! command -v ccache >/dev/null || export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$folder CCACHE_NOHASHDIR=1
  {
    cmake --install "$build" --prefix "$folder/installed" --component libraries
    cmake --install "$build" --prefix "$folder/installed" --component program
    mv "$folder/installed" "$folder/troupe"
    cp -r "$source/experiments/examples/own_agent" "$here/host_tools.sh" "$0" "$folder"
    cmake -S "$folder/own_agent" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 "-DCMAKE_PREFIX_PATH=$folder/troupe"
    cmake --build "$folder/build"
  } >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
  hidden=()
  for path in "$source"/{.git,actors,collectives,env,experiments,learner,replay,tests} "$build"; do
    case $dependencies/ in "$path"/*) ;; *) [ ! -d "$path" ] || hidden+=(--hide "$path") ;; esac
  done
  bash "$here/hosts.sh" -N 2 --sshd "${hidden[@]}" bash "$folder/$(basename "$0")" "$folder" "$source"
  exit
fi
folder=$1 source=$2 troupe=$1/troupe/bin/troupe
. "$folder/host_tools.sh"
cd "$folder"
fail() {
  echo "$1"
  tail -n 30 out runs/own_agent/*/{log.txt,nodes.log}
  exit 1
}
on_host 0 test -e "$troupe" || fail 'the hosts do not see the program'
on_host 0 test ! -e "$source/experiments/examples" || fail 'the hosts see the source'
"$troupe" keys cluster keys >/dev/null
cat >cluster.textproto <<T
node { name: "host" count: 2 address: "10.77.0.[1-2]" cores: 2 }
ssh { port: $TROUPE_SSH_PORT identity_file: "$TROUPE_SSH_IDENTITY" known_hosts: "$TROUPE_SSH_KNOWN_HOSTS" program: "$troupe" }
keys: "keys"
head { listen: "10.77.0.254:4242" }
oversubscribe: true
pin: false
role { name: "environment" count: 2 apart: "environment" }
T
code=0
timeout 240 "$troupe" launch cluster.textproto own_agent/own_agent.textproto --runs "$folder/runs" --set "agent.plugin=$folder/build/libown_agent.so" \
  --set stop.environment_steps=1500 --set evaluation.final_episodes=1 --set supervision.lost_seconds=60 >out 2>&1 || code=$?
[ $code = 0 ] || fail "exit code $code"
updates=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "updates") at = i } END { printf "%d", $at }' runs/own_agent/*/metrics.csv)
[ "$updates" -gt 500 ] || fail "$updates updates"
head -n 1 runs/own_agent/*/metrics.csv | grep q_mean > /dev/null || fail 'the plug-in has no metrics'
for host in 0 1; do
  grep -q "host-$host: node: joined" runs/own_agent/*/nodes.log || fail "host-$host did not join"
done
ls runs/own_agent/*/checkpoints/*/manifest.json >/dev/null || fail 'no checkpoint'
left=$(left_on_hosts)
[ -z "$left" ] || fail "left on the hosts: $left"
echo "two hosts, $updates updates"
