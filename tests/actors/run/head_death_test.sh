#!/usr/bin/env bash
# The head of a run over processes is killed with SIGKILL, together with all its processes. It is restarted, and the run continues from its checkpoint without
# intervention, as status and log report. Without a checkpoint the run starts over. When no restart is allowed, it ends with the cause.
# Usage: head_death_test.sh <troupe program> <scratch folder>
set -uo pipefail
troupe=$1 scratch=$2 name=beheaded
. "$(dirname "$(readlink -f "$0")")/../../run_watch.sh"
rm -rf "$scratch"
mkdir -p "$scratch"
cat >"$scratch/run.textproto" <<'T'
name: "beheaded"
environment { task: "cartpole_balance" action_repeat: 4 }
replay { shards: 2 minimum_items: 300 samples_per_insert: 8 }
d4pg { policy_layers: [32, 32] critic_layers: [32, 32] batch_size: 32 }
actors { environment: 2 random_steps: 300 restarts: 1 }
evaluation { period: 0 final_episodes: 1 video: false }
checkpoint { minutes: 0 }
stop { environment_steps: 2000000000 }
T
start() {
  "$troupe" train "$scratch/run.textproto" --processes --runs "$scratch/runs" "$@" >"$scratch/out" 2>&1 &
  run=$!
}
logged() { grep -q "$1" "$scratch"/runs/"$name"/*/log.txt; }
rows() { cat "$scratch"/runs/"$name"/*/metrics.csv | wc -l; }
more_rows() { [ "$(rows)" -ge $(($1 + $2)) ]; }
restarts() { "$troupe" status --runs "$scratch/runs" --json 2>/dev/null | python3 -c "import json, sys; sys.exit(json.load(sys.stdin)[\"head\"][\"restarts\"] != $1)" 2>/dev/null; }
ended_with_cause() { # by itself, within a minute
  for _ in $(seq 600); do
    kill -0 "$run" 2>/dev/null || break
    read -r -t 0.1 <> <(:) || true
  done
  wait "$run"
  local code=$?
  [ "$code" = 1 ] || fail "exit code $code"
  tail -n 1 "$scratch/out" | grep -q "the head was killed by signal 9 (Killed).*$1" || fail 'the last line is not the cause'
  pgrep -f "$scratch/runs" >/dev/null && fail 'a process was left behind'
}

start
until_true 'learning' above 1000
"$troupe" checkpoint --runs "$scratch/runs" >/dev/null || fail 'no checkpoint'
dead=$(pgrep -P "$(head_process)" | tr '\n' ' ')
kill -9 "$(head_process)" $dead || fail 'no head'
until_true 'the run gone on' logged 'the previous head was killed by signal 9 (Killed); restart 1 '
before=$(reached)
until_true 'updates after the death of the head' above "$before"
until_true 'the restart in the status' restarts 1
kill -9 "$(head_process)" || fail 'no head'
ended_with_cause 'death 2 within 10 minutes, actors.restarts allows 1'

rm -rf "$scratch/runs"
start
until_true 'learning' above 100
until_true 'the record of the head' [ -s "$(echo "$scratch"/runs/"$name"/*/checkpoints)/head.state" ]
kill -9 "$(head_process)" $(pgrep -P "$(head_process)") || fail 'no head'
until_true 'the run begun again' logged 'processes of the previous head is left; the run restarts, with new processes'
until_true 'rows of the run that began again' more_rows "$(rows)" 3
until_true 'its updates' above 100
end_run

rm -rf "$scratch/runs"
start --set actors.restarts=0
until_true 'learning' above 100
kill -9 "$(head_process)" || fail 'no head'
ended_with_cause 'actors.restarts allows 0'
echo 'the run outlived its head'
