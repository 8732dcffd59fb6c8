#!/usr/bin/env bash
# `troupe launch` on two nodes of this host. One is killed with its processes: its actors are placed again and the run continues. The head is killed: its
# successor takes over the nodes and their processes, whatever the files of cluster and experiment contain by then, and even if one of the processes died with
# it; if all died, it comes back with new nodes. Then the run is stopped, and nothing is left. It resumes with three nodes, three shards and one replica, and a key that the checkpoint cannot follow is refused before that.
# Usage: launch_test.sh <troupe program> <scratch folder>
set -uo pipefail
troupe=$1 scratch=$2 name=launched
. "$(dirname "$(readlink -f "$0")")/../run_watch.sh"
rm -rf "$scratch"
mkdir -p "$scratch"
cat >"$scratch/cluster.textproto" <<'T'
node { name: "n" count: 2 cores: 2 }
local {}
oversubscribe: true
role { name: "replay" apart: "replay" }
role { name: "environment" count: 3 }
T
cat >"$scratch/run.textproto" <<'T'
name: "launched"
environment { task: "cartpole_balance" action_repeat: 4 }
replay { minimum_items: 300 samples_per_insert: 8 }
d4pg { policy_layers: [32, 32] critic_layers: [32, 32] batch_size: 32 }
learner { replicas: 2 }
actors { environment: 2 random_steps: 300 restarts: 10 }
supervision { snapshot_seconds: 1 heartbeat_seconds: 0.5 lost_seconds: 10 }
evaluation { period: 0 final_episodes: 1 video: false }
checkpoint { minutes: 0 }
stop { environment_steps: 2000000000 }
T
"$troupe" launch "$scratch/cluster.textproto" "$scratch/run.textproto" --runs "$scratch/runs" >"$scratch/out" 2>&1 &
run=$!
said() { [ "$(grep -cE "$1" "$scratch"/runs/launched/*/"$2")" -ge "$3" ]; }
snapshot() { [ -n "$(ls "$scratch"/runs/launched/*/snapshots/learner 2>/dev/null)" ]; }

until_true 'learning' above 1000
said 'the cluster sets actors.environment=3' log.txt 1 || fail 'the count of the cluster not told'
until_true 'a snapshot of the learner' snapshot
# The node of the learners: its loss is worse.
agent=$(ps -o ppid= -p "$(pgrep -f "role learner --index 0 .*$scratch/runs" | head -n 1)" | tr -d ' ')
kill -9 "$agent" || fail 'no node'
until_true 'the death of the node told' said 'warning node n-[01] ' log.txt 1
until_true 'the learners back' said 'learner actor [01] is back' log.txt 2
before=$(column updates)
until_true 'updates after the death of the node' above "$before"
until_true 'the node back' said 'joined as' nodes.log 3
"$troupe" checkpoint --runs "$scratch/runs" >/dev/null || fail 'no checkpoint'

roles() { pgrep -f "^troupe actor --role ${1:-[a-z_]+} .*$scratch/runs" | sort -n | tr '\n' ' '; }
kill_head() { # with a record of what runs
  local record
  record=$(echo "$scratch"/runs/launched/*/checkpoints)/head.state
  rm -f "$record"
  until_true 'the record of the head' test -s "$record"
  kill -9 "$(head_process)" "$@" || fail 'no head'
}
living=$(roles) items=$(column replay_items) updates=$(column updates)
[ "$(wc -w <<<"$living")" = 7 ] || fail "processes: $living"
nodes_of_run() { pgrep -P "$(pgrep -P "$run" -x troupe-nodes)" -f "^$troupe node --head" | sort -n | tr '\n' ' '; } # not those of other tests
nodes=$(nodes_of_run)
[ "$(wc -w <<<"$nodes")" = 2 ] || fail "nodes: $nodes"
cp "$scratch/cluster.textproto" "$scratch/cluster.before"
cp "$scratch/run.textproto" "$scratch/run.before"
echo 'node { an unfinished edit' >>"$scratch/cluster.textproto"
echo 'replay { an unfinished edit' >>"$scratch/run.textproto"
kill_head
until_true 'the nodes and their processes taken over' said 'took over 7 processes of 7' log.txt 1
until_true 'both nodes told what lives there' said 'the head is back; living processes on this node: [0-7]' nodes.log 2
[ "$(column replay_items)" -ge "$items" ] || fail 'items went back'
until_true 'updates after the death of the head' above $((updates + 200))
[ "$(roles)" = "$living" ] || fail "other processes: $(roles), not $living"
[ "$(nodes_of_run)" = "$nodes" ] || fail "other nodes: $(nodes_of_run), not $nodes"
mv "$scratch/cluster.before" "$scratch/cluster.textproto"
mv "$scratch/run.before" "$scratch/run.textproto"

victims=$(roles environment)
kill_head ${victims%% *}
until_true 'six processes taken over' said 'took over 6 processes of 7' log.txt 1
until_true 'the process that died with the head' said 'environment actor [0-2] is back' log.txt 1
until_true 'updates after that' above $(($(column updates) + 200))

kill -9 "$(pgrep -f "^troupe actor --role learner --index 1 .*$scratch/runs")" || fail 'no learner'
until_true 'the learners back after a takeover' said 'learner actor 1 is back' log.txt 2
until_true 'updates after the death of a learner' above $(($(column updates) + 200))

kill_head "$(pgrep -P "$run" -x troupe-nodes)" # and all nodes with it
until_true 'the run gone on' said 'restart 3 continues from its checkpoint' log.txt 1
before=$(reached)
until_true 'updates after the death of all' above "$before"
end_run

sed -i 's/count: 2/count: 3/' "$scratch/cluster.textproto"
more=("$troupe" launch "$scratch/cluster.textproto" "$scratch/run.textproto" --runs "$scratch/runs" --resume --set replay.shards=3 --set learner.replicas=1)
"${more[@]:0:4}" "$scratch"/runs/launched/* "${more[@]:4}" --set replay.n_step=2 >"$scratch/out" 2>&1
code=$?
[ "$code" = 2 ] || fail "replay.n_step=2 gave exit code $code"
grep -q 'replay.n_step was 5 and is 2' "$scratch/out" || fail 'the refused key was not named'
before=$(reached)
"${more[@]}" >"$scratch/out" 2>&1 &
run=$!
until_true 'the items dealt out' said 'the items of 1 replay shards are redistributed to 3' log.txt 1
until_true 'updates after the resumption' above "$before"
end_run
[ "$(find "$scratch"/runs/launched -mindepth 1 -maxdepth 1 | wc -l)" = 1 ] || fail 'it began another run'
echo 'survived'
