#!/usr/bin/env python3
"""Checks that no name in an unnamed namespace hides one in the enclosing namespace.

A target's sources are compiled in batches, so a constant `kBatch` in one file's unnamed namespace would silently replace the `kBatch` that another
file includes. Constants are compared by name, functions by name and parameter types.
Usage: check_names.py [--root FOLDER]
"""
import argparse
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys

FOLDERS = ["env", "replay", "collectives", "learner", "actors", "experiments"]
APART = ("/examples/", "-inl.hpp")  # programs of their own; compiled once for each set of instructions


def tags(root):
    files = [str(path.relative_to(root)) for folder in FOLDERS for ending in ("*.cpp", "*.hpp")
             for path in (root / folder).rglob(ending) if not any(part in str(path) for part in APART)]
    out = subprocess.run(["ctags", "--output-format=json", "--fields=+nSs", "--c++-kinds=vfp", "--language-force=C++", "-f", "-", "-L", "-"],
                         input="\n".join(sorted(files)), capture_output=True, text=True, check=True, cwd=root).stdout
    return [tag for tag in map(json.loads, out.splitlines()) if tag["_type"] == "tag" and tag.get("scopeKind", "namespace") == "namespace"]


def parameters(tag):
    """The types of the parameters; None of a constant."""
    if tag["kind"] == "variable":
        return None
    inside = re.sub(r"^\(|\)[^)]*$", "", tag.get("signature", ""))
    types = []
    for one in re.sub(r"<[^<>]*>", "", inside).split(","):
        words = one.split("=")[0].split()
        types.append(" ".join(words[:-1] if len(words) > 1 and re.fullmatch(r"\w+", words[-1]) else words))
    return tuple(types)


def complaints(root):
    around = collections.defaultdict(list)
    unnamed = []
    for tag in tags(root):
        scope = tag.get("scope", "")
        if "__anon" in scope:
            unnamed.append((re.sub(r"(::)?__anon.*", "", scope), tag))
        elif scope and tag["path"].endswith(".hpp"):
            around[tag["name"]].append(tag)
    for scope, tag in unnamed:
        for other in around[tag["name"]]:
            near = (scope + "::").startswith(other["scope"] + "::") or other["scope"].startswith(scope + "::")
            same_folder = tag["path"].split("/")[0] == other["path"].split("/")[0]
            if near and same_folder and tag["path"] != other["path"] and parameters(tag) == parameters(other):
                yield (f"{tag['path']}:{tag['line']}: {tag['name']} has the name of {other['path']}:{other['line']}, "
                       "which it hides from files compiled with it; give it a name of its own")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[1], type=pathlib.Path)
    root = options.parse_args().root
    if not shutil.which("ctags"):
        print("skipped: no ctags to read names with (Debian's package universal-ctags)")
        return 0
    found = sorted(set(complaints(root)))
    print("\n".join([*found, f"{len(found)} complaints"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
