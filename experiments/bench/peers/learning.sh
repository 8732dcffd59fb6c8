#!/usr/bin/env bash
# Trains the experiments whose results are in RESULTS.md and saves their curves (one small CSV for each run, evaluations only).
# Usage: experiments/bench/peers/learning.sh [RUNS-FOLDER] EXPERIMENT:SEED…     e.g. quickstart:1 quickstart:2
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
[ $# -gt 0 ] || { sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}"; exit 2; }
runs=build/learning
case $1 in *:*) ;; *) runs=$1; shift ;; esac
for what in "$@"; do
  name=${what%:*} seed=${what#*:}
  build/release/troupe train "$name" --runs "$runs" --set seed="$seed" --set evaluation.video=false |
    grep -E '^(task|return|steps|updates|time|rates)'
  folder=$(ls -d "$runs/$name"/* | tail -n 1)
  experiments/bench/peers/curve.sh "$folder" >"experiments/configs/curves/${name}_seed$seed.csv"
done
