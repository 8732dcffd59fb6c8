"""Compares our MinAtar games with the real package, in a virtual environment inside the build tree: the tasks that it registers, their
actions, observations, options and defaults, and recordings of every game made on the spot with two seeds.

Usage: real_minatar_test.py <minatar_golden_check> <folder for the virtual environment>; exit code 77: skipped.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from golden.comparison import compare

# The package's other dependencies are only needed for rendering.
PACKAGES = [["gymnasium==1.4.0"], ["--no-deps", "minatar==1.0.15"]]
TASKS = """
import inspect, sys
import gymnasium
import minatar.gym

before = set(gymnasium.registry)
minatar.gym.register_envs()
gymnasium.logger.min_level = gymnasium.logger.ERROR
theirs = set(gymnasium.registry) - before
parameters = inspect.signature(minatar.Environment.__init__).parameters.values()
options = {p.name: str(p.default).lower() for p in parameters if p.name not in ("self", "env_name")}
for line in open(sys.argv[1]):
    task, actions, channels, *ours = line.rstrip("\\n").split("\\t")
    theirs.remove(task)
    spec = gymnasium.spec(task)
    environment = gymnasium.make(task, disable_env_checker=True)
    expected = dict(options, max_episode_steps=str(spec.max_episode_steps or -1))
    assert dict(zip(ours[::2], ours[1::2])) == expected, (task, ours, expected)
    assert environment.action_space.n == int(actions), task
    assert environment.observation_space.shape == (10, 10, int(channels)), task
assert not theirs, theirs
print("tasks, actions, observations and options are MinAtar's")
"""

compare(PACKAGES, "--tasks", TASKS, "make_minatar.py", [f"--seed {seed} --steps {steps} --long {steps}" for seed, steps in ((1, 500), (20261121, 3000))])
