#!/usr/bin/env python3
"""Tests what soak.py concludes from its samples, what it counts of a process, and which processes of a run the scripts measure. Usage: soak_test.py SOURCE"""
import argparse
import mmap
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1)) / "experiments/bench/peers"))
import cluster_model  # noqa: E402
import overload  # noqa: E402
import soak  # noqa: E402

HOURS = [i / 400 for i in range(400)]
# A head, which `train` starts. It starts a process of a role and prints its number. Both end with their input.
HEAD = """import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", "--role", "environment", "--index", "3",
                          "--head-port", "4242"], stdout=subprocess.PIPE)
child.stdout.readline()  # it has its command line
print(child.pid, flush=True)
child.wait()
"""
LIMITS = argparse.Namespace(memory_limit=1.0, count_limit=2.0)


def correlated(chance, correlation):
    value, made = 0.0, []
    for _ in HOURS:
        value = correlation * value + chance.gauss(0, 1)
        made.append(value)
    return made


def verdict(quantity, values):
    return [row["verdict"] for row in soak.judge(LIMITS, {"shard": {quantity: values}}, HOURS)]


class SoakTest(unittest.TestCase):
    def test_intervals_hold_the_true_slope_for_independent_and_correlated_noise(self):
        chance = random.Random(1)
        for correlation in (0.0, 0.5, 0.9):
            held = 0
            for _ in range(200):
                found, width, _ = soak.slope(HOURS, [7 + 3 * hour + noise for hour, noise in zip(HOURS, correlated(chance, correlation))])
                held += abs(found - 3) <= width
            self.assertGreaterEqual(held, 180, correlation)  # 95 % of 200 are 190
            self.assertLessEqual(held, 199, correlation)     # wider intervals would hide leaks

    def test_a_leak_is_found_and_a_plateau_is_none(self):
        chance = random.Random(2)
        noise = correlated(chance, 0.8)
        self.assertEqual(verdict("memory", [100 + 8 * hour + 0.3 * one for hour, one in zip(HOURS, noise)]), ["leaks"])
        self.assertEqual(verdict("memory", [100 + 0.3 * one for one in noise]), ["good"])
        self.assertEqual(verdict("memory", [20 if i < 60 else 100 for i in range(400)]), ["good"])  # growth at the beginning does not count
        self.assertEqual(verdict("threads", [12] * 400), ["good"])
        self.assertEqual(verdict("descriptors", [30 + i // 40 for i in range(400)]), ["leaks"])
        self.assertNotEqual(verdict("descriptors", [30 + (i > 250) for i in range(400)]), ["leaks"])  # a single step

    def test_descriptors_threads_and_shared_segments_of_a_process_are_counted(self):
        before = soak.quantities(os.getpid())
        segment = os.memfd_create("soak")
        os.ftruncate(segment, 8192)
        with mmap.mmap(segment, 4096), mmap.mmap(segment, 8192):  # two mappings of one segment
            after = soak.quantities(os.getpid())
        os.close(segment)
        self.assertEqual(after["shared segments"], before["shared segments"] + 1)
        self.assertGreater(after["descriptors"], before["descriptors"])
        self.assertEqual(after["threads"], before["threads"])
        self.assertGreater(before["memory"], 1)
        self.assertIsNone(soak.quantities(1 << 30))

    def test_the_processes_of_a_run_are_found_below_its_head(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "train").write_text(HEAD)
            with subprocess.Popen([sys.executable, "train"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as head:
                child = int(head.stdout.readline())
                found, roles = overload.children(os.getpid()), cluster_model.roles_of(os.getpid())
                head.stdin.close()
        self.assertEqual(found, {head.pid: "head", child: "environment 3", "port": 4242})
        self.assertEqual(roles, {head.pid: "head", child: "environment"})


if __name__ == "__main__":
    unittest.main()
