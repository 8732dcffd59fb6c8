#!/usr/bin/env python3
"""Prints a Markdown table of a sweep over strategies and replicas: returns, samples/s of all learners, staleness. Needs no packages.

Usage: experiments/bench/peers/replicas_table.py runs/d4pg_replicas
"""

import csv
import pathlib
import statistics
import sys


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def staleness(part):
    """Returns the mean and greatest staleness over a run's progress rows; None if no server counted it."""
    means, most = [], 0
    for metrics in sorted(part.glob("*/*/metrics.csv")):
        for row in rows(metrics):
            if row.get("staleness_mean"):
                means.append(float(row["staleness_mean"]))
                most = max(most, float(row["staleness_max"] or 0))
    return (statistics.mean(means), most) if means else None


def samples(part):
    """Returns how many samples all learners took in a run; replicas that do not wait for each other count their updates separately."""
    return max(float(row["samples"]) for metrics in part.glob("*/*/metrics.csv") for row in rows(metrics) if row["samples"])


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    folder = pathlib.Path(sys.argv[1])
    if not (folder / "sweep.csv").is_file():
        sys.exit(f"{folder}: has no sweep.csv; name the folder of a sweep")
    groups = {}
    for row in rows(folder / "sweep.csv"):
        if row["state"] == "done":
            groups.setdefault(row["group"], []).append(row)
    print("| runs | seeds | return (each seed) | samples/s | staleness, mean | most |\n| --- | --- | --- | --- | --- | --- |")
    for group, runs in groups.items():
        returns = ", ".join(f"{float(run['value']):.0f}" for run in runs)
        rates = statistics.mean(samples(folder / run["run"]) / float(run["training_seconds"]) for run in runs)
        stale = [s for s in (staleness(folder / run["run"]) for run in runs) if s]
        mean = f"{statistics.mean(s[0] for s in stale):.2f}" if stale else ""
        most = f"{max(s[1] for s in stale):.0f}" if stale else ""
        print(f"| {group} | {len(runs)} | {returns} | {rates:,.0f} | {mean} | {most} |")


main()
