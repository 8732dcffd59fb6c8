#!/usr/bin/env bash
# A run over processes survives a SIGKILL to one process of every role and a frozen shard, reports both, ends with exit code 0 and leaves no process behind.
# A shard and a learner come back with their snapshots, not empty. A death while the resumed run restores its state is survived, too.
# Usage: processes_test.sh <troupe program> <scratch folder>
set -uo pipefail
troupe=$1 scratch=$2 name=processes
. "$(dirname "$(readlink -f "$0")")/../../run_watch.sh"
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
is_back() { [ "$(grep -cE "$1 actor [0-9] is back" "$scratch"/runs/processes/*/log.txt)" -ge "$2" ]; }
snapshots() { [ -n "$(ls "$scratch"/runs/processes/*/snapshots/"$1" 2>/dev/null)" ]; }

until_true 'learning' above 1000
until_true 'a snapshot of the learner' snapshots learner
until_true 'a snapshot of shard 0' snapshots shard-0
until_true 'a snapshot of shard 1' snapshots shard-1
for role in environment replay learner evaluator; do
  before=$(column updates)
  kill -9 "$(victim "$role" 0)" || fail "no $role process"
  until_true "the $role actor back" is_back "$role" 1
  # The snapshot was a second old: the counter resumes close to where it was, and goes beyond.
  until_true "updates after the death of the $role actor" above "$before"
done
is_back learner 2 || fail 'the other learner, which steps with the first, was not started again'
kill -STOP "$(victim replay 1)"
until_true 'the frozen shard replaced' is_back replay 2
before=$(column updates)
until_true 'updates after the freeze' above "$before"
end_run
for role in environment replay learner evaluator; do
  grep -q "$role actor . died" "$scratch"/runs/processes/*/log.txt || fail "the death of $role was not reported"
done
grep -q 'its process was frozen for 4 s' "$scratch"/runs/processes/*/log.txt || fail 'the freeze was not reported'

# An actor dies while the resumed run restores its state. Its part of the checkpoint is a pipe, which it opens without end.
folder=$(ls -d "$scratch"/runs/processes/*)
part=$(ls "$folder"/checkpoints/*/environment-1.state | sort -V | tail -n 1)
"$troupe" resume "$folder" --processes >"$scratch/out" 2>&1 &
run=$!
exists() { [ -n "$(victim "$1" "$2")" ]; }
opens_pipe() { grep -qs wait_for_partner /proc/"$(victim environment 1)"/task/*/wchan; }
until_true 'a shard of the resumed run' exists replay 0
head=$(head_process)
kill -STOP "$head" # it has checked the checkpoint
mv "$part" "$part.kept"
mkfifo "$part"
kill -CONT "$head"
until_true 'the environment actor restoring its state' opens_pipe
mv "$part.kept" "$part"
kill -9 "$(victim environment 1)"
before=$(column updates)
until_true 'the environment actor back after its death in the restoration' is_back environment 2
until_true 'updates of the resumed run' above "$before"
end_run
echo 'survived'
