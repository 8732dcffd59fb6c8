"""Compares our statistics with those of the real rliable, on random scores.

Usage: rliable_checks.py <statistics_values>
"""

import subprocess
import sys

import numpy
from rliable import library, metrics

REPETITIONS = 5000


def ours(program, x, y, repetitions):
    text = ""
    for scores in (x, y):
        text += f"{scores.shape[1]} {scores.shape[0]}\n"
        text += "\n".join(" ".join(repr(float(score)) for score in scores[:, task]) for task in range(scores.shape[1])) + "\n"
    said = subprocess.run([program], input=text + f"7 {repetitions}\n", capture_output=True, text=True, check=True).stdout
    found = {}
    for line in said.splitlines():
        name, value = line.split()
        found.setdefault(name, []).append(float(value))
    return found


def check_curve(found, x):
    """The mean curve of runs whose evaluations are the columns of x; its intervals have fewer repetitions, so that they are less exact."""
    means = lambda scores: numpy.array([metrics.aggregate_mean(scores[..., step]) for step in range(scores.shape[-1])])
    values, intervals = library.get_interval_estimates({"x": x[:, None, :]}, means, reps=REPETITIONS, random_state=numpy.random.RandomState(1))
    lows, highs = intervals["x"]
    assert numpy.abs(numpy.array(found["curve"]) - values["x"]).max() < 1e-12, (found["curve"], values["x"])
    for mine, theirs in ((found["curve_low"], lows), (found["curve_high"], highs)):
        assert (numpy.abs(mine - theirs) < 0.2 * (highs - lows) + 1e-12).all(), (mine, theirs, highs - lows)


def main():
    program = sys.argv[1]
    random = numpy.random.default_rng(3)
    for case, (runs, tasks) in enumerate([(5, 4), (10, 7), (3, 1), (8, 2)]):
        x = random.uniform(0, 1.2, (runs, tasks)).round(3)
        y = random.uniform(0, 1, (runs, tasks)).round(1)  # with ties
        found = ours(program, x, y, REPETITIONS)
        taus = numpy.array([0, 0.25, 0.5, 0.75, 1])
        profile, _ = library.create_performance_profile({"x": x}, taus, reps=10)
        wanted = {"iqm": metrics.aggregate_iqm(x), "mean": metrics.aggregate_mean(x), "median": metrics.aggregate_median(x),
                  "gap": metrics.aggregate_optimality_gap(x), "improvement": metrics.probability_of_improvement(x, y)}
        for name, value in wanted.items():
            assert abs(found[name][0] - value) < 1e-12, (case, name, found[name][0], value)
        assert numpy.abs(numpy.array(found["profile"]) - profile["x"]).max() < 1e-12, (found["profile"], profile)
        several = lambda scores: numpy.array([metrics.aggregate_iqm(scores), metrics.aggregate_mean(scores), metrics.aggregate_median(scores)])
        _, intervals = library.get_interval_estimates({"x": x}, several, reps=REPETITIONS, random_state=numpy.random.RandomState(1))
        lows, highs = intervals["x"]
        both = lambda a, b: numpy.array([metrics.probability_of_improvement(a, b)])
        _, improvement = library.get_interval_estimates({"x,y": (x, y)}, both, reps=REPETITIONS, random_state=numpy.random.RandomState(1))
        lows, highs = [*lows, *improvement["x,y"][0]], [*highs, *improvement["x,y"][1]]
        for k in range(4):
            width = highs[k] - lows[k]
            for mine, theirs in ((found["low"][k], lows[k]), (found["high"][k], highs[k])):
                assert abs(mine - theirs) < 0.06 * width + 1e-12, (case, k, mine, theirs, width)
        check_curve(found, x)
        print(f"{runs} runs of {tasks} tasks: point estimates equal, intervals within 6 % of their width, those of the mean curve within 20 %")


main()
