"""Builds the Debian package, checks its contents, unpacks it into a folder, and trains with the program in it.

Usage: debian_test.py <cpack> <build folder>; exit code 77: skipped, Debian's tools are missing.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CONTENTS = ["usr/bin/troupe -> ../lib/troupe/bin/troupe", "usr/lib/troupe/bin/troupe", "usr/lib/troupe/lib/libtorch_cpu.so",
            "usr/lib/troupe/lib/libmujoco.so.3.17.0", "usr/lib/troupe/lib/libtroupe_video.so", "usr/lib/troupe/share/troupe/suite/dog.xml",
            "usr/lib/troupe/share/troupe/gym/ant.xml", "usr/lib/troupe/share/troupe/configs/quickstart.textproto",
            "usr/lib/troupe/share/doc/troupe/dm_control/LICENSE"]
PACKAGES = ["libcaf-core0.17", "libzmq5", "libprotobuf32", "libyaml-cpp0.7", "libc6"]


def fail(*words):
    sys.exit(" ".join(map(str, words)))


def output(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode != 0:
        fail(*words, "failed:", done.stdout, done.stderr)
    return done.stdout


def check_package(package):
    depends = output("dpkg-deb", "--field", package, "Depends")
    if missing := [name for name in PACKAGES if not re.search(rf"(^|, ){re.escape(name)}( |,|$)", depends)]:
        fail(package, "does not depend on", *missing, "but on", depends)
    listed = output("dpkg-deb", "--contents", package)
    if missing := [path for path in CONTENTS if not re.search(rf" \./{re.escape(path)}$", listed, re.M)]:
        fail(package, "does not have", *missing)


def check_program(root, build):
    program = root / "usr/bin/troupe"
    for path in [program.resolve(), *(root / "usr/lib/troupe/lib").glob("libtroupe_*.so")]:
        for folders in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", output("readelf", "--dynamic", "--wide", path)):
            if odd := [folder for folder in folders.split(":") if not folder.startswith("$ORIGIN")]:
                fail("the run path of", path, "names", *odd)
    linked = output("ldd", program.resolve(), env={"PATH": "/usr/bin:/bin"})
    if "not found" in linked or str(build) in linked:
        fail(program, "does not find its own libraries:", linked)
    doctor = output(program, "doctor", env={}, cwd=root)
    if not re.search(r"models +ok +(\d+) of \1 tasks load", doctor):
        fail("the models are not found:", doctor)
    output(program, "train", "quickstart", "--set", "stop.environment_steps=10000", "--set", "evaluation.final_episodes=1", env={}, cwd=root)
    if not list(root.glob("runs/quickstart/*/metrics.csv")):
        fail("the program left no run folder")


def main():
    cpack, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    if missing := [tool for tool in ("dpkg-deb", "dpkg-shlibdeps", "file", "readelf") if shutil.which(tool) is None]:
        print("skipped:", *missing, "not found; install dpkg-dev, file and binutils")
        return 77
    with tempfile.TemporaryDirectory(dir=build) as folder:
        output(cpack, "-G", "DEB", "--config", build / "CPackConfig.cmake", "-B", folder, cwd=build)
        package, = pathlib.Path(folder).glob("*.deb")
        print(f"{package.name}: {package.stat().st_size / 1e6:.1f} MB")
        check_package(package)
        with tempfile.TemporaryDirectory() as root:
            output("dpkg-deb", "--extract", package, root)
            check_program(pathlib.Path(root), build)
    return 0


if __name__ == "__main__":
    sys.exit(main())
