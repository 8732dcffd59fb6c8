"""The variants of a sweep compared with its first one."""
import pathlib
import re

from boards.runs import Run, hours_text, reported, state_of
from boards.sweeps import Mistake, dry_run, sweep_file


def value_of(text):
    """Returns the number of an estimate such as '310.0 [300.0, 320.0], 2 runs' or '310.0, 1 run'."""
    return float(re.match("[^ ,]+", text)[0])


class Variants:
    """A sweep of variants over tasks and its runs: variant -> task -> runs."""

    def __init__(self, program, name, folders):
        self.program, self.name = program, pathlib.Path(name).stem
        self.runs = {}
        for planned, _, values in dry_run(program, sweep_file(name)):
            group = planned.rsplit("_seed=", 1)[0]
            variant, task = re.search(r"_variant=(.+)$", group), values.get("environment.task")
            if not variant or not task:
                raise Mistake(f"{name}: its run {planned} has no {'task' if variant else 'variant'}; a table of variants is made of a sweep that lists variants "
                              "and varies environment.task")
            tasks = self.runs.setdefault(variant[1], {})
            if task not in tasks:
                parts = [part for folder in folders for part in folder.glob(f"{group}_seed=*")]
                tasks[task] = [run for part in parts if (run := Run(part, task, int(part.name.rsplit("=", 1)[1]))).folder]
        if not any(runs for tasks in self.runs.values() for runs in tasks.values()):
            raise Mistake(f"{', '.join(map(str, folders))}: has no run of the sweep {name}; `troupe sweep {name}` trains them")

    def finished(self, variant):
        return [run for runs in self.runs[variant].values() for run in runs if run.done and run.points]

    def estimates(self):
        """The means of `troupe report` for finished runs as text: (variant, task) -> "990.0 [980.0, 1000.0], 2 runs"."""
        runs = [(variant, run) for variant in self.runs for run in self.finished(variant)]
        if not runs:
            return {}
        header, *rows = reported(self.program, runs)[1]
        return {(variant, row[0]): row[column] for row in rows for column, variant in enumerate(header[2:], 2) if row[column] != "-"}

    def tables(self):
        """Returns [(caption, rows, the header first)]."""
        base, means = next(iter(self.runs)), self.estimates()
        tasks = list(self.runs[base])
        rows = [["variant", *(cell for task in tasks for cell in (task, f"difference to {base}")), "processor minutes"]]
        for variant, runs in self.runs.items():
            row = [variant]
            for task in tasks:
                mean, other = means.get((variant, task)), means.get((base, task))
                is_compared = variant != base and mean and other
                row += [mean or state_of(runs[task]), f"{value_of(mean) - value_of(other):+.1f}" if is_compared else "-"]
            minutes = [(60 * hours, is_measured) for hours, is_measured in (run.hours() for run in self.finished(variant))]
            rows.append([*row, hours_text(minutes)])
        return [(f"{self.name}: mean final return on each task with its 95 % interval over seeds, and mean processor time of a run", rows)]
