"""Virtual environments with PyPI packages inside the build tree, for tests of our programs with the real packages.

uv creates them, from its cache if it has a package, because pip takes four times as long. Like pip, it uses the package index, wheel folders and certificates
from pip's settings.

python_packages.py FOLDER WORDS… prints the interpreter of python_with(FOLDER, WORDS).
"""

import fcntl
import hashlib
import os
import pathlib
import re
import subprocess
import sys

UV = "uv==0.9.7"
FROM_PIP = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "find-links": "UV_FIND_LINKS", "cert": "SSL_CERT_FILE"}


def run_or_skip(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        print("skipped: packages of PyPI cannot be had:", *command, "\n" + done.stderr.strip()[-500:])
        sys.exit(77)
    return done.stdout


def uv_environment():
    """This process's environment, with pip's settings for package indexes as variables of uv."""
    told = dict(os.environ)
    for line in run_or_skip([sys.executable, "-m", "pip", "config", "list"]).splitlines():
        setting = re.fullmatch(r"\S*\.([a-z-]+)='(.*)'", line.strip())
        if setting and setting.group(1) in FROM_PIP:
            told.setdefault(FROM_PIP[setting.group(1)], setting.group(2))
    return told


def uv_program(build):
    """In a virtual environment of its own, which is made where it is missing."""
    folder = build / "uv_venv"
    program = folder / "bin" / "uv"
    with open(build / "uv_venv.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            run_or_skip([sys.executable, "-m", "venv", "--clear", folder])
            run_or_skip([folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", "--only-binary=:all:", UV])
    return program


def python_with(folder, *groups, sources=False):
    """The interpreter of the virtual environment `folder`, which is made where it is missing or has other packages.

    Each group is a list of words for one call of `uv pip install`. `sources`: packages may be built from their sources. Where the packages cannot be had,
    the process ends with exit code 77: ctest calls that skipped. Several processes may ask for one folder at once.
    """
    folder = pathlib.Path(folder).absolute()
    python = folder / "bin" / "python"
    ready = folder / ("ready-" + hashlib.sha256(repr((UV, groups, sources)).encode()).hexdigest()[:16])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(folder.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if ready.exists():
            return python
        uv, told = uv_program(folder.parent), uv_environment()
        run_or_skip([uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder], env=told)
        only = [] if sources else ["--only-binary", ":all:"]
        for words in groups:
            run_or_skip([uv, "pip", "install", "--quiet", "--python", python, *only, *words], env=told)
        ready.touch()
    return python


if __name__ == "__main__":
    print(python_with(sys.argv[1], sys.argv[2:]))
