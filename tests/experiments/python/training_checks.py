"""Checks of troupe.train, Run and agents in Python with the real PyTorch; started by tests/env/remote/python_test.py.

Usage: training_checks.py <the repository>
"""

import io
import contextlib
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np
import torch
import troupe

ROOT = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / "experiments" / "examples"))

import python_td3  # noqa: E402

SMALL = {
    "name": "small",
    "environment": {"task": "cartpole_balance", "action_repeat": 5},
    "td3": {"policy_layers": [16], "critic_layers": [16], "batch_size": 32},
    "replay": {"minimum_items": 64, "samples_per_insert": 32, "n_step": 1},
    "actors": {"environment": 1, "random_steps": 64},
    "evaluation": {"episodes": 1, "video": False},
    "stop": {"environment_steps": 3000},
}


def without_agent(config, **changes):
    return {key: {**value, **changes.get(key, {})} if isinstance(value, dict) else value for key, value in config.items() if key != "td3"}


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.runs = pathlib.Path(folder.name) / "runs"

    def train(self, *words, **options):
        return troupe.train(*words, runs=self.runs, **{"verbose": False, **options})


class Training(InFolder):
    def test_a_run_reports_and_leaves_what_the_program_leaves(self):
        seen = {"started": [], "progress": [], "evaluated": [], "episode": [], "log": []}
        callbacks = {name: lambda *given, kept=kept: kept.append(given) for name, kept in seen.items()}
        run = self.train(SMALL, {"seed": 3}, callbacks=callbacks)
        self.assertEqual(seen["started"], [(str(run.folder),)])
        self.assertGreater(seen["progress"][-1][0]["updates"], 0)
        steps, updates, returns, metrics, final = seen["evaluated"][-1]
        self.assertEqual((final, metrics), (True, {}))
        self.assertGreater(len(returns), 0)
        self.assertGreaterEqual(steps, 3000)
        self.assertTrue(any("final evaluation" in text for _, text in seen["log"]))
        self.assertIn("seed: 3", run.config)
        progress, last = run.metrics(), run.metrics("final")
        self.assertTrue((np.diff(progress["updates"]) >= 0).all())
        self.assertEqual(len(last["kind"]), 1)
        self.assertEqual(run.checkpoints[-1], updates)
        self.assertIn("<svg", run._repr_html_())

    def test_parameters_are_a_state_dict_and_the_policy_acts_as_they_say(self):
        run = self.train(SMALL)
        parameters = {name: tensor for name, tensor in run.parameters().items() if name.startswith("policy.")}
        network = troupe.agents.mlp(5, [16], 1)
        network.load_state_dict(dict(zip(network.state_dict(), [parameters[name] for name in sorted(parameters, key=lambda n: (n.split(".")[1], n.endswith("bias")))])))
        policy = run.policy()
        observations, _ = troupe.make_vec("cartpole_balance", 4).reset(seed=1)
        with torch.no_grad():
            expected = network(torch.from_numpy(observations)).tanh().numpy()
        np.testing.assert_allclose(policy(observations), expected, atol=1e-5)
        np.testing.assert_allclose(policy(observations[0]), expected[0], atol=1e-5)
        with self.assertRaisesRegex(ValueError, "observation 'state' is float64"):
            policy(observations.astype(np.float64))
        with self.assertRaisesRegex(ValueError, "checkpoint 1 is not in"):
            run.policy(1)

    def test_stop_run_ends_it_and_resume_continues(self):
        def stop(progress):
            if progress["updates"] > 50:
                raise troupe.StopRun

        endless = {**SMALL, "stop": {"environment_steps": 100_000_000}}
        run = self.train(endless, callbacks=stop)
        before = run.checkpoints[-1]
        self.assertGreater(before, 50)

        def stop_again(progress):
            if progress["updates"] > before:
                raise troupe.StopRun

        again = troupe.resume(run, callbacks=stop_again, verbose=False)
        self.assertGreater(again.checkpoints[-1], before)

    def test_an_exception_in_a_callback_ends_the_run_and_is_raised(self):
        def fail(progress):
            raise ZeroDivisionError("in the callback")

        with self.assertRaisesRegex(ZeroDivisionError, "in the callback"):
            self.train({**SMALL, "stop": {"environment_steps": 100_000_000}}, callbacks=fail)
        self.assertTrue(list(self.runs.glob("small/*/checkpoints/*/manifest.json")))

    def test_lines_are_printed_where_python_prints(self):
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            self.train(SMALL, verbose=True)
        self.assertIn("final evaluation", text.getvalue())

    def test_a_run_of_an_object_store_is_fetched_and_continued(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        swift = subprocess.Popen(["/usr/bin/python3", str(ROOT / "tests/replay/objects/swift_server.py"), folder.name], stdout=subprocess.PIPE, text=True)
        self.addCleanup(swift.stdout.close)
        self.addCleanup(swift.wait)
        self.addCleanup(swift.kill)
        word, endpoint = swift.stdout.readline().split(maxsplit=1)
        if word != "ready":
            self.skipTest(endpoint)
        keys = {"AWS_ACCESS_KEY_ID": "test:tester", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_ENDPOINT_URL_S3": endpoint.strip()}
        with unittest.mock.patch.dict(os.environ, keys):
            first = self.train(SMALL, {"checkpoint.store": "s3://bucket/runs"})
            stored = "s3://bucket/runs/" + "/".join(first.folder.parts[-2:])
            shutil.rmtree(self.runs)
            fetched = troupe.Run(stored, runs=self.runs)
            self.assertEqual(fetched.folder, first.folder)
            fetched_updates = fetched.checkpoints[-1]
            self.assertGreater(fetched_updates, 0)
            shutil.rmtree(self.runs)
            longer = troupe.resume(stored, {"stop.environment_steps": 4000}, runs=self.runs, verbose=False)
            self.assertEqual(longer.folder, first.folder)
            self.assertGreater(longer.checkpoints[-1], fetched_updates)
            with self.assertRaisesRegex(ValueError, "no run has a complete checkpoint there"):
                troupe.Run("s3://bucket/runs/none/at-all", runs=self.runs)

    def test_mistakes_are_named(self):
        for call, error, words in [
            (lambda: self.train("quickstartt"), ValueError, "no experiment of this name; did you mean quickstart"),
            (lambda: self.train(SMALL, {"replay.shard": 2}), ValueError, "replay.shard is not a key; did you mean replay.shards"),
            (lambda: self.train(SMALL, ["replay.shards=0"]), ValueError, "replay.shards is 0"),
            (lambda: self.train(SMALL, callbacks={"progres": print}), ValueError, "callbacks has 'progres'"),
            (lambda: self.train(SMALL, callbacks=3), TypeError, "callbacks has none of"),
            (lambda: self.train(SMALL, agent=dict), TypeError, "decorator @troupe.agent"),
            (lambda: self.train(SMALL, agent=python_td3.Td3), ValueError, "agent"),
            (lambda: troupe.resume(self.runs / "none"), Exception, "none"),
            (lambda: troupe.Run(self.runs), FileNotFoundError, "is not a run"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(error, words):
                call()


class AgentsInPython(InFolder):
    def test_td3_learns_and_continues_from_its_checkpoint(self):
        config = without_agent(python_td3.experiment("Pendulum-v1", 1500), replay={"minimum_items": 200}, actors={"random_steps": 200})
        config["evaluation"] = {"episodes": 2, "video": False}
        given = {"agent": python_td3.Td3, "agent_options": {"batch_size": 64, "policy_layers": (32, 32), "learning_rate": 1e-3}}
        run = self.train(config, **given)
        self.assertTrue(np.isfinite(run.metrics()["critic_loss"][-1]))
        updates = run.checkpoints[-1]
        self.assertGreater(updates, 1000)
        kept = run.parameters()
        self.assertEqual(int(kept["python.updates"]), updates)
        again = troupe.resume(run, {"stop.environment_steps": 2000}, verbose=False)
        self.assertEqual(int(again.parameters()["python.updates"]), again.checkpoints[-1])
        self.assertGreater(again.checkpoints[-1], updates)
        action = again.policy()(np.array([1, 0, 0], np.float32))
        self.assertEqual((action.shape, action.dtype), ((1,), np.float32))

    def test_the_deterministic_mode_is_bit_equal(self):
        config = without_agent(python_td3.experiment("Pendulum-v1", 600), replay={"minimum_items": 100}, actors={"random_steps": 100})
        config.update(deterministic=True, evaluation={"episodes": 1, "video": False})
        options = {"batch_size": 32, "policy_layers": (16,), "learning_rate": 0.25e-3}
        of_numpy = {**options, "batch_size": np.int64(32), "learning_rate": np.float64(0.25e-3)}
        first, second = (self.train(config, agent=python_td3.Td3, agent_options=given).parameters() for given in (options, of_numpy))
        self.assertEqual(first.keys(), second.keys())
        for name, tensor in first.items():
            self.assertTrue(torch.equal(tensor, second[name]), name)

    def test_a_choice_is_made_by_the_greatest_output(self):
        @troupe.agent(batch_size=32, policy_layers=(32,), epsilon=(1, 0.1, 500), metrics=("loss",), discrete=True)
        class Q:
            """Q-learning."""

            def __init__(self, env):
                self.policy = troupe.agents.mlp(env.observation_size, env.policy_layers, env.outputs)
                self.optimizer = torch.optim.Adam(self.policy.parameters(), 1e-3)

            def update(self, batch):
                with torch.no_grad():
                    target = batch["reward"] + batch["discount"] * self.policy(batch["next_observation"]).amax(1)
                value = self.policy(batch["observation"]).gather(1, batch["action"].long()).squeeze(1)
                loss = torch.nn.functional.smooth_l1_loss(value, target, reduction="none")
                self.priorities = loss.detach()
                self.optimizer.zero_grad()
                (loss * batch["weight"]).mean().backward()
                self.optimizer.step()
                return {"loss": loss.mean()}

        config = without_agent(python_td3.experiment("CartPole-v1", 1500), replay={"minimum_items": 100, "samples_per_insert": 32, "sampler": "prioritized"})
        config["evaluation"] = {"episodes": 1, "video": False}
        run = self.train(config, agent=Q)
        self.assertGreater(run.checkpoints[-1], 500)
        self.assertIn(int(run.policy()(np.zeros(4, np.float32))), (0, 1))

    def test_pixels_go_through_an_encoder_that_the_actors_play(self):
        for kind in ("stride4", "drq", "elu"):

            @troupe.agent(batch_size=16, policy_layers=(24, 20), encoder=kind, encoder_channels=6, metrics=("loss",), name=f"Looking_{kind}")
            class Looking:
                def __init__(self, env):
                    self.encoder = troupe.agents.encoder(env)
                    self.policy = torch.nn.Sequential(self.encoder, troupe.agents.mlp(env.observation_size, env.policy_layers, env.outputs))
                    self.critic = troupe.agents.mlp(env.observation_size + env.action_size, (32,), 1)
                    self.shape = env.observation_shape
                    self.optimizer = torch.optim.Adam([*self.policy.parameters(), *self.critic.parameters()], 1e-3)

                def update(self, batch):
                    assert batch["observation"].shape[1:] == self.shape and batch["observation"].dtype == torch.uint8
                    seen = self.encoder(batch["observation"])
                    with torch.no_grad():
                        features = self.encoder(batch["next_observation"])
                        after = torch.cat([features, self.policy[1](features).tanh()], 1)
                        target = batch["reward"] + batch["discount"] * self.critic(after).squeeze(1)
                    loss = (self.critic(torch.cat([seen, batch["action"]], 1)).squeeze(1) - target).square().mean()
                    loss = loss - self.critic(torch.cat([seen.detach(), self.policy[1](seen.detach()).tanh()], 1)).mean() * 0.01
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                    return {"loss": loss}

            with self.subTest(kind):
                config = without_agent(python_td3.experiment("cartpole_balance", 800), replay={"minimum_items": 50, "samples_per_insert": 16}, actors={"random_steps": 50})
                config["environment"].update(pixels={"height": 40, "width": 36, "effects": False}, frame_stack=2, action_repeat=4)
                config["evaluation"] = {"episodes": 1, "video": False}
                run = self.train(config, agent=Looking)
                self.assertGreater(run.checkpoints[-1], 100)
                self.assertTrue(np.isfinite(run.metrics()["loss"][-1]))
                made = self.remake(Looking, (6, 40, 36), kind, run.parameters())
                pictures = np.random.default_rng(1).integers(0, 256, (5, 6, 40, 36), np.uint8)
                with torch.no_grad():
                    wanted = made.policy(torch.from_numpy(pictures)).tanh().numpy()
                played = np.stack([run.policy()(picture) for picture in pictures])
                np.testing.assert_allclose(played, wanted, atol=2e-4)

    def remake(self, made, shape, kind, parameters):
        """The agent's object with a run's parameters, as its replica has it."""
        env = troupe.agents.AgentEnv(1, shape, 1, 0, 1, 0.99, (24, 20), kind, 6, 1)
        features = troupe.agents.encoder(env)(torch.zeros(1, *shape, dtype=torch.uint8)).shape[1]
        agent = made(dataclasses.replace(env, observation_size=features))
        state = {name.removeprefix("python.policy/"): tensor for name, tensor in parameters.items() if name.startswith("python.policy/")}
        agent.policy.load_state_dict(state)
        return agent

    def test_replicas_take_the_same_steps_on_parts_of_the_batch(self):
        seen = {}

        @troupe.agent(batch_size=32, policy_layers=(16,), metrics=("rows",))
        class Pair:
            def __init__(self, env):
                self.policy = troupe.agents.mlp(env.observation_size, env.policy_layers, env.outputs)
                self.optimizer = torch.optim.Adam(self.policy.parameters(), 1e-3)
                self.log = seen.setdefault(len(seen), [])

            def update(self, batch):
                self.log.append((batch["observation"][0].tolist(), [p.detach().clone() for p in self.policy.parameters()]))
                self.optimizer.zero_grad()
                (self.policy(batch["observation"]).tanh() - batch["action"]).square().mean().backward()
                self.optimizer.step()
                return {"rows": len(batch["action"])}

        config = without_agent(python_td3.experiment("Pendulum-v1", 600), replay={"minimum_items": 100, "samples_per_insert": 32}, actors={"random_steps": 100})
        config["evaluation"] = {"episodes": 1, "video": False}
        run = self.train(config, {"learner.replicas": 2, "learner.strategy": "multi_worker"}, agent=Pair)
        first, second = seen.values()
        self.assertGreater(min(len(first), len(second)), 100)
        different_rows = 0
        for (row, parameters), (other_row, others) in zip(first, second):
            different_rows += row != other_row
            for one, other in zip(parameters, others):
                self.assertTrue(torch.equal(one, other))
        self.assertGreater(different_rows, 50)
        self.assertEqual(run.metrics()["rows"][-1], 16)

    def test_a_checkpoint_has_the_learning_rates_that_an_agent_has_changed(self):
        class Decaying:
            def __init__(self, learning_rate):
                self.policy = torch.nn.Linear(2, 1)
                self.optimizer = torch.optim.Adam(self.policy.parameters(), learning_rate)

        def learner(learning_rate):
            return troupe.agents._Learner(Decaying(learning_rate), troupe.agents.AgentEnv(2, (2,), 1, 0, 1, 0.99, (8,), None, 32, 1))

        first = learner(1e-3)
        unchanged = first.state()
        first._agent.optimizer.param_groups[0]["lr"] = 1e-4
        state = first.state()
        for given, continued in [(1e-3, 1e-4), (5e-4, 5e-4)]:  # the second run is resumed with another option
            second = learner(given)
            second.load(state)
            self.assertEqual(second._agent.optimizer.param_groups[0]["lr"], continued)
        second = learner(1e-3)
        second.load(unchanged)
        self.assertEqual(second._agent.optimizer.param_groups[0]["lr"], 1e-3)
        again = learner(1e-3)
        again.load(state)
        third = learner(1e-3)
        third.load(again.state())
        self.assertEqual(third._agent.optimizer.param_groups[0]["lr"], 1e-4)

    def test_what_update_raises_ends_the_run_with_its_words(self):
        @troupe.agent(batch_size=8)
        class Broken:
            def __init__(self, env):
                self.policy = troupe.agents.mlp(env.observation_size, env.policy_layers, env.outputs)

            def update(self, batch):
                raise ArithmeticError("the update is wrong")

        with self.assertRaisesRegex(RuntimeError, "ArithmeticError: the update is wrong"):
            self.train(python_td3.experiment("Pendulum-v1", 5000), agent=Broken)

    def test_mistakes_are_named(self):
        pendulum = python_td3.experiment("Pendulum-v1", 3000)
        for options, words in [
            ({"learning_rat": 1}, "learning_rat is not an option of Td3; did you mean learning_rate"),
            ({"batch_size": 0}, "batch_size is 0"),
            ({"policy_layers": 3}, "policy_layers is 3"),
            ({"noise": -1}, "noise is -1"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                self.train(pendulum, agent=python_td3.Td3, agent_options=options)
        with self.assertRaisesRegex(ValueError, "agent_options are given without agent"):
            self.train(pendulum, agent_options={"batch_size": 8})
        with self.assertRaisesRegex(ValueError, r'learner.strategy is "local_sgd", but replicas of agent \S+ can only average'):
            self.train(pendulum, {"learner.replicas": 2, "learner.strategy": "local_sgd"}, agent=python_td3.Td3)
        with self.assertRaisesRegex(ValueError, "environment.pixels"):
            self.train({**pendulum, "environment": {"task": "cheetah_run", "pixels": True}}, agent=python_td3.Td3)

        @troupe.agent(batch_size=8, policy_layers=(8,))
        class Tanh:
            def __init__(self, env):
                self.policy = torch.nn.Sequential(torch.nn.Linear(env.observation_size, env.outputs), torch.nn.Tanh())

            def update(self, batch):
                return {}

        with self.assertRaisesRegex(RuntimeError, "policy has a layer Tanh"):
            self.train(pendulum, agent=Tanh)
        with self.assertRaisesRegex(ValueError, "encoder is 'big'; it must be 'stride4', 'drq' or 'elu'"):
            troupe.agent(batch_size=8, encoder="big")(Tanh)

        @troupe.agent(batch_size=8, policy_layers=(8,), encoder="drq", encoder_channels=4)
        class Other(Tanh):
            def __init__(self, env):
                self.policy = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(env.observation_size, env.outputs))

        with self.assertRaisesRegex(ValueError, "environment.pixels is not given, but this agent learns from pixels"):
            self.train(pendulum, agent=Other)
        pictures = {**pendulum, "environment": {"task": "cheetah_run", "pixels": {"height": 32, "width": 32, "effects": False}}}
        with self.assertRaisesRegex(RuntimeError, 'policy begins with Flatten.* where the encoder "drq" has Pixels'):
            self.train(pictures, agent=Other)

    def test_the_example_has_at_most_120_lines(self):
        lines = pathlib.Path(python_td3.__file__).read_text().splitlines()
        self.assertLessEqual(len(lines), 120)


if __name__ == "__main__":
    unittest.main(verbosity=1)
