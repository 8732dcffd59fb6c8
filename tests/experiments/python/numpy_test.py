"""Runs a script with NumPy and the package troupe: Python's own NumPy, or one in a virtual environment inside the build tree.

Usage: numpy_test.py [--with PACKAGE==VERSION]… <folder for the virtual environment> <folder of the package> <script> <its arguments>; exit code 77: skipped.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from python_packages import python_with


def python_with_numpy(venv, more):
    if importlib.util.find_spec("numpy") and not more:
        return sys.executable
    return python_with(venv, ["numpy==2.4.6", *more])


words, more = sys.argv[1:], []
while words[0] == "--with":
    more.append(words[1])
    words = words[2:]
venv, package, script_and_arguments = pathlib.Path(words[0]), words[1], words[2:]
environment = {**os.environ, "PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1"}
sys.exit(subprocess.run([python_with_numpy(venv, more), *script_and_arguments], env=environment).returncode)
