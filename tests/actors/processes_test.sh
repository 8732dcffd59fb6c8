#!/usr/bin/env bash
# A run over processes survives kill -9 of an environment process, says so, ends with exit code 0 and leaves no process behind.
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
actors { environment: 2 random_steps: 300 }
evaluation { period: 0 final_episodes: 1 video: false }
checkpoint { minutes: 0 }
stop { environment_steps: 200000 minutes: 0.5 }
T
"$troupe" train "$scratch/run.textproto" --processes --runs "$scratch/runs" >"$scratch/out" 2>&1 &
run=$!
fail() {
  echo "$1"
  tail -n 30 "$scratch/out"
  kill "$run" 2>/dev/null
  exit 1
}
victim=
for _ in $(seq 600); do # until learning is under way: at most a minute of looking
  kill -0 "$run" 2>/dev/null || fail 'the run ended before anybody was killed'
  victim=$(pgrep -P "$run" -f 'role environment' | head -n 1)
  updates=$(tail -n 1 "$scratch"/runs/processes/*/metrics.csv 2>/dev/null | tr -d '\n')
  [ -n "$victim" ] && [ "$(wc -l <"$(ls "$scratch"/runs/processes/*/metrics.csv 2>/dev/null | head -n 1)" 2>/dev/null || echo 0)" -gt 6 ] && break
  read -r -t 0.1 <> <(:) || true
done
[ -n "$victim" ] || fail 'no environment process found'
kill -9 "$victim"
wait "$run"
code=$?
[ "$code" = 0 ] || fail "exit code $code"
grep -q 'environment actor . died' "$scratch"/runs/processes/*/log.txt || fail 'the death was not reported'
grep -q 'environment actor . is back' "$scratch"/runs/processes/*/log.txt || fail 'the environment actor did not come back'
pgrep -f "$scratch/runs" >/dev/null && fail 'a process was left behind'
ls "$scratch"/runs/processes/*/checkpoints/*/manifest.json >/dev/null || fail 'no checkpoint'
echo 'survived'
