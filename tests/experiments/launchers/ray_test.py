"""Runs a command beside a real Ray cluster on separate hosts, with Ray in a virtual environment of the build.

Usage: ray_test.py <folder for the virtual environment> <hosts> <command>…; exit code 77: skipped.
"""

import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS))
from python_packages import python_with

venv, hosts, *command = sys.argv[1:]
python = python_with(venv, ["ray==2.60.0"])
cluster = TESTS / "cluster"
sys.exit(subprocess.run([cluster / "hosts.sh", "-N", hosts, cluster / "ray_here.sh", python, "--hosts", *command]).returncode)
