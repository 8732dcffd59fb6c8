#!/usr/bin/env bash
# Prints the evaluations of a run as a small CSV. For a run in an environment: steps, updates, seconds of training, mean, minimum and maximum return,
# episodes. For a run on data: updates, seconds of training, and the validation metrics.
# Usage: experiments/bench/peers/curve.sh RUN-FOLDER
set -euo pipefail
[ $# = 1 ] || { sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}"; exit 2; }
awk -F, '{ sub(/\r$/, "") }
  NR == 1 { for (i = 1; i <= NF; ++i) { at[$i] = i; if (sub(/^validation_/, "", $i)) { measured[++n] = i; names = names "," $i } }
    print n ? "updates,training_seconds" names : "environment_steps,updates,training_seconds,return,return_min,return_max,episodes"; next }
  $1 != "evaluation" && $1 != "final" { next }
  n { printf "%d,%.1f", $at["updates"], $at["training_seconds"]; for (i = 1; i <= n; ++i) printf ",%.6g", $measured[i]; print ""; next }
  { printf "%d,%d,%.1f,%.1f,%.1f,%.1f,%d\n", $at["environment_steps"], $at["updates"], $at["training_seconds"],
    $at["evaluation_return"], $at["evaluation_return_min"], $at["evaluation_return_max"], $at["evaluation_episodes"] }' "$1/metrics.csv"
