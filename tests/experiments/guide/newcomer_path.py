#!/usr/bin/env python3
"""Times a newcomer's path through the guide, from a fresh clone: each step is a page's own commands, in an empty home folder.

Usage: newcomer_path.py [--build FOLDER] [--json]

Without --build the repository is cloned into the home folder, and experiments/quickstart.sh builds it and trains, which takes most of the time. The pages of the dashboard and of a playing policy
are opened by xdg-open of this folder. The two hosts are network namespaces (tests/cluster/hosts.sh), or two nodes of this host where those cannot be made, which is printed. Prints
the seconds of each step; exit code 1 if one fails."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from pages_test import HERE, script_of, shell_of

SOURCE = pathlib.Path(__file__).resolve().parents[3]
GUIDE = SOURCE / "experiments/guide"
SETUP = """set -eu
git clone --quiet "$TROUPE_SOURCE" troupe-source
troupe-source/experiments/quickstart.sh
"""
INSTALL = """set -eu
cmake --install "$TROUPE_BUILD" --prefix "$TROUPE_PREFIX" > /dev/null
"""
STEPS = [  # what a newcomer does, and the page
    ("train, watch, change the task, compare settings", "first_hour"),
    ("look in a browser, compare two runs, export, serve", "take_away"),
    ("write an environment", "own_environment"),
    ("write an agent", "own_agent"),
    ("run on two hosts", "cluster"),
]


def timed(words, home, environment):
    begin = time.monotonic()
    done = subprocess.run(words, cwd=home, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return time.monotonic() - begin, done


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, help="use this build instead of a fresh clone")
    parser.add_argument("--json", action="store_true", help="one object per step and line")
    arguments = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        build = arguments.build.resolve() if arguments.build else home / "troupe-source/build/release"
        prefix = home / "troupe"
        environment = {**os.environ, "HOME": folder, "TROUPE_SOURCE": str(SOURCE), "TROUPE_BUILD": str(build), "TROUPE_PREFIX": str(prefix),
                       "PATH": f"{HERE}:{prefix}/bin:{build}:{os.environ['PATH']}"}
        steps = [(what, ["bash", "-c"], script, "") for what, script in ([] if arguments.build else [("clone, build and train from pixels", SETUP)]) + [("install", INSTALL)]]
        for what, page in STEPS:
            text = (GUIDE / f"{page}.md").read_text()
            shell, hosts = shell_of(text)
            steps.append((what, shell, script_of(text), f", with {hosts}" if hosts else ""))
        for what, shell, script, where in steps:
            seconds, done = timed([*shell, script], home, environment)
            failed |= done.returncode != 0
            how = "done" + where if done.returncode == 0 else f"failed with exit code {done.returncode}: " + done.stdout[-2000:]
            print(json.dumps({"step": what, "seconds": round(seconds, 1), "how": how}) if arguments.json else f"{seconds:8.1f} s  {what}: {how}", flush=True)
            if failed:
                break
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
