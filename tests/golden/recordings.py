"""What the scripts that record Gymnasium's environments share."""

import importlib.metadata
import json
import os

import numpy as np


class Log(dict):
    """Lists of values by name."""

    def put(self, **values):
        for key, value in values.items():
            self.setdefault(key, []).append(value)


def as_text(value):
    """An option as Troupe takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def as_texts(options):
    return {key: as_text(value) for key, value in options.items()}


def write_recording(folder, name, log):
    os.makedirs(folder, exist_ok=True)
    np.savez_compressed(os.path.join(folder, name + ".npz"), **{key: np.array(value) for key, value in log.items()})


def write_index(folder, packages, tasks, added=False):
    """index.json with the packages' versions; with `added`, the tasks of the present one are kept."""
    path = os.path.join(folder, "index.json")
    if added and os.path.exists(path):
        with open(path) as f:
            tasks = {**json.load(f)["tasks"], **tasks}
    with open(path, "w") as f:
        json.dump(dict({package: importlib.metadata.version(package) for package in packages}, tasks=tasks), f, indent=1)
        f.write("\n")
