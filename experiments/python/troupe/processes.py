"""Runs of the program `troupe` with each actor in a process of its own, followed by the files that they write."""

from __future__ import annotations

import csv
import os
import pathlib
import re
import signal
import subprocess
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence

LOOK_SECONDS = 0.2  # between looks at the files
STOP_SECONDS = 300.0  # after a request to stop, until the run must have written its checkpoint and ended
_MISTAKE = 2  # the program's exit code
_OF_RETURNS = ("evaluation_return", "evaluation_return_min", "evaluation_return_max", "evaluation_episodes")

Reports = Mapping[str, Callable[..., Any]]


def program() -> str:
    """Returns the program `troupe` of the package, or of the build that contains the package."""
    package = pathlib.Path(__file__).parent
    for path in (package / "bin" / "troupe", package.parents[1] / "troupe"):
        if path.is_file():
            return str(path)
    raise FileNotFoundError("the program troupe is neither in the package nor beside it; build it, or install the complete wheel")


class _Lines:
    """The complete lines that a file has got since the last call."""

    def __init__(self, path: pathlib.Path):
        self._path = path
        self._at = 0

    def __call__(self) -> List[str]:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._at)
                text = file.read()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        return whole.decode(errors="replace").split("\n")[:-1]


class _Folder:
    """Calls the callbacks with what a run's folder has got since the last call."""

    def __init__(self, folder: pathlib.Path, reports: Reports, *, resumed: bool):
        self._reports = reports
        self._rows, self._log = _Lines(folder / "metrics.csv"), _Lines(folder / "log.txt")
        self._names: List[str] = []
        if resumed:
            self._names = next(csv.reader(self._rows()), [])
            self._log()

    def _call(self, name: str, *values: Any) -> None:
        if name in self._reports:
            self._reports[name](*values)

    def report(self) -> None:
        for line in self._log():
            _, level, text = (line + "  ").split(" ", 2)
            self._call("log", level, text[:-2])
        for row in self._new_rows():
            numbers = {name: float(value) for name, value in row.items() if name != "kind" and value}
            if row["kind"] == "progress":
                self._call("progress", numbers)
            else:
                self._evaluated(numbers, final=row["kind"] == "final")

    def _new_rows(self) -> Iterator[Dict[str, str]]:
        for fields in csv.reader(self._rows()):
            if self._names:
                yield dict(zip(self._names, fields))
            else:
                self._names = fields

    def _evaluated(self, numbers: Mapping[str, float], final: bool) -> None:
        returns = [numbers["evaluation_return"]] if "evaluation_return" in numbers else []
        prefix = "evaluation_" if returns else "validation_"
        metrics = {name[len(prefix) :]: value for name, value in numbers.items() if name.startswith(prefix) and name not in _OF_RETURNS}
        self._call("evaluated", int(numbers.get("environment_steps", 0)), int(numbers["updates"]), returns, metrics, final)


def _stop(child: subprocess.Popen) -> None:
    """Lets the run write a checkpoint and end. A second Ctrl-C ends it at once."""
    try:
        child.send_signal(signal.SIGINT)
        child.wait(STOP_SECONDS)
    except BaseException as error:
        child.kill()  # the actors' processes end with it
        child.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise RuntimeError(f"the run did not end within {STOP_SECONDS:.0f} s after the request to stop and was killed; its previous checkpoint is the last one") from None
        raise


def _check_end(command: str, code: int, errors: str) -> None:
    if code == 0:
        return
    lines = [line for line in errors.splitlines() if line.strip()]
    if code == _MISTAKE:
        mistakes = [line[len("troupe: ") :] for line in lines if line.startswith("troupe: ")]
        raise ValueError("\n".join(reversed(mistakes)))  # the program's last line is the first mistake
    raise RuntimeError(f"troupe {command} ended with {code}: {lines[-1] if lines else 'it wrote nothing'}")


def run(words: Sequence[str], reports: Reports, resumed: Optional[str] = None) -> None:
    """Runs `troupe train …` or `troupe resume …` to its end, and calls `reports` from this thread. `resumed`: the folder of the run to continue.

    What a callback raises, and KeyboardInterrupt, stop the run after a checkpoint and are then raised again. The program has a session of its own,
    so that a terminal's Ctrl-C reaches it once, from here. If this process is killed, the run stops after a checkpoint."""
    if "episode" in reports:
        raise ValueError("callbacks has 'episode', but the files of a run with processes do not contain single episodes; leave out episode or processes")
    with tempfile.NamedTemporaryFile("r", prefix="troupe-", errors="replace") as errors:
        folder = _Folder(pathlib.Path(resumed), reports, resumed=True) if resumed else None
        with open(errors.name, "w") as into:
            command = [program(), *words, "--processes", "--json", "--end-with-parent", str(os.getpid())]
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=into, start_new_session=True)
        try:
            if resumed:
                reports["started"](resumed)
            over = False
            while not over:
                try:
                    child.wait(LOOK_SECONDS)
                    over = True  # what it wrote last is reported now
                except subprocess.TimeoutExpired:
                    pass
                if folder is None and (begun := re.search(r"^training \S+ in (.+)\n", pathlib.Path(errors.name).read_text(errors="replace"), re.M)):
                    folder = _Folder(pathlib.Path(begun[1]), reports, resumed=False)
                    reports["started"](begun[1])
                if folder is not None:
                    folder.report()
        except BaseException:
            if child.poll() is None:
                _stop(child)
            raise
        _check_end(words[0], child.returncode, errors.read())
