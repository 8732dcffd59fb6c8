#!/usr/bin/env python3
"""Estimates when a head, a learner and the replay shards are saturated, from the measured cost of 1 to 8 environment processes.

    experiments/bench/peers/cluster_model.py measure build/release/troupe units.json [--actors 1,2,4,8] [--seconds 20]
    build/release/cluster_scale --nodes 1000 > beats.jsonl
    experiments/bench/peers/cluster_model.py table units.json [--beats beats.jsonl] [--nodes 100,500,1000] [--per-node 16] [--samples-per-insert 32]

`measure` trains cartpole from states with each role in a separate process, twice per number of environment actors: once with a learner that
requests almost nothing, so that the actors step as fast as they can, and once with the learner as the bottleneck. It repeats one actor with
more samples per insert. For each run, it writes seconds, the run's counters, and the processor seconds of every role. `table` fits the unit
costs by least squares over all runs (processor seconds = a per second alive + b per step, insert, sample, update), prints how far each role's
calculated processor seconds are from the measured ones, and prints for several numbers of nodes, with --per-node environment actors each:

 - the number of shards, with one core each: items inserted and sampled per second times their cost;
 - the number of learners (replicas), with one core each: updates per second for --samples-per-insert;
 - the head: its share of a core for heartbeats of nodes (--beats, otherwise as measured in the runs), and for polling every
   actor (ten times per second; above 200 actors, 2,000 polls per second). A poll is assumed to cost as much as a heartbeat: a message and its answer;
 - bytes per second into a shard's network card of --gigabits, from the size of an item in the table (uncompressed).

Assumptions: processors are like the measured ones, and each role has its own cores; environment actors that are not held back step as fast as
the measured one on its own core; items are spread evenly over the shards; requests in advance hide the network's round trips. The model
leaves out all_reduce between learners (collective_model.py), the file system under checkpoints, and the length of episodes.
"""
import argparse
import json
import math
import os
import pathlib
import sys
import time

import overload

CONFIG = """name: "run"
environment {{ task: "cartpole_balance" }}
replay {{ shards: 1 minimum_items: 500 capacity_items: 200000 samples_per_insert: {ratio} n_step: 5 }}
d4pg {{ policy_layers: [256, 256] critic_layers: [256, 256] batch_size: 256 }}
actors {{ environment: {actors} random_steps: 500 }}
evaluation {{ period: 0 final_episodes: 1 video: false }}
checkpoint {{ minutes: 0 }}
stop {{ environment_steps: 2000000000 }}
"""
MOST_POLLS = 2000  # of the head's metrics, per second
ROLES = ("environment", "replay", "learner", "evaluator", "head")
# The causes of each role's processor time.
CAUSES = {
    "environment": ("alive", "agent_steps"),
    "replay": ("alive", "inserts", "samples"),
    "learner": ("alive", "updates"),
    "head": ("alive", "processes"),
    "evaluator": ("alive",),
}


def roles_of(process):
    """Returns {process: role} of a run: its head, which the process `process` watches, and the head's processes."""
    found = overload.children(process)
    found.pop("port", None)
    return {child: role.split()[0] for child, role in found.items()}


def reading(run, roles):
    """Waits for a new row; returns its counters and the processor seconds at that time."""
    before = run.last()
    while (row := run.last()) == before:
        if run.process.poll() is not None:
            run.output.seek(0)
            sys.exit("the run ended by itself:\n" + run.output.read())
        time.sleep(0.05)
    used = dict.fromkeys(ROLES, 0.0)
    for process, role in roles.items():
        used[role] += overload.processor_seconds(process)
    return time.monotonic(), row, used


def measure_one(troupe, actors, ratio, seconds):
    with overload.scratch_folder("cluster_model") as scratch:
        run = overload.Run(troupe, scratch, "run", CONFIG.format(actors=actors, ratio=ratio))
        run.wait_until("learning", lambda row: row.get("updates", 0) >= 50)
        roles = roles_of(run.process.pid)
        began, first, used_first = reading(run, roles)
        time.sleep(seconds)
        ended, last, used_last = reading(run, roles)
        run.stop()
    counts = {key: last[key] - first[key] for key in ("agent_steps", "updates", "inserts", "samples")}
    return {"actors": actors, "samples_per_insert": ratio, "seconds": ended - began, "processes": len(roles) - 1, **counts,
            "item_bytes": last["replay_bytes"] / max(last["replay_items"], 1),
            "cpu": {role: used_last[role] - used_first[role] for role in ROLES}}


def measure(options):
    runs = []
    actors = [int(text) for text in options.actors.split(",")]
    for count, ratio in [(count, ratio) for ratio in (0.1, 8) for count in actors] + [(1, 64)]:
        runs.append(measure_one(os.path.abspath(options.troupe), count, ratio, options.seconds))
        print(json.dumps(runs[-1]), flush=True)
        pathlib.Path(options.units).write_text(json.dumps({"runs": runs}, indent=1))


def amounts(run, role):
    """Returns the amount of each cause of a role's work."""
    count = {"environment": run["actors"]}.get(role, 1)
    every = {**run, "alive": count * run["seconds"], "processes": run["processes"] * run["seconds"]}
    return [every[cause] for cause in CAUSES[role]]


