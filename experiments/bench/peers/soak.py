#!/usr/bin/env python3
"""Trains for a long time and looks for leaks: whether memory, descriptors, threads or shared memory of any process keep growing.

    experiments/bench/peers/soak.py build/release/troupe --minutes 60 [--memory-limit 1] [--count-limit 2] [--json]

Trains cartpole from states with each role in a separate process: two environment actors, a shard whose table is full after seconds, a learner
and an evaluator, with an evaluation every 20,000 steps and a checkpoint every minute. After the first updates, it records at regular times for
each process its resident memory, and the numbers of open descriptors, of threads and of mapped shared-memory segments (memfd or /dev/shm). It
fits a line by least squares to the last three quarters of each series, and prints a Markdown table with the slope per hour and its 95 %
interval. Successive samples are not independent: the interval is for the effective number of samples n (1 - r) / (1 + r), where r is the
correlation of successive residuals.

Exit code 1: the lower end of an interval is above --memory-limit MiB per hour or --count-limit per hour, a process ended or was replaced, or the
run's exit code is not 0. A single step in the middle of an hour's samples has a slope of 2 per hour.
"""
import argparse
import json
import math
import os
import pathlib
import re
import statistics
import sys
import time

import overload

CONFIG = """name: "soak"
environment {{ task: "cartpole_balance" }}
replay {{ shards: 1 minimum_items: 500 capacity_items: 10000 samples_per_insert: 64 n_step: 5 }}
d4pg {{ policy_layers: [64, 64] critic_layers: [64, 64] batch_size: 64 }}
actors {{ environment: 2 random_steps: 500 }}
evaluation {{ period: 20000 episodes: 1 final_episodes: 1 video: false }}
checkpoint {{ minutes: 1 keep: 2 }}
stop {{ environment_steps: 2000000000 }}
"""
SAMPLES = 400  # over the whole time, at most two per second
FEWEST = 20    # effective samples below which a slope means nothing
QUANTITIES = {"memory": "MiB", "descriptors": "", "threads": "", "shared segments": ""}
SHARED = re.compile(r"\S+ \S*s\S* \S+ (\S+ \d+) +/(memfd:|dev/shm/)")  # device and inode of a shared mapping in /proc/<process>/maps


def quantities(process):
    """Returns the process's present values, or None if it has ended."""
    here = pathlib.Path(f"/proc/{process}")
    try:
        return {"memory": overload.resident(process) / overload.MEBIBYTE, "descriptors": len(os.listdir(here / "fd")),
                "threads": len(os.listdir(here / "task")),
                "shared segments": len({found[1] for found in map(SHARED.match, (here / "maps").read_text().splitlines()) if found})}
    except OSError:
        return None


def t_quantile(freedom):
    """Returns the 97.5 % quantile of Student's distribution (Cornish-Fisher expansion; 1 % off at 4 degrees of freedom)."""
    z = statistics.NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def slope(times, values):
    """Returns the slope of the least-squares line, half the width of its 95 % interval, and the effective number of samples."""
    count = len(times)
    middle, mean = statistics.fmean(times), statistics.fmean(values)
    spread = sum((t - middle) ** 2 for t in times)
    found = sum((t - middle) * (v - mean) for t, v in zip(times, values)) / spread
    residuals = [v - mean - found * (t - middle) for t, v in zip(times, values)]
    squares = sum(r * r for r in residuals)
    if squares <= 1e-18 * max(mean * mean, 1) * count:  # a line, but for rounding
        return found, 0.0, count
    correlation = max(0.0, sum(a * b for a, b in zip(residuals, residuals[1:])) / squares)
    effective = count * (1 - correlation) / (1 + correlation)
    if effective < 4:
        return found, math.inf, effective
    error = math.sqrt(squares / (effective - 2) / spread)
    return found, t_quantile(effective - 2) * error, effective


