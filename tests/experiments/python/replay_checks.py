"""Checks of troupe.replay.Table, a table of this process. Usage: replay_checks.py <troupe> <README of the package>."""

import gc
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import tracemalloc
import unittest

import numpy as np
from troupe.replay import Table

TROUPE, README = sys.argv[1], pathlib.Path(sys.argv[2])

COLUMNS = {"state": ((3,), "float32"), "step": ((), "int64")}


def fill(table, numbers, **keywords):
    for number in numbers:
        table.add(state=np.full(3, number, np.float32), step=number, **keywords)


class Items(unittest.TestCase):
    def test_what_was_added_comes_back_whichever_way_it_was_added(self):
        table = Table({"pixels": ((5, 4), "uint8"), "state": 2, "exact": ((), "float64"), "step": ((), "int64"), "done": ((1,), "uint8")})
        pixels = np.arange(100 * 20, dtype=np.uint32).astype(np.uint8).reshape(100, 5, 4)
        for i in range(50):
            table.add(pixels=pixels[i], state=[i, -i], exact=i / 3, step=np.int64(i), done=np.array([i % 2 == 0]))
        steps = np.arange(50, 100)
        table.extend({"pixels": pixels[50:], "state": np.stack([steps, -steps], axis=1), "exact": steps / 3, "step": steps,
                      "done": (steps % 2 == 0)[:, None]})
        self.assertEqual(len(table), 100)
        batch = table.sample(2000)
        steps = batch["step"]
        self.assertEqual(set(steps), set(range(100)))
        np.testing.assert_array_equal(batch["pixels"], pixels[steps])
        np.testing.assert_array_equal(batch["state"], np.stack([steps, -steps], axis=1).astype(np.float32))
        np.testing.assert_array_equal(batch["exact"], steps / 3)
        np.testing.assert_array_equal(batch["done"][:, 0], steps % 2 == 0)
        np.testing.assert_array_equal(batch.keys, steps)
        np.testing.assert_array_equal(batch.probabilities, np.full(2000, 0.01))
        self.assertEqual({name: batch[name].dtype.name for name in batch.columns},
                         {"pixels": "uint8", "state": "float32", "exact": "float64", "step": "int64", "done": "uint8"})
        self.assertEqual(batch["pixels"].shape, (2000, 5, 4))

    def test_every_sampler_chooses_as_its_name_says(self):
        for sampler, chosen in [("fifo", {0}), ("lifo", {9}), ("min_heap", {4}), ("max_heap", {7}), ("prioritized", {7}),
                                ("uniform", set(range(10)))]:
            with self.subTest(sampler):
                table = Table(COLUMNS, sampler=sampler)
                for number in range(10):
                    heap = {4: 1.0, 7: 9.0}.get(number, 5.0)
                    fill(table, [number], priority=heap if "heap" in sampler else 1e9 if number == 7 else 1e-9)
                self.assertEqual(set(table.sample(200)["step"]), chosen)

    def test_every_remover_makes_room_as_its_name_says(self):
        for remover, left in [("fifo", {5, 6, 7, 8, 9}), ("lifo", {0, 1, 2, 3, 9}), ("min_heap", {5, 6, 7, 8, 9}), ("max_heap", {0, 1, 2, 3, 9}),
                              ("uniform", None), ("prioritized", None)]:
            with self.subTest(remover):
                table = Table(COLUMNS, remover=remover, max_items=5)
                for number in range(10):
                    fill(table, [number], priority=1.0 + number)
                self.assertEqual(len(table), 5)
                held = set(table.sample(200)["step"])
                self.assertEqual(len(held), 5)
                self.assertIn(9, held)
                self.assertEqual(held, left or held)

    def test_every_limiter_holds_back_and_says_why(self):
        table = Table(COLUMNS, minimum_items=3)
        fill(table, [1, 2])
        with self.assertRaisesRegex(TimeoutError, "no sample of 4 items: .*3"):
            table.sample(4)
        fill(table, [3])
        self.assertEqual(len(table.sample(4)), 4)

        queue = Table(COLUMNS, sampler="fifo", limiter="queue", queue_items=2, max_times_sampled=1)
        fill(queue, [1, 2])
        with self.assertRaisesRegex(TimeoutError, "is kept and enters"):
            fill(queue, [3])
        with self.assertRaisesRegex(TimeoutError, "accepts no insertion"):
            queue.flush()
        self.assertEqual(queue.sample(1)["step"].tolist(), [1])
        queue.flush()
        self.assertEqual(queue.sample(2)["step"].tolist(), [2, 3])
        with self.assertRaises(TimeoutError):
            queue.sample(1)

        stack = Table(COLUMNS, sampler="lifo", remover="lifo", limiter="stack", queue_items=2, max_times_sampled=1)
        fill(stack, [1, 2])
        self.assertEqual(stack.sample(2)["step"].tolist(), [2, 1])

        ratio = Table(COLUMNS, limiter="samples_per_insert", samples_per_insert=2, error_buffer=4, minimum_items=1)
        with self.assertRaisesRegex(TimeoutError, "accepts no insertion"):
            fill(ratio, range(100))
        with self.assertRaisesRegex(TimeoutError, "ahead of samples_per_insert 2"):
            for _ in range(100):
                ratio.sample(4)
        ratio.set_limiter("minimum_size")
        self.assertEqual(len(ratio.sample(50)), 50)
        ratio.clear()
        self.assertEqual(ratio.info().config["limiter"], "samples_per_insert")

    def test_priorities_decide_how_often_items_are_chosen(self):
        table = Table(COLUMNS, sampler="prioritized", priority_exponent=0.5)
        fill(table, range(4))
        table.update_priorities(table.sample(1).keys, [1.0])
        table.update_priorities([0, 1, 2, 3], [0.0, 1.0, 4.0, 25.0])
        batch = table.sample(80_000)
        counts = np.bincount(batch["step"], minlength=4) / 80_000
        np.testing.assert_allclose(counts, [0, 1 / 8, 2 / 8, 5 / 8], atol=0.01)
        np.testing.assert_allclose(batch.probabilities, np.array([0, 1, 2, 5])[batch["step"]] / 8)
        np.testing.assert_array_equal(batch.priorities, np.array([0.0, 1, 4, 25])[batch["step"]])
        table.update_priorities(np.array([2**63], np.uint64), np.ones(1))
        self.assertEqual(table.info().late_priorities, 1)
        with self.assertRaisesRegex(ValueError, r"0 to 1e\+12"):
            table.update_priorities([1], [np.nan])
        with self.assertRaisesRegex(ValueError, "one for each key"):
            table.update_priorities([1, 2], [1.0])

    def test_equal_tables_choose_the_same_items(self):
        first, second, third = (Table(COLUMNS, seed=seed) for seed in (5, 5, 6))
        for table in (first, second, third):
            fill(table, range(100))
        a, b, c = (table.sample(50).keys.tolist() for table in (first, second, third))
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)


