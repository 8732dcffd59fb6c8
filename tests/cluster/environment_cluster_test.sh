#!/usr/bin/env bash
# TF_CONFIG and torchrun's variables describe a cluster: `troupe launch` leads it and `troupe node` joins it without any other address.
# Usage: environment_cluster_test.sh <troupe program> <scratch folder>
set -uo pipefail
troupe=$1 scratch=$2
rm -rf "$scratch"
mkdir -p "$scratch"
cat >"$scratch/run.textproto" <<'T'
name: "described"
environment { task: "cartpole_balance" action_repeat: 4 }
replay { minimum_items: 300 samples_per_insert: 8 }
d4pg { policy_layers: [32, 32] critic_layers: [32, 32] batch_size: 32 }
actors { environment: 1 random_steps: 300 }
evaluation { period: 0 final_episodes: 1 video: false }
checkpoint { minutes: 0 }
stop { environment_steps: 20000 }
T
unset TROUPE_HEAD TROUPE_KEYS TROUPE_NODE_NAME TROUPE_ADDRESS
said=$("$troupe" node 2>&1)
code=$?
[ "$code" = 2 ] && grep -q 'neither TF_CONFIG nor torchrun' <<<"$said" || { echo "without variables: exit code $code, $said"; exit 1; }

described() { # name, what stands for the cluster, the node's name; the variables are exported
  "$troupe" launch "$2" "$scratch/run.textproto" --runs "$scratch/$1" >"$scratch/$1.head" 2>&1 &
  local head=$!
  "$troupe" node >"$scratch/$1.node" 2>&1 &
  local node=$!
  wait "$head"
  local code=$?
  wait "$node"
  local ended=$?
  if [ "$code" != 0 ] || [ "$ended" != 0 ] || ! grep -q "joined as $3" "$scratch/$1.node"; then
    echo "$1: exit codes $code and $ended"
    tail -n 20 "$scratch/$1.head" "$scratch/$1.node"
    exit 1
  fi
}
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
(
  port=$(free_port)
  export TF_CONFIG="{\"cluster\": {\"worker\": [\"127.0.0.1:$port\"]}, \"task\": {\"type\": \"worker\", \"index\": 0}}"
  described tf_config TF_CONFIG worker-0
) || exit 1
(
  port=$(free_port)
  export RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port - 1))
  described torchrun torchrun rank-0
) || exit 1
echo 'described'
