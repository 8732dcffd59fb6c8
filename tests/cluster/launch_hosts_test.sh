#!/usr/bin/env bash
# `troupe launch` by SSH on four simulated hosts (network namespaces) with a deployment's keys: 4 environment actors, 3 shards, 2 learners that
# exchange over the network, an evaluator. A node without the keys is rejected. When stopped, the run leaves no process, socket or memory segment behind.
# Usage: launch_hosts_test.sh <troupe program> <scratch folder>     exit code 77: this machine lacks what hosts.sh takes
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
if [ -z "${TROUPE_SSH_CONFIG:-}" ]; then
  troupe=$(realpath "$1") scratch=$2
  rm -rf "$scratch"
  mkdir -p "$scratch"
  exec bash "$here/hosts.sh" -N 4 --sshd bash "$0" "$troupe" "$(realpath "$scratch")"
fi
troupe=$1 scratch=$2
. "$here/host_tools.sh"
cd "$scratch" || exit 1
"$troupe" keys cluster keys >/dev/null || exit 1
cat >cluster.textproto <<T
node { name: "host" count: 4 address: "10.77.0.[1-4]" cores: 2 }
ssh { port: $TROUPE_SSH_PORT identity_file: "$TROUPE_SSH_IDENTITY" known_hosts: "$TROUPE_SSH_KNOWN_HOSTS" program: "$troupe" }
keys: "keys"
head { listen: "10.77.0.254:4242" }
oversubscribe: true
pin: false
role { name: "environment" count: 4 apart: "environment" }
role { name: "replay" count: 3 apart: "replay" }
role { name: "learner" count: 2 apart: "learner" }
T
cat >run.textproto <<'T'
name: "hosts"
environment { task: "cartpole_balance" action_repeat: 4 }
replay { minimum_items: 300 samples_per_insert: 8 }
d4pg { policy_layers: [32, 32] critic_layers: [32, 32] batch_size: 32 }
learner { backend: TCP }
actors { random_steps: 300 }
supervision { lost_seconds: 30 }
evaluation { period: 0 final_episodes: 1 video: false }
checkpoint { minutes: 0 }
stop { environment_steps: 2000000000 }
T
"$troupe" launch cluster.textproto run.textproto --runs "$scratch/runs" >out 2>&1 &
run=$!
fail() {
  echo "$1"
  tail -n 30 out runs/hosts/*/{log.txt,nodes.log}
  exit 1
}
updates() { awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "updates") at = i } END { printf "%d", $at }' runs/hosts/*/metrics.csv 2>/dev/null || echo 0; }
for _ in $(seq 1200); do # at most two minutes of looking
  kill -0 "$run" 2>/dev/null || fail 'the run ended before it learnt'
  [ "$(updates)" -gt 500 ] && break
  read -r -t 0.1 <> <(:) || true
done
[ "$(updates)" -gt 500 ] || fail 'no updates'
for host in 1 2 3 4; do
  grep -q "host-$((host - 1)): node: joined" runs/hosts/*/nodes.log || fail "host-$((host - 1)) did not join"
done
on_host 0 "$troupe" node --head 10.77.0.254:4242 --name stranger --join-seconds 3 >stranger 2>&1
[ $? -ne 0 ] || fail 'a node without keys was let in'
grep -q 'stranger' runs/hosts/*/nodes.log && fail 'a node without keys joined'
before=$(updates)
for _ in $(seq 600); do
  [ "$(updates)" -gt "$before" ] && break
  read -r -t 0.1 <> <(:) || true
done
[ "$(updates)" -gt "$before" ] || fail 'the stranger did harm'
kill -TERM "$run"
wait "$run"
code=$?
[ "$code" = 0 ] || fail "exit code $code"
left=$(left_on_hosts)
[ -z "$left" ] || fail "left on the hosts: $left"
ls runs/hosts/*/checkpoints/*/manifest.json >/dev/null || fail 'no checkpoint'
ls keys/ca.key >/dev/null || fail 'no authority'
echo 'four hosts'
