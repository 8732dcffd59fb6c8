"""Checks of troupe.make, make_vec and troupe.dm with the real Gymnasium, dm_control and dm_env; started by tests/env/remote/python_test.py."""

import contextlib
import gc
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import dm_env
import gymnasium
import numpy as np
import troupe
import troupe.dm
from dm_control import suite
from dm_env import test_utils
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

README = pathlib.Path(__file__).parents[3] / "experiments" / "python" / "README.md"


def equal(test, a, b):
    if isinstance(a, dict):
        test.assertEqual(a.keys(), b.keys())
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])
    else:
        np.testing.assert_array_equal(a, b)


class OneEnvironment(unittest.TestCase):
    def test_gymnasium_make_finds_the_tasks(self):
        self.assertEqual(gymnasium.make("troupe.environments:troupe/HalfCheetah-v5").action_space.shape, (6,))
        env = gymnasium.make("troupe/cheetah_run", action_repeat=4)
        observation, _ = env.reset(seed=3)
        self.assertEqual(observation.shape, (17,))
        self.assertEqual(env.unwrapped.task_spec.action_repeat, 4)
        envs = gymnasium.make_vec("troupe/CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point")
        self.assertIsInstance(envs, troupe.VectorEnv)
        self.assertEqual(envs.reset(seed=1)[0].shape, (3, 4))

    def test_gymnasium_finds_the_tasks_whichever_package_is_imported_first(self):
        for imports, name in [
            ("import gymnasium, troupe", "troupe/cheetah_run"),
            ("import troupe, gymnasium", "troupe/cheetah_run"),
            ("import troupe.environments, gymnasium", "troupe/cheetah_run"),
            ("import troupe; from gymnasium.vector import VectorEnv; import gymnasium", "troupe/cheetah_run"),
            ("import gymnasium", "troupe:troupe/cheetah_run"),
        ]:
            with self.subTest(imports):
                done = subprocess.run([sys.executable, "-c", f"{imports}; print(gymnasium.make({name!r}).observation_space.shape)"], capture_output=True, text=True, timeout=120)
                self.assertEqual((done.returncode, done.stdout), (0, "(17,)\n"), done.stderr)
        alone = "import sys, troupe; print([name for name in ('gymnasium', 'troupe._native') if name in sys.modules])"
        self.assertEqual(subprocess.run([sys.executable, "-c", alone], capture_output=True, text=True, timeout=120).stdout, "[]\n")

    def test_an_episode_depends_on_its_seed_alone(self):
        first, second = troupe.make("hopper_hop", seed=1), troupe.make("hopper_hop", seed=2)
        for _ in range(3):
            second.reset()
        for seed in (7, 7, 8):
            equal(self, first.reset(seed=seed)[0], second.reset(seed=seed)[0])
        equal(self, first.reset()[0], second.reset()[0])  # and so do those that follow
        self.assertTrue((first.reset(seed=7)[0] != first.reset(seed=8)[0]).any())

    def test_an_end_is_a_termination_and_a_time_limit_a_truncation(self):
        pole = troupe.make("CartPole-v1")
        pole.reset(seed=0)
        while True:
            _, reward, terminated, truncated, info = pole.step(1)
            if terminated or truncated:
                break
        self.assertEqual((reward, terminated, truncated, info), (1.0, True, False, {"discount": 0.0}))
        cheetah = troupe.make("cheetah_run", time_limit=5)
        cheetah.reset(seed=0)
        ends = [cheetah.step(np.zeros(6, np.float32))[2:] for _ in range(5)]
        self.assertEqual(ends[-2:], [(False, False, {"discount": 1.0}), (False, True, {"discount": 1.0})])

    def test_a_saved_state_continues_bit_for_bit(self):
        env, other = troupe.make("walker_run"), troupe.make("walker_run")
        env.reset(seed=5)
        actions = np.random.default_rng(1).uniform(-1, 1, (20, 6))
        for action in actions[:10]:
            env.step(action)
        state = env.save_state()
        here = [env.step(action)[0] for action in actions[10:]]
        other.load_state(state)
        equal(self, np.array(here), np.array([other.step(action)[0] for action in actions[10:]]))
        with self.assertRaisesRegex(ValueError, "truncated|damaged|another"):
            other.load_state(state[:-9])

    def test_mistakes_are_named_with_a_remedy(self):
        for options, words in [
            ({"task": "cheetah_runn"}, "task is \"cheetah_runn\".*did you mean cheetah_run"),
            ({"task": "cheetah_run", "pixel": (84, 84)}, "pixel is not a key; did you mean pixels"),
            ({"task": "cheetah_run", "pixels": {"height": 4}}, "pixels.height is 4; it must be.* from 8 to 4096"),
            ({"task": "cheetah_run", "frame_stack": 0}, "frame_stack is 0"),
            ({"task": "cheetah_run", "observations": ["stat"]}, "stat"),
            ({"task": "cheetah_run", "options": ["nonsense"]}, "key=value"),
            ({"task": "cheetah_run", "action_rescale": True}, "nothing to rescale"),
        ]:
            with self.subTest(options=options):
                with self.assertRaisesRegex(ValueError, words) as caught:
                    troupe.make(**options)
                self.assertNotIn("--set", str(caught.exception))
        for task, mode, words in [("cheetah_run", "human", "'human'; it must be None or one of 'rgb_array'"), ("CartPole-v1", "rgb_array", "'rgb_array'; it must be None, because .*not a MuJoCo task")]:
            for construct in (troupe.make, troupe.make_vec):
                with self.assertRaisesRegex(ValueError, f"render_mode is {words}"):
                    construct(task, render_mode=mode)
        with self.assertRaisesRegex(TypeError, "pixels is 84"):
            troupe.make("cheetah_run", pixels=84)
        env = troupe.make("cheetah_run")
        env.reset()
        with self.assertRaisesRegex(ValueError, r"actions have the shape \(5,\); they must have \(6,\)"):
            env.step(np.zeros(5))
        with self.assertRaisesRegex(RuntimeError, "finite"):
            env.step(np.full(6, np.nan))
        env.reset()


    def test_an_environment_that_has_failed_often_may_still_be_reset(self):
        env = troupe.make("cheetah_run")
        for _ in range(6):
            env.reset()
            with self.assertRaisesRegex(RuntimeError, "finite"):
                env.step(np.full(6, np.nan))
        env.reset()
        env.step(np.zeros(6))


