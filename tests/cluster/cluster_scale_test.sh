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
for connections in plain TLS; do
  holds "$connections: joined within" "$(value $connections 'until all have joined and all roles are up')" 'v > 0 && v < 300'
  holds "$connections: lost by silence after" "$(value $connections 'nodes that fall silent: until the head notices')" 'v > 13 && v < 60'
  holds "$connections: lost by their connection after" "$(value $connections 'nodes that are killed: until the head notices')" 'v < 13'
  holds "$connections: back within" "$(value $connections 'until they have joined in their next life')" 'v > 0 && v < 300'
  holds "$connections: 99% of the answers within" "$(value $connections 'an answer from the supervisor while all beat, 99% within')" 'v > 0 && v < 60000'
  holds "$connections: answers" "$(value $connections 'answers from the supervisor while all beat')" 'v > 0'
done
pgrep -f "^$scale --join" >/dev/null && { echo 'a process was left behind'; problems=1; }
[ "$problems" = 0 ] && echo 'held'
exit "$problems"
