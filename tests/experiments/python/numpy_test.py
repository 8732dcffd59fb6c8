"""Runs a script with NumPy and the package troupe: Python's own NumPy, or one in a virtual environment inside the build tree.

Usage: numpy_test.py <folder for the virtual environment> <folder of the package> <script> <its arguments>; exit code 77: skipped.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys

NUMPY = "numpy==2.4.6"


def python_with_numpy(venv):
    if importlib.util.find_spec("numpy"):
        return sys.executable
    python = venv / "bin" / "python"
    ready = venv / f"ready-{NUMPY.replace('==', '-')}"
    if not ready.exists():
        made = subprocess.run([sys.executable, "-m", "venv", "--clear", venv], capture_output=True, text=True)
        if made.returncode == 0:
            made = subprocess.run([python, "-m", "pip", "install", "--quiet", "--only-binary=:all:", NUMPY], capture_output=True, text=True)
        if made.returncode != 0:
            print(f"skipped: there is no NumPy and {NUMPY} cannot be installed\n" + made.stderr.strip()[-500:])
            sys.exit(77)
        ready.touch()
    return python


venv, package, script_and_arguments = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
environment = {**os.environ, "PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1"}
sys.exit(subprocess.run([python_with_numpy(venv), *script_and_arguments], env=environment).returncode)
