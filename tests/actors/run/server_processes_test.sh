#!/usr/bin/env bash
# Runs over processes whose strategy has parameter servers: a shard's SIGKILL is survived; after SIGINT, `resume` continues with the servers'
# state; a learner's SIGKILL is survived, too. No process is left behind.
# Usage: server_processes_test.sh <troupe program> <scratch folder> [strategy] [replicas]
set -uo pipefail
troupe=$1 scratch=$2 strategy=${3:-parameter_server max_staleness=50} replicas=${4:-2} name=servers
. "$(dirname "$(readlink -f "$0")")/../../run_watch.sh"
rm -rf "$scratch"
mkdir -p "$scratch"
cat >"$scratch/run.textproto" <<T
name: "servers"
environment { task: "cartpole_balance" action_repeat: 4 }
replay { minimum_items: 300 samples_per_insert: 8 }
d4pg { policy_layers: [32, 32] critic_layers: [32, 32] batch_size: 36 }
learner { replicas: $replicas parameter_servers: 2 strategy: "$strategy" }
actors { environment: 1 random_steps: 300 }
evaluation { period: 0 final_episodes: 1 video: false }
checkpoint { minutes: 0 }
stop { environment_steps: 100000000 minutes: 5 }
T
folder() { echo "$scratch"/runs/"$name"/*; }
logged() { grep -q "$1" "$(folder)/log.txt"; }
resumed() { [ "$(grep -c 'resumed at' "$(folder)/log.txt")" = "$1" ]; }
until_updates() { until_true "more than $1 updates" above "$1"; }
ms() { date +%s%3N; }
start() {
  "$troupe" "$@" --processes >"$scratch/out" 2>&1 &
  run=$!
}
resume() { # for the n-th time
  start resume "$(folder)"
  until_true "resumption $1" resumed "$1"
}
interrupt() {
  kill -INT "$run"
  wait "$run"
  local code=$?
  [ "$code" = 0 ] || fail "exit code $code after SIGINT"
}
survives() { # the death of the process of a role
  local process killed back
  process=$(victim "$1" "$2")
  [ -n "$process" ] || fail "no process of $1 $2 found"
  killed=$(ms)
  kill -9 "$process"
  until_true "$1 $2 back" logged "$1 actor $2 is back"
  back=$(ms)
  until_updates "$(column updates)"
  echo "$1 killed: back after $((back - killed)) ms, updates again after $(($(ms) - killed)) ms"
  logged "$1 actor $2 died: .*; restarting it" || fail 'the death was not reported'
}

start train "$scratch/run.textproto" --runs "$scratch/runs"
until_updates 100
survives parameter_server 1
interrupt
stopped=$(column updates)
ls "$(folder)"/checkpoints/*/servers/shard-1.safetensors >/dev/null || fail 'the checkpoint has no part of shard 1'

resume 1
until_updates "$((stopped + 50))"
survives learner $((replicas - 1))
interrupt

before=$(column updates)
resume 2
until_updates "$before"
interrupt
pgrep -f "$scratch/runs" >/dev/null && fail 'a process was left behind'
echo 'survived'