def solve(matrix, right):
    """Solves a linear system by Gaussian elimination with partial pivoting."""
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    size = len(rows)
    for i in range(size):
        pivot = max(range(i, size), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        if abs(rows[i][i]) < 1e-30:
            return [0.0] * size
        for r in range(size):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def fit(runs, role):
    """Returns the nonnegative processor seconds per unit of each cause, by least squares of the relative errors. Causes with negative units
    are left out, the most negative first."""
    causes = list(CAUSES[role])
    while True:
        left = [[0.0] * len(causes) for _ in causes]
        right = [0.0] * len(causes)
        for run in runs:
            weight = 1 / max(run["cpu"][role], 0.05) ** 2
            row = [value for cause, value in zip(CAUSES[role], amounts(run, role)) if cause in causes]
            for i, a in enumerate(row):
                right[i] += weight * a * run["cpu"][role]
                for j, b in enumerate(row):
                    left[i][j] += weight * a * b
        units = solve(left, right)
        worst = min(range(len(units)), key=lambda i: units[i])
        if units[worst] >= 0 or len(causes) == 1:
            found = dict(zip(causes, units))
            return {cause: max(0.0, found.get(cause, 0.0)) for cause in CAUSES[role]}
        del causes[worst]


def calculated(units, run, role):
    return sum(units[role][cause] * amount for cause, amount in zip(CAUSES[role], amounts(run, role)))


def print_check(runs, units):
    print("Processor seconds per second, measured and calculated\n")
    print("| environment actors | samples per insert | steps/s | inserts/s | updates/s | " + " | ".join(ROLES[:3] + ROLES[4:]) + " |")
    print("| --- " * 9 + "|")
    for run in runs:
        cells = []
        for role in ROLES[:3] + ROLES[4:]:
            got, made = run["cpu"][role] / run["seconds"], calculated(units, run, role) / run["seconds"]
            error = 100 * (made / got - 1) if got else 0
            cells.append(f"{got:.3f}, {made:.3f} ({error:+.0f}%)")
        rate = [run[key] / run["seconds"] for key in ("agent_steps", "inserts", "updates")]
        print(f"| {run['actors']} | {run['samples_per_insert']:g} | " + " | ".join(f"{value:,.0f}" for value in rate) + " | "
              + " | ".join(cells) + " |")
    print("\nUnits, microseconds of a processor")
    for role in ROLES:
        print(f"  {role}: " + ", ".join(f"{1e6 * value:,.1f} per {cause.replace('alive', 'second alive').replace('processes', 'process and second').rstrip('s').replace('_', ' ')}"
                                      for cause, value in units[role].items()))


def beats_of(path):
    """Returns the head's processor seconds per heartbeat, with encryption if that was measured."""
    found = None
    for line in open(path, encoding="utf-8"):
        figure = json.loads(line) if line.startswith("{") else {"metric": ""}
        if figure["metric"].startswith("this process's CPU per sign of life"):
            found = 1e-6 * figure["value"]
    return found


def full(units, role, work):
    """Returns how many units of work per second a process of the role can do on its own core; `work`: processor seconds per unit."""
    return max(0.0, 1 - units[role]["alive"]) / work if work else math.inf


def print_table(options, runs, units):
    batch = next(run["samples"] / run["updates"] for run in runs if run["updates"])
    item = max(run["item_bytes"] for run in runs)
    ratio = options.samples_per_insert
    free = full(units, "environment", units["environment"]["agent_steps"])
    one_shard = full(units, "replay", units["replay"]["inserts"] + ratio * units["replay"]["samples"])
    updates = full(units, "learner", units["learner"]["updates"])
    one_learner = updates * batch / ratio
    beat = beats_of(options.beats) if options.beats else units["head"]["processes"]
    beats = full(units, "head", beat)
    card = options.gigabits * 1e9 / 8
    print(f"\n{options.per_node} environment actor(s) a node, {ratio:g} samples per insert, batches of {batch:.0f}, items of {item:.0f} bytes\n")
    print("| nodes | actors | steps/s if nobody holds them | learners to use all | shards, processors | shards, cards | head, of a core | one learner and one shard hold them to |")
    print("| --- " * 8 + "|")
    for nodes in [int(text) for text in options.nodes.split(",")]:
        actors = nodes * options.per_node
        steps = actors * free
        head = units["head"]["alive"] + beat * (nodes + min(10 * actors, MOST_POLLS))
        print(f"| {nodes:,} | {actors:,} | {steps:,.0f} | {math.ceil(steps / one_learner):,} | {math.ceil(steps / one_shard):,} | "
              f"{math.ceil(item * (1 + ratio) * steps / card):,} | {head:.2f} | "
              f"{min(one_shard, one_learner):,.0f} steps/s ({'learner' if one_learner < one_shard else 'shard'}) |")
    most_nodes = max(0, int(beats - MOST_POLLS))
    print(f"\nAn environment actor makes at most {free:,.0f} steps/s. A shard is full at {one_shard:,.0f} inserts/s with {ratio:g} samples each, a learner at "
          f"{updates:,.0f} updates/s, {one_learner:,.0f} inserts/s, a head at {beats:,.0f} signs of life and polls a second: "
          f"{most_nodes:,} nodes.")


def table(options):
    runs = json.loads(pathlib.Path(options.units).read_text())["runs"]
    units = {role: fit(runs, role) for role in ROLES}
    print_check(runs, units)
    print_table(options, runs, units)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("measure")
    one.add_argument("troupe"), one.add_argument("units"), one.add_argument("--actors", default="1,2,4,8")
    one.add_argument("--seconds", type=float, default=20, help="of each run, after its first updates")
    one.set_defaults(do=measure)
    two = commands.add_parser("table")
    two.add_argument("units"), two.add_argument("--beats", help="lines of JSON of cluster_scale")
    two.add_argument("--nodes", default="100,500,1000"), two.add_argument("--per-node", type=int, default=16)
    two.add_argument("--samples-per-insert", type=float, default=32), two.add_argument("--gigabits", type=float, default=25)
    two.set_defaults(do=table)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
