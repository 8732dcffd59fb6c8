#!/usr/bin/env bash
# Every command that operates a run, on two nodes of this host with keys: status, top, logs, scale up and down, a rolling restart, the watchdog, stop; and
# their output for a run that has ended or whose head was killed.
# Usage: operate_test.sh <troupe program> <scratch folder>
set -uo pipefail
troupe=$1 scratch=$2 name=operated
. "$(dirname "$(readlink -f "$0")")/../run_watch.sh"
rm -rf "$scratch"
mkdir -p "$scratch/elsewhere"
cat >"$scratch/cluster.textproto" <<T
node { name: "n" count: 2 cores: 2 }
local {}
oversubscribe: true
keys: "$scratch/keys"
T
cat >"$scratch/run.textproto" <<'T'
name: "operated"
environment { task: "cartpole_balance" action_repeat: 4 }
replay { shards: 2 minimum_items: 300 samples_per_insert: 8 }
d4pg { policy_layers: [32, 32] critic_layers: [32, 32] batch_size: 32 }
learner { replicas: 2 }
actors { environment: 2 random_steps: 300 restarts: 1 }
supervision { snapshot_seconds: 3600 lost_seconds: 120 }
evaluation { period: 0 final_episodes: 1 video: false }
checkpoint { minutes: 0 }
stop { environment_steps: 2000000000 }
T
"$troupe" keys cluster "$scratch/keys" >/dev/null && "$troupe" keys cluster "$scratch/others" >/dev/null || exit 1
launch() {
  OMP_DISPLAY_ENV=true "$troupe" launch "$scratch/cluster.textproto" "$scratch/run.textproto" --runs "$scratch/runs" "$@" >>"$scratch/out" 2>&1 &
  run=$!
}
# operate EXIT-CODE COMMAND…: runs it from another folder, with its output in said and its errors in errors.
operate() {
  local expected=$1 code=0
  shift
  (cd "$scratch/elsewhere" && TROUPE_KEYS=$scratch/keys timeout 200 "$troupe" "$@" --runs "$scratch/runs") >"$scratch/said" 2>"$scratch/errors" || code=$?
  [ "$code" = "$expected" ] || { cat "$scratch/errors"; fail "\`troupe $*\` ended with $code, not $expected: $(cat "$scratch/said")"; }
}
said() { grep -qE -- "$1" "$scratch/said" || { cat "$scratch/said"; fail "it did not say: $1"; }; }
last_error() { tail -n 1 "$scratch/errors" | grep -qE -- "^troupe: .*$1" || { cat "$scratch/errors"; fail "its last line did not say: $1"; }; }
status() { # a Python expression about the status, as s: its value
  operate 0 status --json
  python3 -c 'import json, sys; s = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$scratch/said" "$1"
}
is() { [ "$(status "$1")" = "$2" ]; }
processes() { pgrep -f "actor --role $1 .*$scratch/runs" | sort -n | tr '\n' ' '; }
logged() { grep -qE -- "$1" "$folder/log.txt"; }