class ManyEnvironments(unittest.TestCase):
    def test_a_vector_plays_what_single_environments_play(self):
        envs = troupe.make_vec("cheetah_run", 4, num_threads=2, time_limit=20)
        ones = [troupe.make("cheetah_run", time_limit=20) for _ in range(4)]
        equal(self, envs.reset(seed=9)[0], np.array([env.reset(seed=9 + i)[0] for i, env in enumerate(ones)]))
        rng = np.random.default_rng(0)
        for step in range(45):
            actions = rng.uniform(-1, 1, (4, 6)).astype(np.float32)
            result = envs.step(actions)
            if step % 21 == 20:  # the step after the end is the reset
                equal(self, result[0], np.array([env.reset()[0] for env in ones]))
                self.assertFalse(result[3].any())
                continue
            expected = [env.step(action) for env, action in zip(ones, actions)]
            for k in range(4):
                equal(self, result[k], np.array([row[k] for row in expected]))

    def test_observations_follow_at_once_with_same_step(self):
        envs = troupe.make_vec("CartPole-v1", 8, autoreset_mode="SAME_STEP")
        envs.reset(seed=0)
        ended = 0
        for _ in range(60):
            observations, rewards, terminated, truncated, info = envs.step(np.ones(8, np.int64))
            if terminated.any():
                ended += terminated.sum()
                np.testing.assert_array_equal(info["_final_obs"], terminated)
                for row in np.flatnonzero(terminated):
                    self.assertTrue(abs(info["final_obs"][row][[0, 2]]).max() > 0.2)
                    self.assertTrue(abs(observations[row]).max() <= 0.05)
                self.assertTrue((rewards == 1).all())
        self.assertGreater(ended, 20)

    def test_episodes_begin_where_the_mask_says_when_autoreset_is_disabled(self):
        envs = troupe.make_vec("CartPole-v1", 3, autoreset_mode=AutoresetMode.DISABLED)
        envs.reset(seed=0)
        actions = np.array([1, 1, 1])
        while True:
            _, _, terminated, truncated, _ = envs.step(actions)
            if terminated.any():
                break
        with self.assertRaisesRegex(gymnasium.error.ResetNeeded, "reset_mask"):
            envs.step(actions)
        observations, _ = envs.reset(options={"reset_mask": terminated})
        self.assertTrue((abs(observations[terminated]) <= 0.05).all())
        envs.step(actions)

    def test_a_masked_reset_returns_the_other_rows_as_they_were(self):
        envs, fresh = (troupe.make_vec("CartPole-v1", 3, autoreset_mode="DISABLED") for _ in range(2))
        envs.reset(seed=0)
        ended = np.zeros(3, bool)
        for step in range(50):
            observations, _, ended, _, _ = envs.step(np.array([1, step % 2, step % 2]))
            if ended.any():
                break
        self.assertEqual(ended.tolist(), [True, False, False])
        present, state = observations.copy(), envs.save_state()
        observations[:] = 7  # the caller's own

        def check(envs):
            observations, info = envs.reset(options={"reset_mask": ended})
            equal(self, observations[1:], present[1:])
            self.assertTrue((abs(observations[0]) <= 0.05).all())
            equal(self, info["discount"], np.ones(3))

        check(envs)
        fresh.load_state(state)
        with self.assertRaises(gymnasium.error.ResetNeeded):
            fresh.step(np.zeros(3, np.int64))
        check(fresh)
        envs.step(np.zeros(3, np.int64))
        envs.load_state(state)
        check(envs)

    def test_a_masked_reset_seeds_only_the_masked_environments(self):
        envs, other = (troupe.make_vec("CartPole-v1", 3, autoreset_mode="DISABLED") for _ in range(2))
        for each in (envs, other):
            each.reset(seed=0)
        mask = np.array([False, True, False])
        observations, info = envs.reset(seed=[5, 6, 7], options={"reset_mask": mask})
        self.assertEqual(info["_discount"].tolist(), [True] * 3)
        equal(self, observations[1], troupe.make("CartPole-v1").reset(seed=6)[0])
        other.reset(options={"reset_mask": mask})
        later, expected = envs.reset()[0], other.reset()[0]
        equal(self, later[~mask], expected[~mask])
        self.assertTrue((later[mask] != expected[mask]).any())

    def test_gymnasiums_wrappers_take_it(self):
        envs = RecordEpisodeStatistics(troupe.make_vec("cheetah_run", 3, time_limit=10))
        envs.reset(seed=1)
        for _ in range(10):
            info = envs.step(np.zeros((3, 6), np.float32))[4]
        np.testing.assert_array_equal(info["episode"]["l"], [10, 10, 10])

    def test_arrays_belong_to_the_caller_and_outlive_the_pool(self):
        envs = troupe.make_vec("cheetah_run", 4, num_threads=2, pixels=(32, 32))
        kept = [envs.reset(seed=1)[0]]
        kept += [envs.step(np.zeros((4, 6), np.float32))[0] for _ in range(20)]
        copies = [array.copy() for array in kept]
        for _ in range(20):
            envs.step(np.ones((4, 6), np.float32))
        del envs
        gc.collect()
        for array, copy in zip(kept, copies):
            equal(self, array, copy)
        self.assertTrue(kept[0].flags.writeable)
        kept[0][:] = 0  # the caller's own

    def test_memory_is_used_again(self):
        envs = troupe.make_vec("cheetah_run", 4)
        addresses = {envs.reset(seed=1)[0].ctypes.data}
        for _ in range(100):
            addresses.add(envs.step(np.zeros((4, 6), np.float32))[0].ctypes.data)
        self.assertLessEqual(len(addresses), 3)

    def test_the_first_results_are_received_in_any_order(self):
        envs = troupe.make_vec("cheetah_run", 8, num_threads=2, batch_size=3)
        envs.async_reset()
        steps = np.zeros(8, int)
        for _ in range(10_000):  # a thread of the pool may have to wait for a processor
            observations, _, _, _, info = envs.receive()
            self.assertEqual((observations.shape, info["_env_id"].tolist()), ((3, 17), [True] * 3))
            steps[info["env_id"]] += 1
            envs.send(np.zeros((3, 6), np.float32), info["env_id"])
            if (steps > 1).all():
                break
        self.assertTrue((steps > 1).all(), steps)
        with self.assertRaisesRegex(ValueError, "in flight"):
            envs.step(np.zeros((8, 6), np.float32))

    def test_dictionaries_choices_and_mixed_spaces(self):
        envs = troupe.make_vec("finger_spin", 2, observations=["state", "pixels"], pixels=(24, 24))
        observations, _ = envs.reset(seed=1)
        self.assertEqual({name: array.shape for name, array in observations.items()}, {"pixels": (2, 3, 24, 24), "state": (2, 9)})
        self.assertIsInstance(envs.single_observation_space, spaces.Dict)
        self.assertIn(observations, envs.observation_space)
        self.assertEqual(troupe.make_vec("MinAtar/Breakout-v0", 2).single_action_space, spaces.Discrete(6))
        envs = troupe.make_vec("MinAtar/Breakout-v0", 2)
        envs.reset(seed=1)
        with self.assertRaises(Exception) as caught:
            envs.step(np.array([0, 6]))
            raise RuntimeError(envs.step(np.array([0, 0]))[4])
        self.assertIsInstance(caught.exception, RuntimeError)

    def test_actions_in_another_order_of_axes_are_refused(self):
        envs = troupe.make_vec("cheetah_run", 4)
        envs.reset(seed=1)
        with self.assertRaisesRegex(ValueError, r"actions have the shape \(6, 4\); they must have \(4, 6\)"):
            envs.step(np.zeros((6, 4)))
        envs.step(np.zeros((4, 1, 6)))
        choosing = troupe.make_vec("CartPole-v1", 3)
        choosing.reset(seed=1)
        with self.assertRaisesRegex(ValueError, r"actions have the shape \(2,\); they must have \(3,\)"):
            choosing.step(np.zeros(2, np.int64))
        choosing.step(np.zeros((3, 1), np.int64))
        one = troupe.make("CartPole-v1")
        one.reset()
        with self.assertRaisesRegex(ValueError, "left"):
            one.step("left")
        one.step(np.array([1]))

    def test_a_failure_is_one_rows_alone(self):
        envs = troupe.make_vec("cheetah_run", 3)
        envs.reset(seed=1)
        actions = np.zeros((3, 6), np.float32)
        actions[1, 2] = np.inf
        _, rewards, terminated, truncated, info = envs.step(actions)
        self.assertEqual([bool(failure) for failure in info["failure"]], [False, True, False])
        self.assertIn("action[2] is inf", info["failure"][1])
        self.assertEqual((info["_failure"].tolist(), info["_discount"].tolist()), ([False, True, False], [True] * 3))
        self.assertEqual((truncated.tolist(), terminated.any()), ([False, True, False], False))
        actions[1, 2] = 0
        self.assertNotIn("failure", envs.step(actions)[4])

    def test_a_reset_returns_a_failing_environment_to_service(self):
        envs = troupe.make_vec("cheetah_run", 2)
        envs.reset(seed=1)
        for _ in range(9):
            info = envs.step(np.array([[np.nan] * 6, [0] * 6]))[4]
        self.assertIn("out of service", info["failure"][0])
        envs.reset(seed=1)
        self.assertNotIn("failure", envs.step(np.zeros((2, 6)))[4])

    def test_torch_style_consumers_share_the_memory(self):
        envs = troupe.make_vec("cheetah_run", 4)
        observations, _ = envs.reset(seed=1)
        shared = np.from_dlpack(observations)
        self.assertEqual(shared.ctypes.data, observations.ctypes.data)
        del envs, observations
        gc.collect()
        self.assertTrue(np.isfinite(shared).all())


