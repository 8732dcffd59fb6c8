#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test. Usage: tests/run.sh [preset] [ctest arguments…]
#   tests/run.sh                 the release build, all tests
#   tests/run.sh asan -L unit    the unit tests under AddressSanitizer and UBSan
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"
preset=release
cuda=AUTO
case ${1:-} in
-h | --help)
  sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}"
  exit 0
  ;;
dev | release | asan | tsan | cuda)
  preset=$1
  shift
  ;;
esac
[ "$preset" != cuda ] || cuda=ON # CMake then names what is missing
experiments/packaging/install_dependencies.sh --tests
mkdir -p build
cmake --preset "$preset" -DBUILD_TESTING=ON -DTROUPE_BATCH=30 -DTROUPE_CUDA=$cuda -DTROUPE_CUDA_ARCHITECTURES=80-virtual >build/configure-"$preset".log || {
  tail -n 20 build/configure-"$preset".log >&2
  exit 1
}
ninja -C build/"$preset"
export OMP_WAIT_POLICY=PASSIVE # LibTorch's threads wait for each other without spinning: the cores are others' too
exec ctest --test-dir build/"$preset" --output-on-failure --schedule-random -j "$((2 * $(nproc)))" "$@" # many tests wait for processes