class Sequences(unittest.TestCase):
    def test_sequences_stay_within_episodes_and_overlap_by_the_period(self):
        table = Table(COLUMNS, length=4, period=2, end="drop")
        for episode in range(3):
            for step in range(9):
                fill(table, [100 * episode + step], last=step == 8)
        batch = table.sample(300)
        self.assertEqual(batch["step"].shape, (300, 4))
        self.assertEqual(batch["state"].shape, (300, 4, 3))
        self.assertEqual(set(batch["step"][:, 0]), {100 * e + s for e in range(3) for s in (0, 2, 4)})
        np.testing.assert_array_equal(np.diff(batch["step"], axis=1), 1)

    def test_the_end_of_an_episode_pads_shortens_or_shifts(self):
        expected = {"pad": [[0, 1, 2], [3, 4, 0]], "shorten": [[0, 1, 2], [3, 4]], "shift": [[0, 1, 2], [2, 3, 4]], "drop": [[0, 1, 2]]}
        for end, items in expected.items():
            table = Table(COLUMNS, length=3, period=3, end=end, sampler="fifo", max_times_sampled=1)
            last = np.arange(5) == 4
            table.extend({"state": np.zeros((5, 3), np.float32), "step": np.arange(5)}, last=last)
            fill(table, [9, 9, 9])  # stays: the last item of a table does
            batch = table.sample(len(items))
            self.assertEqual([batch.rows("step", i).tolist() for i in range(len(items))], items)
            if end == "shorten":
                with self.assertRaisesRegex(ValueError, "different numbers of rows of 'step'"):
                    batch["step"]
                np.testing.assert_array_equal(batch.window_rows, [3, 2])

    def test_burn_in_is_the_history_and_a_failed_environment_begins_an_episode(self):
        table = Table(COLUMNS, length=3, burn_in=1)
        fill(table, [0, 1])
        table.begin_episode()
        fill(table, [5, 6, 7])
        batch = table.sample(2)
        self.assertEqual(batch["step"].tolist(), [[5, 6, 7]] * 2)
        self.assertEqual(batch.history.tolist(), [1, 1])

    def test_a_writer_stores_what_items_share_once(self):
        table = Table({"frame": ((84, 84), "uint8"), "step": ((), "int64")}, length=4)
        writer = table.writer()
        for step in range(400):
            writer.append(frame=np.full((84, 84), step % 256, np.uint8), step=step)
            if writer.rows >= 4:
                writer.add_item(4)
            writer.insert()
        self.assertEqual(len(table), 397)
        self.assertLess(table.info().bytes, 1.4 * 400 * 84 * 84)  # the last chunk has free rows
        batch = table.sample(64)
        self.assertEqual(batch["frame"].shape, (64, 4, 84, 84))
        np.testing.assert_array_equal(batch["frame"][:, :, 3, 5], batch["step"] % 256)
        self.assertTrue((batch["frame"] == batch["frame"][:, :, :1, :1]).all())

    def test_items_of_any_window_and_shape(self):
        table = Table(COLUMNS)
        writer = table.writer(reach=8)
        shape = writer.shape(state=[(0, 1), (3, 1)], step=[(1, 3)])
        for number in range(8):
            writer.append(state=np.full(3, number), step=number)
        writer.add_item(4, shape=shape)
        writer.insert()
        batch = table.sample(2)
        self.assertEqual(batch.rows("state", 0)[:, 0].tolist(), [4, 7])
        self.assertEqual(batch.rows("step", 1).tolist(), [5, 6, 7])
        with self.assertRaisesRegex(ValueError, "show 2 rows of 'state' and the table has items of one step; make it with length=2"):
            batch["state"]

    def test_items_are_added_all_or_none(self):
        table = Table(COLUMNS)
        writer = table.writer(reach=50)
        writer.extend(state=np.zeros((100, 3)), step=np.arange(100))
        for begin, end, count, keywords in [(0, 100, 4, {}), (50, 98, 4, {}), (60, 97, 2**63 - 1, {}), (60, 2**62, 4, {"step": 2**61}),
                                            (60, 97, 4, {"priority": -1.0})]:
            with self.assertRaises(ValueError):
                writer.add_items(begin, end, count, **keywords)
            self.assertEqual(writer.pending_items, 0)
        with self.assertRaisesRegex(ValueError, "9223372036854775807 rows from row 60"):
            writer.add_item(2**63 - 1, first=60)
        writer.add_items(50, 97, 4)
        writer.add_items(97, 97, 4)
        writer.add_items(60, 70, 4, step=7)
        self.assertEqual(writer.pending_items, 49)
        writer.insert()
        batch = table.sample(1000)
        self.assertEqual({int(batch.rows("step", i)[0]) for i in range(1000)}, set(range(50, 97)))

    def test_compressed_tables_give_the_same_bytes(self):
        frames = np.random.default_rng(1).integers(0, 4, (600, 1, 84, 84), np.uint8)
        for compression in ("packed", "lz4", "zstd", "automatic"):
            table = Table({"frame": ((1, 84, 84), "uint8"), "step": ((), "int64")}, length=2, compression=compression)
            table.extend({"frame": frames, "step": np.arange(600)})
            batch = table.sample(50)
            np.testing.assert_array_equal(batch["frame"], frames[batch["step"]])
            self.assertEqual(table.info().config["compression"], compression)


