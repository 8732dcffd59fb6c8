"""Runs a script with the real Gymnasium, dm_control and Protobuf, in a virtual environment inside the build tree.

Usage: python_test.py [--only] [--with PACKAGE==VERSION]... <folder for the virtual environment> <script> <its arguments>; exit code 77: skipped.
--only: with these packages alone.
"""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from python_packages import python_with

PACKAGES = ["numpy==2.4.6", "pyzmq==27.1.0", "gymnasium==1.4.0", "imageio==2.37.0", "packaging==25.0", "mujoco==3.17.0",
            "dm_control==1.0.50", "protobuf==7.36.2", "pip==25.3", "setuptools==80.9.0", "ale-py==0.12.1", "opencv-python-headless==5.0.0.93"]
PACKAGE = pathlib.Path(__file__).parents[3] / "env" / "remote" / "python"


def main():
    words, packages = sys.argv[1:], list(PACKAGES)
    if words[0] == "--only":
        words, packages = words[1:], []
    while words[0] == "--with":
        packages.append(words[1])
        words = words[2:]
    python, script_and_arguments = python_with(words[0], sorted(packages)), words[1:]
    paths = [str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "MUJOCO_GL": os.environ.get("MUJOCO_GL", "disabled"), "PYTHONWARNINGS": "ignore",
                   "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([python, *script_and_arguments], env=environment).returncode


sys.exit(main())
