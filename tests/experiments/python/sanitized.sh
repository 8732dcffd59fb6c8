#!/usr/bin/env bash
# Builds the Python package's extension module and the program with AddressSanitizer and UBSan, and runs the package's tests with them.
# Usage: tests/experiments/python/sanitized.sh [ctest arguments…]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
cmake --preset asan -DBUILD_TESTING=ON
ninja -C build/asan troupe_native troupe own_environment
exec ctest --test-dir build/asan -R '^python_test:' --output-on-failure "$@"
