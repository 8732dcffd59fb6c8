#!/usr/bin/env python3
"""Compares a sweep over tasks with published results: one page with a curve for each task, means with intervals, and processor time.

    experiments/bench/board.py run states_18 --jobs 2               trains and writes runs/states_18.html; repeat it to continue
    experiments/bench/board.py page runs/states_18 --out board.html
    experiments/bench/board.py table runs/states_18                 the tables as Markdown
    experiments/bench/board.py variants runs/ablations              variants of a sweep beside its first one, as Markdown

`run` calls `troupe sweep`, which skips finished runs and resumes others. Estimates and intervals are those of `troupe report`. A published value at
N environment steps is the mean over seeds of the evaluation nearest to N. Curves are means over 50,000 steps. best: the greatest value of all methods,
which is optimistic. Uses only Python's standard library.
"""
import argparse
import os
import pathlib
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys

from boards.board import Board
from boards.page import page_of
from boards.sweeps import Mistake, planned, seeds_of, sweep_file
from boards.variants import Variants

HERE = pathlib.Path(__file__).resolve()
SOURCE = HERE.parents[2]


def boards_of(options, kind=Board):
    sweeps = {}
    for folder in options.folders:
        if not folder.is_dir():
            raise Mistake(f"{folder}: no such folder; name those of a sweep")
        name = options.sweep or re.sub(r"\.\d+$", "", folder.resolve().name)
        sweeps.setdefault(name, []).append(folder.resolve())
    return [kind(options.program, name, folders) for name, folders in sweeps.items()]


def page(options):
    boards = boards_of(options)
    options.out.write_text(page_of(boards))
    for board in boards:
        if board.missing():
            print(f"{board.name}: without a finished run: {', '.join(board.missing())}")
    print(options.out)


def table(options):
    for board in boards_of(options, Variants if options.command == "variants" else Board):
        for caption, rows in board.tables():
            lines = ["| " + " | ".join(row) + " |" for row in rows]
            print("\n".join([f"{caption}:", "", lines[0], "|" + " --- |" * len(rows[0]), *lines[1:], ""]))


def sweep_words(options, name, chosen):
    """Returns the command of the sweep; `chosen`: the tasks to train, or all."""
    file = sweep_file(options.sweep)
    tasks, experiment, common = planned(options.program, file, options.seeds)
    words = [str(file)]
    if chosen and set(chosen) != set(tasks):
        seeds = ",".join(str(seed) for _, seed in next(iter(tasks.values())))
        words = [experiment, "--vary", "environment.task=" + ",".join(task for task in tasks if task in chosen), "--seeds", seeds]
        words += [word for one in common for word in ("--set", one)]
    elif options.seeds:
        words += ["--seeds", seeds_of(options.seeds)]
    words += [word for one in options.set for word in ("--set", one)]
    return [options.program, "sweep", *words, "--runs", str(options.runs), "--name", name, "--jobs", str(options.jobs)]


def host_words(options, name, chosen):
    """Returns the command that runs this script on a host, where it ends when its input ends."""
    words = ["python3", str(HERE), "run", options.sweep, "--program", options.program, "--runs", str(options.runs), "--name", name, "--tasks",
             ",".join(chosen), "--jobs", str(options.jobs), "--stop-at-end-of-input", *(["--seeds", str(options.seeds)] if options.seeds else [])]
    words += [word for one in options.set for word in ("--set", one)]
    return f"cd {shlex.quote(str(pathlib.Path.cwd()))} && exec {shlex.join(words)}"


def share_out(options, tasks, chosen):
    """Returns [(name of a sweep's folder, its tasks)], one for each host. A task stays where it was begun; others go to the host with the fewest."""
    names = [f"{options.name}.{number}" for number in range(1, len(options.hosts) + 1)]
    begun = {path.name for path in options.runs.glob(f"{options.name}*") if re.fullmatch(re.escape(options.name) + r"(\.\d+)?", path.name) and path.is_dir()}
    if begun - set(names):
        raise Mistake(f"{options.runs}: {', '.join(sorted(begun - set(names)))} was begun with other numbers of hosts; name as many hosts, or another --name")
    shares = {name: [] for name in names}
    rest = []
    for task in chosen:
        group = tasks[task][0][0].rsplit("_seed=", 1)[0]
        there = [name for name in names if any((options.runs / name).glob(f"{group}_seed=*"))]
        shares[there[0]].append(task) if there else rest.append(task)
    for task in rest:
        min(shares.values(), key=len).append(task)
    return [(name, share) for name, share in shares.items() if share]


