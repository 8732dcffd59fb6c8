"""Checks the environments with Gymnasium 0.29, which CleanRL's scripts require; started by tests/env/remote/python_test.py."""

import unittest
import warnings

import gymnasium
import numpy as np
import troupe.environments
from gymnasium import wrappers
from gymnasium.utils.env_checker import check_env


def as_cleanrl_makes(task):
    """The wrappers of CleanRL's ppo_continuous_action.py."""
    env = wrappers.FlattenObservation(gymnasium.make(task, time_limit=15))
    env = wrappers.ClipAction(wrappers.RecordEpisodeStatistics(env))
    env = wrappers.TransformObservation(wrappers.NormalizeObservation(env), lambda observation: np.clip(observation, -10, 10))
    return wrappers.TransformReward(wrappers.NormalizeReward(env), lambda reward: np.clip(reward, -10, 10))


class Gymnasium029(unittest.TestCase):
    def test_check_env_finds_nothing_wrong(self):
        self.assertTrue(gymnasium.__version__.startswith("0.29"))
        for task in ("cheetah_run", "HalfCheetah-v5", "CartPole-v1"):
            with self.subTest(task), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check_env(gymnasium.make(f"troupe/{task}").unwrapped)

    def test_its_vectors_and_wrappers_play_episodes(self):
        envs = gymnasium.vector.SyncVectorEnv([lambda: as_cleanrl_makes("troupe.environments:troupe/HalfCheetah-v5")] * 2)
        envs.reset(seed=1)
        for step in range(1, 16):
            observations, rewards, terminated, truncated, infos = envs.step(np.full((2, 6), 2.0, np.float32))
            self.assertTrue(np.isfinite(observations).all() and np.isfinite(rewards).all())
            self.assertEqual((truncated.tolist(), terminated.any()), ([step == 15] * 2, False))
        self.assertEqual([info["episode"]["l"].item() for info in infos["final_info"]], [15, 15])

    def test_the_packages_own_vector_plays(self):
        for mode in ("NEXT_STEP", "SAME_STEP", "DISABLED"):
            envs = troupe.make_vec("CartPole-v1", 3, num_threads=2, autoreset_mode=mode)
            self.assertEqual(envs.metadata["autoreset_mode"].name, mode)
            first, _ = envs.reset(seed=5)
            np.testing.assert_array_equal(first[1], troupe.make("CartPole-v1").reset(seed=6)[0])
            ended = np.zeros(3, bool)
            while not ended.any():
                observations, _, ended, _, info = envs.step(np.ones(3, np.int64))
            self.assertEqual("final_obs" in info, mode == "SAME_STEP")
            self.assertEqual(abs(observations[ended][:, 2]).max() > 0.2, mode != "SAME_STEP")
            if mode == "DISABLED":
                observations, _ = envs.reset(options={"reset_mask": ended})
                self.assertLess(abs(observations[ended]).max(), 0.06)
            envs.step(np.ones(3, np.int64))
            envs.close()


if __name__ == "__main__":
    unittest.main(verbosity=1)
