#!/usr/bin/env python3
"""Tests the board of a sweep beside published results: its numbers for runs made by hand, and a real sweep that is stopped and continued.

Usage: board_test.py TROUPE SOURCE numbers|variants|continued"""
import csv
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile

DEADLINE = 240  # seconds for what is waited for

EXPERIMENT = """environment { task: "pendulum_swingup" }
replay { minimum_items: 200 samples_per_insert: 4 }
d4pg { policy_layers: [16] critic_layers: [16] batch_size: 16 }
actors { random_steps: 200 }
evaluation { period: 1000 episodes: 1 final_episodes: 2 video: false }
stop { environment_steps: 3000 }
"""
SWEEP = """experiment: "tiny"
seed: %s
vary { key: "environment.task" value: ["cartpole_balance", "pendulum_swingup", "walker_walk"] }
"""
VARIANTS = """experiment: "tiny"
seed: [1, 2]
vary { key: "environment.task" value: ["cartpole_balance", "pendulum_swingup"] }
variant { name: "base" }
variant { name: "less" set: "replay.samples_per_insert=2" }
variant { name: "more" set: ["replay.samples_per_insert=8"] }
"""
METRICS = "kind,environment_steps,training_seconds,processor_seconds,evaluation_return,evaluation_return_min,evaluation_return_max"


