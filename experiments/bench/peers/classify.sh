#!/usr/bin/env bash
# Renders scenes of 20 tasks, trains the classifiers of RESULTS.md on them, and saves their curves: a ResNet with 1 and with 2 replicas, whose curves
# it compares (update by update at the beginning); the same ResNet on files in MNIST's format; and a plain network on CSV.
# Usage: experiments/bench/peers/classify.sh [STAGE…]     of: draw one two compare idx csv; all by default
# TROUPE, DATA and RUNS name the program and folders. Exit code 1: a top-1 accuracy is below 95%, or the curves differ.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
troupe=$(realpath "${TROUPE:-build/release/troupe}") data=${DATA:-build/classify/data} runs=${RUNS:-build/classify/runs}
curves=$PWD/experiments/configs/curves status=0
[ $# -gt 0 ] || set -- draw one two compare idx csv
mkdir -p "$data" "$runs"
data=$(realpath "$data") runs=$(realpath "$runs")

draw() { # folder, rows, further arguments
  "$troupe" dataset render "$data/$1" --rows "$2" "${@:3}"
  "$troupe" dataset render "$data/$1" --rows 100 --split validation "${@:3}"
}
train() { # curve, experiment, keys
  local name=$1 sets=()
  for key in "${@:3}"; do sets+=(--set "$key"); done
  "$troupe" train "$2" --runs "$runs" --quiet --set name="$name" "${sets[@]}" | grep -E '^(top1|loss|time |rates)'
  experiments/bench/peers/curve.sh "$(find "$runs/$name" -mindepth 1 -maxdepth 1 -type d | sort | tail -n 1)" >"$curves/$name.csv"
}
enough() { # curve
  awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "top1") at = i }
    END { printf "%s: top-1 %.2f%% after %d updates, %d s\n", name, 100 * $at, $1, $2; exit !($at >= 0.95) }' "$curves/$1.csv" || status=1
}
replicas() { # 1 or 2: a short run with the first updates, then a whole one
  local keys=(data.path="$data/scenes32" classifier.precision=float32 learner.replicas="$1")
  train "classify_begin_$1" classify_scenes "${keys[@]}" data.epochs=0.1 data.evaluation_epochs=0.01 classifier.warmup_epochs=0.05
  train "classify_scenes_$1" classify_scenes "${keys[@]}"
  enough "classify_scenes_$1"
}
for stage in "$@"; do
  case $stage in
  draw)
    draw scenes32 1000 --size 32
    draw digits 1000 --size 28 --layout idx
    gzip "$data"/digits/*-ubyte
    draw table 3000 --size 16 --layout csv
    # The splits must have no picture in common.
    (cd "$data/scenes32" && sha256sum train/*/* validation/*/* | sort | awk '$1 == last { print "twice: " file " " $2; bad = 1 } { last = $1; file = $2 } END { exit bad }')
    ;;
  one) replicas 1 ;;
  two) replicas 2 ;;
  compare) # the first updates must agree up to rounding, the last ones within the resolution of 2000 pictures
    python3 - "$curves" <<'PYTHON' || status=1
import csv, sys
same = True
for name, most in ("begin", 1e-4), ("scenes", 0.01):
    one, two = (list(csv.DictReader(open(f"{sys.argv[1]}/classify_{name}_{n}.csv"))) for n in (1, 2))
    print("\n| updates | loss, 1 and 2 replicas | top-1 |\n| --- | --- | --- |")
    for a, b in zip(one, two):
        print(f"| {a['updates']} | {a['loss']}, {b['loss']} | {100 * float(a['top1']):.2f}, {100 * float(b['top1']):.2f} % |")
    ends = [(float(a[key]), float(b[key])) for key in ("loss", "top1") for a, b in list(zip(one, two))[0 if name == "begin" else -1:]]
    same &= len(one) == len(two) and all(abs(a - b) <= most for a, b in ends)
sys.exit(not same)
PYTHON
    ;;
  idx)
    train classify_idx classify_scenes data.path="$data/digits" data.epochs=5
    enough classify_idx
    ;;
  csv)
    train classify_csv classify_table data.path="$data/table"
    enough classify_csv
    ;;
  *)
    sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}"
    exit 2
    ;;
  esac
done
exit $status
