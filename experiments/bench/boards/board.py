"""One sweep compared with published results: the numbers of its page and tables."""
import pathlib
import re

from boards.runs import Run, hours_text, reported, state_of
from boards.sweeps import Mistake, Published, planned, sweep_file

GOAL = 0.9  # of the best published value
SHOWN = ["d4pg", "drqv2", "mrq", "dr_q"]  # columns of the table of tasks


class Board:
    """One sweep: its tasks, its runs, and the published results of the tasks."""

    def __init__(self, program, name, folders):
        self.program, self.name = program, pathlib.Path(name).stem
        self.tasks, self.experiment, _ = planned(program, sweep_file(name))
        self.agent = pathlib.Path(self.experiment).stem
        self.runs = []
        for task, named in self.tasks.items():
            group = named[0][0].rsplit("_seed=", 1)[0]
            parts = [part for folder in folders for part in folder.glob(f"{group}_seed=*")]
            runs = [Run(part, task, int(part.name.rsplit("=", 1)[1])) for part in parts]
            self.runs += sorted((run for run in runs if run.folder), key=lambda run: run.seed)
        if not self.runs:
            raise Mistake(f"{', '.join(map(str, folders))}: has no run of the sweep {name}; `board.py run {name}` trains them")
        self.published = Published("pixels" if any(run.pixels for run in self.runs) else "states")
        self.length = min(run.length for run in self.runs)
        self.mark = max((mark for mark in self.published.marks if mark <= self.length), default=self.published.marks[0])
        self.groups = {"all": list(self.tasks)}
        if set(self.tasks) > (easier := set(planned(program, sweep_file("states_18"))[0])):
            self.groups["those of states_18"] = [task for task in self.tasks if task in easier]
        hard = [task for task in self.tasks if task.startswith(("dog_", "humanoid_"))]
        if hard:
            self.groups["dog and humanoid"] = hard
        self.means, self.aggregates = self.estimates()

    def of(self, task):
        return [run for run in self.runs if run.task == task]

    def missing(self):
        """Tasks without a finished run."""
        return [task for task in self.tasks if not any(run.done for run in self.of(task))]

    def estimates(self):
        """The estimates of `troupe report` for finished runs: task -> its mean as text; group -> {"mean", "interquartile mean"}."""
        means, aggregates = {}, {}
        for group, tasks in self.groups.items():
            runs = [run for run in self.runs if run.done and run.task in tasks and run.points]
            if not runs:
                continue
            tables = reported(self.program, [("ours", run) for run in runs])
            aggregates[group] = dict(zip(tables[0][0], tables[0][1]))
            if group == "all":
                means = {row[0]: row[tables[1][0].index("ours")] for row in tables[1][1:]}
        return means, aggregates

    def core_hours(self, task):
        """Returns core-hours (to the goal, in total) as text."""
        best = self.published.best(task, self.mark)
        runs = self.of(task)
        reached = [hours for run in runs if best and (hours := run.hours_to(GOAL * best[0]))]
        whole = [run.hours() for run in runs if run.done]
        first = hours_text(reached) + (f", {len(reached)} of {len(runs)} runs" if reached and len(reached) < len(runs) else "")
        return first if reached else "not reached" if whole else "-", hours_text(whole)

    def tables(self):
        """Returns [(caption, rows, the header first)]."""
        made = []
        for group, tasks in self.groups.items():
            have = [task for task in tasks if self.of(task) and task not in self.missing()]
            rows = []
            for method, source in self.published.sources.items():
                values = [self.published.at(method, task, self.mark) for task in have]
                if values and None not in values:
                    rows.append((sum(values) / len(values), source["name"], "-"))
            bests = [best[0] for task in have if (best := self.published.best(task, self.mark))]
            if have and len(bests) == len(have):
                rows.append((sum(bests) / len(bests), "the best on each task", "-"))
            rows = [[name, f"{mean:.0f}", "-"] for mean, name, _ in sorted(rows, reverse=True)]
            ours = self.aggregates.get(group)
            rows.insert(0, [f"Troupe, {self.agent}", thousand(ours["mean"]) if ours else "-", thousand(ours["interquartile mean"]) if ours else "-"])
            made.append((f"{self.name}, {group}: {len(have)} of {len(tasks)} tasks at {self.mark:,} environment steps"
                         + (f", ours after {self.length:,}" if self.length != self.mark else ""),
                         [["method", "mean of the tasks' means", "interquartile mean of the runs"], *rows]))
        shown = [method for method in SHOWN if method in self.published.methods]
        rows = [["task", f"Troupe, {self.agent}", "best published", *(self.published.sources[method]["name"] for method in shown),
                 f"core-hours to {GOAL:.0%} of the best", "core-hours of a run"]]
        for task in self.tasks:
            best = self.published.best(task, self.mark)
            known = [self.published.at(method, task, self.mark) for method in shown]
            rows.append([task, self.means.get(task, state_of(self.of(task))), f"{best[0]:.1f}, {self.published.sources[best[1]]['name']}" if best else "-",
                         *("-" if value is None else f"{value:.1f}" for value in known), *self.core_hours(task)])
        made.append((f"{self.name}: each task", rows))
        return made


def thousand(text):
    """Scales an estimate such as '0.812 [0.800, 0.825]' to 0 to 1000."""
    return re.sub(r"\d+\.\d+", lambda number: f"{1000 * float(number[0]):.0f}", text)