class Place:
    """A folder with a sweep of three tasks."""

    def __init__(self, folder, troupe, source, seeds):
        self.folder, self.troupe, self.board = pathlib.Path(folder), troupe, source / "experiments/bench/board.py"
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "PATH": f"{folder}:{os.environ['PATH']}"}
        (self.folder / "tiny.textproto").write_text(EXPERIMENT)
        (self.folder / "three.textproto").write_text(SWEEP % seeds)
        (self.folder / "parts.textproto").write_text(VARIANTS)

    def command(self, *words):
        return [sys.executable, str(self.board), *words, "--program", self.troupe]

    def run(self, *words):
        return subprocess.run(self.command(*words), cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=DEADLINE)

    def output(self, *words):
        done = self.run(*words)
        check(done.returncode == 0, f"{words} gives {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout


def check(holds, complaint):
    if not holds:
        sys.exit(complaint)


def has(text, *parts):
    for part in parts:
        check(part in text, f"'{part}' is missing from\n{text[:20000]}")


def make_run(runs, task, seed, evaluations, cores=2, variant=""):
    """variant: "_variant=NAME"; evaluations: (kind, steps, training seconds, processor seconds, return); the last one is of a finished run if it is final."""
    part = runs / f"tiny_task={task}{variant}_seed={seed}"
    folder = part / "tiny/2026-11-26T10-00-00"
    folder.mkdir(parents=True)
    (folder / "config.textproto").write_text(f'seed: {seed}\nenvironment {{\n  task: "{task}"\n}}\nd4pg {{\n}}\nstop {{\n  environment_steps: 100000\n}}\n')
    (folder / "metrics.csv").write_text("".join(f"{line}\r\n" for line in [METRICS, *(f"{kind},{steps},{seconds},{processor},{value},{value},{value}"
                                                                                  for kind, steps, seconds, processor, value in evaluations)]))
    (folder / "origin.json").write_text(json.dumps({"processor": "Abacus", "cores": cores, "commit": "0123456789abcdef", "changed_files": 0}))
    if evaluations[-1][0] == "final":
        (part / "result.json").write_text("{}")


def numbers(place):
    runs = place.folder / "three"
    # The best published results at 100,000 steps are 999.8 (cartpole_balance) and 830.4 (pendulum_swingup); 90 % of them are 899.8 and 747.4.
    make_run(runs, "cartpole_balance", 1, [("evaluation", 20000, 100, 2400, 500), ("evaluation", 40000, 200, 5400, 950),
                                           ("final", 100000, 500, 14400, 980)])  # 1.5 h at 40,000; 4 h
    # Resumed from 3000 s: the evaluation at 50,000 does not count, but the processor time before it does. 1.833 h at 60,000; 3 h in all.
    make_run(runs, "cartpole_balance", 2, [("evaluation", 20000, 100, 1440, 300), ("evaluation", 50000, 250, 3600, 970), ("evaluation", 42000, 210, 3000, 860),
                                           ("evaluation", 60000, 300, 6000, 960), ("final", 100000, 500, 10200, 1000)])
    # Processor time is not measured: 1800 s and 3600 s of wall-clock time on two cores. The first run reaches the goal at its end.
    make_run(runs, "pendulum_swingup", 1, [("evaluation", 50000, 900, "", 10), ("final", 100000, 1800, "", 800)])
    make_run(runs, "pendulum_swingup", 2, [("evaluation", 75000, 1800, "", 10), ("final", 100000, 3600, 9, 700)])
    make_run(runs, "walker_walk", 1, [("evaluation", 20000, 100, 60, 77)])  # begun
    table = place.output("table", "three", "--sweep", "three.textproto")
    means = dict(re.findall(r"^\| ([^|]+) \| ([^|]+ \| [^|]+) \|$", table, re.M))
    has(means["Troupe, tiny"], "870 [", "] | 890 [")  # (990 + 750) / 2; of 700, 800, 980, 1000 the middle half
    check(means["D4PG"] == "755 | -" and means["MR.Q"] == "789 | -" and means["the best on each task"] == "915 | -", means)
    has(table, "2 of 3 tasks at 100,000 environment steps", "| cartpole_balance | 990.0 [980.0, 1000.0], 2 runs | 999.8, SimbaV2, 8 updates per decision | 980.9 |",
        " | 1.67 | 3.50 |\n", "| pendulum_swingup | 750.0 [700.0, 800.0], 2 runs | 830.4, BRO, 10 updates per frame | 529.0 |",
        " | at most 1.00, 1 of 2 runs | at most 1.50 |\n", "| walker_walk | not finished: 20,000 of 100,000 steps | 965.9, ")

    written = place.output("page", "three", "--sweep", "three.textproto", "--out", "board.html")
    has(written, "three: without a finished run: walker_walk", "board.html")
    page = (place.folder / "board.html").read_text()
    figures = re.findall(r'<figure id="three-(\w+)">(.*?)</figure>', page, re.S)
    check([task for task, _ in figures] == ["cartpole_balance", "pendulum_swingup", "walker_walk"], figures)
    for task, figure in figures:
        has(figure, "<title>DR.Q</title>", "<title>D4PG</title>", "<title>best published at 100,000: ", "<title>Troupe, mean of ")
    # The mean of both seeds ends at 990 of 1000, in a picture of 480 x 300 pixels with margins of 44, 10, 26 and 30.
    has(figures[0][1], '<circle cx="470.0" cy="28.4" ', "<title>Troupe, seed 2</title>")
    # The mean begins where both have values: 207.5 (of 405, interpolated, and 10) at 75,000; 750 at 100,000.
    has(figures[1][1], '<polyline points="363.5,219.4 470.0,87.0" ')
    has(page, "Without a finished run", "walker_walk.</p>", "tiny_task=walker_walk_seed=1", "Abacus, 2 cores", "arXiv 2501.16142")
    outside = re.findall(r"<script|<link|<iframe|<img|https?:|//\w|url\(|@import|\b(?:src|href)=", page)
    check(not outside, f"the page loads or names something outside: {outside[:5]}")

    for words, complaint in [(["page", "nowhere"], "nowhere: no such folder"),
                             (["page", "three"], "three: no such sweep; name a file or one of ablations, ablations_blocks, pixels_18, states_18"),
                             (["run", "three.textproto", "--tasks", "walker_walk,hopper"], "--tasks has hopper, none of the sweep's; it has cartpole_balance,"),
                             (["run", "d4pg_nine"], "its runs differ in more than the task"),
                             (["table", "three", "--sweep", "parts.textproto"], "its runs differ in more than the task"),
                             (["variants", "three", "--sweep", "three.textproto"], "tiny_task=cartpole_balance_seed=1 has no variant; a table of variants is made"),
                             (["variants", "three", "--sweep", "parts.textproto"], "has no run of the sweep parts.textproto")]:
        done = place.run(*words)
        check(done.returncode == 2, f"{words}: {done.returncode} {done.stderr}")
        has(done.stderr, "board.py: ", complaint)


def variants(place):
    runs = place.folder / "parts"
    for variant, task, seed, evaluation in [("base", "cartpole_balance", 1, ("final", 100000, 100, 600, 500)),
                                            ("base", "cartpole_balance", 2, ("final", 100000, 100, 1200, 700)),
                                            ("base", "pendulum_swingup", 1, ("final", 100000, 100, 900, 100.5)),
                                            ("less", "cartpole_balance", 1, ("final", 100000, 100, 300, 310)),
                                            ("less", "cartpole_balance", 2, ("evaluation", 30000, 100, 90, 999)),
                                            ("less", "pendulum_swingup", 1, ("evaluation", 20000, 100, 60, 77)),
                                            ("more", "pendulum_swingup", 1, ("final", 100000, 1800, "", 120))]:
        make_run(runs, task, seed, [evaluation], variant=f"_variant={variant}")
    table = place.output("variants", "parts", "--sweep", "parts.textproto")
    has(table, "| variant | cartpole_balance | difference to base | pendulum_swingup | difference to base | processor minutes |",
        "| base | 600.0 [500.0, 700.0], 2 runs | - | 100.5, 1 run | - | 15.00 |\n",  # 10, 20 and 15 minutes
        "| less | 310.0, 1 run | -290.0 | not finished: 20,000 of 100,000 steps | - | 5.00 |\n",
        "| more | no run | - | 120.0, 1 run | +19.5 | at most 60.00 |\n")  # half an hour on two cores


def stopped_when(place, words, parts):
    """What the command prints if it gets SIGTERM once a run of each of these parts of sweeps' folders has learned something."""
    process = subprocess.Popen(place.command(*words), cwd=place.folder, env=place.environment, stdout=subprocess.PIPE, text=True)
    for _ in range(10 * DEADLINE):
        if process.poll() is not None or all(any(len(path.read_text().splitlines()) > 3 for path in place.folder.glob(f"runs/{part}/*/*/metrics.csv")) for part in parts):
            break
        select.select([], [], [], 0.1)
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=DEADLINE)[0]
    check(process.returncode == 0, output)
    return output


