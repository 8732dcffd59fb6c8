#!/usr/bin/env python3
"""Checks the structure of the tree and prints which room includes which.

Usage: check_layers.py [--root FOLDER] [--quiet]

A folder is one of the six top-level folders; a room is a subfolder. The rules:
  folders      a folder includes only folders below it (FOLDERS)
  rooms        includes between the rooms of a folder form no cycle; production code includes nothing of tests/
  size         a room has at most 40 files
  introduction a room has a README.md, or its parent's README.md (or the folder's) has a table row for it
  owners       a third-party library is included only by the rooms that own it (OWNERS)
  cmake        a source is compiled by the CMake files of its own folder, and exists
  tests        a folder of tests/ mirrors a room, or is named in TEST_ROOMS
"""
import argparse
import os
import re
import subprocess
import sys

FOLDERS = {  # folder -> what it may include beside itself
    "env": [],
    "replay": ["env"],
    "collectives": [],
    "learner": ["env", "replay", "collectives"],
    "actors": ["env", "replay", "collectives", "learner"],
    "experiments": ["env", "replay", "collectives", "learner", "actors"],
}
MOST_FILES = 40

OWNERS = {  # library -> (its headers, the rooms that may include them; a folder stands for all its rooms)
    "MuJoCo": (r"mujoco/", ["env", "experiments/examples", "experiments/python"]),
    "EGL, OSMesa and OpenGL": (r"(EGL|GL|GLES\d*)/", ["env/render"]),
    "Highway": (r"hwy/", ["env/caster/kernels", "env/render"]),
    "ZeroMQ": (r"zmq", ["env/wire"]),
    "Protobuf": (r"google/protobuf/", ["env/wire", "env/remote", "replay/service", "learner/agents", "actors/protocol", "actors/roles", "experiments"]),
    "zstd": (r"zstd", ["replay/chunks", "replay/storage"]),
    "lz4": (r"lz4", ["replay/chunks"]),
    "xxHash": (r"xxh", ["replay/storage", "collectives/nest", "collectives/rendezvous", "learner/transparent"]),
    "libcurl": (r"curl/", ["replay/objects"]),
    "libxml2": (r"libxml/", ["replay/objects"]),
    "zlib": (r"zlib\.h", ["learner/data/formats"]),
    "pybind11": (r"pybind11/", ["experiments/python"]),
    "NCCL": (r"nccl", ["collectives/backends"]),
    "MPI": (r"mpi\.h", ["collectives/backends"]),
    "CUDA": (r"cuda", ["env/caster/cuda", "collectives/backends", "learner/device"]),
    "LibTorch": (r"(torch|ATen|c10|c10d)/", ["collectives", "learner", "actors/protocol", "actors/roles", "experiments/bench",
                                             "experiments/commands/tools", "experiments/config", "experiments/examples", "experiments/exporting",
                                             "experiments/python"]),
    "HDF5 and NetCDF": (r"(hdf5|netcdf)\.h", ["learner/data/formats"]),
    "libarchive": (r"(archive|archive_entry)\.h", ["env", "learner/data/formats"]),
    "libjpeg-turbo": (r"turbojpeg", ["learner/data/pictures", "experiments/report"]),
    "libpng": (r"png\.h", ["learner/data/formats", "experiments/report"]),
    "FFmpeg": (r"lib(av|sw)", ["experiments/report"]),
    "CAF": (r"caf/", ["actors", "experiments/bench", "experiments/examples"]),
    "OpenSSL": (r"openssl/", ["actors/remoting", "collectives/mesh", "replay/objects", "experiments/serving", "experiments/statistics"]),
    "yaml-cpp": (r"yaml-cpp/", ["experiments/cluster"]),
    "CLI11": (r"CLI/", ["experiments"]),
    "Boost": (r"boost/", ["experiments/web"]),
    "prometheus-cpp": (r"prometheus/", ["experiments/dashboard", "experiments/serving"]),
    "doctest": (r"doctest", []),
}

# Folders of tests/ that mirror no room: test harnesses of the whole program, and data.
TEST_ROOMS = {"cluster", "install", "golden", "testing", "fuzz_seeds"}

SOURCE = re.compile(r"\.(cpp|cu)$")
CODE = re.compile(r"\.(hpp|h|cuh|cpp|cu)$")
NO_ROOM = re.compile(r"(^|/)(cmake|examples)(/|$)")


def tracked(root):
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"], check=True,
                                capture_output=True).stdout.decode().split("\0")
        return sorted(f for f in listed if f and os.path.exists(os.path.join(root, f)))
    except (subprocess.CalledProcessError, OSError):  # an archive without git
        found = []
        for folder, folders, files in os.walk(root):
            folders[:] = [f for f in folders if f not in ("build", "runs") and not f.startswith(".")]
            found += [os.path.relpath(os.path.join(folder, f), root) for f in files]
        return sorted(found)