class Memory(unittest.TestCase):
    def test_arrays_belong_to_the_caller_and_outlive_the_table(self):
        table = Table(COLUMNS)
        fill(table, range(100))
        batch = table.sample(64)
        state, steps, keys = batch["state"], batch["step"].copy(), batch.keys
        again = [table.sample(64) for _ in range(20)]
        np.testing.assert_array_equal(state[:, 0], steps)
        state += 1  # they may be written to
        np.testing.assert_array_equal(table.sample(64)["state"].max() <= 99, True)
        del table, batch, again
        gc.collect()
        np.testing.assert_array_equal(state[:, 2], steps + 1)
        np.testing.assert_array_equal(keys, steps)
        np.testing.assert_array_equal(np.from_dlpack(state), state)

    def test_a_batch_copies_nothing_in_python_and_uses_memory_again(self):
        table = Table({"frame": ((84, 84), "uint8")}, length=4)
        for step in range(100):
            table.add(frame=np.full((84, 84), step, np.uint8))
        address = table.sample(128)["frame"].ctypes.data
        tracemalloc.start()
        frames = table.sample(128)["frame"]
        allocated = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        self.assertLess(allocated, 20_000)
        self.assertEqual(frames.ctypes.data, address)
        self.assertNotEqual(table.sample(128)["frame"].ctypes.data, address)

    def test_the_table_keeps_to_its_bytes(self):
        table = Table({"frame": ((84, 84), "uint8")}, max_bytes=8 << 20)
        table.extend({"frame": np.zeros((5000, 84, 84), np.uint8)})
        self.assertLess(table.info().bytes, (8 << 20) + (2 << 20))
        self.assertGreater(len(table), 800)

    def test_steps_beyond_the_memory_go_to_the_disk(self):
        with tempfile.TemporaryDirectory() as folder:
            table = Table({"frame": ((84, 84), "uint8"), "step": ((), "int64")}, max_bytes=4 << 20, disk_bytes=1 << 30, disk_folder=folder)
            table.extend({"frame": np.repeat(np.arange(2000) % 251, 84 * 84).reshape(2000, 84, 84).astype(np.uint8), "step": np.arange(2000)})
            self.assertEqual(len(table), 2000)
            self.assertGreater(table.info().chunks_on_disk, 0)
            batch = table.sample(100)
            np.testing.assert_array_equal(batch["frame"][:, 83, 83], batch["step"] % 251)
            table.clear()
            self.assertEqual((len(table), table.info().bytes), (0, 0))
            table.extend({"frame": np.zeros((9, 84, 84), np.uint8), "step": np.arange(9)})
            self.assertLess(table.sample(9)["step"].max(), 9)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name) / "table"

    def test_a_loaded_table_continues_exactly(self):
        table = Table(COLUMNS, sampler="prioritized", max_items=500)
        fill(table, range(600))
        table.update_priorities(np.arange(100, 600), np.arange(500))
        table.save(self.path)
        other = Table(COLUMNS, sampler="prioritized", max_items=500)
        fill(other, range(7))
        self.assertEqual(other.load(self.path), "")
        for _ in range(3):
            first, second = table.sample(100), other.sample(100)
            np.testing.assert_array_equal(first.keys, second.keys)
            np.testing.assert_array_equal(first["state"], second["state"])
            np.testing.assert_array_equal(first.priorities, second.priorities)
            fill(table, range(3))
            fill(other, range(3))
        first, second = table.info(), other.info()
        self.assertEqual((first.items, first.inserted, first.sampled, first.config), (second.items, second.inserted, second.sampled, second.config))

    def test_a_save_replaces_the_one_before_at_the_end(self):
        table = Table(COLUMNS)
        fill(table, range(10))
        table.save(str(self.path))
        fill(table, range(10))
        table.save(self.path)
        self.assertEqual([entry.name for entry in self.path.parent.iterdir()], ["table"])
        table.clear()
        self.assertEqual((len(table), table.info().inserted), (0, 0))
        fill(table, range(3))
        table.load(self.path)
        self.assertEqual(len(table), 20)
        foreign = self.path.parent / "foreign"
        foreign.mkdir()
        with self.assertRaisesRegex(ValueError, "exists and is not a saved table"):
            table.save(foreign)
        with self.assertRaisesRegex(RuntimeError, "nowhere"):
            table.save(self.path / "nowhere" / "table")

    def test_a_save_leaves_other_folders_alone(self):
        table = Table(COLUMNS)
        fill(table, range(3))
        names = ["table", "table.new", "table.old"]
        for name in reversed(names):
            table.save(self.path.parent / name)
        fill(table, range(2))
        table.save(self.path)
        self.assertEqual(sorted(entry.name for entry in self.path.parent.iterdir()), names)
        for name, count in zip(names, (5, 3, 3)):
            table.load(self.path.parent / name)
            self.assertEqual(len(table), count)

    def test_a_folder_may_be_named_with_a_slash_at_its_end(self):
        table = Table(COLUMNS)
        for count in (1, 2):
            fill(table, [count])
            table.save(f"{self.path}/")
            self.assertEqual([entry.name for entry in self.path.parent.iterdir()], ["table"])
            other = Table(COLUMNS)
            other.load(f"{self.path}/")
            self.assertEqual(len(other), count)

    def test_what_is_damaged_or_different_changes_nothing(self):
        table = Table(COLUMNS)
        fill(table, range(1000))
        table.save(self.path)
        fill(table, range(5))
        other = Table(COLUMNS, max_items=77)
        with self.assertRaisesRegex(RuntimeError, "max_items"):
            other.load(self.path)
        self.assertIn("max_items", other.load(self.path, accept_other_configuration=True))
        self.assertEqual(len(other), 77)
        with self.assertRaisesRegex(RuntimeError, "state"):
            Table({"state": 4, "step": ((), "int64")}).load(self.path)
        with self.assertRaisesRegex(RuntimeError, "missing"):
            table.load(self.path.parent / "missing")
        for file in sorted(self.path.iterdir()):
            for keep in (0, 1, file.stat().st_size // 2, file.stat().st_size - 1):
                broken = self.path.parent / "broken"
                shutil.copytree(self.path, broken)
                with open(broken / file.name, "r+b") as stream:
                    stream.truncate(keep)
                with self.assertRaises(RuntimeError):
                    table.load(broken)
                shutil.rmtree(broken)
        self.assertEqual(len(table), 1005)
        self.assertEqual(len(table.sample(10)), 10)


class Threads(unittest.TestCase):
    def test_threads_add_sample_and_update_side_by_side(self):
        table = Table(COLUMNS, sampler="prioritized", max_items=5000)
        fill(table, range(10))
        wrong = []

        def add():
            for number in range(3000):
                table.add(state=[number] * 3, step=number, priority=number % 7)

        def extend():
            for begin in range(0, 3000, 50):
                numbers = np.arange(begin, begin + 50)
                table.extend({"state": np.repeat(numbers, 3).reshape(50, 3), "step": numbers})

        def sample():
            for _ in range(300):
                batch = table.sample(64)
                table.update_priorities(batch.keys, batch["step"] % 5)
                if (batch["state"] != batch["step"][:, None]).any():
                    wrong.append(batch)

        threads = [threading.Thread(target=work) for work in (add, add, extend, sample, sample)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertFalse(wrong)
        self.assertEqual(table.info().inserted, 9010)

    def test_a_sample_waits_for_another_thread(self):
        table = Table(COLUMNS, minimum_items=5)
        got = []
        thread = threading.Thread(target=lambda: got.append(table.sample(3, deadline=60)))
        thread.start()
        while not table.info().waiting:
            pass
        self.assertIn("1 samples of 3 wait", table.info().waiting)
        fill(table, range(5))
        thread.join()
        self.assertEqual(len(got[0]), 3)

        queue = Table(COLUMNS, limiter="queue", queue_items=1, sampler="fifo", max_times_sampled=1)
        adding = threading.Thread(target=fill, args=(queue, range(50)), kwargs={"deadline": 60})
        adding.start()
        steps = [int(queue.sample(1, deadline=60)["step"][0]) for _ in range(50)]
        adding.join()
        self.assertEqual(steps, list(range(50)))

    def test_a_writer_is_of_one_thread_at_a_time(self):
        table = Table(COLUMNS)
        writer = table.writer()
        inside, outside = threading.Event(), threading.Event()

        class Slow:
            def __array__(self, dtype=None, copy=None):
                inside.set()
                outside.wait()
                return np.zeros(3)

        thread = threading.Thread(target=lambda: writer.append(state=Slow(), step=1))
        thread.start()
        inside.wait()
        for use in (lambda: writer.append(state=[0, 0, 0], step=2), lambda: writer.add_item(1), writer.insert, lambda: writer.pending_items):
            with self.assertRaisesRegex(RuntimeError, "in use by another thread"):
                use()
        outside.set()
        thread.join()
        self.assertEqual(writer.rows, 1)

    def test_a_fork_gets_a_clear_error_and_leaves_the_table_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            table = Table(COLUMNS, disk_bytes=1 << 26, disk_folder=folder)
            fill(table, range(10))
            writer = table.writer()
            batch = table.sample(4)
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                said = []
                for use in (lambda: table.sample(1), lambda: fill(table, [1]), lambda: len(table), lambda: writer.append(state=[1, 2, 3], step=1),
                            lambda: table.save(folder + "/x")):
                    try:
                        use()
                        said.append("nothing")
                    except RuntimeError as mistake:
                        said.append(str(mistake))
                own = Table(COLUMNS)
                fill(own, range(3))
                said.append(f"{len(own)} {batch['step'].shape}")
                os.write(write, json.dumps(said).encode())
                del table, writer, own
                gc.collect()
                os._exit(0)
            os.close(write)
            with os.fdopen(read) as pipe:
                said = json.loads(pipe.read())
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            for text in said[:-1]:
                self.assertRegex(text, "belongs to process .* make the (table|writer) after the fork")
            self.assertEqual(said[-1], "3 (4,)")
            fill(table, range(3))
            self.assertEqual(len(table), 13)


class Mistakes(unittest.TestCase):
    def test_keys_are_checked_as_those_of_served_tables(self):
        for keys, words in [
            ({"sampler": "unifrom"}, r'^sampler is "unifrom".*uniform'),
            ({"max_item": 5}, r"^max_item is not a key.*max_items"),
            ({"max_items": 0}, r"^max_items is 0"),
            ({"limiter": "none"}, r'^limiter is "none"'),
            ({"disk_bytes": 5}, r"^disk_folder is \"\" and disk_bytes is 5; name a folder"),
            ({"compression": "gzip"}, r'^compression is "gzip"'),
            ({"length": 0}, "length is 0"),
            ({"length": 3, "period": 0}, "period is 0"),
            ({"length": 3, "end": "stop"}, 'end is "stop"; it must be "pad"'),
            ({"length": 3, "burn_in": 3}, "burn_in .* is 3"),
            ({"chunk_rows": -1}, "chunk_rows is -1"),
        ]:
            with self.subTest(keys), self.assertRaisesRegex(ValueError, words) as caught:
                Table(COLUMNS, **keys)
            self.assertNotRegex(str(caught.exception), "--set|--column|table\\[")
        with self.assertRaisesRegex(ValueError, "sampler is .*\nremover is "):
            Table(COLUMNS, sampler="a", remover="b")

    def test_columns_are_checked(self):
        for columns, error, words in [
            ({}, ValueError, "has at least one column"),
            ({"a": ((3,), "float16")}, ValueError, 'column.*type is "float16"'),
            ({"a": ((0,), "uint8")}, ValueError, "shape.* 0"),
            ({"a:b": 3}, ValueError, "without colons"),
            ({"last": 3}, ValueError, "a keyword of add"),
            ({"a": "float32"}, TypeError, "must be \\(shape, dtype\\)"),
            ("tcp://127.0.0.1:1", TypeError, "Table.connect"),
        ]:
            with self.subTest(columns), self.assertRaisesRegex(error, words):
                Table(columns)

    def test_whole_numbers_outside_a_columns_range_are_refused(self):
        table = Table({"pixels": ((2,), "uint8"), "level": ((), "uint8"), "step": ((), "int64")})
        good = {"pixels": np.array([0, 255], np.uint16), "level": np.uint16(255), "step": np.uint64(2**63 - 1)}
        for change, words in [
            ({"pixels": np.array([0, 256], np.uint16)}, "'pixels': got 256; it must be from 0 to 255"),
            ({"level": np.uint16(300)}, "'level': got 300; it must be from 0 to 255"),
            ({"step": np.uint64(2**63)}, "'step': got 9223372036854775808; it must be from -9223372036854775808 to 9223372036854775807"),
        ]:
            with self.subTest(change), self.assertRaisesRegex(ValueError, words):
                table.add(**{**good, **change})
        with self.assertRaisesRegex(ValueError, "'pixels': got 300"):
            table.extend({"pixels": np.array([[1, 2], [3, 300]], np.uint32), "level": np.zeros(2, np.uint8), "step": np.arange(2)})
        self.assertEqual(len(table), 0)
        table.add(**good)
        batch = table.sample(1)
        self.assertEqual((batch["pixels"][0].tolist(), int(batch["level"][0]), int(batch["step"][0])), ([0, 255], 255, 2**63 - 1))

    def test_a_conversion_that_fails_raises_its_own_exception(self):
        class Refusing:
            def __array__(self, dtype=None, copy=None):
                raise RuntimeError("it requires grad")

        table = Table(COLUMNS)
        fill(table, [1])
        for use in (lambda: table.update_priorities([0], Refusing()), lambda: table.update_priorities(Refusing(), [1.0]),
                    lambda: table.extend({"state": np.zeros((1, 3)), "step": np.zeros(1, np.int64)}, last=Refusing())):
            with self.assertRaisesRegex(RuntimeError, "^it requires grad"):
                use()
        with self.assertRaisesRegex(ValueError, "high"):
            table.update_priorities([0], ["high"])

    def test_steps_are_checked_and_leave_nothing_behind(self):
        table = Table(COLUMNS)
        for step, error, words in [
            ({"state": [1, 2], "step": 0}, ValueError, r"'state': got int64 \[2\], expected float32 \[3\]"),
            ({"state": [1, 2, 3], "step": 0.5}, TypeError, "'step': got float64"),
            ({"state": "abc", "step": 0}, ValueError, "'state'"),
            ({"state": [1, 2, 3]}, ValueError, 'column "step" is missing'),
            ({"state": [1, 2, 3], "step": 0, "more": 1}, ValueError, "3 columns are given, but 2 belong"),
            ({"state": [1, 2, 3], "step": 0, "priority": -1.0}, ValueError, r"0 to 1e\+12"),
        ]:
            with self.subTest(step), self.assertRaisesRegex(error, words):
                table.add(**step)
        with self.assertRaisesRegex(ValueError, "columns of 4 and 5 steps"):
            table.extend({"state": np.zeros((4, 3)), "step": np.zeros(5, np.int64)})
        with self.assertRaisesRegex(ValueError, "last has 3 values; it must have 4"):
            table.extend({"state": np.zeros((4, 3)), "step": np.zeros(4, np.int64)}, last=[False] * 3)
        self.assertEqual(len(table), 0)
        fill(table, [1])
        for count in (0, -1, 10**7):
            with self.assertRaisesRegex(ValueError, f"a sample of {count} items: 1 to"):
                table.sample(count)
        with self.assertRaisesRegex(ValueError, "deadline is -1"):
            table.sample(1, deadline=-1)
        for item in (-1, 1):
            for rows in (table.sample(1).rows, table.sample(1).parts[0].rows):
                with self.assertRaisesRegex(IndexError, f"item {item} of a "):
                    rows("step", item)
        with self.assertRaisesRegex(KeyError, "no column 'stat'; the table has state, step"):
            table.sample(1)["stat"]
        writer = table.writer()
        writer.append(state=[1, 2, 3], step=1)
        with self.assertRaisesRegex(ValueError, 'no table "other" beside'):
            writer.add_item(1, table="other")
        before = len(table)
        writer.add_item(1)
        writer.insert()
        self.assertEqual(len(table), before + 1)


class Served(unittest.TestCase):
    def test_a_served_table_has_the_same_methods(self):
        server = subprocess.Popen([TROUPE, "replay", "serve", "--json", "--end-with-input", "--column", "state:float32:3", "--column", "step:int64",
                                   "--set", "sampler=prioritized"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            endpoint = json.loads(server.stdout.readline())["endpoint"]
            tables = [Table(COLUMNS, length=2, sampler="prioritized"), Table.connect(endpoint, length=2)]
            for table in tables:
                fill(table, range(20))
                table.extend({"state": np.zeros((4, 3)), "step": np.arange(20, 24)}, last=[False, False, False, True])
                writer = table.writer()
                writer.extend(state=np.zeros((2, 3), np.float32), step=np.arange(100, 102))
                writer.add_item(2)
                writer.insert()
                table.flush()
                batch = table.sample(50)
                self.assertEqual(batch["step"].shape, (50, 2))
                np.testing.assert_array_equal(np.diff(batch["step"], axis=1), 1)
                table.update_priorities(batch.keys, np.ones(50))
                self.assertEqual(len(table), 24)
                self.assertEqual(table.info().config["sampler"], "prioritized")
            self.assertEqual({name for name in dir(Table) if name[0] != "_"} - {"connect"},
                             {name for name in dir(tables[1]) if name[0] != "_"} & set(dir(Table)))
            with self.assertRaisesRegex(RuntimeError, "--checkpoints"):
                tables[1].save("x")
            tables[1].close()
        finally:
            server.stdin.close()
            server.wait(20)
            server.stdout.close()


class Readme(unittest.TestCase):
    def test_the_readme_does_what_it_says(self):
        blocks = [block for block in re.findall(r"```python\n(.*?)```", README.read_text(), re.S) if "Client(" not in block and "import torch" not in block]
        self.assertGreaterEqual(len(blocks), 5)
        scope = {}
        for block in blocks:
            exec(block, scope)
        self.assertEqual(scope["batch"]["observation"].shape, (256, 17))
        self.assertEqual(scope["frames"].shape, (32, 4, 84, 84))
        self.assertEqual(scope["next_observation"].base.base is scope["observation"].base.base, True)
        self.assertEqual(scope["n_step"](scope["pixels"].sample(8), 0.9).shape, (8,))
        self.assertEqual(len(scope["reached"]), 250)
        again = scope["with_hindsight"](scope["episode"], scope["near"], np.random.default_rng(2))
        for name, array in scope["episode"].items():
            np.testing.assert_array_equal(again[name][:50], array)
        for row in range(50, 250):
            later = np.flatnonzero((scope["episode"]["achieved"] == again["goal"][row]).all(axis=1))
            self.assertGreaterEqual(later[-1], row % 50)
            self.assertEqual(again["reward"][row], scope["near"](again["achieved"][row], again["goal"][row]))
        data = scope["data"]
        self.assertEqual(data.observations.shape, (8, 4))
        self.assertTrue((data.next_observations - data.observations == 1).all())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