def continued(place):
    words = ["run", "three.textproto", "--runs", "runs", "--set", "stop.environment_steps=40000"]
    runs = place.folder / "runs/three"
    first = place.output(*words, "--tasks", "pendulum_swingup")
    has(first, "tiny_task=pendulum_swingup_seed=1 is done", "three: without a finished run: cartpole_balance, walker_walk", "three.html")
    result = runs / "tiny_task=pendulum_swingup_seed=1/result.json"
    made = result.stat().st_mtime_ns

    stopped = stopped_when(place, words, ["three/*task=cartpole_balance*"])
    has(stopped, "tiny_task=cartpole_balance_seed=1 stopped", "without a finished run: cartpole_balance, walker_walk")
    check("walker_walk_seed=1 starts" not in stopped, stopped)

    rest = place.output(*words)
    has(rest, "tiny_task=cartpole_balance_seed=1 continues", "tiny_task=walker_walk_seed=1 starts")
    check("without a finished run" not in rest, rest)
    again = place.output(*words)
    check(" starts" not in again and " continues" not in again and result.stat().st_mtime_ns == made, again)
    with open(next(runs.glob("tiny_task=cartpole_balance_seed=1/*/*/metrics.csv")), newline="") as file:
        rows = list(csv.DictReader(file))
    # Also where it was stopped and continued. An evaluation's row has the time at which it began.
    evaluations = [float(row["processor_seconds"]) for row in rows if row["evaluation_return"]]
    reports = [float(row["processor_seconds"]) for row in rows if not row["evaluation_return"]]
    check(evaluations == sorted(evaluations) and 0 < evaluations[0], rows)
    check(reports == sorted(reports) and 0 < reports[0] < reports[-1], rows)

    # Runs on two hosts, through a stand-in for ssh that executes their commands here.
    stand_in = place.folder / "ssh"
    stand_in.write_text('#!/bin/sh\nwhile [ "$1" = -o ]; do shift 2; done\necho "$1" >> hosts\nshift\nexec sh -c "$*"\n')
    stand_in.chmod(0o755)
    words = ["run", "three.textproto", "--name", "hosts", "--hosts", "near,far", "--seeds", "1", "--set", "stop.environment_steps=40000"]
    stopped = stopped_when(place, words, ["hosts.1/*", "hosts.2/*"])
    check(sorted((place.folder / "hosts").read_text().split()) == ["far", "near"], stopped)
    shared = place.output(*words)
    again = shared.count(" continues") + shared.count(" starts")  # a run that was stopped before its first checkpoint starts again
    check(again == 3 - stopped.count(" is done") and " continues" in shared, f"{stopped}{shared}")
    check(stopped.count(" is done") + shared.count(" is done") == 3 and "without a finished run" not in shared, f"{stopped}{shared}")
    check(sorted(path.parent.name for path in (place.folder / "runs").glob("hosts.*/tiny*")) == ["hosts.1", "hosts.1", "hosts.2"], shared)
    check(" starts" not in place.output(*words), "finished runs of hosts were trained again")
    alone = place.run(*words[:4])
    check(alone.returncode == 2, alone.stdout)
    has(alone.stderr, "was begun with --hosts")


def main(troupe, source, story):
    with tempfile.TemporaryDirectory() as folder:
        {"numbers": numbers, "variants": variants, "continued": continued}[story](Place(folder, troupe, source, "1" if story == "continued" else "[1, 2]"))


main(sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3])
