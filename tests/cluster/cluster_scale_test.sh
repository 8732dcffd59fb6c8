#!/usr/bin/env bash
# A head's supervisor with simulated nodes, plain and encrypted: all join; silent and killed nodes are lost and come back.
# Usage: cluster_scale_test.sh <cluster_scale program> <scratch folder>
set -uo pipefail
scale=$1 scratch=$2
rm -rf "$scratch"
mkdir -p "$scratch"
"$scale" --nodes 20 --actors 2 --seconds 2 >"$scratch/figures" || { echo "exit code $?"; cat "$scratch/figures"; exit 1; }
value() { # of a metric, in a trial
  grep "\"connections\": \"$1\"" "$scratch/figures" | grep -F "\"metric\": \"$2\"" | sed 's/.*"value": \([-0-9.e+]*\),.*/\1/'
}
problems=0
holds() { # name, value, condition of awk on v
  awk -v v="$2" "BEGIN { exit !(v != \"\" && ($3)) }" || { echo "$1: ${2:-missing}, must hold: $3"; problems=1; }
}
# Times have only bounds that a busy machine keeps: a silent node is lost after 15 s, a closed connection sooner. The program itself fails unless
# exactly the nodes that it stopped are lost.
for connections in plain TLS; do
  silent=$(value $connections 'nodes that fall silent: until the head notices')
  holds "$connections: joined after" "$(value $connections 'until all have joined and all roles are up')" 'v > 0'
  holds "$connections: tries of a join" "$(value $connections 'tries that a join took, mean')" 'v >= 1'
  holds "$connections: lost by silence after" "$silent" 'v > 13'
  holds "$connections: lost by their connection after" "$(value $connections 'nodes that are killed: until the head notices')" "v < 0$silent"
  holds "$connections: moved after silence" "$(value $connections 'nodes that fall silent: until all that ran there is up elsewhere')" 'v > 0'
  holds "$connections: back after" "$(value $connections 'until they have joined in their next life')" 'v > 0'
  holds "$connections: answers" "$(value $connections 'answers from the supervisor while all beat')" 'v > 0'
  holds "$connections: ended after" "$(value $connections 'until all nodes have ended what ran on them')" 'v > 0'
done
pgrep -f "^$scale --join" >/dev/null && { echo 'a process was left behind'; problems=1; }
[ "$problems" = 0 ] && echo 'held'
exit "$problems"
