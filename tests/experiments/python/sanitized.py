"""Runs a script in a Python that is not instrumented, with AddressSanitizer's runtime for the extension module that is.

Usage: sanitized.py <the runtime's library> <script> <its arguments>
"""

import os
import sys

runtime, script_and_arguments = sys.argv[1], sys.argv[2:]
environment = {
    **os.environ,
    # The runtime takes the place of libstdc++'s exceptions, which it must find when it is loaded.
    "LD_PRELOAD": f"{runtime}:libstdc++.so.6",
    # Objects of Python are in memory that the sanitizer watches.
    "PYTHONMALLOC": "malloc",
    # CPython does not free everything at its exit.
    "ASAN_OPTIONS": "detect_leaks=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
os.execve(sys.executable, [sys.executable, *script_and_arguments], environment)
