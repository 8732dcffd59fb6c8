#!/usr/bin/env python3
"""Checks that dependencies.csv names every package of the install lists once, with the version that they, CMake and the tests pin, and that the bill of
materials made from it is the same each time and passes CycloneDX's own validator.

Usage: sbom_test.py <folder for the validator's virtual environment>; exit code 77: skipped.
"""
import csv
import json
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from python_packages import python_with

root = pathlib.Path(__file__).resolve().parents[3]
packaging = root / "experiments/packaging"


def bill():
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "bill.json"
        subprocess.run([sys.executable, packaging / "sbom.py", "--out", out], check=True)
        return out.read_text(encoding="utf-8")


def text_of(path):
    return (root / path).read_text(encoding="utf-8")


def pinned_wheels():
    return dict(re.findall(r"^(\S+)==(\S+) --hash", (packaging / "wheels.txt").read_text(encoding="utf-8"), re.M))


def listed():
    """The packages that everyone needs, and those that only some need."""
    needed = [*text_of("experiments/packaging/apt-packages.txt").split(), *(f"wheel:{name}" for name in pinned_wheels())]
    tests = text_of("experiments/packaging/apt-packages-tests.txt").split()
    dockerfile = text_of("experiments/packaging/Dockerfile")
    return needed, [package for package in ("libopenmpi-dev", "openmpi-bin") if package in tests and package in dockerfile]


def installed_version(package):
    """Without Debian's epoch and revision."""
    asked = subprocess.run(["dpkg-query", "--show", "--showformat", "${Version}", package], capture_output=True, text=True, check=False)
    return re.sub(r"^\d+:|-[^-]*$", "", asked.stdout) if asked.returncode == 0 else ""


def check_versions(table):
    """Raises AssertionError if a version of the table is not the one that is pinned elsewhere."""
    of = {package: row["version"] for row in table for package in row["packages"].split()}
    for name, version in pinned_wheels().items():
        assert of[f"wheel:{name}"] == version, f"{name}: wheels.txt pins {version}, dependencies.csv says {of[f'wheel:{name}']}"
    for cmake, call, package in [
        ("actors", "CAF", "libcaf-dev"), ("collectives", "LibTorch", "wheel:torch"), ("env", "MuJoCo", "wheel:mujoco"),
        ("env/caster", "hwy", "libhwy-dev"), ("experiments", "Boost", "libboost-dev"), ("experiments/python", "pybind11", "wheel:pybind11"),
    ]:
        version = re.search(rf"find_package\({call} ([0-9.]+)", text_of(f"{cmake}/CMakeLists.txt"))[1]
        assert of[package].startswith(version), f"{package}: CMake asks for {version}, dependencies.csv says {of[package]}"
    for name, pins in [("ray", "tests/experiments/launchers/ray_test.py"), ("numpy", "tests/env/remote/python_test.py"),
                       ("pyzmq", "tests/env/remote/python_test.py")]:
        assert f"{name}=={of[f'pypi:{name}']}" in text_of(pins), f"{name}: {pins} pins another version than dependencies.csv"
    for package, version in of.items():
        assert re.fullmatch(r"\d+(\.\d+)*", version), f"{package}: dependencies.csv has no version"
        there = "" if ":" in package or platform.freedesktop_os_release().get("VERSION_ID") != "12" else installed_version(package)
        assert not there or there.startswith(version), f"{package}: {there} is installed, dependencies.csv says {version}"


with open(packaging / "dependencies.csv", newline="", encoding="utf-8") as file:
    table = list(csv.DictReader(file))
optional = [package for row in table if row["part"].startswith("optional: ") for package in row["packages"].split()]
required = [package for row in table if not row["part"].startswith("optional: ") for package in row["packages"].split()]
needed, wanted = listed()
assert sorted(required) == sorted(needed), f"dependencies.csv and the lists differ: {sorted(set(required) ^ set(needed))}"
assert [package for package in optional if ":" not in package] == wanted, f"optional packages of Debian: {optional}, {wanted}"
check_versions(table)
for name in ("CAF", "LibTorch", "Ray"):
    try:
        check_versions([{**row, "version": "99.9"} if row["name"] == name else row for row in table])
    except AssertionError:
        continue
    sys.exit(f"a wrong version of {name} is not noticed")
with tempfile.TemporaryDirectory() as folder:
    def pinned(date, archive):
        return subprocess.run([packaging / "debian_snapshot.sh", date, archive, folder], capture_output=True, text=True, check=False)
    sources = pathlib.Path(folder, "sources.list")
    day, archive = "20261101T000000Z", "http://archive.example/of/debian"
    assert pinned("", "").returncode == 0 and not sources.exists()
    assert pinned("yesterday", archive).returncode == 2 and not sources.exists()
    for wrong in ("", "archive.example", "http://", "http://archive.example main\ndeb x"):
        refused = pinned(day, wrong)
        assert refused.returncode == 2 and "add --build-arg SNAPSHOT_ARCHIVE=ADDRESS" in refused.stderr and not sources.exists(), wrong
    assert pinned(day, archive + "/").returncode == 0
    for part in ("debian", "debian-security"):
        assert f" {archive}/{part}/{day} bookworm" in sources.read_text(encoding="utf-8")
    assert sources.read_text(encoding="utf-8").count(f"/{day} bookworm") == 3
text = bill()
assert text == bill(), "two runs differ"
parts = json.loads(text)["components"]
names = sorted(part["name"] for part in parts)
assert names == sorted(package.split(":")[-1] for package in required + optional)
for part in parts:
    assert part["version"] and part["purl"] and part["licenses"], part
    assert all(entry["value"] for entry in part["properties"]), part
python = python_with(sys.argv[1], ["cyclonedx-python-lib[json-validation]==11.12.0"], sources=True)
asked = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
problem = JsonStrictValidator(SchemaVersion.V1_5).validate_str(sys.stdin.read())
sys.exit(str(problem) if problem else 0)
"""
subprocess.run([python, "-c", asked], input=text, text=True, check=True)
wrong = text.replace('"type": "library"', '"type": "book"', 1)
assert subprocess.run([python, "-c", asked], input=wrong, text=True, capture_output=True, check=False).returncode == 1
print(f"{len(parts)} components, as the schema wants them")
