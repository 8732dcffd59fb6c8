"""Checks of pictures, saved states, dm_env's interface, Gymnasium's checker and vector wrappers, and PyTorch's tensors, with the real packages; started by
tests/env/remote/python_test.py."""

import gc
import unittest
import warnings

import gymnasium
import numpy as np
import torch
import troupe
import troupe.dm
from dm_env import specs, test_utils
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import vector

ACTIONS = np.random.default_rng(5).uniform(-1, 1, (25, 6))


class Pictures(unittest.TestCase):
    def test_pictures_of_a_state(self):
        drawn = {}
        for mode, shape, dtype in [("rgb_array", (48, 64, 3), np.uint8), ("depth_array", (48, 64), np.float32), ("segmentation_array", (48, 64, 2), np.int32)]:
            env = troupe.make("cheetah_run", render_mode=mode, render_size=(48, 64))
            env.reset(seed=1)
            drawn[mode] = env.render()
            self.assertEqual((drawn[mode].shape, drawn[mode].dtype), (shape, dtype))
        colours, metres, objects = drawn.values()
        self.assertGreater(colours.std(), 10)
        self.assertGreater(((objects[..., 0] < 0) == (metres == metres.max())).mean(), 0.99)  # the sky is at the far plane
        self.assertEqual(set(objects[..., 1].flat), {-1, 5})  # mjOBJ_GEOM
        self.assertGreater(len(set(objects[..., 0].flat)), 5)
        self.assertIsNone(troupe.make("cheetah_run").render())
        self.assertEqual(troupe.make("CartPole-v1").metadata["render_modes"], [])

    def test_a_batch_of_pictures_is_what_single_environments_render(self):
        options = {"randomization": {"colours": 0.5}}
        envs = troupe.make_vec("walker_run", 5, num_threads=2, **options)
        envs.reset(seed=3)
        envs.step(np.ones((5, 6), np.float32))
        for kind in ("rgb", "depth", "segmentation"):
            many = envs.pictures(kind, size=(32, 40), camera="side")
            for i, picture in enumerate(many):
                one = troupe.make("walker_run", render_mode=f"{kind}_array", render_size=(32, 40), render_camera="side", **options)
                one.reset(seed=3 + i)
                one.step(np.ones(6, np.float32))
                np.testing.assert_array_equal(picture, one.render())
                self.assertTrue(i == 0 or (picture != many[0]).any(), kind)
        self.assertEqual(envs.pictures().shape, (5, 240, 320, 3))
        self.assertIsNone(envs.render())
        shown = troupe.make_vec("walker_run", 2, render_mode="depth_array", render_size=(24, 32))
        shown.reset(seed=1)
        self.assertIsInstance(shown.render(), tuple)
        np.testing.assert_array_equal(np.array(shown.render()), shown.pictures("depth"))
        for options, words in [
            ({"kind": "colour"}, "kind is 'colour'; it must be one of 'rgb', 'depth', 'segmentation'"),
            ({"size": (0, 9)}, "height: 0 pixels is out of range"),
            ({"size": (9, -1)}, "width: -1 pixels is out of range"),
            ({"camera": "front"}, "camera: 'front' is not a camera"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                envs.pictures(**options)
        with self.assertRaisesRegex(ValueError, "not a MuJoCo task"):
            troupe.make_vec("CartPole-v1", 2).pictures()
        envs.async_reset()
        with self.assertRaisesRegex(ValueError, "in flight"):
            envs.pictures()


class SavedStates(unittest.TestCase):
    def test_a_vector_continues_bit_for_bit_through_the_ends_of_episodes(self):
        actions = np.random.default_rng(1).uniform(-1, 1, (40, 3, 6)).astype(np.float32)
        for options in ({"num_threads": 2, "action_noise": 0.1}, {"num_threads": 2, "normalization": "running"}):
            with self.subTest(options):
                envs, other = (troupe.make_vec("walker_run", 3, time_limit=12, **options) for _ in range(2))
                envs.reset(seed=9)
                for action in actions[:10]:
                    envs.step(action)
                state = envs.save_state()
                here = [envs.step(action) for action in actions[10:]]
                other.load_state(state)
                there = [other.step(action) for action in actions[10:]]
                for a, b in zip(here, there):
                    for k in range(4):
                        np.testing.assert_array_equal(a[k], b[k])
                self.assertEqual(sum(step[3].all() for step in here), 3)
                envs.load_state(state)  # and back in the one that continued
                np.testing.assert_array_equal(envs.step(actions[10])[0], here[0][0])

    def test_a_vector_refuses_what_is_not_its_state(self):
        envs = troupe.make_vec("walker_run", 3)
        envs.reset(seed=1)
        state = envs.save_state()
        for wrong in (b"", state[:2], state[:-1], state + b"x"):
            with self.assertRaises(ValueError):
                envs.load_state(wrong)
        with self.assertRaises(ValueError):
            troupe.make_vec("walker_run", 2).load_state(state)
        envs.load_state(state)
        envs.async_reset()
        with self.assertRaisesRegex(ValueError, "in flight"):
            envs.save_state()

    def test_which_episodes_have_ended_is_part_of_the_state(self):
        envs, other = (troupe.make_vec("CartPole-v1", 3, autoreset_mode="DISABLED") for _ in range(2))
        envs.reset(seed=1)
        ended = np.zeros(3, bool)
        while not ended.any():
            ended = envs.step(np.ones(3, np.int64))[2]
        other.load_state(envs.save_state())
        with self.assertRaisesRegex(gymnasium.error.ResetNeeded, "reset_mask"):
            other.step(np.ones(3, np.int64))
        other.reset(seed=1)
        other.load_state(other.save_state())
        other.step(np.ones(3, np.int64))

    def test_a_dm_environment_continues_also_at_the_end_of_an_episode(self):
        env, other = (troupe.dm.make("walker_run", seed=2) for _ in range(2))
        env.reset()
        for action in ACTIONS[:10]:
            env.step(action)
        other.load_state(env.save_state())
        for action in ACTIONS[10:]:
            a, b = env.step(action), other.step(action)
            self.assertEqual((a.step_type, a.reward, a.discount), (b.step_type, b.reward, b.discount))
            for name in a.observation:
                np.testing.assert_array_equal(a.observation[name], b.observation[name])
        env, other = (troupe.dm.make("walker_run", seed=2, time_limit=2) for _ in range(2))
        env.reset(), env.step(ACTIONS[0])
        self.assertTrue(env.step(ACTIONS[1]).last())
        other.load_state(env.save_state())
        steps = [env.step(ACTIONS[2]), other.step(ACTIONS[2])]
        self.assertEqual([step.first() for step in steps], [True, True])
        self.assertEqual([step.reward for step in steps], [None, None])
        np.testing.assert_array_equal(steps[0].observation["state"], steps[1].observation["state"])
        self.assertTrue(other.step(ACTIONS[3]).mid())


class DmPixelsAndStates(test_utils.EnvironmentTestMixin, unittest.TestCase):
    def make_object_under_test(self):
        return troupe.dm.make("finger_spin", seed=1, time_limit=8, observations=["state", "pixels"], pixels=(24, 32))

    def make_action(self):
        return np.zeros(2)


class DmChoices(test_utils.EnvironmentTestMixin, unittest.TestCase):
    def make_object_under_test(self):
        return troupe.dm.make("CartPole-v1", seed=1)

    def make_action(self):
        return np.int64(1)


class DmEnvironments(unittest.TestCase):
    def test_specs_of_pictures_dictionaries_and_choices(self):
        env = troupe.dm.make("finger_spin", seed=1, observations=["state", "pixels"], pixels=(24, 32))
        shapes = {name: (spec.shape, spec.dtype) for name, spec in env.observation_spec().items()}
        self.assertEqual(shapes, {"pixels": ((3, 24, 32), np.uint8), "state": ((9,), np.float32)})
        self.assertGreater(env.reset().observation["pixels"].std(), 5)
        only = troupe.dm.make("finger_spin", seed=1, pixels=(24, 32))
        np.testing.assert_array_equal(only.reset().observation["pixels"], troupe.make("finger_spin", pixels=(24, 32)).reset(seed=1)[0])
        pole = troupe.dm.make("CartPole-v1", seed=1)
        self.assertIsInstance(pole.action_spec(), specs.DiscreteArray)
        self.assertEqual(pole.action_spec().num_values, 2)
        self.assertEqual(troupe.dm.make("MinAtar/Breakout-v0").action_spec().num_values, 6)

    def test_choices_act_and_one_out_of_range_is_refused(self):
        pushed = []
        for choice in (0, 1):
            env = troupe.dm.make("CartPole-v1", seed=1)
            first = np.concatenate([np.ravel(part) for part in env.reset().observation.values()])
            pushed.append(np.concatenate([np.ravel(part) for part in env.step(choice).observation.values()]) - first)
        self.assertLess(pushed[0][1], -0.1)  # the cart's velocity
        self.assertGreater(pushed[1][1], 0.1)
        with self.assertRaisesRegex(RuntimeError, "2"):
            env.step(2)


class Gymnasium(unittest.TestCase):
    TASKS = [
        ("cheetah_run", {}),
        ("walker_walk", {"pixels": (84, 84), "frame_stack": 3, "action_repeat": 2}),
        ("finger_spin", {"observations": ["state", "pixels"], "pixels": {"height": 32, "width": 48, "effects": False}}),
        ("HalfCheetah-v5", {}),
        ("CartPole-v1", {}),
        ("MinAtar-Breakout-v1", {}),
        ("Taxi-v4", {}),
    ]

    def test_check_env_finds_nothing_wrong_in_any_render_mode(self):
        for task, options in self.TASKS:
            with self.subTest(task), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                env = gymnasium.make(f"troupe/{task}", **options).unwrapped
                check_env(env)
                modes = env.metadata["render_modes"]
                self.assertEqual(len(modes), 3 if env.task_spec.renders else 0)
                found = [str(warning.message) for warning in caught]
                self.assertEqual([text for text in found if "infinity" not in text and "unconventional shape" not in text], [])

    def test_vector_wrappers_change_observations_actions_and_rewards(self):
        plain, envs = (troupe.make_vec("walker_run", 3, num_threads=2) for _ in range(2))
        envs = vector.RescaleAction(envs, -2.0, 2.0)
        envs = vector.TransformReward(envs, lambda rewards: 8 * rewards)
        envs = vector.ClipReward(envs, 0.0, 0.5)
        envs = vector.DtypeObservation(envs, np.float64)
        np.testing.assert_array_equal(envs.reset(seed=1)[0], plain.reset(seed=1)[0].astype(np.float64))
        rng = np.random.default_rng(0)
        for _ in range(20):
            actions = rng.uniform(-1, 1, (3, 6)).astype(np.float32)
            ours, theirs = envs.step(2 * actions), plain.step(actions)
            np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(ours[1], np.clip(8 * theirs[1], 0, 0.5), rtol=1e-4, atol=1e-4)

    def test_vector_wrappers_normalize(self):
        envs = vector.NormalizeReward(vector.NormalizeObservation(troupe.make_vec("cheetah_run", 8, num_threads=2, time_limit=50)))
        envs.reset(seed=1)
        rng = np.random.default_rng(0)
        seen = np.array([envs.step(rng.uniform(-1, 1, (8, 6)).astype(np.float32))[0] for _ in range(150)])
        self.assertTrue(np.isfinite(seen).all())
        self.assertLess(abs(seen[50:].mean()), 0.3)
        self.assertLess(abs(seen[50:].std() - 1), 0.3)

    def test_vector_wrappers_flatten_and_filter_dictionaries(self):
        options = {"observations": ["state", "pixels"], "pixels": (16, 16)}
        plain, flat, chosen = (troupe.make_vec("finger_spin", 2, **options) for _ in range(3))
        flat, chosen = vector.FlattenObservation(flat), vector.FilterObservation(chosen, ["state"])
        whole, rows, part = (envs.reset(seed=1)[0] for envs in (plain, flat, chosen))
        self.assertEqual(list(part), ["state"])
        np.testing.assert_array_equal(part["state"], whole["state"])
        np.testing.assert_array_equal(rows, np.concatenate([whole["pixels"].reshape(2, -1), whole["state"]], axis=1))

    def test_infos_become_lists_with_the_last_observations_and_statistics(self):
        inner = troupe.make_vec("CartPole-v1", 4, autoreset_mode="SAME_STEP")
        envs = vector.DictInfoToList(vector.RecordEpisodeStatistics(inner))
        self.assertEqual(envs.reset(seed=0)[1], [{"discount": 1.0}] * 4)
        ended = 0
        for _ in range(30):
            _, _, terminated, _, infos = envs.step(np.ones(4, np.int64))
            for info, over in zip(infos, terminated):
                self.assertEqual("final_obs" in info, over)
                self.assertEqual(info["discount"], 0.0 if over else 1.0)
                if over:
                    ended += 1
                    self.assertEqual(info["episode"]["r"], info["episode"]["l"])
                    self.assertEqual(info["final_info"], {"discount": 0.0})
                    self.assertGreater(abs(info["final_obs"][2]), 0.2)
        self.assertGreater(ended, 8)


class TorchTensors(unittest.TestCase):
    def test_a_batch_shares_its_memory_and_outlives_the_pool(self):
        envs = troupe.make_vec("finger_spin", 4, observations=["state", "pixels"], pixels=(16, 16))
        observations, _ = envs.reset(seed=1)
        _, rewards, terminated, _, _ = envs.step(np.zeros((4, 2), np.float32))
        tensors = {name: torch.from_dlpack(array) for name, array in observations.items()}
        for name, dtype in (("pixels", torch.uint8), ("state", torch.float32)):
            self.assertEqual((tensors[name].dtype, tuple(tensors[name].shape)), (dtype, observations[name].shape))
            self.assertEqual(tensors[name].data_ptr(), observations[name].ctypes.data)
        self.assertEqual((torch.from_dlpack(rewards).dtype, torch.from_dlpack(terminated).dtype), (torch.float64, torch.bool))
        tensors["state"][2] = 7
        np.testing.assert_array_equal(observations["state"][2], np.full(9, 7))
        copies = {name: array.copy() for name, array in observations.items()}
        del observations, rewards, terminated
        for _ in range(20):
            envs.step(np.ones((4, 2), np.float32))
        del envs
        gc.collect()
        for name, copy in copies.items():
            np.testing.assert_array_equal(tensors[name].numpy(), copy)


class EnvPoolsNames(unittest.TestCase):
    def test_recv_is_receive(self):
        envs = troupe.make_vec("cheetah_run", 4, num_threads=2, batch_size=2)
        envs.async_reset()
        first = envs.recv()
        self.assertEqual(first[0].shape, (2, 17))
        envs.send(np.zeros((2, 6), np.float32), first[4]["env_id"])
        self.assertEqual(envs.recv()[0].shape, (2, 17))


if __name__ == "__main__":
    unittest.main(verbosity=1)
