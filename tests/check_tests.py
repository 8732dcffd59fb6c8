#!/usr/bin/env python3
"""Checks that tests share nothing: test cases run as parallel processes, in any order, on busy machines.

Usage: check_tests.py [--root FOLDER]

  paths        no test writes to a fixed path; tests/temporary_folder.hpp creates a folder per case
  ports        no test listens on a fixed port; bind port 0 and ask for the number, or use tests/reserved_port.hpp
  environment  no variable or working folder is changed permanently; tests/scoped_variable.hpp restores variables
  sleeps       no test sleeps; tests/eventually.hpp polls for state that gives no signal
  names        no two cases of a room have the same name, because ctest would run both; no name has a semicolon, where ctest would split it
A statement that is expected to fail (CHECK_THROWS…) may name any port.
"""
import argparse
import os
import re
import sys

CPP, PYTHON, SHELL = (".cpp", ".hpp"), (".py",), (".sh",)
NUMBER = r"[1-9]\d*\b"

RULES = [  # rule, files, what is refused, the remedy
    ("paths", CPP, r"temp_directory_path|\btmpnam|\bP_tmpdir|\"/(tmp|var/tmp|dev/shm)\b", "use TemporaryFolder"),
    ("paths", CPP, r"path\(\s*TROUPE_BINARY_DIR\s*\)|(create_director\w+|ofstream)\s*[({]\s*TROUPE_BINARY_DIR", "use TemporaryFolder"),
    ("paths", PYTHON, r"[\"'](/tmp|/var/tmp|/dev/shm)/", "use tempfile.mkdtemp()"),
    ("paths", SHELL, r"(^|[\s=\"'>])/(var/)?tmp/\w", "use mktemp -d"),
    ("ports", CPP, rf"\b(bind|listen|RendezvousServer|Server|make_rendezvous)\w*[({{][^;)]*:{NUMBER}", "bind port 0 (\"tcp://127.0.0.1:*\") and ask"),
    ("ports", CPP, rf"\b(RendezvousServer|make_rendezvous|make_\w+_communicator)(\s+\w+)?\s*[({{]\s*\"[\w.]+\",\s*{NUMBER}", "use reserved_port()"),
    ("ports", CPP, rf"sin6?_port\s*=\s*htons\(\s*{NUMBER}", "bind port 0 and ask"),
    ("ports", PYTHON, rf"\.bind\(\(?\s*(\([^()]*,\s*|[\"'][^\"']*:){NUMBER}", "bind port 0 and ask"),
    ("ports", SHELL, rf"--(port|listen|master[-_]port)[ =](\S*:)?{NUMBER}", "ask for a free port"),
    ("environment", CPP, r"\b(setenv|unsetenv|putenv|clearenv)\s*\(", "use ScopedVariable"),
    ("environment", CPP, r"\b(fs::|filesystem::)current_path\(\s*[^)\s]", "give the program its folder"),
    ("environment", PYTHON, r"\bos\.(environ\[[^\]]*\]\s*=[^=]|putenv|chdir)", "give the child its environment and folder"),
    ("sleeps", CPP, r"\bsleep_(for|until)\b|\b(u|nano)?sleep\(|\bpoll\(nullptr, 0,", "wait for an event, or use comes_true()"),
    ("sleeps", PYTHON, r"\btime\.sleep\(", "wait for an event"),
    ("sleeps", SHELL, r"^(?!\s*#).*\bsleep\s+[\d.$]", "wait for an event"),
]

ALLOWED = {  # rule -> files or folders that may, and why
    "paths": {"tests/temporary_folder.hpp": "the fixture",
              "tests/collectives/backends/process_faults_test.cpp": "looks for files left behind"},
    "environment": {"tests/scoped_variable.hpp": "the fixture",
                    "tests/env/remote/python_checks.py": "goes to the folder of each case, where MuJoCo writes its log"},
    "sleeps": {
        "tests/eventually.hpp": "the fixture",
        "tests/env/pool/doorbell_test.cpp": "Doorbell::sleep() is what it tests; a ring ends it",
        "tests/cluster/": "harness of whole programs: polls processes, hosts and schedulers, and times faults",
    },
    "ports": {},
}
SELF = ("tests/check_tests.py", "tests/check_tests_test.py", "tests/check_layers_test.py")


def statements(text):
    """(line number, text) of each statement of C++: lines joined up to a semicolon or brace; comments left out."""
    text = re.sub(r"(?<!:)//[^\n]*", "", text)
    start, number = 0, 1
    for end in re.finditer(r"[;{}]\s*\n", text):
        piece = text[start:end.end()]
        yield number + len(re.match(r"\s*", piece).group().splitlines()), piece
        number += piece.count("\n")
        start = end.end()
    yield number, text[start:]


def bad_names(root):
    """Cases of one room, tests/<folder>/<room>, with the same name; names that ctest splits."""
    first = {}
    for folder, folders, files in os.walk(os.path.join(root, "tests")):
        folders.sort()
        for name in sorted(files):
            path = os.path.relpath(os.path.join(folder, name), root)
            if not name.endswith("_test.cpp"):
                continue
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as opened:
                text = opened.read()
            room = "/".join(os.path.dirname(path).split(os.sep)[:3])
            for case in re.finditer(r"^TEST_CASE\w*\(\s*((\"(\\.|[^\"\\])*\"\s*)+)", text, re.M):
                key = room, "".join(re.findall(r'"((?:\\.|[^"\\])*)"', case.group(1)))
                number = text.count("\n", 0, case.start()) + 1
                if key in first:
                    yield f"names: {path}:{number}: {key[1][:60]}; {first[key]} has this name"
                if ";" in key[1]:
                    yield f"names: {path}:{number}: {key[1][:60]}; has a semicolon, at which ctest splits it; write a colon or a comma"
                first.setdefault(key, path)


def complaints(root):
    yield from bad_names(root)
    for folder, folders, files in os.walk(os.path.join(root, "tests")):
        folders.sort()
        for name in sorted(files):
            path = os.path.relpath(os.path.join(folder, name), root)
            rules = [rule for rule in RULES if name.endswith(rule[1])
                     and not any(path.startswith(allowed) for allowed in ALLOWED[rule[0]])]
            if not rules or path in SELF:
                continue
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as opened:
                text = opened.read()
            pieces = list(statements(text) if name.endswith(CPP) else enumerate(text.splitlines(), 1))
            for rule, _, pattern, remedy in rules:
                for number, piece in pieces:
                    found = re.search(pattern, piece, re.M)
                    if found and not (rule == "ports" and "CHECK_THROWS" in piece):
                        yield f"{rule}: {path}:{number}: {' '.join(found.group().split())[:60]}; {remedy}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    broken = list(complaints(os.path.abspath(parser.parse_args().root)))
    for line in broken:
        print(line)
    print(f"{len(broken)} complaints")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
