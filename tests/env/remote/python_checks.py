"""Checks of env/remote/python with the real libraries; started by python_test.py.

Usage: python_checks.py <serve_task> <play_remote> <protoc> <remote.proto> [tests]
"""

import contextlib
import dataclasses
import io
import logging
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import ale_py
import dm_env
import gymnasium
import numpy as np
import troupe_env
import zmq
from dm_control import suite
from dm_env import specs, test_utils
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from troupe_env import messages, ports, zmtp
from troupe_env.__main__ import main as command
from troupe_env.adapters import adapt
from troupe_env.program import Program
from troupe_env.spec import LAST, ArraySpec, Spec, check_spec, decode_spec, encode_spec

SERVE, PLAY, PROTOC, PROTO = (os.path.abspath(path) for path in sys.argv[1:5])
PACKAGE = pathlib.Path(troupe_env.__file__).parents[1]
logging.getLogger("absl").setLevel(logging.ERROR)
ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # importing it has registered its games


class Tests(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="troupe-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.endpoint = f"ipc://{self.folder}/x"
        os.chdir(self.folder)  # MuJoCo writes its log where it is

    def served(self, make, count=1, **options):
        """The endpoint of a Server of this process's, which ends with the test."""
        server = troupe_env.Server(make, self.endpoint, count, **options)
        thread = threading.Thread(target=server.serve)
        thread.start()

        def end():
            server.stop()
            thread.join()
            server.close()

        self.addCleanup(end)
        return server

    def keys(self, name):
        """The files of a new pair: its secret and its public key."""
        public, secret = zmq.curve_keypair()
        for word, key in (("secret", secret), ("public", public)):
            path = pathlib.Path(self.folder, f"{name}.{word}")
            path.write_text(f"# of a test\n{word} {key.decode()}\n")
            path.chmod(0o600)
        return f"{self.folder}/{name}.secret", f"{self.folder}/{name}.public"

    def client(self, count=1, **options):
        client = troupe_env.Client(self.endpoint, count, **options)
        self.addCleanup(client.close)
        return client

    def command(self, *arguments):
        """`python -m troupe_env serve …` as a process, after it has said that it serves."""
        process = subprocess.Popen(
            [sys.executable, "-m", "troupe_env", "serve", *arguments, "--endpoint", self.endpoint, "--end-with-input"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )

        def end():
            process.stdin.close()
            process.wait(20)
            process.stdout.close()

        self.addCleanup(end)
        self.assertIn(b"serving ", process.stdout.readline())
        return process


class Counting(gymnasium.Env):
    """Counts its steps; raises where the first action is above 0.9, sends the wrong shape below -0.9."""

    observation_space = gymnasium.spaces.Dict(
        {"count": gymnasium.spaces.Discrete(1000), "x": gymnasium.spaces.Box(-1e9, 1e9, (2,), np.float32)}
    )
    action_space = gymnasium.spaces.Box(-2, 2, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.count = np.array([seed, 0], np.float32), 0
        return {"count": self.count, "x": self.x}, {}

    def step(self, action):
        if action[0] > 0.9:
            raise ArithmeticError("counting failed")
        if action[0] < -0.9:
            return {"count": 0, "x": np.zeros(3)}, 0.0, False, False, {}
        self.count += 1
        self.x = self.x + action
        return {"count": self.count, "x": self.x}, float(self.count), self.count == 3, self.count == 5, {}


class Seeing(gymnasium.Env):
    """Shows a picture of 4 x 5 pixels in colour and one in grey levels, whose numbers say row, column and channel, and its steps."""

    observation_space = gymnasium.spaces.Dict(
        {
            "camera": gymnasium.spaces.Box(0, 255, (4, 5, 3), np.uint8),
            "depth": gymnasium.spaces.Box(0, 255, (4, 5), np.uint8),
            "steps": gymnasium.spaces.Box(0, np.inf, (1,), np.float32),
        }
    )
    action_space = gymnasium.spaces.Discrete(2)

    def seen(self):
        row, column, channel = np.indices((4, 5, 3), np.uint8)
        picture = 100 * channel + 10 * row + column + np.uint8(self.steps)
        return {"camera": picture, "depth": picture[:, :, 0], "steps": np.array([self.steps], np.float32)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.seen(), {}

    def step(self, action):
        self.steps += 1
        return self.seen(), 0.0, False, self.steps == 5, {}


MIXED = spaces.Dict(
    {
        "gear": spaces.Discrete(3, start=-1),
        "pedals": spaces.Box(-1, 1, (2,), np.float32),
        "switches": spaces.MultiBinary(2),
        "wheels": spaces.Tuple((spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[0, 10], [0, 0]]), spaces.Discrete(2))),
    }
)


class Choosing(gymnasium.Env):
    """Observes its last action as one vector, float64, each number as the environment got it; the reward is their sum. Five steps."""

    def __init__(self, action_space):
        self.action_space = action_space
        self.observation_space = spaces.Box(-100, 100, (len(self._numbers(action_space.sample())),), np.float64)

    @classmethod
    def _numbers(cls, action):
        parts = tuple(action.values()) if isinstance(action, dict) else action
        return [x for part in parts for x in cls._numbers(part)] if isinstance(parts, tuple) else list(np.ravel(parts))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(self.observation_space.shape), {}

    def step(self, action):
        if not self.action_space.contains(action):
            raise AssertionError(f"{action!r} is not in {self.action_space}")
        self.steps += 1
        seen = np.array(self._numbers(action), np.float64)
        return seen, float(seen.sum()), False, self.steps == 5, {}


class OldSeeding(gymnasium.Env):
    """Takes only seeds that RandomState takes. Shows a board, bool [4, 5, channels], with one lit cell, and its seed."""

    action_space = spaces.Discrete(2)

    def __init__(self, channels):
        self.observation_space = spaces.Dict(
            {"board": spaces.Box(0, 1, (4, 5, channels), bool), "seed": spaces.Box(0, np.inf, (1,), np.float64)}
        )

    def reset(self, *, seed=None, options=None):
        np.random.RandomState(seed)
        board = np.zeros(self.observation_space["board"].shape, bool)
        board[1, 2, 0] = True
        return {"board": board, "seed": np.array([seed], np.float64)}, {}


class DmOldSeeding(dm_env.Environment):
    """The same of dm_env: observes its seed."""

    def action_spec(self):
        return specs.DiscreteArray(2)

    def observation_spec(self):
        return specs.Array((1,), np.float64, "seed")

    def seed(self, seed):
        np.random.RandomState(seed)
        self._seed = seed

    def reset(self):
        return dm_env.restart(np.array([self._seed], np.float64))

    def step(self, action):
        raise NotImplementedError


class DmChoosing(dm_env.Environment):
    """The same of dm_env: observes its last action."""

    def __init__(self, action_spec):
        self._action_spec = action_spec

    def action_spec(self):
        return self._action_spec

    def observation_spec(self):
        return specs.Array(self._action_spec.shape, np.float64, "action")

    def reset(self):
        return dm_env.restart(np.zeros(self._action_spec.shape))

    def step(self, action):
        self._action_spec.validate(action)
        return dm_env.transition(float(np.sum(action)), np.asarray(action, np.float64))


class Specs(unittest.TestCase):
    """The rules of a spec are those of C++ (tests/env/spec_test.cpp), in the same words."""

    def spec(self, low, high, choices=()):
        return Spec("s", (ArraySpec("x", np.dtype("<f8"), ()),), tuple(low), tuple(high), action_choices=tuple(choices))

    def test_choices_travel_with_the_spec(self):
        for spec in [
            self.spec([-1.0], [1.0]), self.spec([0.0], [5.0], [6]), self.spec([-1.0, 0.0, 0.0], [1.0, 3.0, 1.0], [0, 4, 2]),
            self.spec([-1.0], [1.0], [0]),
        ]:
            self.assertEqual(decode_spec(messages.SpecMessage.decode(encode_spec(spec).encode()), 1 << 20), spec)
        self.assertEqual(self.spec([-1.0, -1.0], [1.0, 1.0]).choices, (0, 0))

    def test_what_is_wrong_with_an_action_is_said_in_one_sentence(self):
        nan = float("nan")
        for low, high, choices, problem in [
            ([0.0, 0.0], [1.0], [], "2 action minima and 1 maxima; their numbers must be equal"),
            ([], [], [], "0 action dimensions; 1 to 4096 are allowed"),
            ([0.0, 0.0], [1.0, 1.0], [2], "1 numbers of choices for 2 action dimensions; there must be one for each, or none"),
            ([0.0, 0.0], [1.0, 0.0], [0, 1], "action[1] has 1 choices; it must have 2 or more, or be continuous (0)"),
            ([0.0], [1.0], [-2], "action[0] has -2 choices; it must have 2 or more, or be continuous (0)"),
            ([0.0], [3.0], [3], "action[0] has 3 choices and the bounds 0.000000 and 3.000000; they must be 0 and 2"),
            ([nan], [2.0], [3], "action[0] has 3 choices and the bounds nan and 2.000000; they must be 0 and 2"),
            ([0.0, 1.0], [1.0, 1.0], [], "action[1] is bounded by 1.000000 and 1.000000; the minimum must be below the maximum"),
            ([0.0], [nan], [], "action[0] is bounded by 0.000000 and nan; the minimum must be below the maximum"),
        ]:
            with self.assertRaises(messages.MessageError) as raised:
                check_spec(self.spec(low, high, choices), 1 << 20)
            self.assertEqual(str(raised.exception), f"its spec: {problem}")

    def actions_of(self, space):
        spec = adapt(Choosing(space)).spec
        return spec.action_minimum, spec.action_maximum, spec.action_choices

    def test_gymnasiums_spaces_become_choices_and_continuous_numbers(self):
        self.assertEqual(self.actions_of(spaces.Discrete(4, start=7)), ((0.0,), (3.0,), (4,)))
        self.assertEqual(self.actions_of(spaces.MultiDiscrete([2, 5])), ((0.0, 0.0), (1.0, 4.0), (2, 5)))
        self.assertEqual(self.actions_of(spaces.MultiBinary((2, 1))), ((0.0, 0.0), (1.0, 1.0), (2, 2)))
        self.assertEqual(self.actions_of(spaces.Box(-2, 2, (2,))), ((-2.0, -2.0), (2.0, 2.0), ()))
        low, high, choices = self.actions_of(MIXED)
        self.assertEqual(choices, (3, 0, 0, 2, 2, 2, 3, 4, 5, 2))
        self.assertEqual((low[1], high[1], high[0], high[8]), (-1.0, 1.0, 2.0, 4.0))

    def test_dm_envs_specs_become_choices_and_continuous_numbers(self):
        for action, expected in [
            (specs.DiscreteArray(3), ((0.0,), (2.0,), (3,))),
            (specs.BoundedArray((2,), np.int32, [-1, 0], [1, 6]), ((0.0, 0.0), (2.0, 6.0), (3, 7))),
            (specs.BoundedArray((2,), np.uint8, 250, 255), ((0.0, 0.0), (5.0, 5.0), (6, 6))),
            (specs.BoundedArray((2,), np.float32, -1, 1), ((-1.0, -1.0), (1.0, 1.0), ())),
        ]:
            spec = adapt(DmChoosing(action)).spec
            self.assertEqual((spec.action_minimum, spec.action_maximum, spec.action_choices), expected)

    def reset(self, adapter, seed):
        """The arrays that an adapter writes in a reset."""
        views = [np.zeros(array.shape, array.dtype) for array in adapter.spec.observations]
        adapter.reset(seed, views)
        return views

    def test_seeds_of_64_bits_become_seeds_that_every_environment_accepts(self):
        for adapter in (adapt(OldSeeding(2)), adapt(DmOldSeeding())):
            seen = [self.reset(adapter, seed)[-1][0] for seed in (0, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, (1 << 64) - 1)]
            self.assertEqual(seen[:2], [0, (1 << 32) - 1])  # unchanged
            self.assertLess(max(seen), 1 << 32)
            self.assertEqual(len(set(seen)), 5)

    def test_boards_become_pictures_with_their_channels_first(self):
        for channels, shape, lit in [(2, (2, 4, 5), (0, 1, 2)), (4, (4, 4, 5), (0, 1, 2)), (6, (4, 5, 6), (1, 2, 0))]:
            adapter = adapt(OldSeeding(channels))
            self.assertEqual(adapter.spec.observations[0], ArraySpec("board", np.dtype("u1"), shape))
            board = self.reset(adapter, 1)[0]
            self.assertEqual((board[lit], int(board.sum())), (255, 255))

    def test_what_is_no_choice_is_refused(self):
        huge = specs.BoundedArray((), np.int64, -(1 << 63), (1 << 63) - 1)
        for environment in [
            Choosing(spaces.Discrete(1)), Choosing(spaces.MultiDiscrete([3, 1])), DmChoosing(specs.DiscreteArray(1)), DmChoosing(huge)
        ]:
            with self.assertRaisesRegex(TypeError, r"has a choice of \d+; a choice must be of 2 or more"):
                adapt(environment)


class Messages(Tests):
    """Our table of messages against Protobuf's library and the .proto."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "set")
            subprocess.run(
                [PROTOC, f"--proto_path={os.path.dirname(PROTO)}", f"--descriptor_set_out={out}", PROTO], check=True
            )
            files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(out).read_bytes())
        pool = descriptor_pool.DescriptorPool()
        pool.Add(files.file[0])
        cls.theirs = {
            m.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{files.file[0].package}.{m.name}"))
            for m in files.file[0].message_type
        }

    def pairs(self):
        for name, theirs in self.theirs.items():
            yield getattr(messages, "SpecMessage" if name == "Spec" else name), theirs

    def test_the_tables_are_those_of_the_proto_file(self):
        for ours, theirs in self.pairs():
            expected = {(f.number, f.name) for f in theirs.DESCRIPTOR.fields}
            self.assertEqual({(f.number, f.name) for f in ours.FIELDS}, expected, ours)

    def random_message(self, kind, dice):
        message = kind()
        for field in kind.FIELDS:
            if dice.random() < 0.4:
                continue
            values = [self.random_value(field.kind, dice) for _ in range(dice.randrange(4) if field.repeated else 1)]
            if field.oneof and message.body() is not None:
                continue
            setattr(message, field.name, values if field.repeated else values[0])
        return message

    def random_value(self, kind, dice):
        if isinstance(kind, type):
            return self.random_message(kind, dice)
        if kind is messages.UINT:
            return dice.choice([0, 1, 2, 127, 128, 4095])
        if kind is messages.INT:
            return dice.choice([0, -1, 1 << 62, -(1 << 63), 300])
        return {
            messages.BOOL: True, messages.FIXED64: dice.getrandbits(64), messages.DOUBLE: dice.uniform(-1e9, 1e9),
            messages.TEXT: dice.choice(["", "caf\u00e9 \U0001f600", "x" * 300]), messages.BYTES: dice.randbytes(5),
        }[kind]

    def test_bytes_are_those_of_protobuf_both_ways(self):
        dice = random.Random(1)
        for ours, theirs in self.pairs():
            for _ in range(300):
                message = self.random_message(ours, dice)
                data = message.encode()
                read = theirs.FromString(data)
                self.assertEqual(read.SerializeToString(deterministic=True), data)
                self.assertEqual(ours.decode(data), message)

    def test_mutated_bytes_are_read_or_refused_and_nothing_else_happens(self):
        dice = random.Random(2)
        refused = 0
        for i in range(20000):
            data = bytearray(self.random_message(messages.Envelope, dice).encode() + b"\0")
            for _ in range(1 + dice.randrange(3)):
                data[dice.randrange(len(data))] = dice.randrange(256)
            del data[dice.randrange(len(data)) if i % 3 == 0 else len(data) :]
            try:
                messages.Envelope.decode(bytes(data))
            except messages.MessageError:
                refused += 1
        self.assertGreater(refused, 1000)
        self.assertLess(refused, 19000)


class Zmtp(unittest.TestCase):
    """The reader of ZeroMQ's protocol."""

    def sent_by_a_client(self):
        def message(*parts):
            return b"".join(zmtp.head(len(part), more=i + 1 < len(parts)) + part for i, part in enumerate(parts))

        return zmtp.hello(b"DEALER") + message(b"header", bytes(300)) + zmtp.head(7, command=True) + b"\4PING\0\1" + message(b"", b"", b"") + message(b"end")

    def read(self, data, pieces):
        """What a reader takes out of these bytes, and the most that it held."""
        reader, taken, held = zmtp.ZmtpReader(2, 400), [], 0
        for at in range(0, len(data), pieces):
            reader.feed(data[at : at + pieces])
            while (one := reader.take()) is not None:
                taken.append(one)
            held = max(held, reader.held_bytes)
        return taken, held

    def test_messages_and_commands_are_the_same_in_pieces_of_any_size(self):
        data = self.sent_by_a_client()
        for pieces in (1, 7, 64, len(data)):
            self.assertEqual(self.read(data, pieces)[0], [[b"header", bytes(300)], b"\4PING\0\1", [], [b"end"]])

    def test_a_reader_holds_no_more_than_its_limits_whatever_it_gets(self):
        dice = random.Random(4)
        data = self.sent_by_a_client()
        strangers = 0
        for _ in range(3000):
            changed = bytearray(data)
            for _ in range(1 + dice.randrange(4)):
                changed[dice.randrange(len(changed))] = dice.randrange(256)
            try:
                self.assertLessEqual(self.read(bytes(changed) + bytes(changed[64:]), 50)[1], 2 * 400 + 50)
            except zmtp.StrangerError:
                strangers += 1
        self.assertGreater(strangers, 300)
        self.assertLess(strangers, 3000)

    def test_what_strangers_sent_does_not_count_after_they_have_left(self):
        with tempfile.TemporaryDirectory() as folder:
            why = []
            port = ports.PlainPort(f"ipc://{folder}/x", 2, 1000, drop=why.append, max_held_bytes=4000)
            part = zmtp.head(1000, more=True) + bytes(1000)

            def dialled(data):
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(f"{folder}/x")
                connection.sendall(zmtp.hello(b"DEALER") + data)
                return connection

            for number in range(1, 6):  # the third part drops the first two, and the frame behind it is of no known kind
                with dialled(2 * part + zmtp.head(0, more=True) + b"\xfd\0"):
                    while len(why) < number:
                        port.poll(20)
            self.assertEqual([text for text in why if "with the flags 253" not in text], [])
            with dialled(zmtp.head(3) + b"end"):
                self.assertTrue(port.poll(20000))
                self.assertEqual(port.receive()[1], [b"end"])
            port.close()

    def test_libzmq_and_the_reader_understand_each_other(self):
        with tempfile.TemporaryDirectory() as folder, zmq.Context() as context, context.socket(zmq.DEALER) as client:
            port = ports.PlainPort(f"ipc://{folder}/x", 2, 1 << 20)
            client.setsockopt(zmq.HEARTBEAT_IVL, 10)  # sends pings
            client.setsockopt(zmq.HEARTBEAT_TIMEOUT, 60000)
            client.connect(port.endpoint)
            for parts in ([b"a"], [b"", bytes(100000)], [b"x", b"y", b"z"], [b"end"]):
                client.send_multipart(parts)
                self.assertTrue(port.poll(20000))
                peer, got = port.receive()
                self.assertEqual(got, parts if len(parts) <= 2 else [])
                large = np.arange(1 << 20)
                port.send(peer, [b"answer", large])
                deadline = time.monotonic() + 60
                while not client.poll(0) and time.monotonic() < deadline:
                    port.poll(1)
                self.assertEqual(client.recv_multipart(), [b"answer", large.tobytes()])
            port.close()
            self.assertEqual(os.listdir(folder), [])


def action_of(i, t, size, choices=None):
    """The actions of play_remote.cpp."""
    xs = [(7 * i + 3 * t + 5 * k, n) for k, n in enumerate(choices or [0] * size)]
    return np.array([x % n if n else x % 17 / 8 - 1 for x, n in xs])


class Served(Tests):
    """Environments of Python, played by the C++ client and by ours."""

    def played_by_cpp(self, count, steps, *keys):
        out = subprocess.run([PLAY, self.endpoint, str(count), str(steps), *keys], check=True, capture_output=True, text=True).stdout
        lines = [line.split() for line in out.splitlines()]
        self.assertEqual(len(lines), count * (steps + 1))
        for t in range(steps + 1):
            yield [(int(l[0]), float.fromhex(l[1]), float.fromhex(l[2]), [float.fromhex(x) for x in l[3:]])
                   for l in lines[t * count : (t + 1) * count]]

    def test_gymnasiums_half_cheetah_has_the_numbers_it_has_here(self):
        self.command("gymnasium", "HalfCheetah-v5", "--count", "3")
        local = [gymnasium.make("HalfCheetah-v5") for _ in range(3)]
        for t, rows in enumerate(self.played_by_cpp(3, 25)):
            for i, (kind, reward, discount, observation) in enumerate(rows):
                if t == 0:
                    here, _ = local[i].reset(seed=10 + i)
                    self.assertEqual(kind, 0)
                else:
                    action = action_of(i, t - 1, 6).clip(-1, 1).astype(np.float32)
                    here, expected, terminated, truncated, _ = local[i].step(action)
                    self.assertEqual((kind, reward, discount), (1, expected, 1.0))
                self.assertEqual(observation, list(here))

    def test_dm_controls_cheetah_has_the_numbers_it_has_here(self):
        self.command("dm_control", "cheetah", "run", "--count", "2")
        local = [suite.load("cheetah", "run", task_kwargs={"random": 10 + i}) for i in range(2)]
        for t, rows in enumerate(self.played_by_cpp(2, 10)):
            for i, (kind, reward, discount, observation) in enumerate(rows):
                step = local[i].reset() if t == 0 else local[i].step(action_of(i, t - 1, 6).clip(-1, 1))
                self.assertEqual(kind, int(step.step_type))
                self.assertEqual((reward, discount), (step.reward or 0.0, 1.0 if t == 0 else step.discount))
                self.assertEqual(observation, [*step.observation["position"], *step.observation["velocity"]])

    def test_choices_reach_gymnasium_from_cpp_in_its_own_terms(self):
        self.served(lambda: Choosing(MIXED), 2)
        first = np.array([-1, 0, 0, 0, 0, 0, 10, 0, 0, 0])  # where each choice begins
        for t, rows in enumerate(self.played_by_cpp(2, 5)):
            for i, (kind, reward, _, observation, *_) in enumerate(rows):
                self.assertEqual(kind, 0 if t == 0 else 2 if t == 5 else 1)
                if t > 0:
                    action = action_of(i, t - 1, 10, (3, 0, 0, 2, 2, 2, 3, 4, 5, 2))
                    self.assertEqual(observation, list((action + first).astype(np.float32)))
                    self.assertEqual(reward, sum(observation))

    def test_choices_reach_dm_env_in_its_own_terms(self):
        self.served(lambda: DmChoosing(specs.BoundedArray((2,), np.int32, [-1, 5], [1, 6])), 2)
        client = self.client(2)
        client.play(None, {0: 1, 1: 2})
        results, arrays, failures = client.play([[0, 0], [2, 1]])
        self.assertEqual(failures, {})
        np.testing.assert_array_equal(arrays[0], [[-1, 5], [1, 6]])
        np.testing.assert_array_equal(results["reward"], [4, 7])

    def test_one_choice_reaches_dm_env_as_a_number(self):
        self.served(lambda: DmChoosing(specs.DiscreteArray(3)))
        client = self.client()
        client.play(None, {0: 1})
        self.assertEqual(client.play([[2]])[1][0], 2)

    def test_a_choice_out_of_range_raises_here_and_fails_its_row_there(self):
        self.served(lambda: Choosing(spaces.Tuple((spaces.Box(-1, 1, (1,)), spaces.Discrete(3)))), 2)
        client = self.client(2)
        client.play(None, {0: 1, 1: 2})
        for bad, said in [(0.5, "0.5"), (-1, "-1"), (3, "3"), (np.nan, "nan")]:
            with self.assertRaisesRegex(ValueError, rf"action\[1\] of row 1 is {said}; it must be a whole number from 0 to 2"):
                client.play([[0, 0], [0, bad]])
        with self.assertRaisesRegex(ValueError, r"action\[0\] of row 0 is inf; actions must be finite"):
            client.play([[np.inf, 0], [0, 0]])
        _, arrays, _ = client.play([[-9, 2], [9, 0]])  # continuous numbers are clipped
        np.testing.assert_array_equal(arrays[0], [[-1, 2], [1, 0]])
        client.spec = dataclasses.replace(client.spec, action_choices=(), action_maximum=(1.0, 9.0))  # a client that does not check
        for bad in (0.5, 7):
            client.play(None, {0: 1, 1: 2})
            _, arrays, failures = client.play([[0, bad], [0, 2]])
            self.assertEqual(failures, {0: f"ValueError: action[1] is {bad}; it must be a whole number from 0 to 2"})
            np.testing.assert_array_equal(arrays[0], [[0, 0], [0, 2]])

    def test_frozen_lake_has_the_numbers_it_has_here(self):
        self.served(lambda: gymnasium.make("FrozenLake-v1"))
        client = self.client()
        self.assertEqual(client.spec.action_choices, (4,))
        local = gymnasium.make("FrozenLake-v1")
        for seed in range(5):
            _, arrays, _ = client.play(None, {0: seed})
            here, _ = local.reset(seed=seed)
            for t in range(100):
                self.assertEqual(arrays[0][0], here)
                results, arrays, _ = client.play([[t % 4]])
                here, reward, terminated, truncated, _ = local.step(t % 4)
                self.assertEqual((results["reward"][0], results["step_type"][0] == LAST), (reward, terminated or truncated))
                if terminated or truncated:
                    break

    def test_choices_and_terminations_go_through(self):
        self.served(lambda: gymnasium.make("CartPole-v1"))
        client = self.client()
        local = gymnasium.make("CartPole-v1")
        _, arrays, _ = client.play(None, {0: 4})
        here, _ = local.reset(seed=4)
        for t in range(500):
            np.testing.assert_array_equal(arrays[0][0], here)
            choice = t // 3 % 2
            results, arrays, _ = client.play([[choice]])
            here, reward, terminated, _, _ = local.step(choice)
            self.assertEqual(results["reward"][0], reward)
            if terminated:
                break
        self.assertTrue(terminated)
        self.assertEqual((results["step_type"][0], results["discount"][0]), (LAST, 0.0))

    def test_dictionaries_failures_and_batches(self):
        server = self.served(Counting, 3)
        client = self.client(3)
        self.assertEqual([a.name for a in client.spec.observations], ["count", "x"])
        self.assertEqual([a.dtype.str for a in client.spec.observations], ["<i8", "<f4"])
        _, arrays, _ = client.play(None, {0: 5, 1: 6, 2: 7})
        np.testing.assert_array_equal(arrays[1][:, 0], [5, 6, 7])
        results, arrays, failures = client.play([[0.5, 0], [1, 0], [-1, 0]])
        self.assertEqual(sorted(failures), [1, 2])
        self.assertIn("ArithmeticError: counting failed", failures[1])
        self.assertIn("has shape (3,)", failures[2])
        self.assertEqual(arrays[0][0], 1)
        _, _, failures = client.play(np.zeros((3, 2)), {1: 9})
        self.assertEqual(list(failures), [2])
        self.assertIn("reset first", failures[2])
        results, arrays, _ = client.play([[0, 0.5]], rows=[0])  # the third step terminates
        self.assertEqual((results["step_type"][0], results["discount"][0]), (LAST, 0.0))
        self.assertEqual(server.garbage, 0)

    def test_rows_resets_and_actions_that_do_not_belong_together_are_refused_and_cost_nothing(self):
        self.served(Counting, 3)
        client = self.client(3)
        client.play(None, {0: 5, 1: 6, 2: 7})
        for actions, resets, rows, words in [
            (np.zeros((1, 2)), {1: 9}, [0], r"resets are of environments \[1\], which are not among the rows"),
            (np.zeros((3, 2)), {3: 9}, None, r"resets are of environments \[3\]"),
            (np.zeros((0, 2)), {}, [], r"rows are \[\]; they must be one or more distinct environments of 0 to 2"),
            (np.zeros((1, 2)), {}, [7], r"rows are \[7\]"),
            (np.zeros((1, 2)), {}, [-1], r"rows are \[-1\]"),
            (np.zeros((2, 2)), {}, [1, 1], r"rows are \[1, 1\]"),
            (np.zeros((2, 3)), {}, None, r"actions have the shape \(2, 3\); they must have \(3, 2\)"),
        ]:
            with self.assertRaisesRegex(ValueError, words):
                client.play(actions, resets, rows)
        _, arrays, failures = client.play(np.zeros((3, 2)), {1: 9})
        self.assertEqual(failures, {})
        np.testing.assert_array_equal(arrays[0], [1, 0, 1])

    def test_pictures_travel_with_their_channels_first(self):
        self.served(Seeing)
        client = self.client()
        shapes = {array.name: array.shape for array in client.spec.observations}
        self.assertEqual(shapes, {"camera": (3, 4, 5), "depth": (1, 4, 5), "steps": (1,)})
        for turn in ((None, {0: 5}), (np.zeros((1, 1)),)):
            _, arrays, failures = client.play(*turn)
            self.assertEqual(failures, {})
            camera, depth, steps = (array[0] for array in arrays)
            self.assertEqual(camera[2, 3, 4], 234 + steps[0])
            self.assertEqual(depth[0, 3, 4], 34 + steps[0])
            np.testing.assert_array_equal(camera[0], depth[0])

    def test_a_wrapper_and_what_its_steps_count_as_are_arguments(self):
        self.command("gymnasium", "ALE/Breakout-v5", "--make", "frameskip=1", "--wrap", "AtariPreprocessing,noop_max=0",
                     "--action-repeat", "4", "--count", "2")
        client = self.client(2)
        self.assertEqual([a.shape for a in client.spec.observations], [(1, 84, 84)])
        self.assertEqual((client.spec.action_repeat, client.spec.action_choices), (4, (4,)))
        local = gymnasium.wrappers.AtariPreprocessing(gymnasium.make("ALE/Breakout-v5", frameskip=1), noop_max=0)
        local.reset(seed=8)
        _, arrays, _ = client.play(None, {0: 7, 1: 8})
        lit = 0
        for t in range(60):  # action 1 serves
            results, arrays, failures = client.play(np.full((2, 1), 1 + t % 3))
            here, reward, *_ = local.step(1 + t % 3)
            self.assertEqual((failures, results["reward"][1]), ({}, reward))
            np.testing.assert_array_equal(arrays[0][1, 0], here)
            lit += int((arrays[0][0] != arrays[0][1]).any())
        self.assertGreater(lit, 0)  # another seed, another game

    def test_strangers_and_liars_leave_the_server_as_it_was(self):
        server = self.served(Counting, 2)
        client = self.client(1)
        client.play(None, {0: 1})
        context = zmq.Context()
        socket = context.socket(zmq.DEALER)
        socket.connect(self.endpoint)
        dice = random.Random(3)
        play = messages.Envelope(
            protocol=1, session=7, request=2, play=messages.Play(environments=[1, 0], resets=b"\1\0", seeds=[3])
        ).encode()
        hello = messages.Envelope(protocol=1, session=7, request=1, hello=messages.Hello(environments=1)).encode()
        for i in range(1500):
            data = bytearray(hello if i % 5 == 0 else play)
            if i > 4:
                data[dice.randrange(len(data))] = dice.randrange(256)
            socket.send_multipart([bytes(data), *[dice.randbytes(dice.choice([0, 16, 32])) for _ in range(dice.randrange(3))]])
            if i % 100 == 0:
                self.assertEqual(client.play(np.zeros((1, 2)), {0: 5})[2], {})
        socket.close(0)
        context.term()
        self.assertEqual(client.play(np.zeros((1, 2)))[2], {})
        self.assertGreater(server.garbage, 100)

    def dial(self, endpoint):
        """A connection to a plain port, without a handshake."""
        is_path = endpoint.startswith("ipc://")
        connection = socket.socket(socket.AF_UNIX if is_path else socket.AF_INET)
        self.addCleanup(connection.close)
        connection.connect(endpoint[6:] if is_path else ("127.0.0.1", int(endpoint.rpartition(":")[2])))
        return connection

    @unittest.skipUnless(os.geteuid() == 0, "only root can ask as another user")
    def test_a_connection_of_another_user_is_closed_unless_all_are_allowed(self):
        os.chmod(self.folder, 0o755)
        for endpoint, options in (("tcp://127.0.0.1:*", {}), (self.endpoint, {}), ("tcp://127.0.0.1:*", {"allow_other_hosts": True})):
            self.endpoint = endpoint
            server = self.served(Counting, **options)
            if endpoint.startswith("ipc"):
                os.chmod(endpoint[6:], 0o777)
            told, tell = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    os.setresuid(65534, 65534, 65534)
                    os.write(tell, str(len(self.dial(server.endpoint).recv(10))).encode())
                finally:
                    os._exit(0)
            os.close(tell)
            os.waitpid(child, 0)
            self.assertEqual(os.read(told, 4096), b"10" if options else b"0")  # of the server's greeting
            os.close(told)
            self.assertEqual(len(self.dial(server.endpoint).recv(10)), 10)
            self.assertEqual(server.garbage, 0 if options else 1)

    def test_a_message_of_endless_parts_is_dropped_and_its_sender_answered_afterwards(self):
        server = self.served(Counting)
        stranger = self.dial(self.endpoint)
        part = zmtp.head(1000, more=True) + bytes(1000)
        stranger.sendall(zmtp.hello(b"DEALER") + 5000 * part + zmtp.head(0))
        hello = messages.Envelope(protocol=1, session=7, request=1, hello=messages.Hello(environments=1)).encode()
        stranger.sendall(zmtp.head(len(hello)) + hello)
        self.assertEqual(self.message_from(stranger)[0].welcome.environments, 1)
        self.assertEqual(server.garbage, 1)

    def message_from(self, connection):
        """The header and the other parts of the next message."""
        reader = zmtp.ZmtpReader(3, 1 << 20)
        while (parts := reader.take()) is None:
            data = connection.recv(4096)
            self.assertTrue(data, "the server closed the connection")
            reader.feed(data)
        return messages.Envelope.decode(parts[0]), parts[1:]

    def test_a_second_server_is_refused_and_a_dead_ones_socket_is_replaced(self):
        own, allowed = self.keys("own"), self.keys("allowed")
        self.served(Counting)
        for options in ({}, {"secret_key": own[0], "allowed_keys": allowed[1]}):
            with self.assertRaisesRegex(RuntimeError, "a server accepts connections there"):
                troupe_env.Server(Counting, self.endpoint, **options)
        self.client().play(None, {0: 1})
        self.endpoint = f"ipc://{self.folder}/file"
        pathlib.Path(self.folder, "file").write_text("kept")
        with self.assertRaisesRegex(RuntimeError, "a file that is not a socket is there and is kept"):
            troupe_env.Server(Counting, self.endpoint)
        self.assertEqual(pathlib.Path(self.folder, "file").read_text(), "kept")
        self.endpoint = f"ipc://{self.folder}/dead"
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(f"{self.folder}/dead")
        self.served(Counting)
        self.client().play(None, {0: 1})

    def test_a_server_without_descriptors_waits_until_one_is_free(self):
        process = self.command("python", "troupe_env.idle:make")
        descriptors = f"/proc/{process.pid}/fd"
        limit = max(map(int, os.listdir(descriptors))) + 5
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (limit, resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[1]))
        crowd = [self.dial(self.endpoint) for _ in range(limit)]
        deadline = time.monotonic() + 20
        while len(os.listdir(descriptors)) < limit:
            self.assertLess(time.monotonic(), deadline)
        for connection in crowd:
            connection.close()
        self.client().play(None, {0: 1})
        self.assertIsNone(process.poll())

    def test_a_server_that_admits_every_host_without_keys_says_so_in_its_log(self):
        for options in ({}, {"allow_other_hosts": True}):
            lines = []
            server = self.served(Counting, log=lines.append, **options)
            self.assertEqual([line for line in lines if "nothing is encrypted" in line and server.endpoint in line] != [], bool(options), lines)
            self.endpoint += "-open"

    def test_with_keys_both_clients_play_and_others_do_not_come_in(self):
        own, allowed, stranger = (self.keys(name) for name in ("own", "allowed", "stranger"))
        self.endpoint = "tcp://127.0.0.1:*"
        server = self.served(lambda: gymnasium.make("InvertedPendulum-v5"), 2, secret_key=own[0], allowed_keys=allowed[1])
        self.endpoint = server.endpoint
        rows = next(iter(self.played_by_cpp(1, 1, allowed[0], own[1])))
        self.assertEqual(rows[0][0], 0)
        self.client(secret_key=allowed[0], server_key=own[1])
        for options in ({}, {"secret_key": stranger[0], "server_key": own[1]}, {"secret_key": allowed[0], "server_key": stranger[1]}):
            with self.subTest(options), self.assertRaises(troupe_env.RemoteError):
                troupe_env.Client(self.endpoint, connect_deadline=0.5, **options)
        with self.assertRaisesRegex(ValueError, "give both secret_key and server_key"):
            troupe_env.Client(self.endpoint, secret_key=own[0])
        os.chmod(stranger[0], 0o644)
        with self.assertRaisesRegex(ValueError, "others may read it; chmod 600"):
            troupe_env.Client(self.endpoint, secret_key=stranger[0], server_key=own[1])
        with self.assertRaisesRegex(ValueError, "must have one secret key"):
            troupe_env.Client(self.endpoint, secret_key=own[1], server_key=own[1])

    def test_another_version_is_refused_in_words(self):
        self.served(Counting)
        with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
            socket.connect(self.endpoint)
            socket.send(messages.Envelope(protocol=9, session=7, request=1, hello=messages.Hello(environments=1)).encode())
            self.assertTrue(socket.poll(5000))
            answer = messages.Envelope.decode(socket.recv())
        self.assertEqual(answer.refused.reason, messages.Refused.PROTOCOL)
        self.assertIn("version 1", answer.refused.message)

    def test_environments_of_a_vanished_client_are_free_again(self):
        self.served(Counting, 2, silence_seconds=0.2)
        first = troupe_env.Client(self.endpoint, 2)
        with self.assertRaisesRegex(troupe_env.RemoteError, "0 of 2 environments are free"):
            troupe_env.Client(self.endpoint, 1, connect_deadline=0.3)
        first._disconnect()  # as if it had been killed: no word, no heartbeats
        second = self.client(1, retry_interval=0.1)  # repeats its hello until the environments are free
        self.assertEqual(second.play(None, {0: 3})[2], {})
        first.close()

    def test_mistakes_of_the_command_are_told_in_one_line(self):
        for arguments, text in [
            (["gymnasium", "NoSuch-v0"], "NoSuch"),
            (["gymnasium", "CartPole-v1", "--count", "0"], "count is 0"),
            (["gymnasium", "CartPole-v1", "--endpoint", "tcp://0.0.0.0:5555"], "loopback"),
            (["dm_control", "cheetah"], "a domain and a task"),
            (["python", "nonsense"], "<module>:<function>"),
            (["gymnasium", "CartPole-v1", "--wrap", "Atari"], "'Atari' is none of gymnasium.wrappers"),
            (["gymnasium", "CartPole-v1", "--action-repeat", "0"], "action_repeat is 0"),
        ]:
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                self.assertIn(command(["serve", *arguments]), (1, 2))
            self.assertIn(text, said.getvalue().splitlines()[-1])

    def test_the_command_ends_with_its_input_and_by_a_signal(self):
        process = self.command("python", "troupe_env.idle:make")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 0)


