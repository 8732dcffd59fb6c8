#!/usr/bin/env python3
"""Writes a software bill of materials: CycloneDX 1.5, JSON. No network is used.

The components are those of dependencies.csv: Debian packages with their installed versions, wheels with the versions and checksums of wheels.txt,
and optional parts, which users install themselves, with the versions of the table unless they are installed. The output depends only on these, so two
runs on one machine are equal.

Example: experiments/packaging/sbom.py --out troupe.cdx.json
"""
import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent


def rows():
    with open(HERE / "dependencies.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def wheels():
    found = {}
    for line in (HERE / "wheels.txt").read_text(encoding="utf-8").split("\n"):
        if match := re.fullmatch(r"(\S+)==(\S+) --hash=sha256:([0-9a-f]{64})", line.strip()):
            found[match[1]] = (match[2], match[3])
    return found


def is_optional(row):
    return row["part"].startswith("optional: ")


def debian_version(package, row):
    """Returns (version, architecture). A package may be installed for several architectures; this machine's counts."""
    own = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=False).stdout.strip()
    asked = subprocess.run(["dpkg-query", "--show", "--showformat", "${Version}\\t${Architecture}\\t${db:Status-Status}\\n", package],
                           capture_output=True, text=True, check=False)
    for version, architecture, status in (line.split("\t") for line in asked.stdout.splitlines()):
        if status == "installed" and architecture in (own, "all"):
            return version, architecture
    if is_optional(row):
        return row["version"], "any"
    sys.exit(f"{package}: is not installed here; experiments/packaging/install_dependencies.sh installs it")


def component(row, package, pinned):
    made = {"type": "library", "name": package}
    if package.startswith("wheel:"):
        name = package.removeprefix("wheel:")
        if name not in pinned:
            sys.exit(f"{name}: is in dependencies.csv and not in wheels.txt; add it with its version and checksum")
        version, checksum = pinned[name]
        purl = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
        made |= {"name": name, "version": version, "hashes": [{"alg": "SHA-256", "content": checksum}]}
    elif ":" in package:  # pypi:ray, toolkit:nccl
        kind, name = package.split(":")
        version = row["version"]
        purl = f"pkg:{'pypi' if kind == 'pypi' else 'generic'}/{name}@{version}"
        made |= {"name": name, "version": version}
    else:
        version, architecture = debian_version(package, row)
        purl = f"pkg:deb/debian/{package}@{urllib.parse.quote(version, safe='')}?arch={architecture}&distro=bookworm"
        made["version"] = version
    licence = row["licence"]
    named = {"name": licence} if licence.startswith("LicenseRef-") else None
    made |= {
        "bom-ref": purl,
        "purl": purl,
        "scope": "excluded" if row["part"] == "build" else "optional" if is_optional(row) else "required",
        "licenses": [{"license": named}] if named else [{"expression": licence}],
        "properties": [{"name": f"troupe:{key}", "value": row[key]} for key in ("part", "watched", "instead")],
    }
    return made


def bill():
    version = re.search(r"project\(\s*\w+\s+VERSION\s+([0-9.]+)", (HERE.parents[1] / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
    pinned = wheels()
    parts = [component(row, package, pinned) for row in rows() for package in row["packages"].split()]
    own = {"type": "application", "name": "troupe", "version": version, "bom-ref": f"pkg:generic/troupe@{version}"}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own},
        "components": parts,
        "dependencies": [{"ref": own["bom-ref"], "dependsOn": sorted(part["bom-ref"] for part in parts)}],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, help="file; standard output if none is named")
    options = parser.parse_args()
    text = json.dumps(bill(), indent=2) + "\n"
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
