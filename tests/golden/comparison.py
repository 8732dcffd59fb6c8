"""Compares Troupe's environments with the real package that they reproduce, in a virtual environment inside the build tree."""

import pathlib
import subprocess
import sys
import tempfile

from python_packages import python_with

# Checks lines "task, option, default" against Gymnasium's constructors. Rendering and user-defined maps are left out; the time limit is an
# argument of gymnasium.make(), the acrobot's dynamics an attribute.
GYMNASIUM_OPTIONS = """
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
checked = 0
for task, ours in tasks.items():
    spec = gymnasium.spec(task)
    module, name = spec.entry_point.split(":")
    made_class = getattr(importlib.import_module(module), name)
    parameters = inspect.signature(made_class.__init__).parameters.values()
    theirs = {p.name: p.default for p in parameters if p.name not in ("self", "kwargs", "render_mode", "desc", "default_camera_config")}
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


def compare(packages, listing, check, script, runs):
    """The process's arguments are our program and the folder for the virtual environment with the groups of `packages`.

    The Python code `check` gets a file with the output of `program listing`. Then, with the options of each of `runs`, `script` of this folder records
    the package, and the program replays the recordings.
    """
    program, python = sys.argv[1], python_with(sys.argv[2], *packages)
    with tempfile.TemporaryDirectory() as folder:
        listed = pathlib.Path(folder) / "listed.txt"
        with open(listed, "w") as f:
            subprocess.run([program, listing], check=True, stdout=f)
        subprocess.run([python, "-c", check, listed], check=True)
        for number, options in enumerate(runs):
            golden = pathlib.Path(folder) / str(number)
            subprocess.run([python, pathlib.Path(__file__).with_name(script), "--out", golden, *options.split()], check=True)
            subprocess.run([program, golden], check=True)
