#!/usr/bin/env python3
"""before_after.py BEFORE AFTER STAGE... [--rounds 3] [--seconds 0.3]: compares the benchmarks of two builds, run alternately, in a Markdown table of
ratios.

    experiments/bench/peers/before_after.py ../before/build/release/troupe build/release/troupe pool replay learner

BEFORE, AFTER: two programs `troupe` (or `troupe_bench`). Compares lines with the same metric and configuration in both; each figure is the
median of the rounds. Nothing else may run meanwhile."""
import argparse
import collections
import json
import statistics
import subprocess
import sys


def measure(program, stage, seconds):
    bench = [] if program.endswith("troupe_bench") else ["bench"]
    words = [program, *bench, stage, "--json", "--seconds", str(seconds), "--repetitions", "1"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()[-300:]}")
    for line in map(json.loads, done.stdout.splitlines()):
        yield (line["metric"], tuple(sorted(line["config"].items())), line["unit"]), line["value"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs=2)
    parser.add_argument("stages", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3)
    options = parser.parse_args()
    print("| stage | figure | unit | before | after | faster by |\n| --- | --- | --- | --- | --- | --- |")
    for stage in options.stages:
        values = [collections.defaultdict(list) for _ in options.programs]
        for _ in range(options.rounds):
            for kept, program in zip(values, options.programs):
                for key, value in measure(program, stage, options.seconds):
                    kept[key].append(value)
        ratios = []
        for key in values[0]:
            if key not in values[1]:
                continue
            metric, config, unit = key
            before, after = (statistics.median(kept[key]) for kept in values)
            times = unit in ("s", "ms", "us", "µs", "ns") or metric.endswith("latency")
            ratios.append(before / after if times else after / before)
            shown = " ".join(f"{name}={value}" for name, value in config)
            print(f"| {stage} | {metric} [{shown}] | {unit} | {before:.4g} | {after:.4g} | {ratios[-1]:.2f} |", flush=True)
        only = len(set(values[0]) ^ set(values[1]))
        if ratios:
            print(f"{stage}: {len(ratios)} figures in both, {only} in one alone; faster by {min(ratios):.2f} to {max(ratios):.2f}, median {statistics.median(ratios):.2f}", file=sys.stderr)


main()
