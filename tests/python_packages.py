"""Virtual environments with packages of PyPI inside the build tree, for tests of our programs with the real thing."""

import fcntl
import hashlib
import pathlib
import subprocess
import sys


def python_with(folder, *groups, sources=False):
    """The interpreter of the virtual environment `folder`, which is made where it is missing or has other packages.

    Each group is a list of words for one call of pip. `sources`: packages may be built from their sources. Where the packages cannot be had, the
    process ends with exit code 77: ctest calls that skipped. Several processes may ask for one folder at once.
    """
    folder = pathlib.Path(folder)
    python = folder / "bin" / "python"
    ready = folder / ("ready-" + hashlib.sha256(repr((groups, sources)).encode()).hexdigest()[:16])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(folder.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if ready.exists():
            return python
        commands = [[sys.executable, "-m", "venv", "--clear", folder]]
        only = [] if sources else ["--only-binary=:all:"]
        commands += [[python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", *only, *words] for words in groups]
        for command in commands:
            made = subprocess.run(command, capture_output=True, text=True)
            if made.returncode != 0:
                print("skipped: cannot make an environment with", *(word for words in groups for word in words), "\n" + made.stderr.strip()[-500:])
                sys.exit(77)
        ready.touch()
    return python
