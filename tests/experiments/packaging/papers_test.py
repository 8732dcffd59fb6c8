#!/usr/bin/env python3
"""Checks the project's papers: the real cffconvert accepts CITATION.cff, and all name the same version and licence.

Usage: papers_test.py SOURCE FOLDER_FOR_THE_VIRTUAL_ENVIRONMENT; exit code 77: skipped"""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from python_packages import python_with

PACKAGES = ["cffconvert==2.0.0", "setuptools==80.9.0"]
APACHE = pathlib.Path("/usr/share/common-licenses/Apache-2.0")  # of Debian's base system


def need(holds, what):
    if not holds:
        sys.exit(what)


def only(pattern, path):
    found = re.search(pattern, path.read_text(), re.M)
    need(found, f"{path} does not have {pattern}")
    return found.group(1)


def main(source, venv):
    versions = {name: only(pattern, source / name) for name, pattern in {
        "CMakeLists.txt": r"^project\(troupe VERSION ([\d.]+)", "CITATION.cff": r"^version: (\S+)$", "CHANGELOG.md": r"^## ([\d.]+)",
        "env/remote/python/pyproject.toml": r'^version = "([\d.]+)"'}.items()}
    need(len(set(versions.values())) == 1, f"the versions differ: {versions}")
    need(only(r"^license: (\S+)$", source / "CITATION.cff") == "Apache-2.0", "CITATION.cff names another licence")
    if APACHE.exists():
        need((source / "LICENSE").read_bytes() == APACHE.read_bytes(), "LICENSE is not the Apache License 2.0")
    python = python_with(venv, PACKAGES, sources=True)
    return subprocess.run([python.with_name("cffconvert"), "--validate", "-i", source / "CITATION.cff"]).returncode


if __name__ == "__main__":
    sys.exit(main(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:3])))