class DmEnvironment(test_utils.EnvironmentTestMixin, unittest.TestCase):
    def make_object_under_test(self):
        return troupe.dm.make("cheetah_run", seed=1, time_limit=30)

    def make_action(self):
        return np.zeros(6)


class DmControl(unittest.TestCase):
    def test_the_specs_are_dm_controls(self):
        for domain, task in [("cheetah", "run"), ("humanoid", "walk"), ("point_mass", "easy"), ("reacher", "hard")]:
            ours, theirs = troupe.dm.make(f"{domain}_{task}", seed=1), suite.load(domain, task)
            self.assertEqual(list(ours.observation_spec()), list(theirs.observation_spec()))
            for name, spec in theirs.observation_spec().items():
                self.assertEqual((ours.observation_spec()[name].shape, ours.observation_spec()[name].dtype), (spec.shape, spec.dtype), name)
            np.testing.assert_array_equal(ours.action_spec().minimum, theirs.action_spec().minimum)
            self.assertEqual(ours.action_spec().shape, theirs.action_spec().shape)
            self.assertAlmostEqual(ours.control_timestep(), theirs.control_timestep())

    def test_a_time_limit_keeps_the_discount(self):
        env = troupe.dm.make("cheetah_run", seed=1, time_limit=3)
        steps = [env.reset()] + [env.step(np.zeros(6)) for _ in range(3)]
        self.assertEqual([step.step_type for step in steps], [dm_env.StepType.FIRST, *[dm_env.StepType.MID] * 2, dm_env.StepType.LAST])
        self.assertEqual(steps[-1].discount, 1.0)
        self.assertTrue(env.step(np.zeros(6)).first())


