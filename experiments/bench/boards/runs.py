"""The runs of a sweep: their evaluations and their cost."""
import csv
import json
import pathlib
import re
import subprocess
import tempfile

from boards.sweeps import Mistake


class Run:
    """One run of a sweep: its newest folder, its evaluations, and its cost."""

    def __init__(self, part, task, seed):
        self.part, self.task, self.seed = part, task, seed
        self.folder = max((path.parent for path in part.glob("*/*/config.textproto")), default=None)
        self.done = (part / "result.json").is_file()
        self.points, self.seconds, self.samples, self.steps, self.length, self.pixels, self.cores = [], [], None, 0, 0, False, 1
        if not self.folder:
            return
        config = (self.folder / "config.textproto").read_text()
        stop = re.search(r"^stop \{[^}]*environment_steps: (\d+)", config, re.M)
        self.length, self.pixels = int(stop[1]) if stop else 0, bool(re.search(r"^  pixels \{", config, re.M))
        origin = self.folder / "origin.json"
        self.origin = json.loads(origin.read_text()) if origin.is_file() else {}
        self.cores = self.origin.get("cores") or 1
        rows = [row for row in rows_of(self.folder / "metrics.csv") if row.get("environment_steps")]
        for row in rows:
            self.steps = int(float(row["environment_steps"]))
            self.seconds.append((self.steps, float(row["training_seconds"] or 0)))
            if row.get("evaluation_return"):
                while self.points and self.points[-1][0] >= self.steps:  # a resumed run repeats them
                    self.points.pop()
                self.points.append((self.steps, float(row["evaluation_return"])))
        self.samples = measured(rows)

    def hours(self, steps=None):
        """Returns (core-hours until these environment steps, whether they were measured). Otherwise, they are bounded by the training time on all cores."""
        return seconds_at(self.samples or self.seconds, self.steps if steps is None else steps) / 3600 * (1 if self.samples else self.cores), bool(self.samples)

    def hours_to(self, value):
        """Like hours(), until the first evaluation with this value; None: there is none."""
        first = next((steps for steps, one in self.points if one >= value), None)
        return None if first is None else self.hours(first)


def state_of(runs):
    """Says how far runs of one length are of which none is finished."""
    return f"not finished: {max(run.steps for run in runs):,} of {runs[0].length:,} steps" if runs else "no run"


def reported(program, runs):
    """Returns the tables of `troupe report` as rows of cells; `runs`: [(method, run)]."""
    with tempfile.TemporaryDirectory() as folder:
        words = [program, "report", *(f"{method}={run.folder}" for method, run in runs), "--out", f"{folder}/page.html", "--markdown", f"{folder}/tables.md"]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            raise Mistake(f"troupe report: {done.stderr.strip()}")
        return [[[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines() if not line.startswith("| ---")]
                for table in pathlib.Path(folder, "tables.md").read_text().strip().split("\n\n")]


def hours_text(hours):
    """Formats the mean of [(hours or minutes, whether they were measured)]."""
    if not hours:
        return "-"
    mean = sum(one[0] for one in hours) / len(hours)
    return ("" if all(one[1] for one in hours) else "at most ") + (f"{mean:.2f}" if mean >= 0.1 else f"{mean:.2g}")


def measured(rows):
    """Returns [(environment steps, processor seconds until then)], or None if a row has no processor time. Includes time that was lost when a run was killed."""
    made, lost, last = [], 0.0, 0.0
    for row in rows:
        if not row.get("processor_seconds"):
            return None
        seconds = float(row["processor_seconds"])
        lost += max(0, last - seconds)  # it resumed from a checkpoint
        last = seconds
        made.append((int(float(row["environment_steps"])), lost + seconds))
    return made or None


def rows_of(path):
    if not path.is_file():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def seconds_at(samples, steps):
    """Interpolates between the last sample below these steps and the next one. A resumed run repeats some steps, and both passes count."""
    below = max((i for i, sample in enumerate(samples) if sample[0] < steps), default=-1)
    if below + 1 == len(samples):
        return samples[-1][1]
    if below < 0:
        return samples[0][1]
    (s0, t0), (s1, t1) = samples[below], samples[below + 1]
    return t0 + (steps - s0) / (s1 - s0) * (t1 - t0)
