"""Reads a run's folder: metrics, checkpoints, videos, and the policy."""

from __future__ import annotations

import csv
import html
import os
import pathlib
from typing import Any, Dict, List, Optional, Union

import numpy as np

from troupe import _native
from troupe.pictures import Picture, shown


class Policy:
    """The acting policy of a checkpoint: `policy(observation)` returns the action, without exploration.

    It takes one observation or a batch, as the run's environment makes them (`troupe.make(task, …)` with the experiment's keys): an array, or
    a dictionary if there are several. Continuous actions are float32 in [-1, 1], choices are int64. A policy with a memory remembers each row
    between calls; `first` [rows] says in which rows an episode begins."""

    def __init__(self, run: str, checkpoint: str = ""):
        self._native = _native.Policy(run, checkpoint)
        self._names = self._native.names
        self._choices = np.array(self._native.choices)

    def __call__(self, observation: Any, *, first: Optional[np.ndarray] = None, batched: Optional[bool] = None) -> Any:
        """`batched`: whether the first axis is the batch; None: it is if the observation has one axis more than a vector, or than a picture."""
        arrays = observation if isinstance(observation, dict) else {self._names[0]: np.asarray(observation)}
        if batched is None:
            array = arrays[self._names[0]]
            batched = array.ndim in (2, 4)
        if not batched:
            arrays = {name: np.asarray(array)[None] for name, array in arrays.items()}
        actions = self._native.act(arrays, first)
        if len(self._choices) and self._choices.all():
            actions = actions.astype(np.int64)
            if actions.shape[1] == 1:
                actions = actions[:, 0]
        return actions if batched else actions[0]


def _settings(config: str) -> Dict[str, Any]:
    """Parses an experiment as Troupe writes it, with one value per line, to a flat dictionary {"replay.n_step": "5", …}."""
    blocks: List[str] = []
    found: Dict[str, Any] = {}
    for line in config.splitlines():
        word = line.strip()
        if word.endswith("{"):
            blocks.append(word[:-1].strip())
        elif word == "}":
            blocks.pop()
        elif ": " in word and not word.startswith("#"):
            key, value = word.split(": ", 1)
            key, value = ".".join([*blocks, key]), value.strip('"')
            found[key] = f"{found[key]}, {value}" if key in found else value
    return found


