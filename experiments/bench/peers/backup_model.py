#!/usr/bin/env python3
"""Models backup workers with 50 workers: the step time with b backups, and the gain.

    experiments/bench/peers/backup_model.py [--steps 20000] [--workers 50] [--most 6] [--seed 1]

A step ends when the first N of N + b gradients have arrived. Its time is the N-th smallest of N + b draws, plus the traffic of every worker (each sends
a gradient and receives parameters, useful or not). Gain: median step time without backups over that with b. Normalised gain: gain times N / (N + b), to
account for the backups' machines. TensorFlow published these numbers (Abadi et al., OSDI 2016, section 6.3, Figure 8) for Inception on 50 workers with a
GPU each: the step is shortest with four backups (1.93 s), longer again with five (1.94 s), and the normalised gain is greatest with three, 9.5%.

The paper plots the distribution of its steps (Figures 7b and 7c) without numbers, as do Chen et al. (arXiv 1604.00981, Figures 3 and 4). The text says
only that the synchronous step suffers from stragglers in the tail. This model therefore has three shapes with parameters of our choice:
  body          log-normal around 1.35 s, sigma 0.0035: only a machine's ordinary jitter
  stragglers    the same, plus, with probability 0.084, an exponential delay of 0.22 s: about four of 50 machines are late in a step
  exponential   1.25 s plus an exponential part of 0.1 s (as Dutta et al. 2018 assume): a heavy tail on every machine
Sigma, probability, delay, the 1.35 s and the traffic of a worker (10.5 ms) were fitted to the four published figures (two times, the best b, its gain).
That the model reproduces them shows that they are consistent with stragglers of this kind, not that the machines behaved like this."""
import argparse, math, random

TRAFFIC = 0.0105  # seconds that each worker adds to a step


def body(draw):
    return 1.3525 * math.exp(draw.gauss(0, 0.0035))


def stragglers(draw):
    return body(draw) + (draw.expovariate(1 / 0.2185) if draw.random() < 0.084 else 0)


def exponential(draw):
    return 1.25 + draw.expovariate(1 / 0.1)


def step_times(shape, workers, backups, steps, seed):
    draw = random.Random(seed)
    return sorted(sorted(shape(draw) for _ in range(workers + backups))[workers - 1] + TRAFFIC * (workers + backups) for _ in range(steps))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--workers", type=int, default=50)
    parser.add_argument("--most", type=int, default=6, help="backups, at most")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if min(options.steps, options.workers) < 1 or options.most < 0:
        parser.error("--steps and --workers must be at least 1, --most at least 0")
    print("| steps of | backups | median, s | 90th percentile, s | mean, s | gain | normalised gain |\n|" + " --- |" * 7)
    for shape in (body, stragglers, exponential):
        first = None
        for backups in range(options.most + 1):
            times = step_times(shape, options.workers, backups, options.steps, options.seed)
            median = times[len(times) // 2]
            first = first or median
            gain, normalised = first / median - 1, first / median * options.workers / (options.workers + backups) - 1
            print(f"| {shape.__name__} | {backups} | {median:.3f} | {times[len(times) * 9 // 10]:.3f} | {sum(times) / len(times):.3f} | {gain:+.1%} | {normalised:+.1%} |")


if __name__ == "__main__":
    main()
