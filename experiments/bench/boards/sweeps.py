"""Sweeps over tasks, and the published results of these tasks."""
import csv
import pathlib
import shlex
import subprocess

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
SWEEPS, PUBLISHED = CONFIGS / "sweeps", CONFIGS / "published"


class Mistake(Exception):
    """A mistake of the user: exit code 2."""


class Published:
    """Published results from states or pixels: method -> task -> (values by mark, curve)."""

    def __init__(self, kind):
        self.path = PUBLISHED / f"{kind}.csv"
        self.methods, self.marks = {}, []
        with open(self.path, newline="") as file:
            for row in csv.DictReader(file):
                values = {int(key[3:]): float(value) for key, value in row.items() if key.startswith("at_") and value}
                curve = [(int(key), float(value)) for key, value in row.items() if key.isdigit() and value]
                self.methods.setdefault(row["method"], {})[row["task"]] = (values, curve)
                self.marks = self.marks or [int(key[3:]) for key in row if key.startswith("at_")]
        with open(PUBLISHED / "sources.csv", newline="") as file:
            self.sources = {row["method"]: row for row in csv.DictReader(file) if row["method"] in self.methods}

    def at(self, method, task, mark):
        return self.methods[method].get(task, ({}, []))[0].get(mark)

    def best(self, task, mark):
        """Returns (value, method), or None if no result is published."""
        known = [(self.at(method, task, mark), method) for method in self.methods]
        return max((one for one in known if one[0] is not None), default=None)


def sweep_file(name):
    for path in (pathlib.Path(name), SWEEPS / f"{name}.textproto"):
        if path.is_file():
            return path.resolve()
    known = sorted(path.stem for path in SWEEPS.glob("*.textproto") if "environment.task" in path.read_text())
    raise Mistake(f"{name}: no such sweep; name a file or one of {', '.join(known)} (--sweep, if the folder is called otherwise)")


def dry_run(program, file, seeds=0):
    """Returns [(run, experiment, its --set by key)] from the output of `troupe sweep --dry-run`."""
    words = [program, "sweep", str(file), "--dry-run", *(["--seeds", seeds_of(seeds)] if seeds else [])]
    try:
        done = subprocess.run(words, capture_output=True, text=True)
    except OSError as error:
        raise Mistake(f"--program {program}: {error.strerror}; name the built program troupe") from None
    if done.returncode:
        raise Mistake(f"{shlex.join(words)}: {done.stderr.strip()}")
    made = []
    for line in done.stdout.splitlines():
        run, command = line.split(": troupe train ", 1)
        experiment, *sets = command.split(" --set ")
        made.append((run, experiment, dict(one.split("=", 1) for one in sets)))
    return made


def planned(program, file, seeds=0):
    """Returns task -> [(run, seed)], and the experiment with its --set."""
    tasks, experiments = {}, set()
    for run, experiment, values in dry_run(program, file, seeds):
        if "environment.task" not in values:
            raise Mistake(f"{file}: its runs differ in more than the task; a board is made of one experiment that varies environment.task")
        tasks.setdefault(values.pop("environment.task"), []).append((run, int(values.pop("seed"))))
        experiments.add((experiment, tuple(values.items())))
    if len(experiments) != 1:
        raise Mistake(f"{file}: its runs differ in more than the task; a board is made of one experiment that varies environment.task alone")
    experiment, common = experiments.pop()
    return tasks, experiment, [f"{key}={value}" for key, value in common]


def seeds_of(count):
    return ",".join(str(seed) for seed in range(1, count + 1))