def soak(options, run):
    """Returns {role: {quantity: values}}, the times of the samples in hours, and what happened to processes."""
    roles = overload.children(run.process.pid) | {run.process.pid: "parent of the head"}
    roles.pop("port", None)
    series = {role: {quantity: [] for quantity in QUANTITIES} for role in roles.values()}
    times, events = [], []
    begin = time.monotonic()
    period = max(0.5, 60 * options.minutes / SAMPLES)
    while (now := time.monotonic() - begin) < 60 * options.minutes:
        for process, role in list(roles.items()):
            values = quantities(process)
            if values is None:
                events.append(f"{role} (process {process}) ended after {now / 60:.1f} minutes")
                del roles[process], series[role]
                continue
            for quantity, value in values.items():
                series[role][quantity].append(value)
        if run.process.poll() is not None:
            break
        times.append(now / 3600)
        time.sleep(max(0, period * len(times) - (time.monotonic() - begin)))
    return series, times, events


def judge(options, series, times):
    """Returns a row for each process and quantity."""
    first = len(times) // 4
    rows = []
    for role, of_role in sorted(series.items()):
        for quantity, values in of_role.items():
            limit = options.memory_limit if quantity == "memory" else options.count_limit
            late = values[first:len(times)]
            found, width, effective = slope(times[first:], late)
            verdict = "leaks" if found - width > limit else "few independent samples" if effective < FEWEST else "good"
            rows.append({"process": role, "quantity": quantity, "unit": QUANTITIES[quantity], "first": values[0], "mean": statistics.fmean(late),
                         "last": values[-1], "slope": found, "width": width, "samples": effective, "verdict": verdict})
    return rows


def print_table(rows):
    print("| process | quantity | at first | mean of the last three quarters | at last | per hour | 95 % interval | independent samples | |")
    print("|" + " --- |" * 9)
    for row in rows:
        interval = "any" if math.isinf(row["width"]) else f"{row['slope'] - row['width']:.2f} to {row['slope'] + row['width']:.2f}"
        print(f"| {row['process']} | {row['quantity']} | {row['first']:.5g} | {row['mean']:.5g} | {row['last']:.5g} {row['unit']} | {row['slope']:.2f} "
              f"| {interval} | {row['samples']:.0f} | {row['verdict']} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("troupe", type=os.path.abspath, help="the program")
    parser.add_argument("--minutes", type=float, default=60, help="of training after the first updates, at least 1")
    parser.add_argument("--memory-limit", type=float, default=1, metavar="MIB", help="growth per hour that is no leak")
    parser.add_argument("--count-limit", type=float, default=2, metavar="N", help="the same for descriptors, threads and segments")
    parser.add_argument("--experiment", type=pathlib.Path, metavar="FILE", help="trains another experiment, named \"soak\", with these processes")
    parser.add_argument("--json", action="store_true", help="a JSON object per line")
    options = parser.parse_args()
    if not options.minutes >= 1:
        parser.error(f"--minutes {options.minutes:g}: must be at least 1, for at least {FEWEST} samples")
    with overload.scratch_folder("soak") as scratch:
        run = overload.Run(options.troupe, scratch, "soak", options.experiment.read_text() if options.experiment else CONFIG.format())
        run.wait_until("learning", lambda row: row.get("updates", 0) > 100)
        series, times, events = soak(options, run)
        code = run.process.returncode if run.process.poll() is not None else run.stop()
    if len(times) < FEWEST:
        sys.exit(f"only {len(times)} samples: {'; '.join(events) or 'the run ended'}; its exit code is {code}")
    rows = judge(options, series, times)
    if options.json:
        for row in rows:
            print(json.dumps({"bench": "soak", "metric": f"{row['quantity']} of {row['process']}", "value": row["slope"], "interval": row["width"],
                              "unit": f"{row['unit']}/hour".lstrip("/"), "config": {"minutes": str(options.minutes)}}))
    else:
        print_table(rows)
    for event in events:
        print(event, file=sys.stderr)
    if code != 0:
        print(f"the run's exit code is {code}", file=sys.stderr)
    sys.exit(1 if events or code != 0 or any(row["verdict"] == "leaks" for row in rows) else 0)


if __name__ == "__main__":
    main()
