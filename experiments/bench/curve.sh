#!/usr/bin/env bash
# The evaluations of a run as a small CSV: steps, updates, seconds of training, mean return, least, greatest, episodes.
# Usage: experiments/bench/curve.sh RUN-FOLDER
set -euo pipefail
[ $# = 1 ] || { sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}"; exit 2; }
awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i
    print "environment_steps,updates,training_seconds,return,return_min,return_max,episodes"; next }
  $1 == "evaluation" || $1 == "final" { printf "%d,%d,%.1f,%.1f,%.1f,%.1f,%d\n", $at["environment_steps"], $at["updates"], $at["training_seconds"],
    $at["evaluation_return"], $at["evaluation_return_min"], $at["evaluation_return_max"], $at["evaluation_episodes"] }' "$1/metrics.csv"