def run(options):
    options.name = options.name or sweep_file(options.sweep).stem
    options.runs = options.runs.resolve()
    options.program = str(pathlib.Path(options.program).resolve()) if "/" in options.program else options.program
    tasks = planned(options.program, sweep_file(options.sweep), options.seeds)[0]
    unknown = [task for task in options.tasks or [] if task not in tasks]
    if unknown:
        raise Mistake(f"--tasks has {', '.join(unknown)}, none of the sweep's; it has {', '.join(tasks)}")
    chosen = [task for task in tasks if not options.tasks or task in options.tasks]
    if options.hosts:
        shares = share_out(options, tasks, chosen)
        if not shutil.which("ssh"):
            raise Mistake("--hosts needs the program ssh, which is not on PATH")
        started = [(subprocess.Popen(["ssh", "-o", "BatchMode=yes", host, host_words(options, name, share)], stdin=subprocess.PIPE, start_new_session=True),
                    options.runs / name) for host, (name, share) in zip(options.hosts, shares)]
    elif any(options.runs.glob(f"{options.name}.[0-9]*/")):
        raise Mistake(f"{options.runs}/{options.name}.1 was begun with --hosts; name as many hosts again, or another --name")
    else:
        words = sweep_words(options, options.name, chosen)
        started = [(subprocess.Popen(words, start_new_session=True), options.runs / options.name)]

    def stop(*_):
        for process, _ in started:
            if process.stdin:
                process.stdin.close()
            elif process.poll() is None:
                process.send_signal(signal.SIGTERM)

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    codes = []
    is_watched = options.stop_at_end_of_input
    for process, _ in started:
        while process.poll() is None:
            if is_watched and select.select([sys.stdin], [], [], 0)[0] and not os.read(0, 4096):
                is_watched = False
                stop()
            try:
                process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                pass
        codes.append(process.returncode)
    options.folders = [folder for _, folder in started if folder.is_dir()]
    if options.folders and not options.stop_at_end_of_input:
        options.out = options.out or options.runs / f"{options.name}.html"
        page(options)
    return next((code for code in codes if code), 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="trains what is not finished and writes the page")
    one.add_argument("sweep", help="its name or file: states_18, states_28, pixels_18, or another one that varies environment.task")
    one.add_argument("--runs", type=pathlib.Path, default="runs", help="folder for RUNS/NAME/<run>")
    one.add_argument("--name", help="of the sweep's folder; default: the sweep's name")
    one.add_argument("--seeds", type=count, default=0, metavar="N", help="1 to N for each task; default: those of the sweep")
    one.add_argument("--jobs", type=count, default=1, help="runs at a time, on each host")
    one.add_argument("--tasks", type=lambda text: text.split(","), help="some of the sweep's, as a,b")
    one.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of every run; may be repeated")
    one.add_argument("--hosts", type=lambda text: text.split(","), help="shares the tasks out over hosts by ssh, as a,b; working folder, program and "
                     "RUNS have the same paths there, on a file system that all see")
    one.add_argument("--stop-at-end-of-input", action="store_true", help=argparse.SUPPRESS)
    other = [commands.add_parser("page", help="writes the page of sweeps"), commands.add_parser("table", help="prints the tables as Markdown"),
             commands.add_parser("variants", help="prints a table of the variants of a sweep as Markdown")]
    for each in other:
        each.add_argument("folders", type=pathlib.Path, nargs="+", help="of sweeps; the last part is the sweep's name, or name.1, name.2, ...")
        each.add_argument("--sweep", help="the sweep, if the folders have other names")
    for each in [one, *other]:
        each.add_argument("--program", default=str(SOURCE / "build/release/troupe"), help="the built program")
    for each in [one, other[0]]:
        each.add_argument("--out", type=pathlib.Path, default=None if each is one else "board.html", help="the page; replaced if it exists")
    options = parser.parse_args()
    try:
        sys.exit({"run": run, "page": page, "table": table, "variants": table}[options.command](options))
    except Mistake as mistake:
        print(f"board.py: {mistake}", file=sys.stderr)
        sys.exit(2)


def count(text):
    if not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text} is no whole number from 1 to 1000")
    return int(text)


if __name__ == "__main__":
    main()
