"""Checks of the installed wheel; started by wheel_test.py in an empty folder, with a PATH that has the virtual environment alone.

Usage: wheel_checks.py <build folder>
"""

import csv
import importlib.metadata
import pathlib
import re
import subprocess
import sys
import time
import unittest

import numpy as np

BUILD = pathlib.Path(sys.argv.pop(1))
START_SECONDS = 30
DEADLINE_SECONDS = 240
# Imports torch where its dependencies are installed; otherwise loads LibTorch as `import torch` does, with global symbols.
IMPORT_TORCH = """
import ctypes, importlib.util, pathlib
if importlib.util.find_spec("nvidia.cudnn"):
    import torch
else:
    folder = pathlib.Path(importlib.util.find_spec("torch").origin).parent
    ctypes.CDLL(str(folder / "lib/libtorch_cpu.so"), ctypes.RTLD_GLOBAL)
"""
PLAY = """
import troupe
env = troupe.make("cheetah_run")
env.reset(seed=1)
print(sum(float(env.step(env.action_space.low)[1]) for _ in range(20)))
"""


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


class Wheel(unittest.TestCase):
    def test_the_program_trains_within_half_a_minute(self):
        begin, started, lines = time.monotonic(), None, []
        words = ["troupe", "train", "quickstart", "--set", "stop.environment_steps=12000", "--set", "evaluation.final_episodes=1"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            for line in process.stdout:
                lines.append(line)
                if started is None and line.startswith("training quickstart"):
                    started = time.monotonic() - begin
        self.assertEqual(process.returncode, 0, "".join(lines))
        self.assertIsNotNone(started, "".join(lines))
        metrics, = pathlib.Path("runs/quickstart").glob("*/metrics.csv")
        rows = list(csv.DictReader(metrics.read_text().splitlines()))
        first = next(row for row in rows if int(row["updates"] or 0) > 0)
        seconds = started + float(first["training_seconds"])
        print(f"first updates after {seconds:.1f} s, {len(rows)} rows of metrics")
        self.assertLess(seconds, START_SECONDS)

    def test_the_program_has_its_experiments_and_models(self):
        self.assertEqual(run("troupe", "--version").strip(), importlib.metadata.version("troupe"))
        self.assertEqual(run(sys.executable, "-m", "troupe", "--version"), run("troupe", "--version"))
        self.assertIn("cheetah_run", run("troupe", "list", "experiments"))
        self.assertRegex(run("troupe", "doctor"), r"models +ok +(\d+) of \1 tasks load")

    def test_gymnasium_takes_the_environments(self):
        from gymnasium.utils.env_checker import check_env

        import troupe

        for task, options in [("cheetah_run", {}), ("Ant-v5", {}), ("CartPole-v1", {}), ("walker_walk", {"pixels": (84, 84), "frame_stack": 3})]:
            with self.subTest(task=task):
                check_env(troupe.make(task, **options), skip_render_check=True)
        pixels, _ = troupe.make("walker_walk", pixels=(84, 84), frame_stack=3).reset(seed=1)
        self.assertEqual((pixels.shape, pixels.dtype), ((9, 84, 84), np.uint8))
        self.assertGreater(np.ptp(pixels), 0)

    def test_gymnasium_makes_the_environments_by_name(self):
        for imports, name in [("troupe, gymnasium", "troupe/cheetah_run"), ("gymnasium", "troupe:troupe/cheetah_run")]:
            self.assertEqual(run(sys.executable, "-c", f"import {imports}; print(gymnasium.make({name!r}).action_space.shape)"), "(6,)\n")

    def test_models_of_mujoco_are_drawn(self):
        import mujoco

        import troupe.render

        model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><light pos='0 0 3'/><geom type='sphere' size='.3'/></worldbody></mujoco>")
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        self.assertGreater(np.ptp(troupe.render.RayCaster(model, height=84, width=84).rgb(data)), 0)

    def test_torch_may_be_imported_before_and_after(self):
        alone = run(sys.executable, "-c", PLAY)
        self.assertEqual(run(sys.executable, "-c", IMPORT_TORCH + PLAY), alone)
        self.assertEqual(run(sys.executable, "-c", PLAY + IMPORT_TORCH), alone)

    def test_nothing_of_the_build_is_loaded(self):
        maps = run(sys.executable, "-c", PLAY + 'print(open("/proc/self/maps").read())')
        loaded = {pathlib.Path(path) for path in re.findall(r"(/\S+\.so\S*)", maps)}
        here = pathlib.Path(sys.prefix).resolve()
        self.assertIn("libtorch_cpu.so", {path.name for path in loaded})
        self.assertEqual([path for path in loaded if path.is_relative_to(BUILD) and not path.is_relative_to(here)], [])


if __name__ == "__main__":
    unittest.main()
