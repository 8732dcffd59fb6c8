"""Compares our classic tasks with the real Gymnasium, in a virtual environment inside the build tree: the options of its constructors
and their defaults, and recordings of every task made on the spot with two seeds.

Usage: gymnasium_classic_test.py <classic_golden_check> <folder for the virtual environment>; exit code 77: skipped.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from python_packages import python_with

PACKAGES = ["gymnasium==1.4.0"]
# Rendering and user-defined maps are left out; the time limit is an argument of gymnasium.make(), the acrobot's dynamics an attribute.
OPTIONS = """
import importlib, inspect, sys
import gymnasium

def same(ours, theirs):
    if isinstance(theirs, bool):
        return ours == ("true" if theirs else "false")
    if isinstance(theirs, tuple):
        return [float(x) for x in ours.split(",")] == [float(x) for x in theirs]
    return ours == theirs if isinstance(theirs, str) else float(ours) == float(theirs)

tasks = {}
for line in open(sys.argv[1]):
    task, option, default = line.rstrip("\\n").split("\\t")
    tasks.setdefault(task, {})[option] = default
assert len(tasks) == 8, sorted(tasks)
checked = 0
for task, ours in tasks.items():
    spec = gymnasium.spec(task)
    module, name = spec.entry_point.split(":")
    made_class = getattr(importlib.import_module(module), name)
    parameters = inspect.signature(made_class.__init__).parameters.values()
    theirs = {p.name: p.default for p in parameters if p.name not in ("self", "render_mode", "desc")}
    theirs.update(spec.kwargs)
    theirs["max_episode_steps"] = spec.max_episode_steps
    if hasattr(made_class, "book_or_nips"):
        theirs["book_or_nips"] = made_class.book_or_nips
    assert set(ours) == set(theirs), (task, set(ours) ^ set(theirs))
    for option, default in theirs.items():
        assert same(ours[option], default), (task, option, ours[option], default)
        checked += 1
print(checked, "options have Gymnasium's names and defaults")
"""


def main():
    program, python = sys.argv[1], python_with(sys.argv[2], PACKAGES)
    with tempfile.TemporaryDirectory() as folder:
        options = pathlib.Path(folder) / "options.txt"
        with open(options, "w") as f:
            subprocess.run([program, "--options"], check=True, stdout=f)
        subprocess.run([python, "-c", OPTIONS, options], check=True)
        for seed, steps in (("1", "60"), ("20261121", "300")):
            golden = pathlib.Path(folder) / seed
            subprocess.run([python, pathlib.Path(__file__).parents[2] / "golden" / "make_classic.py", "--out", golden, "--seed", seed,
                            "--steps", steps, "--probes", "300", "--resets", "2000"], check=True)
            subprocess.run([program, golden], check=True)
    return 0


sys.exit(main())