launch
until_true 'the head' compgen -G "$scratch/runs/operated/*/head.json" >/dev/null
folder=$(dirname "$scratch"/runs/operated/*/head.json)
until_true 'learning' is 's["counters"]["updates"] > 300' True

# The state of the run.
is 's["phase"]' training || fail 'it does not train'
is 'len(s["processes"]), {p["state"] for p in s["processes"]}, [n["name"] for n in s["nodes"] if n["up"]]' "(7, {'up'}, ['n-0', 'n-1'])" || fail 'not all are up'
[ "$(status 'sorted(p["process"] for p in s["processes"])')" = "[$(processes '.*' | sed 's/ $//; s/ /, /g')]" ] || fail 'other processes'
operate 0 status "$folder"
said '^learner/1 +n-[01] +[0-9]+ +up'
operate 0 top --once
said "^run +$folder"
operate 0 logs --role environment/1
said '^[0-9TZ:-]+ environment/1 on n-[01]: .*OPENMP DISPLAY ENVIRONMENT'
operate 0 logs --lines 1000
said 'node n-1: node: joined'
said ' head: info '
operate 0 logs --node n-0 --lines 5
grep -q 'n-1' "$scratch/said" && fail 'a line of another node'

# Callers without permission, and invalid requests.
(cd "$scratch/elsewhere" && env -u TROUPE_KEYS "$troupe" status "$folder" >"$scratch/said" 2>"$scratch/errors")
[ $? = 2 ] || fail 'status without keys'
last_error '--keys DIR'
(cd "$scratch/elsewhere" && "$troupe" stop "$folder" --keys "$scratch/others" >"$scratch/said" 2>"$scratch/errors")
[ $? = 1 ] || fail 'a stranger stopped the run'
operate 2 scale learner=3
last_error 'learner.replicas cannot change'
operate 2 scale evaluator=2
last_error 'one evaluator'
operate 2 scale environment=0
last_error 'from 1 to'
operate 2 restart --role environment/17
last_error 'there are: replay/0'
operate 2 logs --role actor
last_error 'must be head, replay'

# Grow and shrink.
operate 0 scale environment=5
said '^environment actors: 5$'
[ "$(processes environment | wc -w)" = 5 ] || fail 'there are not 5 environment processes'
is 's["environments"], sum(p["role"] == "environment" and p["state"] == "up" for p in s["processes"])' '(5, 5)' || fail 'status knows nothing of 5'
before=$(status 's["counters"]["updates"]')
until_true 'learning with 5' is "s['counters']['updates'] > $before + 300" True
oldest=$(status '[p["process"] for p in s["processes"] if p["role"] == "environment" and p["index"] == 0][0]')
operate 2 scale environment=1
last_error '2 replay shards'
operate 0 scale environment=2
[ "$(processes environment | tr ' ' '\n' | grep -cx "$oldest")" = 1 ] && [ "$(processes environment | wc -w)" = 2 ] || fail 'the oldest environment process is not one of two'
operate 0 scale "$folder" environment=3
[ "$(processes environment | wc -w)" = 3 ] || fail 'there are not 3 environment processes'

# A pause lasts through a checkpoint and through scaling, until `pause --off`.
operate 0 pause
said '^training pauses until `troupe pause --off`$'
until_true 'the pause' is 's["phase"]' paused
counted='[s["counters"][name] for name in ("environment_steps", "updates", "inserts")]'
still=$(status "$counted")
operate 0 checkpoint
said "^checkpoint $folder/checkpoints/[0-9]+$"
[ -f "$(sed 's/^checkpoint //' "$scratch/said")/manifest.json" ] || fail 'the checkpoint is not complete'
operate 0 scale environment=2
operate 0 scale environment=3
is 's["phase"]' paused || fail 'scaling ended the pause'
is "$counted" "$still" || fail "it did not stand still: $still, then $(status "$counted")"
operate 0 pause --off
said '^training continues$'
until_true 'training after the pause' is "s['phase'] == 'training' and $counted > $still" True

# One trace, with the timelines of all processes.
operate 0 timeline --updates 5 --out "$scratch/trace.json"
said '^timeline .*/timelines/[0-9]+\.json: 5 updates, .* spans of 7 actors$'
python3 - "$scratch/trace.json" <<'P' || fail 'the trace is not as it should be'
import collections, json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
assert len(names) == 7 and len({name.split("process ")[1] for name in names.values()}) == 7, names
spans = collections.Counter((names[e["pid"]].split(" (")[0], e["name"]) for e in events if e["ph"] == "X")
assert spans["learner 0", "update"] == spans["learner 1", "update"] == 5, spans
assert all(e["ts"] >= 0 and e["dur"] >= 0 for e in events if e["ph"] == "X")
assert any(role.startswith("replay") for role, _ in spans) and any(role.startswith("learner") and name == "receive batch" for role, name in spans), spans
P
operate 2 timeline --updates 1001
last_error 'from 1 to 1000'

# Another ratio of samples to inserts applies in all shards, also after their restart.
operate 0 limit --samples-per-insert 4
said '^rate limiter of 2 shards: 4 samples per insert$'
until_true 'the new ratio' is 's["rate_limiter"]["samples_per_insert"], s["rate_limiter"]["changed"]' '(4.0, True)'
operate 0 status
said '^rate limit +4 samples per insert, .*changed'
operate 2 limit --samples-per-insert 0
last_error 'above 0'

# A rolling restart of all: new processes, nothing lost, no restart counted.
before_processes=$(processes '.*')
inserts=$(status 's["counters"]["replay_items"]')
updates=$(status 's["counters"]["updates"]')
operate 0 restart
said '^processes restarted: 8$'
for process in $before_processes; do
  kill -0 "$process" 2>/dev/null && fail "process $process was not restarted"
done
is '{p["restarts"] for p in s["processes"]}, len(s["failures"])' '({0}, 0)' || fail 'restarts were counted'
logged ' died' && fail 'somebody died'
[ "$(status 's["counters"]["replay_items"]')" -ge "$inserts" ] || fail 'items were lost'
until_true 'updates go on after the restart' is "s['counters']['updates'] > $updates" True

# A frozen shard is skipped: the learners continue with the other.
shard=$(pgrep -f "actor --role replay --index 1 .*$scratch/runs")
kill -STOP "$shard"
updates=$(status 's["counters"]["updates"]')
until_true 'updates without the frozen shard' is "s['counters']['updates'] > $updates + 1000" True
kill -CONT "$shard"

# The watchdog: two frozen shards stop the run.
shards=$(pgrep -f "actor --role replay .*$scratch/runs")
kill -STOP $shards
until_true 'the standstill told' logged 'warning nothing has moved for [0-9]+ s; .*replay [01].* has not answered'
logged 'learner [01](, 1)?: waiting for samples from replay' || fail 'not told that learners wait'
is 'any("waiting until replay" in w for w in s["waits"])' True || fail 'status does not tell for whom environments wait'
updates=$(status 's["counters"]["updates"]')
kill -CONT $shards
until_true 'updates after the standstill' is "s['counters']['updates'] > $updates" True

# Stop, then resume with the scaled number of actors.
operate 0 stop
said 'has ended, its checkpoint is '
pgrep -f "troupe (actor|node) .*$scratch" >/dev/null && fail 'stop came back before the processes of the run were gone'
wait "$run" || fail "exit code $?"
pgrep -f "$scratch/runs" >/dev/null && fail 'a process was left behind'
[ -e "$folder/head.json" ] && fail 'head.json was left behind'
operate 2 stop
last_error 'no live run below it'
operate 2 status "$folder"
last_error 'no process works on this run'
operate 0 logs --follow --role head
launch --resume
until_true 'the head' test -e "$folder/head.json"
until_true 'three environment actors again' is 'sum(p["role"] == "environment" and p["state"] == "up" for p in s["processes"])' 3
until_true 'training' is 's["phase"]' training
is 's["rate_limiter"]["samples_per_insert"]' 4.0 || fail 'the resumed run has not the ratio that was set'

# Commands report that the head was killed.
kill -9 "$run"
wait "$run" 2>/dev/null
operate 2 status "$folder"
last_error 'was killed'
for _ in $(seq 600); do
  pgrep -f "$scratch/runs" >/dev/null || break
  read -r -t 0.1 <> <(:) || true
done
pgrep -f "$scratch/runs" >/dev/null && fail 'a process outlived its head'
echo 'operated'
