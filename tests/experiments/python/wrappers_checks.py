"""Checks what the wrapper keywords of environments do, with dm_control's models; started by tests/env/remote/python_test.py.

Usage: wrappers_checks.py <library of examples/own_environment>
"""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

import dm_control.suite
import numpy as np
import troupe

OWN_ENVIRONMENT = sys.argv.pop(1)
SUITE = pathlib.Path(dm_control.suite.__file__).parent


def played(task, actions, seed=3, **options):
    """Observations, including the first, and rewards of one episode."""
    env = troupe.make(task, **options)
    observations, rewards = [env.reset(seed=seed)[0]], []
    for action in actions:
        observation, reward, _, _, _ = env.step(action)
        observations.append(observation)
        rewards.append(reward)
    return np.array(observations), np.array(rewards)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b))


ACTIONS = np.random.default_rng(5).uniform(-1, 1, (25, 6))


class Actions(unittest.TestCase):
    def test_they_are_clipped_to_a_fraction_of_their_range(self):
        clipped = played("cheetah_run", ACTIONS, action_clip=0.5)
        self.assertTrue(same(clipped, played("cheetah_run", np.clip(ACTIONS, -0.5, 0.5))))
        self.assertFalse(same(clipped, played("cheetah_run", ACTIONS)))
        self.assertEqual(troupe.make("cheetah_run", action_clip=0.5).action_space.high.tolist(), [0.5] * 6)

    def test_they_are_mapped_to_the_clipped_range(self):
        mapped = played("cheetah_run", ACTIONS, action_clip=0.5, action_rescale=True)
        self.assertTrue(same(mapped, played("cheetah_run", 0.5 * ACTIONS)))
        self.assertEqual(troupe.make("cheetah_run", action_clip=0.5, action_rescale=True).action_space.high.tolist(), [1] * 6)

    def test_noise_depends_on_the_episodes_seed(self):
        noisy = played("cheetah_run", ACTIONS, action_noise=0.3)
        self.assertTrue(same(noisy, played("cheetah_run", ACTIONS, action_noise=0.3)))
        plain = played("cheetah_run", ACTIONS)
        np.testing.assert_array_equal(noisy[0][0], plain[0][0])
        self.assertTrue((noisy[0][1:] != plain[0][1:]).any(axis=1).all())
        drift = [np.abs(played("cheetah_run", ACTIONS[:1], action_noise=noise)[0][1] - plain[0][1]).mean() for noise in (0.01, 0.3)]
        self.assertLess(10 * drift[0], drift[1])
        self.assertTrue(same(plain, played("cheetah_run", ACTIONS, action_noise=0)))


