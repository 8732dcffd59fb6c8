#!/usr/bin/env bash
# Prints the evaluations of a run as a small CSV. For a run in an environment: steps, updates, seconds of training, mean, minimum and maximum return,
# episodes. For a run on data: updates, seconds of training, and the validation metrics. With several runs, a first column has experiment, task and seed.
# Usage: experiments/bench/peers/curve.sh RUN-FOLDER…
set -euo pipefail
[ $# -gt 0 ] || { sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}"; exit 2; }
value() { sed -n "s/^ *$1: \"\?\([^\"]*\)\"\?$/\1/p" "$2/config.textproto" | head -n 1; }
for run in "$@"; do
  name=
  [ $# = 1 ] || name="$(value name "$run"),$(value task "$run"),$(value seed "$run"),"
  awk -F, -v run="$name" -v header="$([ "$run" = "$1" ] && echo 1 || true)" '{ sub(/\r$/, "") }
    NR == 1 { for (i = 1; i <= NF; ++i) { at[$i] = i; if (sub(/^validation_/, "", $i)) { measured[++n] = i; names = names "," $i } }
      if (header) print (run ? "experiment,task,seed," : "") \
        (n ? "updates,training_seconds" names : "environment_steps,updates,training_seconds,return,return_min,return_max,episodes"); next }
    $1 != "evaluation" && $1 != "final" { next }
    { printf "%s", run }
    n { printf "%d,%.1f", $at["updates"], $at["training_seconds"]; for (i = 1; i <= n; ++i) printf ",%.6g", $measured[i]; print ""; next }
    { printf "%d,%d,%.1f,%.1f,%.1f,%.1f,%d\n", $at["environment_steps"], $at["updates"], $at["training_seconds"],
      $at["evaluation_return"], $at["evaluation_return_min"], $at["evaluation_return_max"], $at["evaluation_episodes"] }' <"$run/metrics.csv" # awk would take a path with = for an assignment
done
