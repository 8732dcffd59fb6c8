#!/usr/bin/env bash
# Chaos: the run of everywhere.textproto on four hosts (network namespaces) by SSH, while every few seconds a random process (an environment
# actor, a shard, a learner, the evaluator, a whole node, the head) is killed -9, one of all but the head is frozen, a host cut off, or the run's disk
# full, at times with the head killed meanwhile. Then the head is killed -9 once more; then the whole launch is, and the run is resumed to its end.
# Checked: its score; no item twice, none that a snapshot had is lost, none missing but behind a restart; no wait beyond a deadline; nothing left. Prints
# a table of faults, recoveries and losses.
# Usage: chaos.sh TROUPE REPLAY_AUDIT FOLDER [--minutes M] [--period S] [--seed N] [--score RETURN] [--short]
#   --minutes 30, --period 20 (seconds between faults), --seed 1 (of the draw), --score 800 (the least that the run has to end with).
#   --short: two faults of each kind on a small run from states, whose score does not count: about two minutes.
# Exit code: 0 all held; 1 something did not; 77 this machine lacks what hosts.sh takes (says "skipped:").
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
