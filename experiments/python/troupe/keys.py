"""Converts keyword arguments of an environment to the assignments that the extension module reads."""

from __future__ import annotations

import os
from typing import Any, Iterator, List, Mapping, Sequence


def text_of(key: str, value: Any) -> str:
    """Returns the value of an assignment. Raises ValueError for text that it cannot contain."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):  # also NumPy's float64, whose own repr() is "np.float64(0.1)"
        return repr(float(value))
    text = str(os.fspath(value)) if isinstance(value, os.PathLike) else str(value)
    if '"' in text or "\n" in text:
        raise ValueError(f"{key} is {text!r}; it must not contain double quotes or line ends")
    return text


def _assignments(prefix: str, values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        key = prefix + name
        if value is None:
            continue
        if key == "pixels":
            if value is False:
                continue
            if value is True:
                value = {}
            elif isinstance(value, Sequence) and not isinstance(value, str):
                height, width = value
                value = {"height": height, "width": width}
            elif not isinstance(value, Mapping):
                raise TypeError(f"pixels is {value!r}; it must be True, (height, width) or a mapping such as {{'height': 64, 'camera': 'side'}}")
            yield "pixels={}"
        elif key == "normalization" and isinstance(value, str):
            value = {"mode": value}
        elif key == "options" and isinstance(value, Mapping):
            value = [f"{option}={text_of(option, setting)}" for option, setting in value.items()]
        if isinstance(value, Mapping):
            yield from _assignments(key + ".", value)
        elif isinstance(value, (list, tuple)):
            yield f"{key}=" + ",".join(f'"{text_of(key, part)}"' if isinstance(part, str) else text_of(key, part) for part in value)
        else:
            yield f"{key}={text_of(key, value)}"


def flattened(keys: Mapping[str, Any]) -> List[str]:
    """Converts nested keys of an experiment to assignments: {"stop": {"updates": 3}} -> ["stop.updates=3"]. An empty block is kept as such."""
    out: List[str] = []
    for name, value in keys.items():
        if isinstance(value, Mapping):
            inner = flattened(value)
            out += [f"{name}.{assignment}" for assignment in inner] or [f"{name}={{}}"]
        else:
            out += list(_assignments("", {name: value}))
    return out


def assignments(task: str, keys: Mapping[str, Any]) -> List[str]:
    """Returns ["task=cheetah_run", "pixels.height=84", …]. The keys are those of an experiment's block `environment` (`troupe list keys`); blocks
    are mappings, lists are lists. Short forms: pixels=(84, 84), options={"length": 2}, normalization="running"."""
    if not isinstance(task, str):
        raise TypeError(f"task is {task!r}; it must be the name of an environment, e.g. \"cheetah_run\"")
    return list(_assignments("", {"task": task, **keys}))
