#!/usr/bin/env python3
"""Measures the total cost of observability for a run. Usage: observability.py [--troupe PROGRAM] [--pairs N] [--beside] [EXPERIMENT...]

Runs the same short trainings, quickstart (from pixels) and cheetah_run (D4PG from states) unless others are named, with equal steps and the same
seed, with and without everything that a user can switch on:
- `--dashboard`, with a page that requests the list, four curves, the run and its log every two seconds, like a browser, and watches an
  environment (up to four pictures per second), and a Prometheus that requests /metrics every second
- a timeline of 20 updates
- progress lines on standard error
- a line of JSON per episode (environment.episode_log)
- diagnostics of the networks every 1,000 updates (learner.diagnostics_period)
The trainings are interleaved in --pairs pairs (5), in the orders off on, on off, ...; with --beside, the two of a pair run at the same time, so that
other programs disturb both equally. metrics.csv, TensorBoard's events with histograms, live.json and log.txt are written in all runs, because
nothing switches them off. Their share of a watched run is also printed: the first thread is the head, which writes them.

Prints a table, and exits with 1 if processor time per update is significantly more than 2 % higher, that is, if the whole 95 % interval
(Student's t, from the pairs' logarithms) is above. Updates per second are printed but not judged, because on a machine that is not idle they
depend on other programs. This script plays the page, because a browser on the same cores would be measured too.
"""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from dashboard_bench import CHARTS, PERIOD, Client

LIMIT = 0.02
STEPS = {"quickstart": 24_000, "cheetah_run": 12_000}
OTHER_STEPS = 12_000
PICTURE_PAUSE = 0.25  # minimum pause of the page, in seconds
PICTURE_SHARE = 50  # and at least this multiple of the answer's time
DEADLINE = 900  # seconds for a run
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093]


class Watcher:
    """Simulates a page, a live picture and a Prometheus, each on a thread, until end()."""

    def __init__(self, address):
        self.address, self.over, self.answers, self.failures = address, threading.Event(), {}, []
        self.run = json.loads(Client(address).ask("/api/runs"))["runs"][0]["id"]
        self.named = "id=" + urllib.request.quote(self.run)
        self.known = {column: {self.run: 0} for column in CHARTS}
        parts = ((self.page, PERIOD), (self.metrics, 1), (self.picture, PICTURE_PAUSE))
        self.threads = [threading.Thread(target=self.repeat, args=part, daemon=True) for part in parts]
        for thread in self.threads:
            thread.start()

    def repeat(self, ask, pause):
        client = Client(self.address)
        longer = 0
        while not self.over.wait(max(pause, longer)):
            try:
                asked = time.monotonic()
                ask(client)
                longer = min(PICTURE_SHARE * (time.monotonic() - asked), 5) if ask == self.picture else 0
                self.count(ask.__name__)
            except OSError as failure:  # before there is an environment, and after the run has ended
                self.failures.append(f"{ask.__name__}: {failure}")

    def count(self, what):
        self.answers[what] = self.answers.get(what, 0) + 1

    def page(self, client):
        client.ask("/api/runs")
        for column in CHARTS:
            for run in client.series(column, self.known[column], 600):
                self.known[column][run["id"]] = run["version"]
        told = json.loads(client.ask("/api/run?" + self.named))
        client.ask("/api/logs?" + self.named)
        if (told["live"] or {}).get("updates", 0) > 20 and "timeline" not in self.answers:
            client.ask("/api/timeline", {"id": self.run, "updates": 20})
            self.count("timeline")

    def metrics(self, client):
        client.ask("/metrics")

    def picture(self, client):
        client.ask(f"/api/picture?{self.named}&actor=0&environment=0")

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join(15)
        missing = {"page", "metrics", "picture", "timeline"} - self.answers.keys()
        if missing:
            raise RuntimeError(f"no answer to {', '.join(missing)}; give more --steps. Failures: {self.failures[:5]}")


def thread_seconds(pid):
    """Returns the processor time of a process's threads by name; the first one is "head"."""
    seconds = {}
    for folder in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            name, words = re.fullmatch(r"\d+ \((.*)\) (.*)", (folder / "stat").read_text().strip()).groups()
        except OSError:
            continue  # it ended meanwhile
        name = "head" if folder.name == str(pid) else name
        fields = words.split()
        seconds[name] = seconds.get(name, 0) + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


class Threads:
    """Measures the processor time of a process's threads from its first progress report on."""

    def __init__(self, pid, folder):
        self.pid, self.folder, self.begin, self.end = pid, folder, None, {}

    def look(self):
        try:
            seconds = thread_seconds(self.pid)
        except OSError:
            return
        if self.begin is None:
            if not any(self.folder.glob("*/*/live.json")):
                return
            self.begin = seconds
        for name, value in seconds.items():
            self.end[name] = max(value, self.end.get(name, 0))  # some end before the process

    def taken(self, name):
        return self.end.get(name, 0) - (self.begin or {}).get(name, 0)


