#!/usr/bin/env bash
# Checks the ray caster's kernels with valgrind, because the sanitizers leave them out. Usage: tests/env/caster/valgrind.sh BUILD_FOLDER
# Needs Debian's valgrind, whose processor has AVX2 but not AVX-512, so the caster uses AVX2. Exit code 1: valgrind found an error.
set -euo pipefail
build=${1:?names the build folder, for example build/release}
command -v valgrind >/dev/null || {
  echo "valgrind is not installed: apt-get install valgrind" >&2
  exit 1
}
exec valgrind --quiet --error-exitcode=1 --exit-on-first-error=yes --undef-value-errors=yes \
  "$build"/tests/env/caster/core_caster_test
