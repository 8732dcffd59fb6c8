#!/usr/bin/env bash
# A killed learner comes back with the state of the surviving learner, not with an old snapshot. When both are killed, they load the snapshot. Prints the loss of each.
# Usage: learner_return_test.sh <troupe program> <scratch folder>
set -uo pipefail
troupe=$1 scratch=$2 name=returns
. "$(dirname "$(readlink -f "$0")")/../../run_watch.sh"
rm -rf "$scratch"
mkdir -p "$scratch"
cat >"$scratch/run.textproto" <<'T'
name: "returns"
environment { task: "cartpole_balance" action_repeat: 4 }
replay { minimum_items: 300 samples_per_insert: 8 }
d4pg { policy_layers: [32, 32] critic_layers: [32, 32] batch_size: 32 }
learner { replicas: 2 }
actors { environment: 1 random_steps: 300 restarts: 10 }
supervision { snapshot_seconds: 86400 heartbeat_seconds: 0.5 lost_seconds: 10 }
evaluation { period: 0 final_episodes: 1 video: false }
checkpoint { minutes: 0 }
stop { environment_steps: 2000000000 }
T
"$troupe" train "$scratch/run.textproto" --processes --runs "$scratch/runs" >"$scratch/out" 2>&1 &
run=$!
log() { cat "$scratch"/runs/returns/*/log.txt; }
back() { [ "$(log | grep -cE 'learner actor [01] is back')" -ge "$1" ]; }
lives() { log | grep -oE "learner $1 is alive: the others start from its state after [0-9]+ updates" | tail -n 1 | grep -oE '[0-9]+ updates' | grep -oE '[0-9]+'; }

until_true 'learning' above 1000
for dead in 1 0; do
  before=$(column updates)
  kill -9 "$(victim learner "$dead")" || fail "no learner $dead"
  until_true "the learners back after the death of $dead" back $((4 - 2 * dead))
  state=$(lives $((1 - dead)))
  [ -n "$state" ] || fail "learner $((1 - dead)) lived and its state was not taken"
  [ "$state" -ge "$before" ] || fail "the state taken is of $state updates, $before were made before the death"
  echo "learner $dead killed after $before updates or more: the learners went on from $state"
  until_true 'updates after the death' above "$state"
  newest=$(ls "$scratch"/runs/returns/*/snapshots/learner | sort -n | tail -n 1)
  [ "${newest:-0}" -ge "$state" ] || fail "no snapshot of $state updates or more"
done
before=$(column updates)
kill -9 "$(victim learner 0)" "$(victim learner 1)" || fail 'no learners'
until_true 'the learners back after the death of both' back 6
until_true 'updates after the death of both' above 0
end_run
echo 'survived'
