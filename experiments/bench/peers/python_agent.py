#!/usr/bin/env python3
"""python_agent.py [--task T] [--steps N] [--seeds S]: compares TD3 as an agent in Python (examples/python_td3.py) with the C++ TD3 with the
same options.

    PYTHONPATH=build/release/python VENV/bin/python experiments/bench/peers/python_agent.py --task Pendulum-v1 --steps 10000

VENV has torch and safetensors. The two take turns. Prints the mean return of the final evaluation of each seed, updates per second while training, and the
additional cost of an update in Python. For valid rates, nothing else may run meanwhile."""
import argparse
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples"))

import python_td3
import troupe

LAYERS = (256, 256)
CPP = {
    "policy_layers": LAYERS,
    "critic_layers": LAYERS,
    "policy_learning_rate": 3e-4,
    "critic_learning_rate": 3e-4,
    "target_update": 0.005,
    "policy_period": 2,
    "target_noise": 0.2,
    "target_noise_clip": 0.5,
    "noise_start": 0.1,
    "noise_end": 0.1,
    "batch_size": 256,
}


def play(kind, task, steps, seed, runs):
    config = python_td3.experiment(task, steps)
    config["evaluation"] = {"video": False, "final_episodes": 20}
    given = {"agent": python_td3.Td3} if kind == "Python" else {}
    if kind == "C++":
        config["td3"] = CPP
    run = troupe.train(config, {"seed": seed}, runs=runs, verbose=False, **given)
    last = run.metrics("final")
    return last["evaluation_return"][0], last["updates"][0] / last["training_seconds"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="Pendulum-v1")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    results = {"C++": [], "Python": []}
    with tempfile.TemporaryDirectory() as runs:
        for seed in range(1, options.seeds + 1):
            for kind, kept in results.items():
                kept.append(play(kind, options.task, options.steps, seed, runs))
                print(f"{kind}, seed {seed}: return {kept[-1][0]:.1f}, {kept[-1][1]:.0f} updates/s", file=sys.stderr)
    print(f"\n{options.task}, {options.steps} steps\n\n| | returns | updates/s |\n|---|---|---|")
    rates = {}
    for kind, kept in results.items():
        rates[kind] = statistics.median(rate for _, rate in kept)
        print(f"| {kind} | {', '.join(f'{value:.0f}' for value, _ in kept)} | {rates[kind]:,.0f} |")
    print(f"\nAn update costs {1e6 * (1 / rates['Python'] - 1 / rates['C++']):.0f} µs more in Python.")


main()