class Playing(Tests):
    """Troupe's environments as Gymnasium's and dm_env's, served by C++."""

    def test_gymnasiums_checker_is_content(self):
        for task in ["cheetah_run", "toy", "one_choice", "two_choices", "mixed"]:
            with contextlib.closing(troupe_env.GymnasiumEnv(task, program=SERVE)) as environment:
                check_env(environment, skip_render_check=True)

    def test_episodes_are_functions_of_their_seed_and_end_by_truncation(self):
        with contextlib.closing(troupe_env.GymnasiumEnv("toy", program=SERVE)) as environment:
            first, _ = environment.reset(seed=7)
            self.assertEqual(first["position"][0], 7)
            with self.assertRaisesRegex(ValueError, r"actions have the shape \(5,\); they must have \(2,\)"):
                environment.step(np.zeros(5))
            for t in range(10):
                observation, reward, terminated, truncated, info = environment.step(np.array([0.25, 0], np.float32))
            self.assertEqual((reward, terminated, truncated, info["discount"]), (9.5, False, True, 0.5))
            with self.assertRaisesRegex(troupe_env.RemoteError, "reset first"):
                environment.step(np.zeros(2, np.float32))
            environment.reset(seed=7)
            with self.assertRaisesRegex(troupe_env.RemoteError, "toy exploded"):
                environment.step(np.ones(2, np.float32))

    def test_choices_have_gymnasiums_spaces(self):
        box = spaces.Box(-1, 1, (1,), np.float32)
        for task, space, action, numbers in [
            ("one_choice", spaces.Discrete(3), 2, [2]),
            ("two_choices", spaces.MultiDiscrete([3, 5]), np.array([1, 4]), [1, 4]),
            ("mixed", spaces.Tuple((box, spaces.MultiDiscrete([3, 2]))), (np.array([0.5], np.float32), np.array([2, 1])), [2, 0.5, 1]),
        ]:
            with contextlib.closing(troupe_env.GymnasiumEnv(task, program=SERVE)) as environment:
                self.assertEqual(environment.action_space, space)
                self.assertTrue(space.contains(action))
                environment.reset(seed=1)
                observation, reward, *_ = environment.step(action)
                self.assertEqual((list(observation), reward), (numbers, sum(numbers)))
            with contextlib.closing(troupe_env.GymnasiumVectorEnv(task, 3, program=SERVE)) as vector:
                self.assertEqual(vector.single_action_space, space)
                vector.reset(seed=1)
                if task == "two_choices":
                    for wrong in ((2, 2), (2, 3)):
                        with self.assertRaisesRegex(ValueError, rf"actions have the shape \({wrong[0]}, {wrong[1]}\); they must have \(3, 2\)"):
                            vector.step(np.zeros(wrong))
                vector.action_space.seed(5)
                for _ in range(4):
                    drawn = vector.action_space.sample()
                    observations, *_ = vector.step(drawn)
                    if task == "mixed":
                        drawn = np.column_stack([drawn[1][:, 0], drawn[0][:, 0], drawn[1][:, 1]])
                    np.testing.assert_array_equal(observations, np.reshape(drawn, (3, -1)))

    def test_a_choice_outside_its_space_raises_and_costs_nothing(self):
        with contextlib.closing(troupe_env.GymnasiumEnv("one_choice", program=SERVE)) as environment:
            environment.reset(seed=1)
            for bad in (-1, 3, 0.5):
                with self.assertRaisesRegex(ValueError, "it must be a whole number from 0 to 2"):
                    environment.step(bad)
            self.assertEqual(environment.step(np.int64(1))[1], 1)
        with contextlib.closing(troupe_env.GymnasiumEnv("mixed", program=SERVE)) as environment:
            environment.reset(seed=1)
            with self.assertRaisesRegex(ValueError, "has 2 parts; this one has 3"):
                environment.step(np.zeros(3))

    def test_a_served_cartpole_is_gymnasiums_again(self):
        self.served(lambda: gymnasium.make("CartPole-v1"), 2)
        local = gymnasium.make("CartPole-v1")
        with contextlib.closing(troupe_env.GymnasiumEnv(endpoint=self.endpoint)) as environment:
            self.assertEqual(environment.action_space, spaces.Discrete(2))
            check_env(environment, skip_render_check=True)
            there, _ = environment.reset(seed=3)
            here, _ = local.reset(seed=3)
            for t in range(8):
                np.testing.assert_array_equal(there, here)
                there, *results, _ = environment.step(t % 2)
                here, *expected, _ = local.step(t % 2)
                self.assertEqual(results, expected)

    def test_choices_have_dm_envs_specs(self):
        for task, shape, dtype, action, numbers in [
            ("one_choice", (), np.int64, 2, [2]),
            ("two_choices", (2,), np.int64, [1, 4], [1, 4]),
            ("mixed", (3,), np.float64, [2, 0.5, 1], [2, 0.5, 1]),
        ]:
            with contextlib.closing(troupe_env.DmEnv(task, seed=1, program=SERVE)) as environment:
                spec = environment.action_spec()
                self.assertEqual((spec.shape, spec.dtype), (shape, dtype))
                self.assertEqual(isinstance(spec, specs.DiscreteArray), task == "one_choice")
                least, greatest = {"one_choice": (0, 2), "two_choices": ([0, 0], [2, 4]), "mixed": ([0, -1, 0], [2, 1, 1])}[task]
                np.testing.assert_array_equal((spec.minimum, spec.maximum), (least, greatest))
                environment.reset()
                self.assertEqual(list(environment.step(spec.validate(np.array(action, dtype))).observation["action"]), numbers)
                with self.assertRaisesRegex(ValueError, r"action\[0\] of row 0 is 3; it must be a whole number from 0 to 2"):
                    environment.step(np.array(action) * 0 + 3)
                self.assertEqual(environment.action_choices, {"one_choice": (3,), "two_choices": (3, 5), "mixed": (3, 0, 2)}[task])

    def test_a_vector_plays_as_single_ones_and_resets_by_the_next_step(self):
        vector = troupe_env.GymnasiumVectorEnv("cartpole_balance", 3, program=SERVE)
        single = troupe_env.GymnasiumEnv("cartpole_balance", program=SERVE)
        with contextlib.closing(vector), contextlib.closing(single):
            many, _ = vector.reset(seed=5)
            one, _ = single.reset(seed=6)
            self.assertTrue(vector.observation_space.contains(many))
            for name in one:
                np.testing.assert_array_equal(many[name][1], one[name])
            many, rewards, *_ = vector.step(np.full((3, 1), 0.5, np.float32))
            one, reward, *_ = single.step(np.full(1, 0.5, np.float32))
            self.assertEqual(rewards[1], reward)
            for name in one:
                np.testing.assert_array_equal(many[name][1], one[name])

    def test_a_vector_with_a_failing_environment_goes_on(self):
        with contextlib.closing(troupe_env.GymnasiumVectorEnv("toy", 2, program=SERVE)) as vector:
            vector.reset(seed=1)
            _, _, _, truncated, info = vector.step(np.array([[1, 0], [0, 0]], np.float32))
            self.assertEqual(list(truncated), [True, False])
            self.assertEqual(list(info["failure"]), ["toy exploded", ""])
            self.assertEqual((info["_failure"].tolist(), info["_discount"].tolist()), ([True, False], [True, True]))
            observation, rewards, _, truncated, _ = vector.step(np.zeros((2, 2), np.float32))
            self.assertEqual(list(observation["count"]), [0, 2])  # reset, and stepped
            self.assertEqual((rewards[0], truncated.any()), (0, False))
            mask = np.array([False, True])
            observation, _ = vector.reset(seed=[None, 77], options={"reset_mask": mask})
            self.assertEqual(observation["position"][1][0], 77)

    def test_an_environment_of_cpp_is_played_with_keys(self):
        own, allowed, stranger = (self.keys(name) for name in ("own", "allowed", "stranger"))
        arguments = ["--secret-key", own[0], "--allowed-keys", allowed[1]]
        options = {"program": SERVE, "arguments": arguments, "server_key": own[1]}
        with contextlib.closing(troupe_env.GymnasiumEnv("toy", secret_key=allowed[0], **options)) as environment:
            check_env(environment, skip_render_check=True)
        with self.assertRaises(troupe_env.RemoteError):
            troupe_env.GymnasiumEnv("toy", secret_key=stranger[0], connect_deadline=0.5, **options)

    def test_a_served_environment_is_played_as_one_that_we_start(self):
        self.served(lambda: gymnasium.make("Pendulum-v1"))
        with contextlib.closing(troupe_env.GymnasiumEnv(endpoint=self.endpoint)) as environment:
            check_env(environment, skip_render_check=True)

    def test_a_killed_peer_is_noticed_by_its_silence(self):
        process = self.command("python", "troupe_env.idle:make")
        client = self.client(1, silence=0.3, deadline=60.0)
        client.play(None, {0: 1})
        process.kill()
        process.wait()
        begin = time.monotonic()
        with self.assertRaisesRegex(troupe_env.RemoteError, "has vanished"):
            client.play(np.zeros((1, 6)))
        self.assertLess(time.monotonic() - begin, 10)
        with self.assertRaisesRegex(troupe_env.RemoteError, "reset all environments"):
            client.play(np.zeros((1, 6)))

    def test_a_client_whose_peer_was_killed_closes_and_leaves_nothing_open(self):
        process = self.command("python", "troupe_env.idle:make")
        environment = troupe_env.GymnasiumEnv(endpoint=self.endpoint)
        client = environment._client
        process.kill()
        process.wait()
        environment.close()
        self.assertEqual((environment._client, client._context, client._socket, client._heart), (None, None, None, None))

    def test_a_program_that_closes_nothing_ends(self):
        self.served(Counting)
        code = f"import troupe_env; environment = troupe_env.GymnasiumEnv(endpoint={self.endpoint!r}); environment.reset(seed=1)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("Exception ignored", done.stderr)

    def test_an_interrupt_while_a_client_connects_leaves_no_socket_open(self):
        sockets = []

        class Interrupted(troupe_env.Client):
            def _wait(self, *_):
                sockets.append(self._socket)
                raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            Interrupted(self.endpoint)
        self.assertTrue(sockets[0].closed)

    def test_a_peer_that_stalls_or_lies_is_given_up(self):
        context = zmq.Context()
        socket = context.socket(zmq.ROUTER)
        socket.bind(self.endpoint)
        answers = []

        def fake():
            while answers and socket.poll(10000):
                peer, question, *_ = socket.recv_multipart()
                made = answers.pop(0)(messages.Envelope.decode(question))
                if made is not None:
                    socket.send_multipart([peer, *made])

        def welcome(question, **changes):
            spec = messages.SpecMessage(
                name="fake", observations=[messages.Array(name="x", type=3)], action_minimum=[-1.0], action_maximum=[1.0],
                action_repeat=1, frame_stack=1,
            )
            body = messages.Welcome(**{"spec": spec, "environments": 1, "row_bytes": 8, **changes})
            return [messages.answer_to(question, welcome=body).encode()]

        for script, text in [
            ([lambda q: None], "no answer to a hello"),
            ([lambda q: [b"\xff\xff"]], "late|ends"),
            ([lambda q: welcome(q, row_bytes=16)], "8 bytes by its arrays and 16"),
            ([lambda q: welcome(q, environments=2)], "offers 2"),
            ([welcome, lambda q: None], "no answer to a turn of 1 environments within 0.2 s"),
            ([welcome, lambda q: [messages.answer_to(q, played=messages.Played()).encode(), b"x" * 24, b"y"]], "contradicts its spec"),
            ([welcome, lambda q: [messages.answer_to(q, played=messages.Played()).encode(), bytes(24)]], "contradicts its spec"),
            ([welcome, lambda q: [messages.answer_to(q, gone=messages.Gone()).encode()]], "of kind gone"),
        ]:
            answers.extend(script)
            thread = threading.Thread(target=fake)
            thread.start()
            begin = time.monotonic()
            with self.assertRaisesRegex(troupe_env.RemoteError, text) as raised:
                with troupe_env.Client(self.endpoint, 1, connect_deadline=0.2, deadline=0.2) as client:
                    client.play(None, {0: 1})
            self.assertIn(self.endpoint, str(raised.exception))
            self.assertLess(time.monotonic() - begin, 5)
            thread.join()
        socket.close(0)
        context.term()

    def test_a_program_that_is_not_there_is_told_with_the_way_out(self):
        with self.assertRaisesRegex(FileNotFoundError, "build/release/troupe"):
            troupe_env.GymnasiumEnv("cheetah_run", program="no-such-troupe")
        with self.assertRaisesRegex(RuntimeError, "ended before it served: .*no_such_task"):
            troupe_env.GymnasiumEnv("no_such_task", program=SERVE)
        with tempfile.TemporaryDirectory() as folder:
            silent = os.path.join(folder, "silent")
            with open(silent, "w") as script:
                script.write("#!/bin/sh\nexec cat\n")  # serves nothing until its input ends
            os.chmod(silent, 0o700)
            with self.assertRaisesRegex(RuntimeError, "did not start within 0.1 s: no message"):
                Program("toy", program=silent, deadline=0.1)
        with self.assertRaisesRegex(ValueError, "either a task"):
            troupe_env.GymnasiumEnv()


