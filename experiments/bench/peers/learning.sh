#!/usr/bin/env bash
# Trains the experiments whose results are in RESULTS.md and saves their curves (one small CSV for each run, evaluations only).
# Usage: experiments/bench/peers/learning.sh [RUNS-FOLDER] EXPERIMENT:SEED… [-- KEY=VALUE…]     e.g. quickstart:1 quickstart:2 -- learner.threads=1
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
[ $# -gt 0 ] || { sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}"; exit 2; }
runs=build/learning
case $1 in *:*) ;; *) runs=$1; shift ;; esac
experiments=() settings=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do experiments+=("$1"); shift; done
for setting in "${@:2}"; do settings+=(--set "$setting"); done
for what in "${experiments[@]}"; do
  name=${what%:*} seed=${what#*:}
  build/release/troupe train "$name" --runs "$runs" --set seed="$seed" --set evaluation.video=false "${settings[@]}" |
    grep -E '^(task|return|steps|updates|time|rates)'
  folder=$(ls -d "$runs/$name"/* | tail -n 1)
  experiments/bench/peers/curve.sh "$folder" >"experiments/configs/curves/${name}_seed$seed.csv"
done
