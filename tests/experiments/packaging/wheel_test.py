"""Makes the wheel, looks into it, installs it into a virtual environment without compilers, and runs wheel_checks.py there.

Usage: wheel_test.py <build folder>; exit code 77: skipped, PyPI cannot be reached.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from python_packages import python_with

SOURCE = pathlib.Path(__file__).resolve().parents[3]
PACKAGING = SOURCE / "experiments" / "packaging"
# The oldest NumPy and Gymnasium that the wheel accepts. TESTS names the oldest safetensors.
PACKAGES = ["numpy==1.24.0", "gymnasium==1.1.0", "mujoco==3.17.0", "pip==25.3", "mypy==2.4.1"]
TESTS = SOURCE / "tests" / "experiments" / "CMakeLists.txt"
# The other dependencies of `torch` take gigabytes, and LibTorch's CPU part does not need them.
ALONE = ["torch", "nvidia-cuda-runtime", "nvidia-cuda-cupti"]
LICENCES = {"LICENSE": "Apache License", "dm_control.txt": "Apache License", "gymnasium.txt": "The MIT License", "libcaf-core0.17.txt": "BSD-3-clause",
            "pybind11.txt": "Redistribution and use", "libcli11-dev.txt": "BSD-3-clause", "nlohmann-json3-dev.txt": "Expat", "cppzmq-dev.txt": "MIT",
            "libhwy-dev.txt": "Apache-2.0", "libonnx-dev.txt": "Apache-2.0", "libxxhash-dev.txt": "BSD-2-clause"}
# First parts of included paths: libraries of which the wheel has the shared library with its licence, or which it does not have.
SHARED = {"caf", "curl", "google", "libxml", "openssl", "prometheus", "yaml-cpp"}
OTHERS = {"ATen", "arpa", "c10", "libavcodec", "libavformat", "libavutil", "libswscale", "linux", "mujoco", "netinet", "pybind11", "sys", "torch"}


def fail(*words, sep=" "):
    sys.exit(sep.join(map(str, words)))


def run(*words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)


def output(*words):
    done = run(*words)
    if done.returncode != 0:
        fail(*words, "failed:", done.stdout, done.stderr)
    return done.stdout


def pip(python, *words):
    return run(python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", "--only-binary=:all:", *words)


def make_environment(venv):
    """The interpreter of a virtual environment with what the wheel requires."""
    pinned = [line for line in (PACKAGING / "wheels.txt").read_text().splitlines() if line.split("==")[0] in ALONE]
    requirements = pathlib.Path("-".join([str(venv), *(line.split()[0] for line in pinned)]) + ".txt")
    requirements.write_text("\n".join(pinned) + "\n")
    return python_with(venv, PACKAGES, ["--no-deps", "--require-hashes", "-r", str(requirements)])


def check_contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        texts = {pathlib.PurePath(name).name: archive.read(name).decode(errors="replace") for name in names if ".dist-info/licenses/" in name}
    for wanted in ("troupe/py.typed", "troupe/_native.pyi", "troupe/bin/troupe", "troupe/lib/libtroupe_video.so", "troupe/share/troupe/suite/dog.xml",
                   "troupe/share/troupe/suite/common/materials.xml", "troupe/share/troupe/gym/ant.xml", "troupe/share/troupe/configs/quickstart.textproto"):
        if wanted not in names:
            fail(wheel, "does not have", wanted)
    libraries = collections.Counter(re.sub(r"-[0-9a-f]{8}(?=\.)", "", name) for name in names if name.startswith("troupe.libs/"))
    if twice := [name for name, count in libraries.items() if count > 1]:
        fail("libraries are in the wheel twice:", *twice)
    if kept := [name for name in libraries if re.search("lib(torch|c10|mujoco|cudart|cupti|gomp|av|sw|x26)", name)]:
        fail("libraries of other wheels, or FFmpeg's, are in the wheel:", *kept)
    boost = [text for name, text in texts.items() if re.fullmatch(r"libboost[\d.]+-dev\.txt", name)]
    if len(boost) != 1 or "BSL-1.0" not in boost[0]:
        fail(wheel, "does not have the licence of Boost")
    for name, words in LICENCES.items():
        if words not in texts.get(name, ""):
            fail("the licence", name, "does not have the words", repr(words))


def check_headers():
    """Every library with a folder of headers is in make_wheel.py's HEADERS or in the sets above."""
    sys.path.insert(0, str(PACKAGING))
    from make_wheel import HEADERS

    known = {header.split("/")[0] for header in HEADERS} | SHARED | OTHERS
    for room in ("actors", "collectives", "env", "experiments", "learner", "replay"):
        for path in (SOURCE / room).rglob("*.[ch]pp"):
            if {"examples", "bench"} & set(path.relative_to(SOURCE).parts):
                continue
            if new := set(re.findall(r"^\s*#\s*include <([^/>\n]+)/", path.read_text(), re.M)) - known:
                fail(path, "includes", *sorted(new), "whose licence may be missing in the wheel; add a header to HEADERS of make_wheel.py, or the name here")


