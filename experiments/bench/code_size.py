#!/usr/bin/env python3
"""Counts the lines of production C++ by folder, and the public functions of the largest types.

Usage: code_size.py [--most FUNCTIONS] [--base REVISION]
Lines are all lines of C++ and CUDA sources and headers outside tests/. Public functions are those that a class declares itself, without
constructors, destructors, operators and hidden Impl structs; Universal Ctags counts them. Exits with 1 if a type has more than --most of them (default 25).
--base: also counts the lines of that revision, next to those of the working tree.
"""
import argparse
import collections
import json
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["env", "replay", "collectives", "learner", "actors", "experiments"]
ENDINGS = (".cpp", ".hpp", ".cu", ".cuh")


def git(*words):
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout


def lines_now():
    count = collections.Counter()
    for path in git("ls-files", "--cached", "--others", "--exclude-standard", "--", *FOLDERS).split("\n"):
        if path.endswith(ENDINGS) and (ROOT / path).exists():
            count[path.split("/")[0]] += (ROOT / path).read_bytes().count(b"\n")
    return count


def lines_at(revision):
    count = collections.Counter()
    for row in git("grep", "-c", "", revision, "--", *FOLDERS).splitlines():
        _, path, lines = row.rsplit(":", 2)
        if path.endswith(ENDINGS):
            count[path.split("/")[0]] += int(lines)
    return count


def public_functions():
    headers = [p for p in git("ls-files", "--", *FOLDERS).split("\n") if p.endswith(".hpp") and (ROOT / p).exists()]
    out = subprocess.run(["ctags", "--output-format=json", "--fields=+aSsK", "--c++-kinds=pf", "--language-force=C++", "-f", "-", *headers],
                         cwd=ROOT, capture_output=True, text=True, check=True).stdout
    count = collections.Counter()
    for line in out.splitlines():
        tag = json.loads(line)
        scope = tag.get("scope", "")
        if tag.get("access") != "public" or tag.get("scopeKind") not in ("class", "struct"):
            continue
        if tag["name"] == scope.split("::")[-1] or scope.endswith("::Impl") or tag["name"].startswith(("~", "operator")):
            continue
        count[scope] += 1
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=25)
    parser.add_argument("--base")
    arguments = parser.parse_args()
    now = lines_now()
    before = lines_at(arguments.base) if arguments.base else None
    for folder in FOLDERS:
        print(f"{folder:12} {now[folder]:7} lines" + (f", {before[folder]:7} at {arguments.base}" if before else ""))
    print(f"{'all':12} {sum(now.values()):7} lines" + (f", {sum(before.values()):7} at {arguments.base}" if before else ""))
    if not shutil.which("ctags"):
        print("skipped: no ctags to count public functions with (Debian's package universal-ctags)")
        return 0
    types = public_functions().most_common(8)
    for name, functions in types:
        print(f"{functions:3} public functions: {name}")
    return 1 if types[0][1] > arguments.most else 0


if __name__ == "__main__":
    sys.exit(main())
