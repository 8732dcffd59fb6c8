"""Runs a script in an uninstrumented Python, with AddressSanitizer's runtime for the instrumented extension module.

Usage: sanitized.py <the runtime's library> <script> <its arguments>
"""

import os
import sys

runtime, script_and_arguments = sys.argv[1], sys.argv[2:]
environment = {
    **os.environ,
    # The runtime replaces libstdc++'s exception functions, which it must find when it is loaded.
    "LD_PRELOAD": f"{runtime}:libstdc++.so.6",
    # Lets the sanitizer watch the memory of Python objects.
    "PYTHONMALLOC": "malloc",
    # CPython does not free everything at exit.
    "ASAN_OPTIONS": "detect_leaks=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
os.execve(sys.executable, [sys.executable, *script_and_arguments], environment)
