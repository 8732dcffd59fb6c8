#!/usr/bin/env python3
"""Shows error over staleness: Markdown tables, a CSV file, and an SVG plot.

    troupe bench strategies --json > strategies.jsonl
    experiments/bench/peers/staleness_plot.py strategies.jsonl learner/parameter_server/staleness.csv learner/parameter_server/staleness.svg

Both axes are logarithmic; staleness 0 is drawn at 1/2. Crosses are sync groups of 8 replicas (1, 2, 4 and 8 groups) at their mean staleness."""
import collections, json, math, sys

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 420, 70, 30, 230, 50
COLOURS = ["#c0392b", "#1b6ca8", "#2e8b57", "#8e5ea2"]


def read(path):
    curves, groups, steps = collections.defaultdict(dict), collections.defaultdict(dict), []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            figure = json.loads(line) if line.startswith("{") else {"bench": ""}
            if figure["bench"] != "strategies":
                continue
            config = figure["config"]
            if "staleness" in config:
                curves[config["learning_rate"]][int(config["staleness"])] = figure["value"]
            elif "sync_groups" in config:
                groups[int(config["sync_groups"])][figure["metric"]] = figure["value"]
            else:
                steps.append((config["through"], config["strategy"], config["one_replica_slower"], figure["value"]))
    return curves, groups, steps


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    curves, groups, steps = read(sys.argv[1])
    if not curves:
        sys.exit(f"staleness_plot.py: '{sys.argv[1]}' has no figure of strategies; make it by `troupe bench strategies --json`")
    ages = sorted({age for curve in curves.values() for age in curve})
    print("| through | strategy | one replica slower | step, ms |\n|" + " --- |" * 4)
    for through, strategy, slower, value in steps:
        print(f"| {through} | {strategy} | {slower}x | {value:.2f} |")
    print("\n| learning rate | " + " | ".join(f"staleness {age}" for age in ages) + " |\n|" + " --- |" * (len(ages) + 1))
    for name, curve in curves.items():
        print(f"| {name} | " + " | ".join(f"{curve[age]:.4f}" for age in ages) + " |")
    metrics = list(next(iter(groups.values()), {}))
    print("\n| sync groups of 8 replicas | " + " | ".join(metrics) + " |\n|" + " --- |" * (len(metrics) + 1))
    for count, values in groups.items():
        print(f"| {count} | " + " | ".join(f"{values[metric]:.4g}" for metric in metrics) + " |")
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write("learning_rate,staleness,error\n" + "".join(f"{name},{age},{curve[age]:.6g}\n" for name, curve in curves.items() for age in ages))
    crosses = [(values["mean staleness"], values["error after 1500 updates"], count) for count, values in groups.items()]
    everything = [value for curve in curves.values() for value in curve.values()] + [error for _, error, _ in crosses]
    low, high = math.log10(min(everything)) - 0.05, math.log10(max(everything)) + 0.05
    x = lambda age: LEFT + math.log2(2 * max(age, 0.5)) / math.log2(2 * max(ages[-1], 1)) * (WIDTH - LEFT - RIGHT)
    y = lambda error: HEIGHT - BOTTOM - (math.log10(error) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="18" font-size="14">Error after 1500 updates over the staleness of their gradients</text>']
    for age in ages:
        out.append(f'<line x1="{x(age):.1f}" y1="{TOP}" x2="{x(age):.1f}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>'
                   f'<text x="{x(age):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{age}</text>')
    for power in range(math.floor(low), math.ceil(high) + 1):
        for digit in (1, 2, 5):
            error = digit * 10.0 ** power
            if low <= math.log10(error) <= high:
                out.append(f'<line x1="{LEFT}" y1="{y(error):.1f}" x2="{WIDTH - RIGHT}" y2="{y(error):.1f}" stroke="#ddd"/>'
                           f'<text x="{LEFT - 8}" y="{y(error) + 4:.1f}" text-anchor="end">{error:g}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">staleness, versions</text>'
               f'<text transform="translate(18 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">mean squared error</text>')
    for i, (name, curve) in enumerate(curves.items()):
        points = sorted(curve.items())
        out.append(f'<polyline fill="none" stroke="{COLOURS[i]}" stroke-width="2" points="' + " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in points) + '"/>')
        out += [f'<circle cx="{x(s):.1f}" cy="{y(v):.1f}" r="3" fill="{COLOURS[i]}"/>' for s, v in points]
        out.append(f'<text x="{WIDTH - RIGHT + 14}" y="{TOP + 16 + 18 * i}" fill="{COLOURS[i]}">{name}</text>')
    for age, error, count in crosses:
        out.append(f'<path d="M{x(age) - 4:.1f} {y(error) - 4:.1f} l8 8 m0 -8 l-8 8" stroke="{COLOURS[3]}" stroke-width="2"/>'
                   f'<text x="{x(age) + 7:.1f}" y="{y(error) - 6:.1f}" fill="{COLOURS[3]}">{count}</text>')
    out.append(f'<text x="{WIDTH - RIGHT + 14}" y="{TOP + 16 + 18 * len(curves)}" fill="{COLOURS[3]}">8 replicas in so many groups</text>')
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        file.write("\n".join(out + ["</svg>"]) + "\n")


main()
