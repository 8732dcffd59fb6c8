#!/usr/bin/env python3
"""Follows the guide "Write an agent" in an empty home folder: writes its files, runs its commands, and looks at the curve.

Usage: guide_test.py BUILD SOURCE

A block ```sh is executed; a block ```language file is appended to that file. The whole page is one shell script, so the next block
runs in the folder that the previous one entered. The files must equal those of the example beside the page."""
import csv
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from compiler_cache import through_ccache

RANDOM_RETURN = 22  # of CartPole-v1 under uniformly random actions (the guide says so)
DEADLINE = 500  # seconds for the whole page


def script_of(page):
    lines = ["set -eux"]
    for language, file, body in re.findall(r"^```(\w*) ?(\S*)\n(.*?)^```$", page, re.M | re.S):
        if language == "sh" and not file:
            lines.append(body)
        elif file:
            lines.append(f"cat >> {file} <<'end of the block'\n{body}end of the block\n")
        else:
            raise SystemExit(f"a block is neither ```sh nor names its file:\n{body}")
    return "\n".join(lines)


def check(holds, what):
    if not holds:
        raise SystemExit(f"the guide does not hold: {what}")


def check_files(example, project):
    for file in sorted(example.iterdir()):
        if file.name not in ("README.md", "curve.svg"):
            check((project / file.name).read_text() == file.read_text(), f"its {file.name} is not {file}")


def check_curve(runs):
    (run,) = (runs / "own_dqn").iterdir()
    rows = list(csv.DictReader((run / "metrics.csv").open(newline="")))
    played = [float(row["episode_return"]) for row in rows if row["episode_return"]]
    returns = [float(row["evaluation_return"]) for row in rows if row["evaluation_return"]]
    print("returns:", *returns)
    check(len(returns) >= 10, f"the curve has {len(returns)} points")
    check(RANDOM_RETURN / 2 < played[0] < 3 * RANDOM_RETURN, f"it begins at {played[0]}, not with random actions")
    check(statistics.mean(returns[-4:]) > 9 * RANDOM_RETURN, f"the last returns are {returns[-4:]}")
    curve = (run / "curve.svg").read_text()
    check(curve.startswith("<svg") and "own_dqn" in curve, "curve.svg is no curve of the run")
    check(curve in (run / "report.html").read_text(), "report.html does not show the curve")


def main(build, source):
    example = source / "experiments/examples/own_dqn"
    with tempfile.TemporaryDirectory() as home:
        home = pathlib.Path(home)
        (home / "src/troupe/build").mkdir(parents=True)
        (home / "src/troupe/build/release").symlink_to(build)
        environment = {**os.environ, **through_ccache(home), "HOME": str(home)}
        try:
            done = subprocess.run(["bash", "-c", script_of((example / "README.md").read_text())], cwd=home, env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE)
        except subprocess.TimeoutExpired as late:
            raise SystemExit(f"{late.stdout or ''}\nthe guide took longer than {DEADLINE} s")
        if done.returncode != 0:
            raise SystemExit(f"{done.stdout}\nthe guide failed with exit code {done.returncode}")
        check_files(example, home / "own_dqn")
        check_curve(home / "own_dqn/runs")
        check((home / "own_dqn/runs/widths/report.html").exists(), "the sweep has no report")


if __name__ == "__main__":
    main(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:3]))
