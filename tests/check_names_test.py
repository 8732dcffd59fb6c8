#!/usr/bin/env python3
"""Hides a name of each kind once and checks that check_names.py reports it."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_names.py")


@unittest.skipUnless(shutil.which("ctags"), "no ctags")
class CheckNames(unittest.TestCase):
    def check(self, header, source):
        """The complaints about a room of one header and the source of another file."""
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "env"))
            for name, text in (("a.hpp", header), ("b.cpp", source)):
                with open(os.path.join(root, "env", name), "w", encoding="utf-8") as opened:
                    opened.write(text)
            done = subprocess.run([sys.executable, CHECK, "--root", root], capture_output=True, text=True, check=False)
            lines = done.stdout.splitlines()[:-1]
            self.assertEqual(done.returncode, 1 if lines else 0, done.stdout + done.stderr)
            return [line.split(": ")[0] for line in lines]

    def of(self, text):
        return f"namespace t {{\n{text}\n}}\n"

    def unnamed(self, text):
        return f"namespace t {{\nnamespace {{\n{text}\n}}\n}}\n"

    def test_constants(self):
        header = self.of("constexpr int kBatch = 256;")
        self.assertEqual(self.check(header, self.unnamed("constexpr int kBatch = 8;")), ["env/b.cpp:3"])
        self.assertEqual(self.check(header, self.unnamed("constexpr int kRows = 8;")), [])
        self.assertEqual(self.check(header, "namespace u {\nnamespace {\nconstexpr int kBatch = 8;\n}\n}\n"), [])

    def test_functions(self):
        header = self.of("bool finite(const Tensor& tensor);")
        self.assertEqual(self.check(header, self.unnamed("bool finite(const Tensor& x) { return true; }")), ["env/b.cpp:3"])
        self.assertEqual(self.check(header, self.unnamed("bool finite(double x) { return true; }")), [])

    def test_namespaces_that_are_used(self):
        header = "namespace t::setup {\nconstexpr int kBatch = 256;\n}\n"
        self.assertEqual(self.check(header, self.unnamed("constexpr int kBatch = 8;")), ["env/b.cpp:3"])


if __name__ == "__main__":
    unittest.main()
