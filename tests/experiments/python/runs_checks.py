"""Checks of troupe.Run: films with the real PyAV, metrics with the real pandas, and policies that remember, see or take several observations."""

import pathlib
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np
import pandas
import troupe

QUICK = {"evaluation.episodes": 1, "evaluation.final_episodes": 1, "evaluation.video": False}


class InFolder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.runs = pathlib.Path(folder.name) / "runs"

    @classmethod
    def train(cls, experiment, **overrides):
        given = {**QUICK, **{name.replace("__", "."): value for name, value in overrides.items()}}
        return troupe.train(experiment, given, runs=cls.runs, verbose=False)


class Folder(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.run_ = cls.train("cartpole_balance", stop__environment_steps=2000, replay__minimum_items=500, actors__random_steps=500, evaluation__video=True)

    def test_films_become_arrays(self):
        steps = [int(path.stem) for path in self.run_.videos]
        frames = self.run_.frames()
        self.assertEqual((frames.dtype, frames.ndim, frames.shape[3]), (np.uint8, 4, 3))
        self.assertGreater(len(frames), 100)
        self.assertGreater(frames[0].std(), 10)
        self.assertTrue((frames[0] != frames[-1]).any())
        self.assertEqual(frames._repr_png_()[:4], b"\x89PNG")
        np.testing.assert_array_equal(self.run_.frames(steps[-1], every=10), frames[::10])
        with self.assertRaisesRegex(ValueError, f"video is 7; .* has {steps[0]}"):
            self.run_.frames(7)
        with self.assertRaisesRegex(ValueError, "every is 0; it must be at least 1"):
            self.run_.frames(every=0)
        with unittest.mock.patch.dict(sys.modules, {"av": None}), self.assertRaisesRegex(ImportError, r"needs the package av; `pip install 'troupe\[video\]'`"):
            self.run_.frames()

    def test_metrics_become_data_frames(self):
        every = pandas.DataFrame(self.run_.metrics(""))
        progress = pandas.DataFrame(self.run_.metrics())
        self.assertEqual(set(every["kind"]), {"progress", "final"})
        self.assertEqual(list(every.columns), list(self.run_.metrics()))
        self.assertEqual(set(every.drop(columns="kind").dtypes), {np.dtype(float)})
        self.assertTrue(progress["updates"].is_monotonic_increasing)
        self.assertGreater(progress["updates"].iloc[-1], 0)
        pandas.testing.assert_frame_equal(every[every["kind"] == "progress"].reset_index(drop=True), progress)
        final = every[every["kind"] == "final"]
        self.assertTrue(final["updates_per_second"].isna().all())
        self.assertFalse(final["evaluation_return"].isna().any())


class Policies(InFolder):
    def test_a_memory_is_kept_for_each_row_until_its_episode_ends(self):
        run = self.train("r2d2_hidden_cartpole", stop__environment_steps=2000)
        policy, other = run.policy(), run.policy()
        seen = np.random.default_rng(1).normal(0, 3, (100, 8, 2)).astype(np.float32)
        begin = np.ones(8, bool)
        played = np.array([policy(row) for row in seen])
        self.assertEqual((played.shape, played.dtype), ((100, 8), np.int64))
        self.assertEqual(set(played.flat), {0, 1})
        again = np.array([policy(row, first=begin if i == 0 else None) for i, row in enumerate(seen)])
        np.testing.assert_array_equal(again, played)
        forgetful = np.array([other(row, first=begin) for row in seen])
        self.assertTrue((forgetful != played).any())
        halves = np.arange(8) < 4
        mixed = np.array([policy(row, first=begin if i == 0 else halves) for i, row in enumerate(seen)])
        np.testing.assert_array_equal(mixed[:, halves], forgetful[:, halves])
        np.testing.assert_array_equal(mixed[:, ~halves], played[:, ~halves])
        with self.assertRaisesRegex(ValueError, "first has 3 entries for 8 observations"):
            policy(seen[0], first=begin[:3])

    def test_a_dictionary_of_a_picture_and_numbers(self):
        run = self.train("cartpole_balance_both", stop__environment_steps=4400, ppo__rollout=16, ppo__layers=[16])
        envs = troupe.make_vec("cartpole_balance", 3, action_repeat=4, pixels={"height": 40, "width": 40, "grey": True}, observations=["pixels", "velocity"])
        observations, _ = envs.reset(seed=1)
        policy = run.policy()
        actions = policy(observations)
        self.assertEqual((actions.shape, actions.dtype), ((3, 1), np.float32))
        self.assertLessEqual(np.abs(actions).max(), 1)
        envs.step(actions)
        one = policy({name: array[1] for name, array in observations.items()})
        np.testing.assert_allclose(one, actions[1], atol=1e-5)
        for name, array in observations.items():
            self.assertTrue((policy({**observations, name: array + np.ones_like(array)}) != actions).any(), name)
        with self.assertRaisesRegex(ValueError, "is missing, or there are additional ones"):
            policy({"pixels": observations["pixels"]})
        with self.assertRaisesRegex(ValueError, r"observation 'pixels' is float32 \[3, 1, 40, 40\]; it must be uint8 \[rows, 1, 40, 40\]"):
            policy({**observations, "pixels": observations["pixels"].astype(np.float32)})
        with self.assertRaisesRegex(ValueError, r"observation 'pixels' is uint8 \[3, 40, 40, 1\]; it must be uint8 \[rows, 1, 40, 40\]"):
            policy({**observations, "pixels": observations["pixels"].transpose(0, 2, 3, 1)})

    def test_stacked_pictures(self):
        run = self.train("cartpole_balance_pixels", stop__environment_steps=600, replay__minimum_items=50, replay__shards=1, actors__random_steps=50, d4pg__batch_size=16,
                         d4pg__policy_layers=[32], d4pg__critic_layers=[32])
        envs = troupe.make_vec("cartpole_balance", 3, action_repeat=2, frame_stack=3, pixels={"height": 64, "width": 64, "camera": "0", "grey": True, "effects": False})
        pictures, _ = envs.reset(seed=1)
        policy = run.policy()
        actions = policy(pictures)
        self.assertEqual((pictures.shape, actions.shape, actions.dtype), ((3, 3, 64, 64), (3, 1), np.float32))
        np.testing.assert_allclose(policy(pictures[2]), actions[2], atol=1e-5)
        self.assertTrue((policy(255 - pictures) != actions).all())
        envs.step(actions)


if __name__ == "__main__":
    unittest.main(verbosity=1)
