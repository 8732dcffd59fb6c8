"""Compares our Gym tasks with the real Gymnasium, in a virtual environment inside the build tree: the options of its constructors
and their defaults, and recordings of every task made on the spot with two seeds.

Usage: gymnasium_test.py <gym_golden_check> <folder for the virtual environment>; exit code 77: skipped.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from golden.comparison import GYMNASIUM_OPTIONS, compare

compare([["gymnasium[mujoco]==1.4.0", "mujoco==3.17.0"]], "--options", GYMNASIUM_OPTIONS + "assert len(tasks) == 11, sorted(tasks)", "make_gym.py",
        [f"--seed {seed} --steps {steps} --probes 40 --resets 400" for seed, steps in ((1, 60), (20261121, 250))])
