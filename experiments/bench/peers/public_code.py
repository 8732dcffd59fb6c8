#!/usr/bin/env python3
"""public_code.py [sb3-sac sb3-ppo cleanrl-ddpg cleanrl-td3 cleanrl-ppo] [--steps N] [--seeds S] [--cleanrl FOLDER]: runs public training code on
Gymnasium's environment and on Troupe's; only the environment's name changes.

    PYTHONPATH=build/release/python VENV/bin/python experiments/bench/peers/public_code.py sb3-sac sb3-ppo

VENV has torch, gymnasium, mujoco and stable-baselines3 (for sb3-…), or what CleanRL needs (gymnasium 0.29, tyro, tensorboard) and a checkout of CleanRL.
Each training is a separate process with one thread; the two names take turns. Prints minutes, minutes of processor time (including the interpreter's start
and SB3's evaluation) and the mean return of the last 10 episodes. If other programs run meanwhile, compare processor time."""
import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

NAMES = {"own": "HalfCheetah-v{}", "troupe": "troupe.environments:troupe/HalfCheetah-v5"}
SCRIPTS = {"cleanrl-ddpg": "ddpg_continuous_action.py", "cleanrl-td3": "td3_continuous_action.py", "cleanrl-ppo": "ppo_continuous_action.py"}


def sb3(algorithm, name, steps, seed):
    """Trains and evaluates in this process."""
    import gymnasium
    import torch
    from stable_baselines3 import PPO, SAC
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    torch.set_num_threads(1)
    environments = make_vec_env(name, n_envs=8 if algorithm == "ppo" else 1, seed=seed)
    model = (PPO if algorithm == "ppo" else SAC)("MlpPolicy", environments, seed=seed, device="cpu")
    begin = time.perf_counter()
    model.learn(steps)
    seconds = time.perf_counter() - begin
    returns, _ = evaluate_policy(model, gymnasium.make(NAMES["own"].format(5)), 10, return_episode_rewards=True)
    return seconds, statistics.mean(returns)


def cleanrl(folder, script, name, steps, seed):
    words = [sys.executable, str(pathlib.Path(folder) / "cleanrl" / script), "--env-id", name, "--total-timesteps", str(steps), "--seed", str(seed), "--no-cuda"]
    with tempfile.TemporaryDirectory() as here:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}
        begin = time.perf_counter()
        done = subprocess.run(words, capture_output=True, text=True, cwd=here, env=environment)
        seconds = time.perf_counter() - begin
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-500:])
    returns = [float(found) for found in re.findall(r"episodic_return=\[?\s*(-?[\d.]+)", done.stdout)]
    return seconds, statistics.mean(returns[-10:])


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(what, which, options, seed):
    """Returns seconds, processor seconds and the return."""
    before = processor_seconds()
    seconds, mean = trained(what, which, options, seed)
    return seconds, processor_seconds() - before, mean


def trained(what, which, options, seed):
    if what in SCRIPTS:
        return cleanrl(options.cleanrl, SCRIPTS[what], NAMES[which].format(4), options.steps, seed)
    done = subprocess.run(
        [sys.executable, __file__, "call", json.dumps([what[4:], NAMES[which].format(5), options.steps, seed])],
        capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-500:])
    return json.loads(done.stdout.splitlines()[-1])


def main():
    known = ["sb3-sac", "sb3-ppo", *SCRIPTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", choices=known)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--cleanrl", help="a checkout of CleanRL")
    options = parser.parse_args()
    print("| HalfCheetah | steps | minutes, its own | minutes, Troupe's | ratio | of processor time | returns, its own | returns, Troupe's |\n|---|---|---|---|---|---|---|---|")
    for what in options.what:
        results = {"own": [], "troupe": []}
        for seed in range(1, options.seeds + 1):
            for which, kept in results.items():
                kept.append(measured(what, which, options, seed))
        own, ours = ({"minutes": statistics.median(one[0] for one in kept) / 60, "processor": statistics.median(one[1] for one in kept) / 60,
                      "returns": ", ".join(f"{one[2]:.0f}" for one in kept)} for kept in results.values())
        print(f"| {what} | {options.steps} | {own['minutes']:.2f} | {ours['minutes']:.2f} | {own['minutes'] / ours['minutes']:.2f} | {own['processor'] / ours['processor']:.2f} | {own['returns']} | {ours['returns']} |", flush=True)


if sys.argv[1:2] == ["call"]:
    print(json.dumps(sb3(*json.loads(sys.argv[2]))))
else:
    main()
