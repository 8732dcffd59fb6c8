"""Checks the Python package against a real `troupe replay serve`. Usage: replay_client_checks.py <troupe> <README of the package>."""

import gc
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import tracemalloc
import unittest

import numpy as np
from troupe import _native, replay

TROUPE, README = sys.argv[1], pathlib.Path(sys.argv[2])

TABLES = """
table { name: "windows" column { name: "pixels" type: "uint8" shape: [3, 21, 21] } column { name: "state" shape: 5 }
        column { name: "step" type: "int64" } column { name: "exact" type: "float64" shape: 2 } items: "windows" sampler: "prioritized" }
table { name: "more" column { name: "pixels" type: "uint8" shape: [3, 21, 21] } column { name: "state" shape: 5 }
        column { name: "step" type: "int64" } column { name: "exact" type: "float64" shape: 2 } items: "windows" }
table { name: "states" column { name: "state" shape: 3 } minimum_items: 3 }
table { name: "queue" column { name: "state" shape: 3 } sampler: "fifo" limiter: "queue" queue_items: 2 max_times_sampled: 1 }
table { name: "empty" column { name: "state" shape: 3 } }
"""


class Server:
    def __init__(self, *flags):
        self.process = subprocess.Popen([TROUPE, "replay", "serve", "--json", "--end-with-input", *flags], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.stderr.read())
        self.endpoint = json.loads(line)["endpoint"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()
        self.process.stderr.close()


def fill(number):
    """A step whose content says which it is."""
    return {
        "pixels": np.full((3, 21, 21), number % 251, np.uint8),
        "state": np.arange(5, dtype=np.float32) + number,
        "step": number,
        "exact": [number / 3, -number],
    }


def frame_of(array):
    """Who owns the memory that an array views."""
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base.obj if isinstance(base, memoryview) else base


class Checks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(cls.folder.name) / "tables.textproto"
        path.write_text(TABLES)
        cls.server = Server("--config", str(path))
        cls.endpoint = cls.server.endpoint

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.folder.cleanup()

    def check_rows(self, batch, item):
        steps = batch.rows("step", item)
        self.assertEqual(len(steps), batch.window_rows[item])
        np.testing.assert_array_equal(steps, np.arange(steps[0], steps[0] + len(steps)))
        for name in ("pixels", "state", "exact"):
            expected = np.stack([np.asarray(fill(int(step))[name], batch.rows(name, item).dtype) for step in steps])
            np.testing.assert_array_equal(batch.rows(name, item), expected)

    def test_windows_of_any_length_come_back_as_they_were_written(self):
        for shared in (True, False):
            for part_bytes in (1, 1 << 26):
                client = replay.Client(self.endpoint, "windows", shared_memory=shared, part_bytes=part_bytes)
                self.assertEqual([column.name for column in client.columns], ["pixels", "state", "step", "exact"])
                self.assertEqual(client.columns[0].shape, (3, 21, 21))
                self.assertEqual(client.items_are, "windows")
                writer = client.writer(reach=12, chunk_rows=7)
                for number in range(100):
                    writer.append(**fill(number))
                    writer.add_item(1 + number % writer.kept_rows, history=0)
                    if number % 9 == 0:
                        writer.insert()
                writer.insert()
                client.flush()
                batch = client.sample(40)
                self.assertEqual(len(batch), 40)
                self.assertEqual(len(batch.parts), 40 if part_bytes == 1 else 1)
                for item in range(40):
                    self.check_rows(batch, item)
                with self.assertRaisesRegex(ValueError, "different numbers of rows of 'pixels'"):
                    batch["pixels"]
                with self.assertRaisesRegex(KeyError, "no column 'pixel'"):
                    batch["pixel"]
                client.close()

    def test_arrays_view_the_message_and_keep_it_alive(self):
        client = replay.Client(self.endpoint, "more")
        writer = client.writer(reach=4)
        for number in range(200):
            writer.append(**fill(number))
            if writer.rows >= 4:
                writer.add_item(4)
        writer.insert()
        client.flush()
        client.sample(256)
        tracemalloc.start()
        batch = client.sample(256)
        pixels = batch["pixels"]
        allocated = tracemalloc.get_traced_memory()[1]  # NumPy reports its own
        tracemalloc.stop()
        self.assertEqual(pixels.shape, (256, 4, 3, 21, 21))
        self.assertGreater(pixels.nbytes, 1_000_000)
        self.assertLess(allocated, pixels.nbytes // 10)
        self.assertIsInstance(frame_of(pixels), _native.ReplayPart)
        self.assertFalse(pixels.flags.writeable)
        self.assertFalse(pixels.flags.owndata)
        self.assertIs(type(frame_of(batch.keys)), _native.ReplayPart)
        steps = batch["step"].copy()
        del batch
        client.close()
        for item in range(256):
            for row in range(4):
                self.assertTrue((pixels[item, row] == steps[item, row] % 251).all())
        with self.assertRaisesRegex(RuntimeError, "the client is closed"):
            client.sample(1)

    def test_a_fork_gets_a_clear_error_and_leaves_the_client_alone(self):
        client = replay.Client(self.endpoint, "more")
        writer = client.writer(reach=4)
        for number in range(50):
            writer.append(**fill(number))
            if writer.rows >= 4:
                writer.add_item(4)
        writer.insert()
        client.flush()
        batch = client.sample(256)  # in shared memory
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # ends a child that hangs
            said = []
            for use in (lambda: client.sample(1), lambda: client.flush(), lambda: client.in_flight, lambda: client.info(),
                        lambda: client.update_priorities([1], [1.0]), lambda: client.set_limiter("minimum_size"), lambda: client.close(),
                        lambda: writer.insert()):
                try:
                    use()
                    said.append("nothing")
                except RuntimeError as mistake:
                    said.append(str(mistake))
            del client, writer, batch
            gc.collect()
            said.append("the end")
            os.write(write, json.dumps(said).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            said = json.loads(pipe.read())
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        for text in said[:-1]:
            self.assertRegex(text, "belongs to process .* make the (client|writer) after the fork")
        steps = batch["step"]
        self.assertTrue((batch["pixels"] == (steps % 251)[..., None, None, None]).all())
        self.assertEqual(len(client.sample(256)), 256)

    def test_shapes_show_some_rows_of_each_column(self):
        client = replay.Client(self.endpoint, "more")
        writer = client.writer(reach=4, id=99)
        shape = writer.shape(pixels=[(0, 1), (3, 1)], step=[(1, 3)])
        for number in range(1000, 1004):
            writer.append(**fill(number))
        writer.add_item(4, shape=shape, history=1)
        writer.insert()
        client.flush()
        for _ in range(400):
            batch = client.sample(64)
            shown = [i for i in range(64) if len(batch.rows("state", i)) == 0]
            if shown:
                break
        i = shown[0]
        self.assertEqual(batch.rows("pixels", i).shape, (2, 3, 21, 21))
        self.assertEqual(batch.rows("step", i).tolist(), [1001, 1002, 1003])
        self.assertEqual(batch.rows("pixels", i)[:, 0, 0, 0].tolist(), [1000 % 251, 1003 % 251])
        self.assertEqual(batch.history[i], 1)
        with self.assertRaisesRegex(ValueError, "no column 'pixel'"):
            writer.shape(pixel=[(0, 1)])

    def test_many_steps_at_once_are_the_same_as_one_after_another(self):
        client = replay.Client(self.endpoint, "states")
        writer = client.writer()
        rows = np.arange(300, dtype=np.float32).reshape(100, 3)
        writer.extend(state=rows)
        with self.assertRaisesRegex(ValueError, "not among the newest"):
            writer.add_items(0, 100, 1)
        for begin in range(100, 200):
            writer.append(state=rows[begin - 100])
            writer.add_items(begin, begin + 1, 1)
        self.assertEqual(writer.pending_items, 100)
        writer.insert()
        client.flush()
        got = client.sample(64)["state"]
        self.assertEqual(got.shape, (64, 1, 3))
        np.testing.assert_array_equal(got[:, 0, 1] - got[:, 0, 0], 1)

    def test_priorities_go_back_and_two_tables_share_what_is_written(self):
        client = replay.Client(self.endpoint, "windows")
        before = replay.Client(self.endpoint, "more").info()
        writer = client.writer(reach=3)
        for number in range(5000, 5030):
            writer.append(**fill(number))
            if writer.rows >= 3:
                writer.add_item(2, priority=0)
                writer.add_item(3, table="more")
                writer.insert()
        client.flush()
        self.assertEqual(replay.Client(self.endpoint, "more").info().inserted, before.inserted + 28)
        batch = client.sample(100)
        client.update_priorities(batch.keys, np.zeros(100))
        client.update_priorities(batch.keys[:1], [1e6])
        again = client.sample(100)
        self.assertGreater((again.keys == batch.keys[0]).sum(), 90)
        self.assertEqual(again.priorities[again.keys == batch.keys[0]][0], 1e6)
        self.assertGreater(again.times_sampled.max(), 90)
        self.assertEqual(again.table_items[0], client.info().items)
        client.update_priorities(batch.keys[:1], [0])
        with self.assertRaisesRegex(ValueError, "one for each key"):
            client.update_priorities([1, 2], [3])
        with self.assertRaisesRegex(RuntimeError, "one of 0 to 1e12"):
            client.update_priorities([1], [np.nan])

    def test_what_does_not_fit_is_said_with_column_got_and_expected(self):
        client = replay.Client(self.endpoint, "windows")
        writer = client.writer()
        good = fill(3)
        other = client.writer()
        other.append(**good)
        with self.assertRaisesRegex(ValueError, 'no table "other" at .*; it has .*more'):
            other.add_item(1, table="other")
        for change, error, words in [
            ({"pixels": np.zeros((21, 21, 3), np.uint8)}, ValueError, r"'pixels': got uint8 \[21, 21, 3\], expected uint8 \[3, 21, 21\]"),
            ({"pixels": np.zeros((3, 21, 21), np.float32)}, TypeError, "'pixels': got float32 .* with astype"),
            ({"step": 1.5}, TypeError, "'step': got float64"),
            ({"state": [1, 2, 3]}, ValueError, r"'state': got int64 \[3\], expected float32 \[5\]"),
            ({"stat": 3}, ValueError, "5 columns are given, but 4 belong"),
        ]:
            with self.assertRaisesRegex(error, words):
                writer.append(**{**good, **change})
        with self.assertRaisesRegex(ValueError, 'column "exact" is missing'):
            writer.append(**{name: value for name, value in good.items() if name != "exact"})
        self.assertEqual(writer.rows, 0)
        good["pixels"] = np.asfortranarray(np.arange(3 * 21 * 21).reshape(3, 21, 21).astype(np.uint8))
        good["state"] = np.arange(10, dtype=np.float64)[::2]
        writer.append(**good)
        writer.add_item(1, priority=1e9)
        with self.assertRaisesRegex(ValueError, "not among the newest"):
            writer.add_item(2)
        writer.insert()
        client.flush()
        batch = client.sample(1)
        np.testing.assert_array_equal(batch["pixels"][0, 0], good["pixels"])
        np.testing.assert_array_equal(batch["state"][0, 0], [0, 2, 4, 6, 8])
        client.update_priorities(batch.keys, [0])

    def test_limiters_hold_back_and_say_why(self):
        client = replay.Client(self.endpoint, "queue")
        with self.assertRaisesRegex(TimeoutError, "no sample of 1 items"):
            client.sample(1, deadline=0.05)
        self.assertIn("1 samples of 1 wait", client.info().waiting)
        self.assertEqual(client.info().config["limiter"], "queue")
        writer = client.writer()
        for number in range(4):
            writer.append(state=[number, 0, 0])
            writer.add_item(1)
            writer.insert()
        self.assertEqual(client.sample(1)["state"][0, 0, 0], 0)
        with self.assertRaisesRegex(TimeoutError, "in flight"):
            client.flush(deadline=0.05)
        self.assertIn("insertions wait", client.info().waiting)
        client.set_limiter("queue", queue_items=10)
        client.flush()
        with self.assertRaisesRegex(RuntimeError, "queue_items is 0"):
            client.set_limiter("queue", queue_items=0)
        self.assertEqual(client.sample(3)["state"][:, 0, 0].tolist(), [1, 2, 3])

    def test_threads_take_turns_and_wait_side_by_side(self):
        client = replay.Client(self.endpoint, "states")
        writer = client.writer()
        for number in range(50):
            writer.append(state=[number, number, number])
            writer.add_item(1)
        writer.insert()
        client.flush()
        wrong = []

        def sample():
            for _ in range(50):
                state = client.sample(8)["state"]
                if not (np.diff(state[:, 0]) >= 0).all():
                    wrong.append(state)

        threads = [threading.Thread(target=sample) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertFalse(wrong)

    def test_a_signal_interrupts_a_wait(self):
        class Interrupt(Exception):
            pass

        def interrupt(*_):
            raise Interrupt

        client = replay.Client(self.endpoint, "empty")
        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with self.assertRaises(Interrupt):
            client.sample(7, deadline=60)
            self.fail("was answered")
        signal.signal(signal.SIGALRM, before)

    def test_who_is_not_there_is_named(self):
        with self.assertRaisesRegex(replay.ShardSilent, "ipc:///nowhere/at/all does not answer"):
            replay.Client("ipc:///nowhere/at/all", deadline=0.6)
        with self.assertRaisesRegex(ValueError, 'has several tables; name one of "windows"'):
            replay.Client(self.endpoint)
        with self.assertRaisesRegex(RuntimeError, 'no table "window" behind this port'):
            replay.Client(self.endpoint, "window")
        with self.assertRaisesRegex(ValueError, "window is 0 but must be 1 to 64"):
            replay.Client(self.endpoint, "states", window=0)
        with self.assertRaisesRegex(ValueError, "needs both"):
            replay.Client(self.endpoint, "states", secret_key="x")
        with self.assertRaisesRegex(ValueError, "deadline is -1"):
            replay.Client(self.endpoint, "states").sample(1, deadline=-1)

    def test_a_server_that_comes_again_gets_what_it_has_not_accepted(self):
        with tempfile.TemporaryDirectory() as folder:
            flags = ["--column", "state:float32:3", "--listen", f"ipc://{folder}/port"]
            with Server(*flags) as server:
                client = replay.Client(server.endpoint)
                writer = client.writer()
                writer.append(state=[1, 2, 3])
                writer.add_item(1)
                writer.insert()
                client.flush()
            writer.append(state=[4, 5, 6])
            writer.add_item(1)
            writer.insert()
            with Server(*flags):
                client.flush(deadline=20)
                self.assertEqual(client.info().items, 1)
                self.assertEqual(client.sample(1)["state"].tolist(), [[[4, 5, 6]]])

    def test_the_readme_does_what_it_says(self):
        code = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
        code = [block for block in code if "Client(" in block]
        self.assertEqual(len(code), 1)
        with tempfile.TemporaryDirectory() as folder:
            columns = ["--column", "pixels:uint8:3,84,84", "--column", "action:float32:2", "--column", "reward"]
            with Server(*columns, "--listen", f"ipc://{folder}/replay") as server:
                scope = {}
                exec(code[0].replace("ipc:///tmp/replay", server.endpoint), scope)
                self.assertEqual(scope["batch"]["pixels"].shape, (32, 4, 3, 84, 84))
                self.assertEqual(scope["client"].info().items, 97)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
