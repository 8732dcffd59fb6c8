#!/usr/bin/env python3
"""Breaks each rule of check_tests.py once, in each language, and checks that it is reported."""
import os
import subprocess
import sys
import tempfile
import unittest

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_tests.py")


class CheckTests(unittest.TestCase):
    def check(self, name, text):
        """The complaints about a tree of one test file."""
        with tempfile.TemporaryDirectory() as root:
            path = os.path.join(root, "tests", name)
            os.makedirs(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as opened:
                opened.write(text)
            done = subprocess.run([sys.executable, CHECK, "--root", root], capture_output=True, text=True, check=False)
            lines = done.stdout.splitlines()[:-1]
            self.assertEqual(done.returncode, 1 if lines else 0, done.stdout + done.stderr)
            return lines

    def broken(self, rule, name, text, line=1):
        lines = self.check(name, text)
        self.assertEqual([found.split(": ")[:2] for found in lines], [[rule, f"tests/{name}:{line}"]])

    def test_fixed_paths(self):
        self.broken("paths", "a/a_test.cpp", "int a;\n\nauto f = std::filesystem::temp_directory_path()\n  / \"x\";\n", 3)
        self.broken("paths", "a/a_test.cpp", 'std::ofstream("/tmp/x") << 1;\n')
        self.broken("paths", "a/a_test.cpp", 'const fs::path p = fs::path("/dev/shm") / "x";\n')
        self.broken("paths", "a/a_test.cpp", 'const auto f = std::filesystem::path(TROUPE_BINARY_DIR) / "golden_test";\n')
        self.broken("paths", "a/a.py", 'open("/tmp/x", "w")\n')
        self.broken("paths", "a/a.sh", "true\necho >/tmp/x\n", 2)

    def test_fixed_ports(self):
        self.broken("ports", "a/a_test.cpp", 'socket.bind(\n    "tcp://127.0.0.1:7400");\n')
        self.broken("ports", "a/a_test.cpp", 'RendezvousServer server("127.0.0.1", 29500);\n')
        self.broken("ports", "a/a_test.cpp", "address.sin_port = htons(7400);\n")
        self.broken("ports", "a/a.py", 'socket.bind(("", 7400))\n')
        self.broken("ports", "a/a.sh", "program --port 7400\n")

    def test_changed_environment(self):
        self.broken("environment", "a/a_test.cpp", '::setenv("A", "1", 1);\n')
        self.broken("environment", "a/a_test.cpp", "std::filesystem::current_path(folder);\n")
        self.broken("environment", "a/a.py", 'os.environ["A"] = "1"\n')

    def test_sleeps(self):
        self.broken("sleeps", "a/a_test.cpp", "std::this_thread::sleep_for(20ms);\n")
        self.broken("sleeps", "a/a.py", "time.sleep(1)\n")
        self.broken("sleeps", "a/a.sh", "sleep 0.1\n")

    def test_doubled_names(self):
        self.broken("names", "a/a_test.cpp", 'TEST_CASE("a thing is") {}\nTEST_CASE("another is") {}\nTEST_CASE(\n    "a thing "\n    "is") {}\n', 3)

    def test_split_names(self):
        self.broken("names", "a/a_test.cpp", 'TEST_CASE("a thing is; another is not") {}\n')

    def test_what_is_fine(self):
        for name, text in {
            "a/a_test.cpp": 'const TemporaryFolder folder;\nsocket.bind("tcp://127.0.0.1:*");\n// sleep_for(1s) and "/tmp/x"\n'
                            'CHECK_THROWS_WITH_AS(socket.bind("tcp://*:5000"), x, y);\nCHECK(parse("127.0.0.1:7400").port == 7400);\n'
                            'const std::string program = TROUPE_BINARY_DIR "/troupe";\nCHECK(current_path() == folder);\n',
            "a/a.py": 'socket.bind(("127.0.0.1", 0))\nif os.environ["A"] == "1":\n    pass\n',
            "a/a.sh": "# sleep 1\nfolder=$(mktemp -d)\nprogram --port $port\n",
            "cluster/a.sh": "until pgrep x; do sleep 0.1; done\n",
        }.items():
            self.assertEqual(self.check(name, text), [], name)


if __name__ == "__main__":
    unittest.main()
