#!/usr/bin/env python3
"""Runs the scripts of the repository beside programs that stand in for packages, compilers and trainings."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[1]
PACKAGING = "experiments/packaging"
# Answers as Debian's dpkg-query does: a line for each architecture for which the package is known.
DPKG_QUERY = """
import sys
known = {"both": [("1.0-1", "amd64", "installed"), ("1.0-1", "i386", "installed")], "common": [("3.0-1", "all", "installed")],
         "foreign": [("1.0-1", "i386", "installed")], "left": [("2.0-1", "amd64", "config-files")], "listed": [("", "", "not-installed")]}
form = next(word for word in sys.argv if "${" in word).removeprefix("-f=").replace("\\\\n", "\\n").replace("\\\\t", "\\t")
for version, architecture, status in known.get(sys.argv[-1], []):
    values = {"Version": version, "Architecture": architecture, "db:Status-Status": status, "db:Status-Abbrev": "ii " if status == "installed" else "rc "}
    text = form
    for name, value in values.items():
        text = text.replace("${" + name + "}", value)
    print(text, end="")
sys.exit(sys.argv[-1] not in known)
"""


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def copy(self, name):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / name, path)
        return path

    def stand_in(self, name, text):
        """A program that is found before the real one of this name."""
        self.write(f"bin/{name}", text).chmod(0o755)

    def python_stand_in(self, name, text):
        self.stand_in(name, f"#!{sys.executable}\n{text}")

    def run_script(self, *words, **variables):
        environment = {**os.environ, **variables, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        return subprocess.run(words, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=False)

    def have_packages(self):
        self.python_stand_in("dpkg-query", DPKG_QUERY)
        self.stand_in("dpkg", "#!/bin/sh\necho amd64\n")
        self.stand_in("id", "#!/bin/sh\necho 1000\n")

    def test_a_package_of_several_architectures_is_installed_if_it_is_for_this_machine(self):
        self.have_packages()
        script = self.copy(f"{PACKAGING}/install_dependencies.sh")
        for name in ("lib/libtorch_cpu.so", "lib/libmujoco.so.3.17.0", "suite/cheetah.xml", "assets/half_cheetah.xml",
                     "share/cmake/pybind11/pybind11Config.cmake"):
            self.write(f"there/{name}", "")
        there = str(self.folder / "there")
        self.write(f"{PACKAGING}/apt-packages.txt", "both\ncommon\n")
        done = self.run_script(script, CMAKE_PREFIX_PATH=there)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.write(f"{PACKAGING}/apt-packages.txt", "both\nforeign\nleft\nlisted\nunknown\n")
        done = self.run_script(script, CMAKE_PREFIX_PATH=there)
        self.assertEqual(done.returncode, 2)
        self.assertIn("apt-get install --no-install-recommends foreign left listed unknown\n", done.stderr)

    def test_the_bill_of_materials_has_the_version_for_this_machine(self):
        self.have_packages()
        script = self.copy(f"{PACKAGING}/sbom.py")
        self.write("CMakeLists.txt", "project(troupe VERSION 0.1.0)\n")
        self.write(f"{PACKAGING}/wheels.txt", "")
        self.write(f"{PACKAGING}/dependencies.csv", "name,packages,version,licence,part,watched,instead\nA,both common,1,MIT,build,all,none\n"
                   "B,foreign left listed unknown,9,MIT,optional: a part,all,none\n")
        done = self.run_script(script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(part["name"], part["version"]) for part in json.loads(done.stdout)["components"]],
                         [("both", "1.0-1"), ("common", "3.0-1"), ("foreign", "9"), ("left", "9"), ("listed", "9"), ("unknown", "9")])
        self.assertIn("pkg:deb/debian/both@1.0-1?arch=amd64&", done.stdout)

    def have_tools(self):
        """The programs of a build, which write their arguments to a file."""
        for name in ("cmake", "ninja", "ctest", "clang++-16"):
            self.stand_in(name, f'#!/bin/sh\necho "{name} $*" >> "{self.folder}/called"\n')

    def called(self, name):
        lines = (self.folder / "called").read_text(encoding="utf-8").splitlines()
        return [line.split() for line in lines if line.split()[0] == name]

    def test_the_tests_of_the_preset_cuda_are_not_built_without_cuda(self):
        self.have_tools()
        script = self.copy("tests/run.sh")
        self.write(f"{PACKAGING}/install_dependencies.sh", "#!/bin/sh\n").chmod(0o755)
        for preset, wanted in (("release", "AUTO"), ("cuda", "ON")):
            done = self.run_script(script, preset, "-L", "unit")
            self.assertEqual(done.returncode, 0, done.stderr)
            words = self.called("cmake")[-1]
            self.assertEqual(words[words.index("--preset") + 1], preset)
            self.assertIn(f"-DTROUPE_CUDA={wanted}", words)
            self.assertEqual(self.called("ctest")[-1][-2:], ["-L", "unit"])

    def configured(self, *words, **variables):
        """Configures the project into a folder. Returns the output and the cache."""
        build = self.folder / "build"
        done = self.run_script("cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", *words, **variables)
        self.assertNotEqual(done.returncode, 0, "these settings are not refused")
        return " ".join(done.stderr.split()), (build / "CMakeCache.txt").read_text(encoding="utf-8")

    def test_the_dependencies_are_where_the_script_unpacked_them(self):
        cache = self.configured("-DTROUPE_CUDA=none", TROUPE_DEPENDENCIES=f"{self.folder}/elsewhere")[1]
        self.assertIn(f"\nTROUPE_DEPENDENCIES:PATH={self.folder}/elsewhere\n", cache)

    def test_folders_that_cannot_be_built_are_refused(self):
        for given, complaint in (("env,replay", "TROUPE_COMPONENTS has 'env,replay'; it must be a list, separated by semicolons, of env, replay,"),
                                 ("env;replay;learner", "TROUPE_COMPONENTS has 'learner' without 'collectives', which it needs; add 'collectives',")):
            self.assertIn(complaint, self.configured(f"-DTROUPE_COMPONENTS={given}")[0])

    def test_a_stage_of_everywhere_whose_run_fails_gives_exit_code_1(self):
        self.stand_in("troupe", "#!/bin/sh\nexit 1\n")
        done = self.run_script(SOURCE / "tests/cluster/everywhere.sh", self.folder / "bin/troupe", self.folder / "results", "process")
        self.assertIn("process,1,,,,,,,1,1 without a checkpoint,0,,\n", done.stdout)
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_renderers_takes_keys_without_a_number_of_episodes(self):
        self.stand_in("troupe", f"""#!/bin/bash
