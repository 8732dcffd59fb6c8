#!/usr/bin/env python3
"""games_rival.py [--seconds S] [--repetitions N]: measures steps/s of Gymnasium's vector environments on the tasks of `troupe bench games`, with
the same numbers of environments: in one process ("sync"), in one process each ("async"), and in NumPy if Gymnasium has such a version ("numpy").
Prints one JSON object per line. Needs gymnasium, and minatar for its games."""
import argparse
import json
import time

import gymnasium

CLASSIC = ["Acrobot-v1", "CartPole-v1", "FrozenLake-v1", "FrozenLake8x8-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1", "Taxi-v4"]
GAMES = ["Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders"]


def rate(environments, seconds, repetitions):
    environments.action_space.seed(1)
    environments.reset(seed=1)
    actions = [environments.action_space.sample() for _ in range(61)]
    rates = []
    for _ in range(repetitions):
        steps, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            for _ in range(10):
                environments.step(actions[steps // environments.num_envs % 61])
                steps += environments.num_envs
        rates.append(steps / (time.perf_counter() - begin))
    environments.close()
    return sorted(rates)[len(rates) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    tasks = list(CLASSIC)
    try:
        import minatar.gym

        minatar.gym.register_envs()
        tasks += [f"MinAtar/{game}-v{version}" for game in GAMES for version in (0, 1)]
    except ImportError:
        pass
    for task in tasks:
        kinds = [("sync", 16), ("sync", 256), ("async", 16)]
        if gymnasium.spec(task).vector_entry_point:
            kinds += [("vector_entry_point", 16), ("vector_entry_point", 256)]
        for kind, count in kinds:
            value = rate(gymnasium.make_vec(task, num_envs=count, vectorization_mode=kind), options.seconds, options.repetitions)
            name = "numpy" if kind == "vector_entry_point" else kind
            print(json.dumps({"peer": f"gymnasium {gymnasium.__version__}", "metric": f"{task} {name} {count}", "value": value, "unit": "steps/s"}), flush=True)


main()