class Tree:
    def __init__(self, root):
        self.root = root
        self.files = tracked(root)
        self.code = [f for f in self.files if f.split("/")[0] in FOLDERS and CODE.search(f)]
        self.rooms = {}  # room -> its files
        for file in self.files:
            room = os.path.dirname(file)
            if room.split("/")[0] in FOLDERS and not NO_ROOM.search(room):
                self.rooms.setdefault(room, []).append(file)

    def text(self, file):
        with open(os.path.join(self.root, file), encoding="utf-8", errors="replace") as opened:
            return opened.read()

    def includes(self, file):
        """(line number, quoted or in brackets, what) of each #include"""
        for number, line in enumerate(self.text(file).splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
            if found:
                yield number, found.group(1) == '"', found.group(2)


def room_graph(tree):
    """room -> {included room: an include that shows it}"""
    graph = {}
    for file in tree.code:
        room = os.path.dirname(file)
        for number, ours, what in tree.includes(file):
            other = os.path.dirname(what)
            if ours and other != room and other.split("/")[0] in FOLDERS:
                graph.setdefault(room, {}).setdefault(other, f"{file}:{number}")
    return graph


def cycles(graph):
    """Strongly connected components of more than one room (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(room):
        index[room] = low[room] = len(index)
        stack.append(room)
        for other in graph.get(room, {}):
            if other not in index:
                visit(other)
                low[room] = min(low[room], low[other])
            elif other in stack:
                low[room] = min(low[room], index[other])
        if low[room] == index[room]:
            component = stack[stack.index(room):]
            del stack[stack.index(room):]
            if len(component) > 1:
                found.append(sorted(component))

    for room in sorted(graph):
        if room not in index:
            visit(room)
    return found


def check_folders(tree):
    for file in tree.code:
        folder = file.split("/")[0]
        for number, ours, what in tree.includes(file):
            other = what.split("/")[0]
            if not ours:
                continue
            if other == "tests":
                yield f"{file}:{number}: includes {what}; production code must not include tests"
            elif other in FOLDERS and other != folder and other not in FOLDERS[folder]:
                yield f"{file}:{number}: includes {what}; {folder}/ may include only {', '.join(FOLDERS[folder]) or 'itself'}"


def check_rooms(tree):
    graph = room_graph(tree)
    for cycle in cycles(graph):
        shown = "; ".join(f"{graph[a][b]} includes {b}/" for a in cycle for b in cycle if b in graph.get(a, {}))
        yield f"rooms {', '.join(cycle)} include each other in a cycle: {shown}"


def check_size(tree):
    for room, files in tree.rooms.items():
        if len(files) > MOST_FILES:
            yield f"{room}/ has {len(files)} files; a room has at most {MOST_FILES}: split it by ideas"


def check_introduction(tree):
    for room, files in tree.rooms.items():
        if f"{room}/README.md" in files:
            continue
        parents = [room.rsplit("/", n)[0] for n in range(1, room.count("/") + 1)]
        rows = [rf"^\|[^|]*`{re.escape(os.path.relpath(room, parent))}/`" for parent in parents]
        if not any(f"{parent}/README.md" in tree.files and re.search(row, tree.text(f"{parent}/README.md"), re.M)
                   for parent, row in zip(parents, rows)):
            yield (f"{room}/ has no introduction; write {room}/README.md, or a row `{room.split('/', 1)[1]}/` in the table of "
                   f"{room.split('/')[0]}/README.md")


def check_owners(tree):
    for file in tree.code:
        room = os.path.dirname(file)
        for number, _, what in tree.includes(file):
            if what.split("/")[0] in FOLDERS:
                continue
            for library, (headers, owners) in OWNERS.items():
                if re.match(headers, what) and not any(room == o or room.startswith(o + "/") for o in owners):
                    yield f"{file}:{number}: includes <{what}>; {library} belongs to {', '.join(owners) or 'tests'}"


def check_cmake(tree):
    named = {}  # source -> a CMake file that names it
    for file in tree.files:
        folder = file.split("/")[0]
        if folder not in FOLDERS or not re.search(r"(CMakeLists\.txt|\.cmake)$", file):
            continue
        base = os.path.dirname(file)
        if os.path.basename(base) == "cmake":
            base = os.path.dirname(base)
        text = re.sub(r"#.*", "", tree.text(file))
        text = text.replace("${CMAKE_CURRENT_SOURCE_DIR}/", "").replace("${PROJECT_SOURCE_DIR}/", "//")
        for word in re.findall(r"[\w./*{}$-]+\.(?:cpp|cu)\b", text):
            path = word[2:] if word.startswith("//") else os.path.normpath(os.path.join(base, word))
            if "$" in path:
                continue
            matches = [path]
            if "*" in path:
                pattern = re.compile(re.escape(path).replace(r"\*", "[^/]*") + "$")
                matches = [f for f in tree.files if pattern.match(f)]
            for match in matches:
                if match.split("/")[0] != folder:
                    yield f"{file}: compiles {match} of another folder"
                elif match not in tree.files:
                    yield f"{file}: names {match}, which does not exist"
                named[match] = file
    for file in tree.code:
        if SOURCE.search(file) and file not in named and "/examples/" not in file:
            yield f"{file}: no CMake file of {file.split('/')[0]}/ compiles it"


def check_tests(tree):
    rooms = set(tree.rooms)
    known = {"/".join(room.split("/")[:n]) for room in rooms for n in range(1, room.count("/") + 2)}
    for folder in sorted({os.path.dirname(f) for f in tree.files if f.startswith("tests/")}):
        mirrored = folder[len("tests/"):]
        if mirrored and not TEST_ROOMS & set(mirrored.split("/")) and mirrored not in known:
            yield f"{folder}/ mirrors no room; move its tests to the tests of the room that they test"


CHECKS = {"folders": check_folders, "rooms": check_rooms, "size": check_size, "introduction": check_introduction,
          "owners": check_owners, "cmake": check_cmake, "tests": check_tests}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    parser.add_argument("--quiet", action="store_true", help="print only what breaks a rule")
    options = parser.parse_args()
    tree = Tree(os.path.abspath(options.root))
    if not options.quiet:
        graph = room_graph(tree)
        for room in sorted(tree.rooms):
            print(f"{room} ({len(tree.rooms[room])}) -> {' '.join(sorted(graph.get(room, {}))) or '-'}")
    broken = [f"{name}: {complaint}" for name, check in CHECKS.items() for complaint in check(tree)]
    for line in broken:
        print(line)
    print(f"{len(tree.rooms)} rooms, {len(broken)} complaints")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
