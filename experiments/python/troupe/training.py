"""Training from Python. The run's actors are threads of this process, or processes of the program `troupe`."""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

import numpy as np

from troupe import _native, processes as programs
from troupe.keys import flattened
from troupe.runs import Run

Config = Union[str, os.PathLike, Mapping[str, Any]]
_REPORTS = ("started", "progress", "evaluated", "episode", "log")


class StopRun(Exception):
    """If a callback raises it, the run writes a checkpoint and ends; train() then returns as usual."""


def share() -> pathlib.Path:
    """Returns the folder of experiment files: in the package, or beside it in a build."""
    package = pathlib.Path(__file__).parent
    return next(folder for folder in (package / "share" / "troupe", package.parents[1] / "share" / "troupe") if folder.exists())


def _folders() -> List[str]:
    configs = share() / "configs"
    return [str(configs), *(str(configs / part) for part in ("games", "gym"))]


def _callbacks(callbacks: Any, verbose: bool) -> Dict[str, Callable[..., Any]]:
    found: Dict[str, Callable[..., Any]] = {}
    if callable(callbacks) and not any(hasattr(callbacks, name) for name in _REPORTS):
        found["progress"] = callbacks
    elif isinstance(callbacks, Mapping):
        unknown = sorted(set(callbacks) - set(_REPORTS))
        if unknown:
            raise ValueError(f"callbacks has {unknown[0]!r}; there are {', '.join(_REPORTS)}")
        found.update(callbacks)
    elif callbacks is not None:
        found.update({name: getattr(callbacks, name) for name in _REPORTS if hasattr(callbacks, name)})
        if not found:
            raise TypeError(f"callbacks has none of {', '.join(_REPORTS)}; give a function of the progress, or an object or mapping with some of them")
    if verbose:
        own = found.get("log")

        def log(level: str, text: str) -> None:
            print(text if level == "info" else f"{level}: {text}", flush=True)
            if own is not None:
                own(level, text)

        found["log"] = log
    return found


def _literal(value: Any) -> str:
    """Returns the text from which the agent reads the value. The repr() of a NumPy number is not a literal of Python."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def _agent_overrides(agent: Any, options: Optional[Mapping[str, Any]]) -> List[str]:
    name = getattr(agent, "troupe_name", None)
    if name is None:
        raise TypeError(f"agent is {agent!r}; it must be a class with the decorator @troupe.agent(…)")
    given = [f"agent.name={name}"]
    if options:
        given.append("agent.options=" + ",".join(f'"{key}={_literal(value)}"' for key, value in options.items()))
    return given


def train(
    config: Config,
    overrides: Union[Mapping[str, Any], Sequence[str], None] = None,
    *,
    agent: Any = None,
    agent_options: Optional[Mapping[str, Any]] = None,
    callbacks: Any = None,
    runs: Union[str, os.PathLike] = "runs",
    verbose: bool = True,
    processes: bool = False,
) -> Run:
    """Trains like `troupe train`, and returns the run.

    `config` is the name or the path of an experiment file (`troupe list experiments`), or a mapping of its keys: {"environment": {"task":
    "cheetah_run"}, "stop": {"environment_steps": 100_000}}. `overrides` replace its keys: {"seed": 3,
    "replay.shards": 4}, or ["seed=3"]. `agent` is a class decorated with @troupe.agent; `agent_options` are its options.

    `callbacks`: a function that gets the progress (a dict of numbers) twice a second, or an object or mapping with some of started(folder),
    progress(numbers), evaluated(environment_steps, updates, returns, metrics, final), episode(environment_steps, return, length) and
    log(level, text). The run's threads call them, one at a time. StopRun ends the run after a checkpoint. So do all other
    exceptions and KeyboardInterrupt (Ctrl-C), which are then raised again.

    `processes`: each actor runs in a separate process of the program `troupe`, whose files are read for the callbacks: `returns` is then only the
    mean, `episode` is refused, and so is an agent in Python. After Ctrl-C or an exception in a callback, these processes have 300 seconds to
    write the checkpoint and end, and are then killed; a second Ctrl-C kills them at once."""
    given: List[str] = []
    if isinstance(config, Mapping):
        given += flattened(config)
        with tempfile.NamedTemporaryFile("w", prefix="experiment-", suffix=".textproto", delete=False) as file:
            path = file.name
        if not any(key.startswith("name=") for key in given):
            given.append("name=experiment")
    else:
        path = os.fspath(config)
    try:
        if isinstance(overrides, Mapping):
            given += flattened(overrides)
        elif overrides is not None:
            given += list(overrides)
        if agent is None and agent_options:
            raise ValueError("agent_options are given without agent; give the class, or the options of another agent as keys of the experiment")
        if agent is not None and processes:
            raise ValueError("processes is True, so an agent in Python cannot be reached; leave processes out")
        if agent is not None:
            given += _agent_overrides(agent, agent_options)
        if processes:
            words = ["train", path, "--runs", os.fspath(runs), *_settings(given)]
            return _to_its_end(lambda reports: programs.run(words, reports), callbacks, verbose, processes)
        return _to_its_end(
            lambda reports: _native.train(path, given, runs=os.fspath(runs), folders=_folders(), callbacks=reports), callbacks, verbose, processes
        )
    finally:
        if isinstance(config, Mapping):
            os.unlink(path)


def resume(
    run: Union[str, os.PathLike, Run],
    overrides: Union[Mapping[str, Any], Sequence[str], None] = None,
    *,
    runs: Union[str, os.PathLike] = "runs",
    callbacks: Any = None,
    verbose: bool = True,
    processes: bool = False,
) -> Run:
    """Continues a run from its latest complete checkpoint, as `troupe resume` does; `s3://bucket/prefix/NAME/TIME` is first fetched to
    `runs`/NAME/TIME. An agent in Python must be decorated again before the call. `callbacks` and `processes` are those of train(); a run may be
    continued with processes that began without, and the other way round."""
    folder = str((run if isinstance(run, Run) else Run(run, runs=runs)).folder)
    given = flattened(overrides) if isinstance(overrides, Mapping) else list(overrides or [])
    if processes:
        words = ["resume", folder, *_settings(given)]
        return _to_its_end(lambda reports: programs.run(words, reports, resumed=folder), callbacks, verbose, processes)
    return _to_its_end(lambda reports: _native.resume(folder, given, callbacks=reports), callbacks, verbose, processes)


def _settings(given: Sequence[str]) -> List[str]:
    return [word for setting in given for word in ("--set", setting)]


def _to_its_end(run: Callable[[Dict[str, Callable[..., Any]]], Any], callbacks: Any, verbose: bool, processes: bool) -> Run:
    """Calls `run` with the callbacks by name, and returns the run's folder. After Ctrl-C it says how to continue."""
    started: List[str] = []
    reports = _callbacks(callbacks, verbose)
    own = reports.get("started")
    reports["started"] = lambda folder: (started.append(folder), own and own(folder))
    try:
        run(reports)
    except StopRun:
        pass
    except KeyboardInterrupt:
        if started and Run(started[0]).checkpoints:
            print(f'stopped after a checkpoint; troupe.resume("{started[0]}"{", processes=True" if processes else ""}) continues', file=sys.stderr)
        raise
    return Run(started[0])