class DmEnv(test_utils.EnvironmentTestMixin, unittest.TestCase):
    """dm_env's own tests on ours."""

    def make_object_under_test(self):
        environment = troupe_env.DmEnv("toy", seed=1, program=SERVE)
        self.addCleanup(environment.close)
        return environment

    def make_action_sequence(self):
        for _ in range(50):
            yield np.array([0.25, -0.5])

    def test_the_suites_cheetah_is_dm_controls(self):
        with contextlib.closing(troupe_env.DmEnv("cheetah_run", program=SERVE)) as ours:
            theirs = suite.load("cheetah", "run")
            self.assertEqual(list(ours.observation_spec()), list(theirs.observation_spec()))
            for name, spec in theirs.observation_spec().items():
                self.assertEqual((ours.observation_spec()[name].shape, ours.observation_spec()[name].dtype), (spec.shape, spec.dtype))
            self.assertEqual(ours.action_spec().shape, theirs.action_spec().shape)
            self.assertEqual(ours.control_timestep(), theirs.control_timestep())
            ours._client.spec = dataclasses.replace(ours._client.spec, action_repeat=4)  # as if it were served with action repeat
            self.assertAlmostEqual(ours.control_timestep(), 4 * theirs.control_timestep())
            step = ours.reset_to(3)
            self.assertEqual(step.step_type, dm_env.StepType.FIRST)


class Package(Tests):
    def test_it_installs(self):
        source = os.path.join(self.folder, "source")
        shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__"))
        target = os.path.join(self.folder, "target")
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", target, source],
            check=True, capture_output=True,
        )
        out = subprocess.run(
            [sys.executable, "-c", "import troupe_env, sys; print(troupe_env.Client.__name__, troupe_env.__file__)"],
            env={**os.environ, "PYTHONPATH": target}, check=True, capture_output=True, text=True,
        ).stdout
        self.assertIn(target, out)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]], verbosity=2)
