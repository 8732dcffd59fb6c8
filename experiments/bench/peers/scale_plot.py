#!/usr/bin/env python3
"""Shows the cost of an item over the size of the table: a Markdown table, and an SVG plot with a logarithmic x-axis.

    troupe bench replay_disk --json > scale.jsonl
    experiments/bench/peers/scale_plot.py scale.jsonl replay/service/scale.svg

In such a plot, O(log n) is a straight line. The dashed lines are straight lines through the measurements up to 10^5 items, where the whole sum tree is
in cache. Beyond that, the distance above them is due to memory latency: each level of the tree that is not in cache costs a miss."""
import collections, json, math, sys

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 420, 70, 30, 230, 50
COLOURS = ["#1b6ca8", "#c0392b", "#2e8b57", "#8e5ea2", "#d68910"]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    curves = collections.defaultdict(dict)
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            figure = json.loads(line) if line.startswith("{") else {"bench": ""}
            if figure["bench"] == "replay_disk" and figure["unit"] == "ns/item":
                curves[figure["metric"]][int(figure["config"]["items"])] = figure["value"]
    if not curves:
        sys.exit(f"scale_plot.py: '{sys.argv[1]}' has no figure in ns/item; make it by `troupe bench replay_disk --json`")
    sizes = sorted({size for curve in curves.values() for size in curve})
    print("| ns per item | " + " | ".join(f"{size:,}" for size in sizes) + " |\n|" + " --- |" * (len(sizes) + 1))
    for name, curve in curves.items():
        print(f"| {name} | " + " | ".join(f"{curve[size]:.1f}" if size in curve else "" for size in sizes) + " |")
    low, high = math.log10(sizes[0]), math.log10(sizes[-1])
    most = 1.08 * max(value for curve in curves.values() for value in curve.values())
    x = lambda size: LEFT + (math.log10(size) - low) / max(high - low, 1e-9) * (WIDTH - LEFT - RIGHT)
    y = lambda value: HEIGHT - BOTTOM - value / most * (HEIGHT - TOP - BOTTOM)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="18" font-size="14">Replay: nanoseconds per item over the items in the table</text>']
    for power in range(math.ceil(low), math.floor(high + 1e-9) + 1):
        out.append(f'<line x1="{x(10 ** power):.1f}" y1="{TOP}" x2="{x(10 ** power):.1f}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>'
                   f'<text x="{x(10 ** power):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">10<tspan dy="-5" font-size="9">{power}</tspan></text>')
    step = 10 ** math.floor(math.log10(most))
    step = step / 2 if most / step < 4 else step
    for i in range(int(most / step) + 1):
        out.append(f'<line x1="{LEFT}" y1="{y(i * step):.1f}" x2="{WIDTH - RIGHT}" y2="{y(i * step):.1f}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 8}" y="{y(i * step) + 4:.1f}" text-anchor="end">{i * step:g}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">items</text>'
               f'<text transform="translate(18 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">ns per item</text>')
    for i, (name, curve) in enumerate(curves.items()):
        colour, points = COLOURS[i % len(COLOURS)], sorted(curve.items())
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="' + " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in points) + '"/>')
        out += [f'<circle cx="{x(s):.1f}" cy="{y(v):.1f}" r="3" fill="{colour}"/>' for s, v in points]
        cached = [(math.log10(s), v) for s, v in points if s <= 100_000]
        if len(cached) > 1:
            mx, my = (sum(c) / len(cached) for c in zip(*cached))
            rise = sum((a - mx) * (b - my) for a, b in cached) / sum((a - mx) ** 2 for a, _ in cached)
            ends = [(s, my + rise * (math.log10(s) - mx)) for s in (sizes[0], sizes[-1])]
            out.append(f'<polyline fill="none" stroke="{colour}" stroke-dasharray="4 4" opacity="0.6" points="' + " ".join(f"{x(s):.1f},{y(max(v, 0)):.1f}" for s, v in ends) + '"/>')
        out.append(f'<text x="{WIDTH - RIGHT + 14}" y="{TOP + 16 + 18 * i}" fill="{colour}">{name}</text>')
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write("\n".join(out + ["</svg>"]) + "\n")


main()
