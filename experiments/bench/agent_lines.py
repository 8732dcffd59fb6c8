#!/usr/bin/env python3
"""Counts the lines of every built-in agent, and the lines outside its room that mention it.

Usage: agent_lines.py [--most LINES]
Counts lines of C++, and of the schema of its block, that are neither empty nor comments. Configurations, examples, documents and tests are not production
code and do not count as mentions. Exits with 1 if an agent has more than --most lines of C++ (default 400), or if an agent added by the recipe of
learner/agents/README.md is mentioned in other lines than that recipe's: one of learner/CMakeLists.txt and two of experiments/config/experiment.proto, the
import and the block.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALLOWED = {"learner/CMakeLists.txt": 1, "experiments/config/experiment.proto": 2}  # lines
OLDER = {"d4pg"}  # the default; the quick start and comments use it as an example


def lines_of(folder, pattern):
    count = 0
    for file in sorted(folder.glob(pattern)):
        text = re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.S)
        count += sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("//"))
    return count


def mentions(name):
    """The number of lines in each file. Only text files. A name behind a "+" is part of another name: TD3+BC does not mention bc."""
    found = subprocess.run(["git", "-C", str(ROOT), "grep", "-I", "-cwiP", rf"(?<!\+){name}", "--", "env", "replay", "learner", "actors", "experiments", "collectives",
                            "CMakeLists.txt"], capture_output=True, text=True).stdout.split()
    counts = {file: int(count) for file, count in (line.rsplit(":", 1) for line in found)}
    return {f: n for f, n in counts.items() if not f.startswith((f"learner/agents/{name}/", "experiments/configs/", "experiments/bench/", "experiments/examples/"))
            and not f.endswith(".md")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=400)
    most = parser.parse_args().most
    names = re.findall(r"^troupe_agent\((\w+)", (ROOT / "learner/CMakeLists.txt").read_text(), re.M)
    bad = False
    for name in names:
        room, files = ROOT / "learner/agents" / name, mentions(name)
        lines, schema = lines_of(room, "*.[ch]pp"), lines_of(room, "*.proto")
        outside = ", ".join(f"{file} ({count})" for file, count in files.items())
        print(f"{name:8} {lines:4} lines and {schema} of its schema, mentioned in {sum(files.values())} lines: {outside}")
        bad |= lines > most or (name not in OLDER and files != ALLOWED)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
