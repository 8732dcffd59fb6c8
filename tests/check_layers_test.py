#!/usr/bin/env python3
"""Breaks each rule of check_layers.py once in a small tree, and checks that it is reported."""
import os
import subprocess
import sys
import tempfile
import unittest

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_layers.py")

TREE = {
    "README.md": "",
    "env/README.md": "| room | holds |\n| --- | --- |\n| `wire/` | transport |\n| `suite/` | tasks |\n",
    "env/CMakeLists.txt": "add_library(env wire/socket.cpp suite/task.cpp)\n",
    "env/wire/socket.hpp": "#pragma once\n",
    "env/wire/socket.cpp": '#include "env/wire/socket.hpp"\n#include <zmq.h>\n',
    "env/suite/task.hpp": '#pragma once\n#include <mujoco/mujoco.h>\n#include "env/wire/socket.hpp"\n',
    "env/suite/task.cpp": '#include "env/suite/task.hpp"\n',
    "replay/README.md": "| `table/` | items |\n",
    "replay/CMakeLists.txt": "add_library(replay table/table.cpp)\n",
    "replay/table/table.hpp": '#pragma once\n#include "env/suite/task.hpp"\n',
    "replay/table/table.cpp": '#include "replay/table/table.hpp"\n',
    "tests/replay/table/table_test.cpp": '#include "replay/table/table.hpp"\n#include <doctest.h>\n',
}


class CheckLayers(unittest.TestCase):
    def check(self, **changes):
        """The complaints about the tree with text added to these files, and everything printed."""
        with tempfile.TemporaryDirectory() as root:
            files = dict(TREE)
            for name, text in changes.pop("files", {}).items():
                files[name] = files.get(name, "") + text
            for name, text in files.items():
                path = os.path.join(root, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as opened:
                    opened.write(text)
            done = subprocess.run([sys.executable, CHECK, "--root", root], capture_output=True, text=True, check=False)
            complaints = [line for line in done.stdout.splitlines() if line.split(":")[0] in
                          ("folders", "rooms", "size", "introduction", "owners", "cmake", "tests")]
            self.assertEqual(done.returncode, 1 if complaints else 0, done.stdout + done.stderr)
            return complaints, done.stdout

    def broken(self, rule, *words, **changes):
        complaints, _ = self.check(**changes)
        self.assertEqual([line.split(":")[0] for line in complaints], [rule], complaints)
        for word in words:
            self.assertIn(word, complaints[0])

    def test_a_sound_tree_passes_and_its_includes_are_printed(self):
        complaints, printed = self.check()
        self.assertEqual(complaints, [])
        self.assertIn("env/suite (2) -> env/wire", printed)
        self.assertIn("replay/table (2) -> env/suite", printed)

    def test_a_folder_above(self):
        self.broken("folders", "env/suite/task.cpp:2", "replay/other/other.hpp",
                    files={"env/suite/task.cpp": '#include "replay/other/other.hpp"\n'})

    def test_tests_in_production(self):
        self.broken("folders", "must not include tests", files={"env/suite/task.cpp": '#include "tests/fixture.hpp"\n'})

    def test_a_cycle_of_rooms(self):
        self.broken("rooms", "env/suite", "env/wire", "in a cycle", files={"env/wire/socket.hpp": '#include "env/suite/task.hpp"\n'})

    def test_a_room_of_more_than_forty_files(self):
        self.broken("size", "41 files", files={f"env/wire/part_{i}.hpp": "#pragma once\n" for i in range(39)})


    def test_a_readme_introduces_a_room(self):
        complaints, _ = self.check(files={"replay/writers/writer.hpp": "#pragma once\n", "replay/writers/README.md": "# Writers\n"})
        self.assertEqual(complaints, [])

    def test_a_library_of_another_room(self):
        for header, owner in {"caf/all.hpp": "CAF", "openssl/ssl.h": "OpenSSL", "google/protobuf/message.h": "Protobuf", "zmq.h": "ZeroMQ",
                              "mujoco/mujoco.h": "MuJoCo", "torch/types.h": "LibTorch", "ATen/core/Tensor.h": "LibTorch",
                              "CLI/CLI.hpp": "CLI11", "zstd.h": "zstd", "lz4.h": "lz4", "png.h": "libpng", "turbojpeg.h": "libjpeg-turbo",
                              "libavcodec/avcodec.h": "FFmpeg", "nccl.h": "NCCL", "doctest.h": "doctest"}.items():
            with self.subTest(header):
                self.broken("owners", owner, "replay/table/table.cpp:2", files={"replay/table/table.cpp": f"#include <{header}>\n"})

    def test_a_source_that_nothing_compiles(self):
        self.broken("cmake", "replay/table/lost.cpp", files={"replay/table/lost.cpp": ""})

    def test_a_source_that_does_not_exist(self):
        self.broken("cmake", "replay/table/gone.cpp", files={"replay/CMakeLists.txt": "add_library(more table/gone.cpp)\n"})

    def test_a_source_of_another_folder(self):
        self.broken("cmake", "another folder", files={"replay/CMakeLists.txt": "add_library(more ../env/suite/task.cpp)\n"})

    def test_tests_of_no_room(self):
        self.broken("tests", "tests/replay/tables", files={"tests/replay/tables/table_test.cpp": ""})


if __name__ == "__main__":
    unittest.main()
