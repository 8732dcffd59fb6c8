#!/usr/bin/env bash
# A run over processes survives kill -9 of a process of every role and a shard that is frozen, says so, ends with exit code 0 and leaves no process behind.
# A shard and a learner come back from their snapshots, not empty.
# Usage: processes_test.sh <troupe program> <scratch folder>
set -uo pipefail
troupe=$1 scratch=$2
rm -rf "$scratch"
mkdir -p "$scratch"
cat >"$scratch/run.textproto" <<'T'
name: "processes"
environment { task: "cartpole_balance" action_repeat: 4 }
replay { shards: 2 minimum_items: 300 samples_per_insert: 8 }
d4pg { policy_layers: [32, 32] critic_layers: [32, 32] batch_size: 32 }
learner { replicas: 2 }
actors { environment: 2 random_steps: 300 }
supervision { snapshot_seconds: 1 heartbeat_seconds: 0.5 lost_seconds: 4 }
evaluation { period: 0 final_episodes: 1 video: false }
checkpoint { minutes: 0 }
stop { environment_steps: 2000000000 }
T
"$troupe" train "$scratch/run.textproto" --processes --runs "$scratch/runs" >"$scratch/out" 2>&1 &
run=$!
fail() {
  echo "$1"
  tail -n 30 "$scratch/out" "$scratch"/runs/processes/*/log.txt
  kill -9 "$run" 2>/dev/null
  exit 1
}
until_true() { # what is waited for, a command: at most a minute of looking
  local what=$1
  shift
  for _ in $(seq 600); do
    kill -0 "$run" 2>/dev/null || fail "the run ended before $what"
    "$@" && return
    read -r -t 0.1 <> <(:) || true
  done
  fail "never saw $what"
}
column() { # of the newest row of metrics.csv, or 0
  awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) at = i } END { printf "%d", $at }' "$scratch"/runs/processes/*/metrics.csv 2>/dev/null || echo 0
}
above() { [ "$(column "$1")" -gt "$2" ]; }
is_back() { [ "$(grep -cE "$1 actor [0-9] is back" "$scratch"/runs/processes/*/log.txt)" -ge "$2" ]; }
snapshots() { [ -n "$(ls "$scratch"/runs/processes/*/snapshots/"$1" 2>/dev/null)" ]; }
victim() { pgrep -P "$run" -f "role $1 --index $2 " | head -n 1; }

until_true 'learning' above updates 1000
until_true 'a snapshot of the learner' snapshots learner
until_true 'a snapshot of shard 0' snapshots shard-0
until_true 'a snapshot of shard 1' snapshots shard-1
for role in environment replay learner evaluator; do
  before=$(column updates)
  kill -9 "$(victim "$role" 0)" || fail "no $role process"
  until_true "the $role actor back" is_back "$role" 1
  # From a snapshot a second old: the counter goes on near where it was, and beyond.
  until_true "updates after the death of the $role actor" above updates "$before"
done
is_back learner 2 || fail 'the other learner, which steps with the first, was not started again'
kill -STOP "$(victim replay 1)"
until_true 'the frozen shard replaced' is_back replay 2
before=$(column updates)
until_true 'updates after the freeze' above updates "$before"
kill -TERM "$run"
wait "$run"
code=$?
[ "$code" = 0 ] || fail "exit code $code"
for role in environment replay learner evaluator; do
  grep -q "$role actor . died" "$scratch"/runs/processes/*/log.txt || fail "the death of $role was not reported"
done
grep -q 'gave no sign of life for 4 s' "$scratch"/runs/processes/*/log.txt || fail 'the freeze was not reported'
pgrep -f "$scratch/runs" >/dev/null && fail 'a process was left behind'
ls "$scratch"/runs/processes/*/checkpoints/*/manifest.json >/dev/null || fail 'no checkpoint'
echo 'survived'
