#!/usr/bin/env python3
"""Writes the ray caster's tables of RESULTS.md from the output of `troupe bench render --json`.

Usage: render_table.py WIDEST.jsonl [OTHER_VECTORS.jsonl…]

One row per task and size: frames/s of the caster on one thread, of OpenGL, their ratio, two threads over one, and the caster with the vectors of the
other files (`--vectors AVX2`). "picture alone": the median of the thread's processor time within draw(). If a file has several runs of the same task
and size, the median of their medians counts, so a file may contain several rounds. Exit code 1: the geometric mean is below 200 or a ratio below 60.
"""
import json
import math
import statistics
import sys

LEAST_MEAN, LEAST = 200, 60  # times OpenGL


def rates(path):
    """Returns {(task, size): {(renderer, threads): frames/s}} for the pictures alone."""
    found = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            figure = json.loads(line)
            if "picture alone" not in figure["metric"]:
                continue
            config = figure["config"]
            picture = found.setdefault((config["task"], config["size"]), {})
            picture.setdefault((config["renderer"], int(config["threads"])), []).append(figure["value"])
    return {picture: {who: statistics.median(values) for who, values in by.items()} for picture, by in found.items()}


def text(value, form):
    return "" if value is None else format(value, form)


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if len(sys.argv) > 1 else 2
    widest, others = rates(sys.argv[1]), [rates(path) for path in sys.argv[2:]]
    print("| task | size | caster | OpenGL | ratio | two threads / one |" + " ".join(f" {path} |" for path in sys.argv[2:]))
    print("| --- | --- | --- | --- | --- | --- |" + " --- |" * len(others))
    ratios = []
    for (task, size), by in widest.items():
        one, two, opengl = (by.get(who) for who in (("caster", 1), ("caster", 2), ("opengl", 1)))
        ratio = one / opengl if one and opengl else None
        ratios += [ratio] if ratio else []
        row = [task, size, text(one, ",.0f"), text(opengl, ".1f"), text(ratio, ".0f"), text(two / one if one and two else None, ".2f")]
        row += [text(other.get((task, size), {}).get(("caster", 1)), ",.0f") for other in others]
        print("| " + " | ".join(row) + " |")
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"| geometric mean | | | | {mean:.0f} | |" + " |" * len(others))
    return int(bool(ratios) and (mean < LEAST_MEAN or min(ratios) < LEAST))


if __name__ == "__main__":
    sys.exit(main())
