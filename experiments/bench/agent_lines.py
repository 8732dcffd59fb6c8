#!/usr/bin/env python3
"""Counts the lines of every built-in agent, and names the files outside its room that mention it.

Usage: agent_lines.py [--most LINES]
Counts lines of C++ that are neither empty nor comments. Configurations, examples, documents and tests are not production code and do not count as
mentions. Exits with 1 if an agent has more than --most lines (default 400), or if an agent added by the recipe of learner/agents/README.md is mentioned
outside learner/CMakeLists.txt and experiments/config/experiment.proto.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALLOWED = {"learner/CMakeLists.txt", "experiments/config/experiment.proto"}
OLDER = {"d4pg"}  # the quick start and a comment use it as an example


def lines_of(folder):
    count = 0
    for file in sorted(folder.glob("*.[ch]pp")):
        text = re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.S)
        count += sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("//"))
    return count


def mentions(name):
    # Only text files. A name behind a "+" is part of another name: TD3+BC does not mention bc.
    found = subprocess.run(["git", "-C", str(ROOT), "grep", "-I", "-lwiP", rf"(?<!\+){name}", "--", "env", "replay", "learner", "actors", "experiments", "collectives",
                            "CMakeLists.txt"], capture_output=True, text=True).stdout.split()
    return [f for f in found if not f.startswith(f"learner/agents/{name}/") and not f.startswith(("experiments/configs/", "experiments/bench/", "experiments/examples/"))
            and not f.endswith(".md")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=400)
    most = parser.parse_args().most
    names = re.findall(r"^troupe_agent\((\w+)", (ROOT / "learner/CMakeLists.txt").read_text(), re.M)
    bad = False
    for name in names:
        lines, files = lines_of(ROOT / "learner/agents" / name), mentions(name)
        others = sorted(set(files) - ALLOWED)
        print(f"{name:8} {lines:4} lines, mentioned in {', '.join(files)}")
        bad |= lines > most or (name not in OLDER and bool(others))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
