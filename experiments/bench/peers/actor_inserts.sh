#!/usr/bin/env bash
# Measures how many frames per second an environment actor inserts into a shard in another process: 84x84 RGB frames that cost nothing to render
# (blank_pixels.cpp), random actions, almost no learning. Several checkouts take turns; each must have build/release/troupe.
# Usage: actor_inserts.sh [CHECKOUT...]     (default: this one)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -gt 0 ] || set -- "$here/../../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
frames=300000
cat >"$scratch/inserts.textproto" <<T
environment { task: "blank_pixels" frame_stack: 3 }
replay { minimum_items: 110000 capacity_items: 120000 samples_per_insert: 0.001 capacity_bytes: 4000000000 }
d4pg { batch_size: 16 }
actors { environment: 1 environments_per_actor: 4 random_steps: $frames }
evaluation { period: 0 final_episodes: 1 video: false }
checkpoint { minutes: 0 replay: false }
stop { environment_steps: $frames }
T
for checkout in "$@"; do
  "${CXX:-g++}" -std=c++20 -O2 -shared -fPIC -I "$checkout" "$here/blank_pixels.cpp" -o "$scratch/$(echo "$checkout" | tr / _).so"
done
for turn in 1 2 3; do
  for checkout in "$@"; do
    "$checkout/build/release/troupe" train "$scratch/inserts.textproto" --processes --json --runs "$scratch/runs" \
      --set "environment.plugin=$scratch/$(echo "$checkout" | tr / _).so" 2>/dev/null | tail -n 1 | python3 -c '
import json, sys
result = json.loads(sys.stdin.read())
print(sys.argv[1], "turn", sys.argv[2] + ":", round(result["agent_steps"] / result["training_seconds"]), "frames/s,", round(result["training_seconds"], 2), "s")
' "$checkout" "$turn"
    rm -rf "$scratch/runs"
  done
done
