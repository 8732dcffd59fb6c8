#!/usr/bin/env bash
# A run over processes, or a replay server, belongs to the user who started it: another user of the host can neither query nor command the run, nor join it,
# nor use a data port, on the loopback interface or at a path. The owner's commands need no flag.
# Usage: strangers_test.sh <troupe program> <scratch folder>; exit code 77: skipped
set -uo pipefail
troupe=$1 scratch=$2 name=strangers
. "$(dirname "$(readlink -f "$0")")/../../run_watch.sh"
as_another() { setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp timeout 60 "$troupe" "$@" >"$scratch/other" 2>&1 </dev/null; }
rm -rf "$scratch"
mkdir -p "$scratch"
if [ "$(id -u)" != 0 ] || ! as_another --version; then
  echo 'skipped: needs root, and a program that every user can run'
  exit 77
fi
cat >"$scratch/run.textproto" <<'T'
name: "strangers"
environment { task: "cartpole_balance" action_repeat: 4 }
replay { shards: 1 minimum_items: 300 samples_per_insert: 8 }
d4pg { policy_layers: [32, 32] critic_layers: [32, 32] batch_size: 32 }
actors { environment: 1 random_steps: 300 }
evaluation { period: 0 final_episodes: 1 video: false }
checkpoint { minutes: 0 }
stop { environment_steps: 2000000000 }
T
refused() { # why, what, arguments of the program
  local why=$1 what=$2
  shift 2
  as_another "$@" && fail "another user's $what was done: $(cat "$scratch/other")"
  grep -q "$why" "$scratch/other" || fail "another user's $what: $(cat "$scratch/other")"
}
until_served() { # a server's output
  for _ in $(seq 600); do
    grep -q serving "$1" && return
    read -r -t 0.1 <> <(:) || true
  done
  fail "no server: $(cat "$1")"
}
port_of() { ss -Hltnp | awk -v process="pid=$1," 'index($0, process) { sub(/.*:/, "", $4); print $4; exit }'; }

"$troupe" train "$scratch/run.textproto" --processes --runs "$scratch/runs" >"$scratch/out" 2>&1 &
run=$!
until_true 'learning' above 100
folder=$(echo "$scratch"/runs/strangers/*)
port=$(sed -n 's/.*"port": *\([0-9]*\).*/\1/p' "$folder/head.json")

for command in status stop 'scale environment=3' 'restart --role=environment'; do
  # shellcheck disable=SC2086
  refused 'belongs to another user' "$command" $command --runs "$scratch/runs"
done
refused 'belongs to another user' node node --head "127.0.0.1:$port" --join-seconds 2
for role in replay learner; do
  data=$(port_of "$(victim "$role" 0)")
  [ -n "$data" ] || fail "no data port of the $role process"
  refused 'does not answer' "look at the $role's data" replay info "tcp://127.0.0.1:$data" --deadline 1
done
"$troupe" status "$folder" >"$scratch/status" 2>&1 || fail "the user's own status: $(cat "$scratch/status")"
grep -q environment "$scratch/status" || fail "no environment in the status: $(cat "$scratch/status")"
until_true 'updates after the attacks' above "$(column updates)"

for endpoint in 'tcp://127.0.0.1:*' "ipc://$scratch/socket"; do
  "$troupe" replay serve --column x:float32 --listen "$endpoint" >"$scratch/server" 2>&1 &
  server=$!
  until_served "$scratch/server"
  [ -S "$scratch/socket" ] && chmod 0777 "$scratch/socket" && at=$endpoint || at=tcp://127.0.0.1:$(port_of "$server")
  refused 'does not answer' "look at $at" replay info "$at" --deadline 1
  "$troupe" replay info "$at" --seconds 0 >"$scratch/own" 2>&1 || fail "the user's own look: $(cat "$scratch/own")"
  kill -TERM "$server"
  wait "$server"
done
"$troupe" stop "$folder" >"$scratch/own" 2>&1 || fail "the user's own stop: $(cat "$scratch/own")"
wait "$run" || fail "exit code $?"
echo 'strangers kept out'