class Rewards(unittest.TestCase):
    def test_they_are_scaled_and_then_clipped(self):
        observations, rewards = played("walker_walk", ACTIONS)
        self.assertGreater(rewards.std(), 0.001)
        scaled = played("walker_walk", ACTIONS, reward_scale=4)
        np.testing.assert_array_equal(scaled[0], observations)
        np.testing.assert_array_equal(scaled[1], 4 * rewards)
        limit = float(np.median(4 * rewards))
        np.testing.assert_array_equal(played("walker_walk", ACTIONS, reward_scale=4, reward_clip=limit)[1], np.minimum(4 * rewards, limit))

    def test_a_number_of_numpy_is_a_number(self):
        expected = played("walker_walk", ACTIONS, reward_scale=0.5)
        for number in (np.float64(0.5), np.float32(0.5)):
            self.assertTrue(same(played("walker_walk", ACTIONS, reward_scale=number), expected))

    def test_the_log_has_a_line_for_each_episode_with_unscaled_rewards(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "episodes.jsonl"
            envs = troupe.make_vec("cheetah_run", 2, time_limit=8, action_repeat=2, reward_scale=10, episode_log=log)
            envs.reset(seed=11)
            returns = np.zeros(2)
            for _ in range(5):  # four steps, and the reset that begins the second episode
                _, rewards, _, truncated, _ = envs.step(np.ones((2, 6), np.float32))
                returns += rewards
                self.assertTrue(not truncated.any() or truncated.all())
            lines = sorted((json.loads(line) for line in log.read_text().splitlines()), key=lambda line: line["seed"])
        self.assertEqual([(line["environment"], line["seed"], line["steps"], line["terminated"]) for line in lines], [("cheetah_run", seed, 8, False) for seed in (11, 12)])
        np.testing.assert_allclose([line["return"] for line in lines], returns / 10)
        self.assertAlmostEqual(lines[0]["seconds"], 0.08)


class Tasks(unittest.TestCase):
    def test_a_library_brings_its_own_task_with_options(self):
        def position(steps, **options):
            env = troupe.make("push_to_middle", plugin=OWN_ENVIRONMENT, **options)
            x, v = env.reset(seed=1)[0]
            friction = options.get("options", {}).get("friction", 0.5)
            for _ in range(steps):
                observation, reward, _, _, _ = env.step(np.array([0.5]))
                v += 0.1 * (1 - friction * v)
                x += 0.1 * v
                np.testing.assert_allclose(observation, [x, v], rtol=1e-5)
                self.assertAlmostEqual(reward, np.exp(-4 * abs(x)), places=5)
            return observation[0]

        self.assertGreater(position(9, options={"friction": 0.0}), position(9, options={"friction": 2.0}))
        position(3)
        with self.assertRaisesRegex(Exception, "friktion"):
            troupe.make("push_to_middle", plugin=OWN_ENVIRONMENT, options={"friktion": 1})
        with self.assertRaisesRegex(Exception, "libnone.so"):
            troupe.make("push_to_middle", plugin=pathlib.Path(OWN_ENVIRONMENT).with_name("libnone.so"))

    def test_models_come_from_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            for part in [*SUITE.glob("*.xml"), *SUITE.glob("common/*.xml")]:
                target = pathlib.Path(folder) / part.relative_to(SUITE)
                target.parent.mkdir(exist_ok=True)
                shutil.copy(part, target)
            ours = played("cheetah_run", ACTIONS, models=folder)
            self.assertTrue(same(ours, played("cheetah_run", ACTIONS)))
            model = pathlib.Path(folder) / "cheetah.xml"
            text = model.read_text()
            self.assertIn('gear="120"', text)
            model.write_text(text.replace('gear="120"', 'gear="1"'))
            changed = played("cheetah_run", ACTIONS, models=folder)
            np.testing.assert_array_equal(changed[0][0], ours[0][0])
            self.assertTrue((changed[0][1:] != ours[0][1:]).any(axis=1).all())


def picture(seed=1, task="cheetah_run", **pixels):
    return troupe.make(task, pixels={"height": 48, "width": 64, **pixels}).reset(seed=seed)[0]


class Pixels(unittest.TestCase):
    def test_grey_is_the_luma_of_the_colours(self):
        red, green, blue = picture().astype(float)
        grey = picture(grey=True)
        self.assertEqual((grey.shape, grey.dtype), ((1, 48, 64), np.uint8))
        self.assertLess(np.abs(grey[0] - (0.299 * red + 0.587 * green + 0.114 * blue)).max(), 1.01)

    def test_several_cameras_are_channels_of_one_picture(self):
        side, back = picture(camera="side"), picture(camera="back")
        self.assertFalse((side == back).all())
        np.testing.assert_array_equal(picture(cameras=["side", "back"]), np.concatenate([side, back]))
        with self.assertRaisesRegex(ValueError, "'front' is not a camera"):
            picture(camera="front")

    def test_fog_and_effects_change_the_picture(self):
        clear = picture(camera="back").astype(int)
        for options in ({"fog": True}, {"effects": False}):
            self.assertGreater(np.abs(picture(camera="back", **options) - clear).mean(), 0.1, options)

    def test_a_stack_has_the_oldest_frame_first(self):
        options = {"pixels": (24, 32)}
        single, stacked = troupe.make("cheetah_run", **options), troupe.make("cheetah_run", frame_stack=3, **options)
        frames = [single.reset(seed=1)[0]] * 3
        np.testing.assert_array_equal(stacked.reset(seed=1)[0], np.concatenate(frames))
        for action in ACTIONS[:5]:
            frames = [*frames[1:], single.step(action)[0]]
            np.testing.assert_array_equal(stacked.step(action)[0], np.concatenate(frames))


class Randomization(unittest.TestCase):
    def test_what_is_seen_varies_with_the_seed_and_the_state_does_not(self):
        options = {"observations": ["state", "pixels"], "pixels": (48, 64)}
        for change in ({"colours": 0.5}, {"lights": 0.9}, {"camera": 0.5}, {"field_of_view": 0.3}):
            plain, changed, again = (troupe.make("cheetah_run", **options, **more) for more in ({}, {"randomization": change}, {"randomization": change}))
            again.reset(seed=9)
            differences = []
            for seed in (1, 2):
                theirs, ours = plain.reset(seed=seed)[0], changed.reset(seed=seed)[0]
                with self.subTest(change, seed=seed):
                    np.testing.assert_array_equal(theirs["state"], ours["state"])
                    np.testing.assert_array_equal(again.reset(seed=seed)[0]["pixels"], ours["pixels"])
                    differences.append(ours["pixels"].astype(int) - theirs["pixels"])
                    self.assertGreater(np.abs(differences[-1]).mean(), 0.5)
            self.assertGreater(np.abs(differences[0] - differences[1]).mean(), 0.5)

    def test_how_it_moves_varies_with_the_seed_and_the_first_state_does_not(self):
        for change in ({"masses": 0.5}, {"friction": 0.9}):
            with self.subTest(change):
                plain, changed = played("walker_run", ACTIONS), played("walker_run", ACTIONS, randomization=change)
                np.testing.assert_array_equal(plain[0][0], changed[0][0])
                self.assertFalse(np.allclose(plain[0][-1], changed[0][-1], atol=1e-3))
                self.assertTrue(same(changed, played("walker_run", ACTIONS, randomization=change)))


class Normalization(unittest.TestCase):
    def test_running_statistics_are_those_of_all_observations_so_far(self):
        plain = played("cheetah_run", ACTIONS)[0].astype(np.float64)
        expected = np.zeros_like(plain)
        for count in range(1, len(plain) + 1):
            seen = plain[:count]
            deviation = np.sqrt((seen.var(axis=0) if count > 1 else 1) + 1e-8)
            expected[count - 1] = (seen[-1] - seen.mean(axis=0)) / deviation
        normalized = played("cheetah_run", ACTIONS, normalization="running")
        np.testing.assert_allclose(normalized[0], np.clip(expected, -10, 10), rtol=1e-3, atol=1e-3)
        np.testing.assert_array_equal(normalized[1], played("cheetah_run", ACTIONS)[1])
        clipped = played("cheetah_run", ACTIONS, normalization={"mode": "running", "clip": 0.5})[0]
        np.testing.assert_array_equal(clipped, np.clip(normalized[0], -0.5, 0.5))

    def test_frozen_statistics_come_from_a_file(self):
        plain = played("cheetah_run", ACTIONS)[0].astype(np.float64)
        mean, squares = plain.mean(axis=0), len(plain) * plain.var(axis=0)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "statistics.json"
            arrays = [{"name": "state", "mean": mean.tolist(), "sum_of_squares": squares.tolist()}]
            file.write_text(json.dumps({"format": "troupe observation statistics 1", "count": len(plain), "arrays": arrays}))
            frozen = played("cheetah_run", ACTIONS, normalization={"mode": "frozen", "file": file})[0]
            np.testing.assert_allclose(frozen, np.clip((plain - mean) / np.sqrt(plain.var(axis=0) + 1e-8), -10, 10), rtol=1e-4, atol=1e-4)
            with self.assertRaisesRegex(Exception, "do not fit environment"):
                troupe.make("walker_walk", normalization={"mode": "frozen", "file": file})


if __name__ == "__main__":
    unittest.main(verbosity=1)
