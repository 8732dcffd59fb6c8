#!/usr/bin/env bash
# Builds the extension module for a free-threaded Python, and checks there that threads share tables and that the interpreter's lock is enabled.
# Usage: tests/experiments/python/free_threaded.sh [interpreter]; exit code 77: skipped, there is no free-threaded Python.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
python=
for name in "${1:-python3.14t}" "${1:-python3.13t}"; do
  if found=$(command -v "$name") && "$found" -c 'import sys, sysconfig; sys.exit(not sysconfig.get_config_var("Py_GIL_DISABLED"))'; then
    python=$found
    break
  fi
done
if [ -z "$python" ]; then
  echo "skipped: ${1:-python3.14t or python3.13t} is no free-threaded Python on the PATH; give the path of one as the first argument"
  exit 77
fi
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
cmake --preset release -B build/free_threaded -DPython3_EXECUTABLE="$python" -DPython3_INCLUDE_DIR="$include"
ninja -C build/free_threaded troupe_native
exec "$python" tests/experiments/python/numpy_test.py build/free_threaded/replay_venv build/free_threaded/python tests/experiments/python/free_threaded_checks.py
