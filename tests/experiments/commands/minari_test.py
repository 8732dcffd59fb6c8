#!/usr/bin/env python3
"""The real package minari writes data sets, `troupe dataset import` and `export` take them through a recording, and minari reads the same steps.

Usage: minari_test.py VENV TROUPE

VENV is created if it is missing; without the packages the test is skipped (exit code 77)."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from python_packages import python_with

PACKAGES = ["minari[hdf5]==0.5.4", "gymnasium==1.4.0", "jax==0.6.2", "jaxlib==0.6.2", "pillow"]  # its collector needs jax


def main(venv, troupe):
    python = python_with(venv, PACKAGES, sources=True)
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([python, __file__, "inside", troupe, folder], env={**os.environ, "MINARI_DATASETS_PATH": f"{folder}/datasets"}).returncode


def inside(troupe, root):
    import gymnasium
    import minari
    import numpy

    class Both(gymnasium.ObservationWrapper):
        """A dictionary of observations."""

        observation_space = gymnasium.spaces.Dict({"goal": gymnasium.spaces.Discrete(3), "seen": gymnasium.spaces.Box(-8.0, 8.0, (3,))})

        def observation(self, observation):
            return {"goal": 1, "seen": observation}

    def dice(environment):
        """Three choices at once."""
        environment.action_space = gymnasium.spaces.MultiDiscrete([2, 3, 4])
        environment.step = lambda action: (environment.observation_space.sample(), float(action.sum()), bool(action[2] == 3), False, {})
        return environment

    def collect(name, environment, **options):
        collector = minari.DataCollector(environment)
        for seed in range(3):
            collector.reset(seed=seed)
            collector.action_space.seed(seed)
            for _ in range(40):
                _, _, terminated, truncated, _ = collector.step(collector.action_space.sample())
                if terminated or truncated:
                    break
        return collector.create_dataset(name, algorithm_name="random", eval_env=None, **options)

    def make(task):
        return gymnasium.make(task, max_episode_steps=40, disable_env_checker=True).unwrapped

    def check(original, name, observation=None):
        recording = root / name.replace("/", "_")
        words = [] if observation is None else ["--observation", observation]
        subprocess.run([troupe, "dataset", "import", root / "datasets" / original.spec.dataset_id, "--out", recording, *words], check=True)
        subprocess.run([troupe, "dataset", "check", recording], check=True)
        subprocess.run([troupe, "dataset", "export", recording, "--name", name, "--out", root / "datasets" / name], check=True)
        again = minari.load_dataset(name)
        assert again.total_episodes == original.total_episodes == 3
        assert again.total_steps == original.total_steps
        assert isinstance(again.action_space, type(original.action_space)), again.action_space
        for ours, theirs in zip(again, original):
            observations = theirs.observations if observation is None else theirs.observations[observation]
            numpy.testing.assert_allclose(ours.observations, observations, rtol=1e-6)
            numpy.testing.assert_allclose(ours.actions, theirs.actions, atol=1e-6)
            numpy.testing.assert_allclose(ours.rewards, theirs.rewards, rtol=1e-6)
            numpy.testing.assert_array_equal(ours.terminations, theirs.terminations)
        print(name, "is the same after import and export", flush=True)

    check(collect("pendulum/random-v0", make("Pendulum-v1")), "again/pendulum-v0")
    check(collect("cartpole/random-v0", make("CartPole-v1")), "again/cartpole-v0")
    check(collect("both/random-v0", Both(make("Pendulum-v1"))), "again/both-v0", "seen")
    check(collect("dice/random-v0", dice(make("CartPole-v1"))), "again/dice-v0")

    def refused(words, text):
        done = subprocess.run([troupe, "dataset", "import", *words, "--out", root / "refused"], capture_output=True, text=True)
        assert done.returncode in (1, 2) and text in done.stderr, (done.returncode, done.stderr)
        assert not (root / "refused").exists()

    refused([root / "datasets/both/random-v0"], "--observation")
    refused([root / "datasets/both/random-v0", "--observation", "none"], "there is no \"none\"")
    refused([root], "metadata.json")
    arrays = root / "datasets/cartpole/random-v0/data/main_data.hdf5"
    arrays.write_bytes(arrays.read_bytes()[:3000])
    refused([root / "datasets/cartpole/random-v0"], "main_data.hdf5")
    return 0


if __name__ == "__main__":
    sys.exit(inside(sys.argv[2], pathlib.Path(sys.argv[3])) if sys.argv[1] == "inside" else main(pathlib.Path(sys.argv[1]), sys.argv[2]))
