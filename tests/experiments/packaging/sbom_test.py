#!/usr/bin/env python3
"""Checks that the bill of materials names every package of the lists once, with version and licence, is the same each time, and passes CycloneDX's
own validator.

Usage: sbom_test.py <folder for the validator's virtual environment>; exit code 77: skipped.
"""
import json
import pathlib
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


def listed():
    debian = (packaging / "apt-packages.txt").read_text(encoding="utf-8").split()
    wheels = [line.split("==")[0] for line in (packaging / "wheels.txt").read_text(encoding="utf-8").split("\n") if "==" in line]
    return sorted(debian + wheels)


text = bill()
assert text == bill(), "two runs differ"
parts = json.loads(text)["components"]
names = sorted(part["name"] for part in parts)
assert names == listed(), f"dependencies.csv and the lists differ: {sorted(set(names) ^ set(listed()))}"
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
