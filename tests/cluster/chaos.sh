#!/usr/bin/env bash
# Chaos: the run of everywhere.textproto on four hosts (network namespaces) by SSH. Every few seconds a random process (an environment
# actor, a shard, a learner, the evaluator, a whole node, the head) is killed with kill -9, or one other than the head is frozen, or a host is cut off, or the
# run's disk is full, at times with the head killed meanwhile. Then the head is killed once more, and finally the whole launch. The run is then resumed to its end.
# Checks: the score; no item is duplicated, none of a snapshot is lost, none is missing except after a restart; no wait exceeds its deadline; nothing is left. Prints
# a table of faults, recoveries and losses.
# Usage: chaos.sh TROUPE REPLAY_AUDIT FOLDER [--minutes M] [--period S] [--seed N] [--score RETURN] [--short]
#   --minutes 30, --period 20 (seconds between faults), --seed 1 (of the random faults), --score 800 (minimum final score of the run).
#   --short: two faults of each kind on a small run from states, whose score is not checked: about two minutes.
# Exit code: 0 all checks passed; 1 one failed; 77 this machine lacks what hosts.sh needs (prints "skipped:").
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
[ $# -ge 3 ] || { sed -n 2,11p "$0" >&2; exit 2; }
command -v python3 >/dev/null || { echo "skipped: python3 is not installed"; exit 77; }
troupe=$(realpath "$1") audit=$(realpath "$2")
rm -rf "$3"
mkdir -p "$3/disk"
disk=8192 # MiB: an hour's snapshots are kept
[[ " ${*:4} " == *" --short "* ]] && disk=1024
PYTHONDONTWRITEBYTECODE=1 exec bash "$here/hosts.sh" -N 4 --sshd --disk "$3/disk=$disk" python3 "$here/chaos.py" "$troupe" "$audit" "$(realpath "$3")" "${@:4}"