class Run:
    """The folder of a run, or an address `s3://bucket/prefix/NAME/TIME` in `checkpoint.store`, whose newest checkpoint is fetched to `runs`/NAME/TIME."""

    def __init__(self, folder: Union[str, os.PathLike], *, runs: Union[str, os.PathLike] = "runs"):
        stored = isinstance(folder, str) and folder.startswith("s3://")
        self.folder = pathlib.Path(_native.local_run(folder, os.fspath(runs)) if stored else folder)
        if not (self.folder / "config.textproto").is_file():
            raise FileNotFoundError(f"{self.folder} is not a run; it has no config.textproto")

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    @property
    def config(self) -> str:
        """The complete experiment, as text."""
        return (self.folder / "config.textproto").read_text()

    def metrics(self, kind: str = "progress") -> Dict[str, np.ndarray]:
        """Returns the rows of metrics.csv of one kind, by column; NaN if a row has no value. Kinds: "progress", "evaluation", "final", and "" for
        all. `pandas.DataFrame(run.metrics())` makes a data frame of them."""
        with open(self.folder / "metrics.csv", newline="") as file:
            rows = [row for row in csv.DictReader(file) if kind in ("", row["kind"])]
            names = list(rows[0]) if rows else []
        if kind not in ("", "progress", "evaluation", "final"):
            raise ValueError(f"kind is {kind!r}; it must be 'progress', 'evaluation', 'final' or '' for all")
        out = {}
        for name in names:
            values = [row[name] for row in rows]
            out[name] = np.array(values) if name == "kind" else np.array([float(value) if value else np.nan for value in values])
        return out

    @property
    def checkpoints(self) -> List[int]:
        """The numbers of updates of all complete checkpoints, ascending."""
        folder = self.folder / "checkpoints"
        return sorted(int(path.parent.name) for path in folder.glob("*/manifest.json") if path.parent.name.isdigit())

    def _checkpoint(self, updates: Optional[int]) -> pathlib.Path:
        there = self.checkpoints
        if not there or (updates is not None and updates not in there):
            raise ValueError(f"checkpoint {updates} is not in {self.folder}; there are {', '.join(map(str, there)) or 'none'}")
        return self.folder / "checkpoints" / str(there[-1] if updates is None else updates)

    def parameters(self, updates: Optional[int] = None) -> Dict[str, Any]:
        """Returns the learner's parameters of a checkpoint (None: the latest) as a PyTorch `state_dict`: name -> torch.Tensor."""
        from safetensors.torch import load_file

        return load_file(self._checkpoint(updates) / "learner.safetensors")

    def policy(self, updates: Optional[int] = None) -> Policy:
        return Policy(str(self.folder), self._checkpoint(updates).name)

    @property
    def videos(self) -> List[pathlib.Path]:
        """The films of evaluations, named after the environment steps before them, ascending."""
        return sorted((self.folder / "videos").glob("*.mp4"), key=lambda path: int(path.stem))

    def frames(self, video: Optional[int] = None, *, every: int = 1) -> Picture:
        """Returns the film after `video` environment steps (None: the latest) as uint8 [frames, height, width, 3], of which `every` = n keeps each
        n-th frame. Needs the package `av`."""
        try:
            import av
        except ImportError as error:
            raise ImportError("Run.frames() needs the package av; `pip install 'troupe[video]'` or `pip install av`") from error
        there = {int(path.stem): path for path in self.videos}
        number = max(there, default=None) if video is None else video
        if number not in there:
            raise ValueError(f"video is {video}; {self.folder} has {', '.join(map(str, there)) or 'no videos'}")
        if every < 1:
            raise ValueError(f"every is {every}; it must be at least 1")
        with av.open(str(there[number])) as film:
            return shown(np.stack([frame.to_ndarray(format="rgb24") for i, frame in enumerate(film.decode(video=0)) if i % every == 0]))

    def to_wandb(self, project: str = "troupe", folder: Union[str, os.PathLike] = ".", *, videos: bool = True) -> pathlib.Path:
        """Writes the run to `folder`/wandb as an offline run of Weights & Biases: its settings, curves over environment steps, final returns and
        videos. Returns the folder for `wandb sync`. While another wandb run is open in this process, the folder is complete only when the
        process ends. Needs the package `wandb`, but no network."""
        try:
            import wandb
        except ImportError as error:
            raise ImportError("Run.to_wandb() needs the package wandb; `pip install wandb`") from error
        rows = self.metrics("")
        numbers = [name for name in rows if name != "kind"]
        logged = wandb.init(project=project, name=self.folder.name, group=self.folder.parent.name, config=_settings(self.config), dir=folder, mode="offline",
                            reinit="create_new", settings=wandb.Settings(console="off", disable_git=True, disable_code=True, silent=True))
        try:
            logged.define_metric("environment_steps", hidden=True)
            logged.define_metric("*", step_metric="environment_steps")
            for row in range(len(rows.get("kind", ()))):
                values = {name: rows[name][row] for name in numbers if not np.isnan(rows[name][row])}
                if rows["kind"][row] == "final":
                    logged.summary.update({f"final/{name}": value for name, value in values.items()})
                logged.log(values)
            for film in self.videos if videos else ():
                logged.log({"environment_steps": int(film.stem), "video": wandb.Video(str(film), format="mp4")})
            return pathlib.Path(logged.settings.sync_dir)
        finally:
            logged.finish()
            if wandb.run is None:
                wandb.teardown()  # waits until the file is complete, unlike finish()

    def _repr_html_(self) -> str:
        """The return curve, for notebooks; for a live run, the evaluations so far."""
        title = f"<p><code>{html.escape(str(self.folder))}</code></p>"
        return title + (_native.run_curve(str(self.folder)) if (self.folder / "metrics.csv").is_file() else "<p>no evaluation yet</p>")
