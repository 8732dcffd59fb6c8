#!/usr/bin/env python3
"""Tests what soak.py concludes from its samples, and what it counts of a process. Usage: soak_test.py SOURCE"""
import argparse
import mmap
import os
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1)) / "experiments/bench/peers"))
import soak  # noqa: E402

HOURS = [i / 400 for i in range(400)]
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


if __name__ == "__main__":
    unittest.main()
