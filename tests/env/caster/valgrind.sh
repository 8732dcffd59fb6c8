#!/usr/bin/env bash
# Looks at the ray caster's kernels with valgrind, which sanitizers leave out. Usage: tests/env/caster/valgrind.sh BUILD_FOLDER
# Needs Debian's valgrind. Its processor has AVX2 and no AVX-512, so the caster takes AVX2 there. Exit code 1: something was found.
set -euo pipefail
build=${1:?names the build folder, for example build/release}
command -v valgrind >/dev/null || {
  echo "valgrind is not installed: apt-get install valgrind" >&2
  exit 1
}
exec valgrind --quiet --error-exitcode=1 --exit-on-first-error=yes --undef-value-errors=yes \
  "$build"/tests/env/caster/core_caster_test