def check_requirements(wheel):
    """The oldest accepted versions are those that tests install."""
    with zipfile.ZipFile(wheel) as archive:
        name, = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        oldest = dict(re.findall(r"^Requires-Dist: ([\w-]+)>=([\d.]+),<\d+", archive.read(name).decode(), re.M))
    tests = TESTS.read_text()
    for package in ("numpy", "gymnasium", "safetensors"):
        pin = f"{package}=={oldest[package]}"
        if pin not in PACKAGES and f"--with {pin} " not in tests:
            fail("no test installs", pin, "the oldest version that the wheel accepts")


def check_binaries(site):
    """Run paths are relative, and every library is found, wherever the environment is."""
    binaries = [path for folder in (site / "troupe", site / "troupe.libs") for path in folder.rglob("*")
                if path.is_file() and path.open("rb").read(4) == b"\x7fELF"]
    if len(binaries) < 10:
        fail(site, "has only", len(binaries), "binaries")
    for path in binaries:
        for folders in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", output("readelf", "--dynamic", "--wide", path)):
            if odd := [folder for folder in folders.split(":") if not folder.startswith("$ORIGIN")]:
                fail("the run path of", path, "names", *odd)
    for path in [site / "troupe/bin/troupe", *site.glob("troupe/_native.*.so")]:
        linked = output("ldd", path)
        if missing := re.findall(r"(\S+) => not found", linked):
            fail(path, "does not find", *missing)
        # The others are C and C++ runtime libraries, which every system of the platform tag has.
        for name, found in re.findall(r"(\S+) => (/\S+)", linked):
            if not pathlib.Path(found).resolve().is_relative_to(site) and not re.match(
                    r"lib(c|m|dl|rt|pthread|util|resolv|z|stdc\+\+|gcc_s)\.so", name):
                fail(path, "is linked with the system's", name)


def check_stubs(python):
    """The type stub has the classes, functions and members of the extension module, and nothing else. stubtest cannot see the parameters of pybind11's functions."""
    with tempfile.TemporaryDirectory() as folder:
        done = run(python, "-m", "mypy.stubtest", "--concise", "troupe._native", cwd=folder)
    # pybind11's classes have its metaclass, and take any arguments if they have no constructor
    differences = [line for line in done.stdout.splitlines() if not re.search(r"metaclass differs$|__init__ is inconsistent, stub does not have \*args", line)]
    if "troupe._native" not in done.stdout or differences:
        fail("troupe/_native.pyi differs from the module:", *(differences or [done.stdout, done.stderr]), sep="\n")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    venv, out = build / "wheel_venv", build / "wheel_test"
    python = make_environment(venv)
    refused = run(sys.executable, PACKAGING / "make_wheel.py", "--build", PACKAGING, "--out", out)
    if refused.returncode == 0 or f"--build {PACKAGING}: is no build folder" not in refused.stderr:
        fail("a folder that is no build was taken:", refused.stdout, refused.stderr)
    made = run(sys.executable, PACKAGING / "make_wheel.py", "--build", build, "--out", out)
    if "cannot be fetched" in made.stderr:
        print("skipped:", made.stderr)
        return 77
    if made.returncode != 0:
        fail(made.stdout, made.stderr)
    print(made.stdout)
    wheel = pathlib.Path(re.search(r"^(\S+\.whl): ", made.stdout, re.M)[1])
    platform = re.search(r"-(manylinux_\d+_\d+_x86_64)\.whl$", wheel.name)
    shown = output(build / "wheel_tools/bin/auditwheel", "show", wheel)
    if platform is None or f'"{platform[1]}"' not in shown.replace("\n", " "):
        fail(wheel, "is not of the platform that auditwheel finds:", shown)
    check_contents(wheel)
    check_headers()
    check_requirements(wheel)
    installed = pip(python, "--no-deps", "--force-reinstall", wheel)
    if installed.returncode != 0:
        fail("the wheel cannot be installed:", installed.stderr)
    check_binaries(next((venv / "lib").glob("python3.*/site-packages")).resolve())
    check_stubs(python)
    with tempfile.TemporaryDirectory() as folder:
        checks = pathlib.Path(__file__).with_name("wheel_checks.py")
        environment = {"PATH": str(venv / "bin"), "HOME": folder, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}
        return subprocess.run([python, checks, build], env=environment, cwd=folder).returncode


if __name__ == "__main__":
    sys.exit(main())