echo "$*" >> "{self.folder}/called"
case $1 in
train) mkdir -p "{self.folder}/runs/CASTER/name/time" && echo "return 10" ;;
evaluate) echo '{{"mean_return": 10}}' ;;
esac
""")
        for words, episodes, key in ((["3", "seed=2"], "3", "seed=2"), (["environment.task=walker_walk"], "10", "environment.task=walker_walk"), ([], "10", "")):
            done = self.run_script(SOURCE / "experiments/bench/peers/renderers.sh", "quickstart", *words, TROUPE=f"{self.folder}/bin/troupe",
                                   RUNS=f"{self.folder}/runs", LEARN="CASTER")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([line[line.index("--set", 5) + 1] for line in self.called("train") if key][-1:], [key] if key else [])
            self.assertEqual([line[line.index("--episodes") + 1] for line in self.called("evaluate")[-2:]], [episodes] * 2)

    def test_sngan_says_which_script_makes_its_classifier(self):
        self.stand_in("troupe", "#!/bin/sh\n")
        done = self.run_script(SOURCE / "experiments/bench/peers/sngan.sh", TROUPE=f"{self.folder}/bin/troupe", DATA=f"{self.folder}/classify/data",
                               RUNS=f"{self.folder}/classify/runs")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, f"there is no run of the classifier in {self.folder}/classify/runs; experiments/bench/peers/classify.sh draw one makes it\n")

    def test_a_figure_beside_a_rival_is_of_one_metric_and_one_configuration(self):
        self.python_stand_in("troupe", """
import json, pathlib, sys
with open("called", "a") as file:
    print(*sys.argv[1:], file=file)
for metric, threads, value in (("D4PG end to end", 1, 300), ("D4PG updates beside it", 1, 900), ("D4PG end to end", 2, 400)):
    print(json.dumps({"metric": metric, "config": {"learner_threads": str(threads)}, "value": value}))
    if pathlib.Path("more").exists() and metric == "D4PG end to end":
        print(json.dumps({"metric": metric, "config": {"learner_threads": str(threads), "device": "cuda"}, "value": 5000}))
""")
        figures = [{"metric": f"cheetah-run DDPG end-to-end {threads} thread", "peer": "DDPG / a", "value": 100} for threads in (1, 2)]
        self.write("peers/run.sh", "".join(f"echo '{json.dumps(figure)}'\n" for figure in figures))
        words = [sys.executable, SOURCE / "experiments/bench/peers/rivals.py", self.folder / "bin/troupe", self.folder / "peers"]
        done = self.run_script(*words, "agent", "--rounds", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("| cheetah_run end to end, 1 learner thread | 300 | 100 (DDPG: cheetah-run DDPG end-to-end 1 thread) | 3.00 | 1.5 |", done.stdout)
        self.write("more", "")
        done = self.run_script(*words, "agent", "--rounds", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cheetah_run end to end, 1 learner thread: 2 figures of ours match: ", done.stderr)
        self.assertNotIn("5,000", done.stdout)
        self.run_script(*words, "learner", "--rounds", "1", PEERS_VENV=str(self.folder))
        self.assertIn("bench learner --json --seconds 1 --device cpu\n", (self.folder / "called").read_text())

    def test_fuzz_configures_and_builds_one_folder(self):
        self.have_tools()
        self.run_script(sys.executable, SOURCE / "tests/fuzz.py", "--build", "made", "--targets", "none")  # which the tools here do not build
        words = self.called("cmake")[-1]
        self.assertEqual(words[words.index("-B") + 1], f"{self.folder}/made")
        self.assertEqual(self.called("ninja")[-1][1:3], ["-C", f"{self.folder}/made"])

    def test_the_image_has_the_folders_to_which_the_links_of_the_build_lead(self):
        linked = re.search(r"foreach\(folder IN ITEMS ([\w ]+)\) # found like", (SOURCE / "experiments/CMakeLists.txt").read_text(encoding="utf-8"))[1].split()
        copied = re.findall(r"^COPY experiments/(\w+) experiments/\1$", (SOURCE / PACKAGING / "Dockerfile").read_text(encoding="utf-8"), re.M)
        self.assertEqual(sorted(copied), sorted(linked))


if __name__ == "__main__":
    unittest.main()