def one_run(options, experiment, watched):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        words = [options.troupe, "train", experiment, "--runs", folder, "--json", "--set", "evaluation.period=0", "--set", "evaluation.final_episodes=1", "--set",
                 "evaluation.video=false", "--set", "stop.evaluation_return=0", "--set", "stop.minutes=0", "--set", "seed=1", "--set",
                 f"stop.environment_steps={options.steps or STEPS.get(experiment, OTHER_STEPS)}"]
        words += ["--dashboard", "--set", f"environment.episode_log={folder}/episodes.jsonl", "--set", "learner.diagnostics_period=1000"] if watched else ["--quiet"]
        with open(folder / "said", "w+", encoding="utf-8") as said, open(folder / "answer", "w+", encoding="utf-8") as answer:
            run = subprocess.Popen(words, stdout=answer, stderr=said)
            threads, watcher, end = Threads(run.pid, folder), None, time.monotonic() + DEADLINE
            while not (ended := os.wait4(run.pid, os.WNOHANG))[0]:
                if watched and not watcher and (found := re.search(r"^dashboard: (\S+)$", (folder / "said").read_text(), re.M)):
                    watcher = Watcher(found[1])
                threads.look()
                if time.monotonic() > end:
                    run.kill()
                    raise RuntimeError(f"{experiment} took more than {DEADLINE} s; give fewer --steps")
                time.sleep(0.1)
            run.returncode = os.waitstatus_to_exitcode(ended[1])
            if run.returncode != 0:
                raise RuntimeError(f"{experiment} failed:\n{(folder / 'said').read_text()}")
            if watched:
                watcher.end()
            result = json.loads((folder / "answer").read_text())
        live = json.loads((pathlib.Path(result["run"]) / "live.json").read_text())
        processor = ended[2].ru_utime + ended[2].ru_stime
        return {"milliseconds": 1000 * processor / result["updates"], "rate": result["updates"] / result["training_seconds"], "updates": result["updates"],
                "head": threads.taken("head") / processor, "dashboard": threads.taken("dashboard") / processor,
                "histograms": live["seconds"].get("learner.histograms", 0) / processor}


def pairs_of(options, experiment):
    made = []
    for pair in range(options.pairs):
        order = (False, True) if pair % 2 == 0 else (True, False)
        with concurrent.futures.ThreadPoolExecutor(2 if options.beside else 1) as pool:
            done = dict(zip(order, pool.map(lambda watched: one_run(options, experiment, watched), order)))
        made.append((done[False], done[True]))
        print(f"{experiment}, pair {pair + 1}: {done[False]['milliseconds']:.2f} and {done[True]['milliseconds']:.2f} ms of processor time per update", file=sys.stderr)
    return made


def change(pairs, what):
    """Returns the geometric mean of on / off, minus 1, and its 95 % interval."""
    logarithms = [math.log(on[what] / off[what]) for off, on in pairs]
    mean = statistics.mean(logarithms)
    half = STUDENT[min(len(logarithms) - 1, len(STUDENT)) - 1] * statistics.stdev(logarithms) / math.sqrt(len(logarithms))
    return math.exp(mean) - 1, math.exp(mean - half) - 1, math.exp(mean + half) - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", default=list(STEPS))
    parser.add_argument("--troupe", default=str(pathlib.Path(__file__).resolve().parents[2] / "build/release/troupe"))
    parser.add_argument("--pairs", type=int, default=5, help="at least 2")
    parser.add_argument("--steps", type=int, help="environment steps of a run")
    parser.add_argument("--beside", action="store_true", help="the two runs of a pair at the same time")
    options = parser.parse_args()
    if options.pairs < 2:
        parser.error(f"--pairs is {options.pairs}; an interval needs at least 2")
    print("| experiment | figure | off | on | change (95 %) |\n| --- | --- | --- | --- | --- |")
    dear = []
    for experiment in options.experiments:
        pairs = pairs_of(options, experiment)
        for what, name in (("milliseconds", "processor time per update, ms"), ("rate", "updates/s of training")):
            off, on = (statistics.median(pair[i][what] for pair in pairs) for i in (0, 1))
            middle, low, high = change(pairs, what)
            print(f"| {experiment} | {name} | {off:.2f} | {on:.2f} | {100 * middle:+.1f} % ({100 * low:+.1f} to {100 * high:+.1f}) |")
            if what == "milliseconds" and low > LIMIT:
                dear.append(f"{experiment} costs {100 * middle:.1f} % more ({100 * low:.1f} to {100 * high:.1f}), and {100 * LIMIT:.0f} % are allowed")
        for what, name in (("dashboard", "requests"), ("head", "the head, its files included"), ("histograms", "histograms of the learner")):
            off, on = (100 * statistics.median(pair[i][what] for pair in pairs) for i in (0, 1))
            print(f"| {experiment} | part of the processor time: {name} | {off:.2f} % | {on:.2f} % | |", flush=True)
    for line in dear:
        print("observability: " + line, file=sys.stderr)
    sys.exit(1 if dear else 0)


if __name__ == "__main__":
    main()
