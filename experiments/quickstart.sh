#!/usr/bin/env bash
# Goes from a fresh clone to an agent trained from pixels: installs what is missing, builds, and trains D4PG on cartpole_balance.
# Further arguments go to `troupe train`, e.g. --set seed=2 or --processes.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"
case ${1:-} in
-h | --help)
  sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}"
  exit 0
  ;;
esac
experiments/packaging/install_dependencies.sh
mkdir -p build
cuda=OFF # CUDA sources take a minute to compile, and only a GPU uses them
[ -e /dev/nvidiactl ] && cuda=AUTO
[ -f build/release/build.ninja ] || cmake --preset release -DBUILD_TESTING=OFF -DTROUPE_BATCH=30 -DTROUPE_CUDA=$cuda >build/configure.log || {
  tail -n 20 build/configure.log >&2
  exit 1
}
if ! ninja -C build/release -n troupe | grep -q 'no work to do'; then
  echo "building build/release/troupe (some minutes the first time)"
  ninja -C build/release troupe >build/build.log || {
    grep -m 20 -E 'error|FAILED' build/build.log >&2
    echo "the build failed; all of its output is in build/build.log" >&2
    exit 1
  }
fi
exec build/release/troupe train experiments/configs/quickstart.textproto "$@"
