#!/usr/bin/env bash
# Trains an experiment on pixels from the ray caster and from OpenGL, and evaluates each agent on the pictures of both: does the renderer matter?
# Usage: experiments/bench/peers/renderers.sh EXPERIMENT [EPISODES] [KEY=VALUE…]     e.g. quickstart 20 environment.task=cartpole_swingup
# TROUPE and RUNS name the program and a folder; LEARN (CASTER OPENGL) lists the renderers to train with, one training each.
# Exit code 1: a mean return on the other renderer's pictures differs by more than 3% from the one on the renderer of the training.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
[ $# -gt 0 ] || { sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}"; exit 2; }
troupe=${TROUPE:-build/release/troupe}
runs=${RUNS:-build/renderers}
experiment=$1 episodes=10
shift
case ${1:-} in
'' | *=*) ;;
*) episodes=$1 && shift ;;
esac
sets=()
for pair in "$@"; do sets+=(--set "$pair"); done
mean_return() { # RUN RENDERER
  "$troupe" evaluate "$1" --episodes "$episodes" --set environment.pixels.renderer="$2" --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["mean_return"])'
}
status=0
for learns in ${LEARN:-CASTER OPENGL}; do
  folder=$runs/$learns
  "$troupe" train "$experiment" --runs "$folder" --set evaluation.video=false "${sets[@]}" --set environment.pixels.renderer=$learns --quiet |
    grep -E '^(task|return|steps|updates|time|rates)' || true
  run=$(find "$folder" -mindepth 2 -maxdepth 2 -type d | sort | tail -n 1)
  caster=$(mean_return "$run" CASTER)
  opengl=$(mean_return "$run" OPENGL)
  python3 - "$learns" "$caster" "$opengl" "$episodes" <<'PYTHON' || status=1
import sys
learns, caster, opengl = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
own, other = (caster, opengl) if learns == "CASTER" else (opengl, caster)
change = (other - own) / abs(own) if own else 0.0
print(f"learnt from {learns}: {caster:.1f} on the caster's pictures, {opengl:.1f} on OpenGL's "
      f"(means of {sys.argv[4]} episodes): {change:+.2%} on the other's")
sys.exit(abs(change) > .03)
PYTHON
done
exit $status
