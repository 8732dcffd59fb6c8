#!/usr/bin/env bash
# Runs over processes whose strategy has parameter servers: a shard's SIGKILL is survived; after SIGINT, `resume` continues with the servers'
# state; a learner's SIGKILL ends the run with its cause, and the run can be resumed. No process is left behind.
# Usage: server_processes_test.sh <troupe program> <scratch folder> [strategy] [replicas]
set -uo pipefail
troupe=$1 scratch=$2 strategy=${3:-parameter_server max_staleness=50} replicas=${4:-2}
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
run=
fail() {
  echo "$1"
  tail -n 30 "$scratch/out"
  [ -n "$run" ] && kill -9 "$run" 2>/dev/null
  exit 1
}
updates() { # of the newest row of metrics.csv, or 0
  local text
  text=$(tail -n 1 "$scratch"/runs/servers/*/metrics.csv 2>/dev/null | cut -d, -f5)
  case $text in '' | *[!0-9]*) echo 0 ;; *) echo "$text" ;; esac
}
pause() { read -r -t 0.05 <> <(:) || true; }
until_updates() { # more than so many, within a minute
  for _ in $(seq 1200); do
    [ "$(updates)" -gt "$1" ] && return
    kill -0 "$run" 2>/dev/null || fail "the run ended before it made $1 updates"
    pause
  done
  fail "no update after number $1 for a minute"
}
ms() { date +%s%3N; }
start() {
  "$troupe" "$@" --processes >"$scratch/out" 2>&1 &
  run=$!
}
resume() { # for the n-th time, until it has
  start resume "$(folder)"
  for _ in $(seq 1200); do
    [ "$(grep -c 'resumed at' "$(folder)/log.txt")" = "$1" ] && return
    kill -0 "$run" 2>/dev/null || fail 'the run did not resume'
    pause
  done
  fail 'the run did not resume within a minute'
}
folder() { echo "$scratch"/runs/servers/*; }
victim() { pgrep -P "$(pgrep -P "$run" | head -n 1)" -f "role $1 --index $2" | head -n 1; }

start train "$scratch/run.textproto" --runs "$scratch/runs"
until_updates 100
shard=$(victim parameter_server 1)
[ -n "$shard" ] || fail 'no process of a parameter server found'
killed=$(ms)
kill -9 "$shard"
for _ in $(seq 600); do
  grep -q 'parameter_server actor 1 is back' "$(folder)/log.txt" && break
  kill -0 "$run" 2>/dev/null || fail 'the run did not survive the death of a shard'
  pause
done
back=$(ms)
before=$(updates)
until_updates "$before"
echo "shard killed: back after $((back - killed)) ms, updates again after $(($(ms) - killed)) ms"
grep -q 'parameter_server actor 1 died: .*; restarting it' "$(folder)/log.txt" || fail 'the death was not reported'
kill -INT "$run"
wait "$run"
code=$?
[ "$code" = 0 ] || fail "exit code $code after SIGINT"
stopped=$(updates)
ls "$(folder)"/checkpoints/*/servers/shard-1.safetensors >/dev/null || fail 'the checkpoint has no part of shard 1'

resume 1
until_updates "$((stopped + 50))"
learner=$(victim learner $((replicas - 1)))
[ -n "$learner" ] || fail 'no process of a learner found'
killed=$(ms)
kill -9 "$learner"
for _ in $(seq 600); do
  grep -q "learner actor $((replicas - 1)) is back" "$(folder)/log.txt" && break
  kill -0 "$run" 2>/dev/null || fail 'the run did not survive the death of a learner'
  pause
done
back=$(ms)
before=$(updates)
until_updates "$before"
echo "learner killed: back after $((back - killed)) ms, updates again after $(($(ms) - killed)) ms"
grep -q "learner actor $((replicas - 1)) died: .*; restarting it" "$(folder)/log.txt" || fail 'the death was not reported'
kill -INT "$run"
wait "$run"
code=$?
[ "$code" = 0 ] || fail "exit code $code after the second SIGINT"

before=$(updates)
resume 2
until_updates "$before"
kill -INT "$run"
wait "$run" || fail "exit code $? at the end"
pgrep -f "$scratch/runs" >/dev/null && fail 'a process was left behind'
echo 'survived'
