#!/usr/bin/env python3
"""Estimates the time of all_reduce over many replicas from measurements over two.

    troupe bench collectives --json > collectives.jsonl
    experiments/bench/peers/collective_model.py collectives.jsonl [--replicas 8,64,512] [--gigabits 25] [--latency-us 10] [--per-host 4]

A message of b bytes takes alpha + b * beta. The reduction of b bytes over n ranks takes:
    ring          2 (n-1) alpha + 2 (n-1)/n b beta                each rank passes slices to the next one, twice around
    tree          2 log2(n) (alpha + b beta)                      the whole buffer, up a binary tree and down again
    hierarchical  inside(b) + 2 (N-1) alpha + 2 (N-1)/N b beta    reduce_scatter within the host, then a ring for each rank's slice over
                                                                  the N hosts, which share the card, then all_gather within the host
alpha and beta of a backend are fitted to its two-rank figures (least squares of relative errors; over two ranks, ring and tree are equal). They are
then compared with its figures over more ranks, which share --cores cores and therefore take n / cores as long; the error is printed. Measurements of
two levels (two nominal hosts, with the even and the odd ranks) are compared with the hierarchical formula, with shared memory inside and TCP as the
card. Between hosts, alpha and beta are those of the card.
The efficiency of a training step is compute / (compute + the part of the reduction that is not hidden). It is between two bounds: nothing is hidden, or
everything is hidden that fits behind the backward pass, which is assumed to take two thirds of the step."""
import argparse, json, math

# Gradients in MB (float32), seconds of a step with 64 images on a P100 (from the images/s that TensorFlow published in 2017; ResNet-101 is interpolated
# between 50 and 152), and the published efficiency of Horovod on 512 GPUs, 4 per host, 25 Gbit/s (its docs/benchmarks.rst).
PUBLISHED = {"Inception V3": (95.4, 64 / 142, 0.90), "ResNet-101": (178.2, 64 / 125, 0.90), "VGG-16": (553.4, 64 / 154, 0.68)}


def ring(n, size, alpha, beta):
    return 2 * (n - 1) * alpha + 2 * (n - 1) / n * size * beta


def tree(n, size, alpha, beta):
    return 2 * math.log2(n) * (alpha + size * beta)


def hierarchical(n, size, alpha, beta, per_host, inner):
    per_host = min(n, per_host)
    hosts = n // per_host
    inside = ring(per_host, size, *inner) if per_host > 1 else 0
    return inside + (ring(hosts, size, alpha, beta) if hosts > 1 else 0)


def fit(figures):
    """Fits alpha and beta to {bytes: seconds} of two ranks, by least squares of the relative errors of 2 alpha + b beta."""
    rows = [(2 / t, b / t) for b, t in figures.items()]
    aa, ab, bb = (sum(x * y for x, y in pairs) for pairs in ([(r[0], r[0]) for r in rows], [r for r in rows], [(r[1], r[1]) for r in rows]))
    a, b = sum(r[0] for r in rows), sum(r[1] for r in rows)
    determinant = aa * bb - ab * ab
    return max(0, (a * bb - b * ab) / determinant), max(0, (b * aa - a * ab) / determinant)


def read(path):
    measured = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            figure = json.loads(line) if line.startswith("{") else {}
            if figure.get("bench") == "collectives" and figure["metric"] == "all_reduce latency":
                config = figure["config"]
                measured.setdefault(config["backend"], {}).setdefault(int(config["ranks"]), {})[int(config["bytes"])] = figure["value"] * 1e-6
    return measured


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", help="lines of JSON of `troupe bench collectives --json`")
    parser.add_argument("--replicas", default="8,64,512"), parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--gigabits", type=float, default=25, help="of a host's card, each way")
    parser.add_argument("--latency-us", type=float, default=10, help="of a small message between hosts")
    parser.add_argument("--cores", type=int, default=2, help="of the machine that measured")
    parser.add_argument("--per-host", type=int, default=4)
    options = parser.parse_args()
    measured = read(options.measured)
    if not any(2 in ranks for ranks in measured.values()):
        parser.error(f"{options.measured} has no figures of all_reduce over 2 ranks; make them by `troupe bench collectives --json`")
    fitted = {backend: fit(ranks[2]) for backend, ranks in measured.items() if 2 in ranks}
    print("| backend | alpha, µs | 1 / beta, GB/s | worst error of the fit over 2 ranks | median and worst error over more ranks |\n| --- | --- | --- | --- | --- |")
    for backend, (alpha, beta) in fitted.items():
        error = lambda n: sorted(abs(ring(n, b, alpha, beta) * max(1, n / options.cores) / t - 1) for b, t in measured[backend][n].items())
        more = sorted(e for n in measured[backend] if n > 2 for e in error(n))
        rest = f"{more[len(more) // 2]:.0%}, {more[-1]:.0%} ({', '.join(str(n) for n in sorted(measured[backend]) if n > 2)})" if more else "not measured"
        print(f"| {backend} | {alpha * 1e6:.1f} | {1e-9 / beta if beta else math.inf:.2f} | {error(2)[-1]:.0%} | {rest} |")
    if "hierarchical" in measured and {"shared_memory", "tcp"} <= fitted.keys():
        errors = []
        for n, figures in measured["hierarchical"].items():
            for b, t in figures.items():
                taken = hierarchical(n, b, *fitted["tcp"], n // 2, fitted["shared_memory"]) * max(1, n / options.cores)
                errors.append((abs(taken / t - 1), b, n))
        errors.sort()
        large = [error for error, b, _ in errors if b >= 1 << 20]
        print(f"\nhierarchical, over {', '.join(str(n) for n in sorted(measured['hierarchical']))} ranks: median error {errors[len(errors) // 2][0]:.0%}, "
              f"worst {errors[-1][0]:.0%} ({errors[-1][1]} bytes, {errors[-1][2]} ranks); from 1 MiB on median {large[len(large) // 2]:.0%}, worst {large[-1]:.0%}")
    inner = fitted.get("shared_memory") or fitted.get("threads") or next(iter(fitted.values()))
    alpha, beta, size = options.latency_us * 1e-6, 8 / (options.gigabits * 1e9), options.megabytes * 1e6
    print(f"\nCards of {options.gigabits:g} Gbit/s, {options.latency_us:g} µs a message, {options.per_host} replicas a host; all_reduce of 64 KB and of {options.megabytes:g} MB, ms\n")
    print("| replicas | ring | tree | hierarchical | ring | tree | hierarchical |\n| --- | --- | --- | --- | --- | --- | --- |")
    counts = [int(n) for n in options.replicas.split(",")]
    for n in counts:
        cells = [f(n, b, alpha, beta) if f is not hierarchical else f(n, b, alpha, beta, options.per_host, inner) for b in (64e3, size) for f in (ring, tree, hierarchical)]
        print(f"| {n} | " + " | ".join(f"{t * 1e3:.3g}" for t in cells) + " |")
    print("\nEfficiency of a step, nothing hidden to all hidden that fits\n\n| network | " + " | ".join(f"{way}, {n}" for way in ("ring", "tree") for n in counts) + " | Horovod at 512, published |\n|" + " --- |" * (2 + 2 * len(counts)))
    for name, (megabytes, compute, published) in PUBLISHED.items():
        cells = []
        for f in (ring, tree):
            for n in counts:
                t = f(n, megabytes * 1e6, alpha, beta)
                cells.append(f"{compute / (compute + t):.0%} to {compute / (compute + max(0, t - compute * 2 / 3)):.0%}")
        print(f"| {name} | " + " | ".join(cells) + f" | {published:.0%} |")


if __name__ == "__main__":
    main()
