#!/usr/bin/env bash
# Trains the GAN of RESULTS.md on the scenes that classify.sh renders, measured by the classifier that it trains. Prints Fréchet distances: of a long run
# at its first and last evaluation, and of 1 replica against 4 replicas with 4 times the batch at equal steps.
# Usage: experiments/bench/peers/sngan.sh [STAGE…]     of: long batches; both by default, after experiments/bench/peers/classify.sh draw one
# TROUPE, DATA and RUNS name the program and folders, as in classify.sh; SEEDS lists the seeds of the stage batches (1 2), KEYS further keys for all runs ("sngan.critic_steps=1 …").
# Exit code 1: the long run ends above 1/5 of its first distance, or the larger batch is not better.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
troupe=$(realpath "${TROUPE:-build/release/troupe}") data=$(realpath -m "${DATA:-build/classify/data}") runs=$(realpath -m "${RUNS:-build/classify/runs}")
curves=$PWD/experiments/configs/curves status=0
[ $# -gt 0 ] || set -- long batches
newest() { find -L "$runs/$1" -mindepth 1 -maxdepth 1 -type d | sort | tail -n 1; }
classifier=$(newest classify_scenes_1 2>/dev/null || true)
[ -n "$classifier" ] || { echo "there is no run of the classifier in $runs; experiments/bench/peers/classify.sh draw one makes it" >&2; exit 2; }
train() { # curve, keys
  local sets=() key
  for key in data.path="$data/scenes32" sngan.classifier="$classifier" ${KEYS:-} "${@:2}"; do sets+=(--set "$key"); done
  "$troupe" train sngan_scenes --runs "$runs" --quiet --set name="$1" "${sets[@]}" | grep -E '^(frechet|class_score|time )'
  experiments/bench/peers/curve.sh "$(newest "$1")" >"$curves/$1.csv"
  echo "pictures: $(newest "$1")/pictures"
}
for stage in "$@"; do
  case $stage in
  long)
    train sngan_scenes
    cp "$(printf '%s\n' "$(newest sngan_scenes)"/pictures/samples-*.png | sort -V | tail -n 1)" "$curves/sngan_scenes.png"
    awk -F, 'NR == 2 { first = $3 } END { printf "Fréchet distance %.3g, then %.3g after %d steps: 1/%.2g\n", first, $3, $1, first / $3; exit !(first > 0 && $3 <= first / 5) }' \
      "$curves/sngan_scenes.csv" || status=1
    ;;
  batches) # 1000 steps of equally wide networks: with 20,000 rows and one critic step, an epoch has 1250 steps of batch 16 or 312 of batch 64
    small=(sngan.tapered=false sngan.decay=true sngan.generator_learning_rate=4e-4)
    echo "| seed | batch 16, 1 replica | batch 64, 4 replicas |"
    for seed in ${SEEDS:-1 2}; do
      train "sngan_batch16_$seed" seed="$seed" "${small[@]}" sngan.batch_size=16 data.epochs=0.8 data.evaluation_epochs=0.2 >&2
      train "sngan_batch64_$seed" seed="$seed" "${small[@]}" sngan.batch_size=64 learner.replicas=4 data.epochs=3.20513 data.evaluation_epochs=0.80128 >&2
      paste -d, "$curves/sngan_batch16_$seed.csv" "$curves/sngan_batch64_$seed.csv" |
        awk -F, -v seed="$seed" 'END { printf "| %d | %.3f | %.3f |\n", seed, $3, $7; exit !($7 < $3) }' || status=1
    done
    ;;
  *)
    sed -n '2,7s/^# //p' "${BASH_SOURCE[0]}"
    exit 2
    ;;
  esac
done
exit $status
