#!/usr/bin/env bash
# Measures how long a build takes without a compiler cache. Usage: experiments/bench/build_times.sh quickstart | everything | touched
#   quickstart   from a fresh clone until `quickstart.sh` trains, including packages and wheels
#   everything   from a fresh clone until the libraries, the program, benchmarks, tests and CUDA sources are built
#   touched      from touching a header or source of learner/replicas until its test has run, with batches of the default size
# The committed state is cloned into a temporary folder (TMPDIR), which is removed at the end. Nothing else should run meanwhile.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
what=${1:-}
case $what in
quickstart | everything | touched) ;;
-h | --help)
  sed -n '2,6s/^# //p' "${BASH_SOURCE[0]}"
  exit 0
  ;;
*)
  echo "build_times.sh: '$what' is not a build; use quickstart, everything or touched" >&2
  exit 2
  ;;
esac
export CCACHE_DISABLE=1
folder=$(mktemp -d)
running=
trap '[ -z "$running" ] || kill -KILL -- "-$running" 2>/dev/null; rm -rf "$folder"' EXIT
git clone -q "$top" "$folder/troupe"
cd "$folder/troupe"
mkdir -p build
tell() { # tell WHAT SINCE
  awk -v what="$1" -v since="$2" -v now="$EPOCHREALTIME" -v cpu="$(lscpu | sed -n 's/^Model name: *//p')" \
    'BEGIN { printf "{\"bench\": \"build\", \"metric\": \"%s\", \"value\": %.1f, \"unit\": \"s\", \"processor\": \"%s\"}\n", what, now - since, cpu }'
}

if [ "$what" = quickstart ]; then
  began=$EPOCHREALTIME
  setsid experiments/quickstart.sh >build/quickstart.log 2>&1 &
  running=$!
  until grep -q '^training ' build/quickstart.log; do
    kill -0 "$running" 2>/dev/null || { tail -n 20 build/quickstart.log >&2; exit 1; }
    sleep 0.2
  done
  tell 'quickstart.sh until it trains' "$began"
  kill -TERM -- "-$running"
  wait "$running" || true
  exit 0
fi
experiments/packaging/install_dependencies.sh --tests >/dev/null
if [ "$what" = everything ]; then
  began=$EPOCHREALTIME
  cmake --preset release -DBUILD_TESTING=ON -DTROUPE_BATCH=30 -DTROUPE_CUDA=AUTO -DTROUPE_CUDA_ARCHITECTURES=80-virtual >build/configure.log
  ninja -C build/release >build/build.log
  tell 'everything' "$began"
  exit 0
fi
cmake --preset release -DBUILD_TESTING=ON -DTROUPE_CUDA=OFF >build/configure.log
ninja -C build/release learner_replicas_test >build/build.log
for file in learner/replicas/*.hpp learner/replicas/replicator.cpp; do
  began=$EPOCHREALTIME
  touch "$file"
  ninja -C build/release learner_replicas_test >build/build.log
  build/release/tests/learner/learner_replicas_test >/dev/null
  tell "$file touched until its test ends" "$began"
done
