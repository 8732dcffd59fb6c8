#!/usr/bin/env bash
# The head of a run over processes is killed with SIGKILL, and its successor takes over its processes: they stay the same, neither the learner's updates nor the
# shards' items go back, and the run ends with its score. This holds before the first checkpoint, when an environment process dies with the head, when the head
# dies again, and while a checkpoint is written. If no process survives, the run continues from its checkpoint.
# Usage: head_takeover_test.sh <troupe program> <scratch folder>
set -uo pipefail
troupe=$1 scratch=$2 name=succeeded
. "$(dirname "$(readlink -f "$0")")/../../run_watch.sh"
rm -rf "$scratch"
mkdir -p "$scratch"
cat >"$scratch/run.textproto" <<'T'
name: "succeeded"
environment { task: "cartpole_balance" action_repeat: 4 }
replay { shards: 2 minimum_items: 300 samples_per_insert: 8 }
d4pg { policy_layers: [32, 32] critic_layers: [32, 32] batch_size: 32 }
actors { environment: 2 random_steps: 300 restarts: 3 }
evaluation { period: 0 final_episodes: 1 video: false }
checkpoint { minutes: 0 }
supervision { snapshot_seconds: 1000 }
stop { environment_steps: 2000000000 }
T
start() {
  "$troupe" train "$scratch/run.textproto" --processes --runs "$scratch/runs" "$@" >"$scratch/out" 2>&1 &
  run=$!
}
logged() { grep -q "$1" "$scratch"/runs/"$name"/*/log.txt; }
told() { "$troupe" status --runs "$scratch/runs" --json 2>/dev/null | python3 -c "import json, sys; s = json.load(sys.stdin); sys.exit(not ($1))" 2>/dev/null; }
roles() { pgrep -f "^troupe actor --role ${1:-[a-z_]+} .*$scratch/runs" | sort -n | tr '\n' ' '; }
has_record() { [ -s "$(echo "$scratch"/runs/"$name"/*/checkpoints/head.state)" ]; }
rows() { cat "$scratch"/runs/"$name"/*/metrics.csv | wc -l; }
more_rows() { [ "$(rows)" -gt "$1" ]; }
kill_head() { kill -9 "$(head_process)" || fail 'no head'; }
until_recorded() { # as it learns
  until_true 'learning' above 500
  rm -f "$(echo "$scratch"/runs/"$name"/*/checkpoints/head.state)"
  until_true 'the record of the head' has_record
}
until_learning() { # with a checkpoint and the record of a head
  until_true 'learning' above 500
  "$troupe" checkpoint --runs "$scratch/runs" >/dev/null || fail 'no checkpoint'
  until_recorded
}
never_back() { # a column: each row has at least what the one before has
  awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) at = i }
    NR > 1 && $1 == "progress" { if ($at + 0 < last + 0) exit 1; last = $at }' "$scratch"/runs/"$name"/*/metrics.csv || fail "$1 went back"
}
taken_over() { # by life number $1, $2 processes of 6
  until_true "takeover $1" told "s['head']['restarts'] == $1 and s['head']['took_over'] == $2 and s['head']['had_processes'] == 6"
  logged "took over $2 processes of 6" || fail 'the log does not say so'
}

start
until_recorded
ls "$scratch"/runs/"$name"/*/checkpoints/*/manifest.json >/dev/null 2>&1 && fail 'there is a checkpoint already'
before=$(roles) first=$(rows) killed=$(date +%s%N)
[ "$(wc -w <<<"$before")" = 6 ] || fail "processes: $before"
items=$(column replay_items) updates=$(column updates)
kill_head
until_true 'a row of the new head' more_rows "$first"
echo "the first row of the new head came after $((($(date +%s%N) - killed) / 1000000)) ms"
taken_over 1 6
[ "$(column replay_items)" -ge "$items" ] || fail 'items went back'
until_true 'new updates' above $((updates + 200))
[ "$(roles)" = "$before" ] || fail "other processes: $(roles), not $before"
never_back environment_steps

victims=$(roles environment)
kill -9 "$(head_process)" ${victims%% *} || fail 'nothing to kill'
taken_over 2 5
until_true 'the new environment process' told "all(p['state'] == 'up' for p in s['processes'])"
for role in learner replay evaluator; do
  for process in $(roles $role); do
    [[ " $before" == *" $process "* ]] || fail "another $role process"
  done
done
until_true 'new updates' above $(($(column updates) + 200))

"$troupe" checkpoint --runs "$scratch/runs" >"$scratch/checkpoint" 2>&1 &
kill_head
taken_over 3 6
until_true 'new updates' above $(($(column updates) + 200))
"$troupe" checkpoint --runs "$scratch/runs" >/dev/null || fail 'no checkpoint after the takeovers'
never_back updates
never_back replay_items
end_run
[ -e "$(echo "$scratch"/runs/"$name"/*/checkpoints/head.state)" ] && fail 'the record of the head is still there'

rm -rf "$scratch/runs"
start --set stop.environment_steps=500000
until_learning
kill_head
taken_over 1 6
wait "$run" || fail 'the run failed'
grep -q 'mean return' "$scratch/out" || fail 'no score'
pgrep -f "$scratch/runs" >/dev/null && fail 'a process was left behind'

rm -rf "$scratch/runs"
start
until_learning
kill -9 "$(head_process)" $(roles) || fail 'nothing to kill'
until_true 'the way without processes' logged 'none of the 6 processes of the previous head is left; the run continues from its newest checkpoint'
until_true 'updates after it' above "$(reached)"
end_run
echo 'the processes outlived their head'