class Documentation(unittest.TestCase):
    def test_the_readmes_examples_run(self):
        blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        self.assertEqual(len(blocks), 5)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
            for block in blocks:
                exec(compile(block, str(README), "exec"), {"np": np, "troupe": troupe})


def run(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, **options)


class Accidents(unittest.TestCase):
    def test_two_pools_at_once(self):
        first, second = troupe.make_vec("cheetah_run", 4, num_threads=2), troupe.make_vec("walker_run", 4, num_threads=2)
        first.reset(seed=1), second.reset(seed=1)
        done = []

        def step(envs):
            for _ in range(300):
                envs.step(np.zeros((4, 6), np.float32))
            done.append(envs)

        threads = [threading.Thread(target=step, args=(envs,)) for envs in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(done), 2)

    def test_a_pool_refuses_a_second_thread(self):
        envs = troupe.make_vec("humanoid_run", 64)
        envs.reset(seed=1)
        refused, stop = [], threading.Event()

        def step():
            try:
                while not stop.is_set():
                    envs.step(np.zeros((64, 21), np.float32))
            except RuntimeError as error:
                refused.append(str(error))
                stop.set()

        threads = [threading.Thread(target=step) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertRegex(refused[0], "in use by another thread")
        envs.step(np.zeros((64, 21), np.float32))

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork")
    def test_a_fork_gets_an_error_and_the_parent_goes_on(self):
        code = """
import os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, troupe
envs = troupe.make_vec("cheetah_run", 4, num_threads=2)
envs.reset(seed=1)
child = os.fork()
if child == 0:
    try:
        envs.step(np.zeros((4, 6), np.float32))
    except RuntimeError as error:
        assert "fork" in str(error), error
        own = troupe.make_vec("cheetah_run", 2)
        own.reset(seed=1)
        del envs
        sys.exit(7)
    sys.exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
envs.step(np.zeros((4, 6), np.float32))
print("fine")
"""
        done = run(code)
        self.assertEqual((done.stdout, done.returncode), ("fine\n", 0), done.stderr)

    def test_the_interpreter_ends_during_steps(self):
        code = """
import threading, numpy as np, troupe
envs = troupe.make_vec("cheetah_run", 64, num_threads=2)
envs.reset(seed=1)
begun = threading.Event()
def step():
    while True:
        envs.step(np.zeros((64, 6), np.float32))
        begun.set()
threading.Thread(target=step, daemon=True).start()
begun.wait()
"""
        for _ in range(5):
            done = run(code)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_ctrl_c_ends_a_wait_and_the_pool_goes_on(self):
        code = """
import os, signal, threading, numpy as np, troupe
envs = troupe.make_vec("humanoid_run", 2, num_threads=2, batch_size=2)
envs.reset(seed=1)
envs.send(np.zeros((1, 21), np.float32), np.array([0]))
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    envs.send(np.zeros((1, 21), np.float32), np.array([1]))
    while True:
        _, _, _, _, info = envs.receive()
        envs.send(np.zeros((2, 21), np.float32), info["env_id"])
except KeyboardInterrupt:
    print("interrupted")
"""
        done = run(code)
        self.assertEqual(done.stdout, "interrupted\n", done.stderr)

    def reset_too_late(self, envs):
        """Resets until a deadline of 0 has passed: the results are there in time if this thread had to wait for a processor meanwhile."""
        for _ in range(100):
            try:
                envs.reset(seed=1)
            except TimeoutError as late:
                return self.assertIn("deadline of 0", str(late))
        self.fail("every reset was in time")

    def test_a_deadline_passes_and_the_next_call_finishes_first(self):
        envs = troupe.make_vec("humanoid_run", 512, num_threads=2, deadline=0)
        self.reset_too_late(envs)
        envs._pool.deadline = 60
        envs.reset(seed=1)
        envs.step(np.zeros((512, 21), np.float32))

    def test_a_state_is_saved_after_a_deadline_has_passed(self):
        envs, other = (troupe.make_vec("humanoid_run", 64, num_threads=2, deadline=deadline) for deadline in (0, 60))
        self.reset_too_late(envs)
        other.load_state(envs.save_state())
        observations, *_ = other.step(np.zeros((64, 21), np.float32))
        expected = troupe.make_vec("humanoid_run", 64, num_threads=2)
        expected.reset(seed=1)
        np.testing.assert_array_equal(observations, expected.step(np.zeros((64, 21), np.float32))[0])


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(verbosity=1)
