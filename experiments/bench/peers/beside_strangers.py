#!/usr/bin/env python3
"""Measures what honest clients keep while a stranger repeats an attack at the same port, for each attack of a review.

    PYTHONPATH=build/release/python:env/remote/python experiments/bench/peers/beside_strangers.py build/release/troupe
        [--only shard,environment,http,head] [--attack KIND] [--seconds 2] [--rounds 5] [--limit 12000000]

Needs Python with NumPy and pyzmq, and cluster_scale beside the program. Each server has an address space of --limit KiB, as after `ulimit -v`:

shard        `troupe replay serve` with two tables. The honest client inserts and samples 256 items at a time; the stranger names the other table.
environment  `troupe serve environment cartpole_balance`, all environments of which belong to the honest client, which steps them.
http         `troupe dashboard`. The honest client opens a connection for each /metrics.
head         the head of `troupe train --processes`. The honest client asks the supervisor 100 times per second (cluster_scale --join).

Honest items per second are measured in intervals of --seconds, alternately without and with the stranger: --rounds intervals with it, one more without
it. An interval has a new honest connection. The stranger is a process of the same user (strangers.py), because ports without keys read nothing from
other users. Its rate of messages is limited; a half-open or unread connection stays for the whole interval.

The time in which threads of the server and of the honest client wait for a processor (run delay of /proc/PID/task/*/schedstat) does not count in the
first ratio, because other programs and the stranger's own processor time cause it. The second ratio is of the wall clock. A ratio is the median over
rounds of the rate with the stranger, divided by the mean of the rates before and after it. The table also shows the median rates by the wall clock, the
server's processor time per honest item, and the stranger's share of a processor. The first row of each target is a control, which shows the scatter.

Prints a table in Markdown. Exit code 1: both ratios are below 0.9, an honest client saw an error, or a server ended.
"""
import argparse
import contextlib
import http.client
import json
import os
import pathlib
import re
import resource
import signal
import statistics
import subprocess
import sys
import time
import urllib.parse
from dataclasses import dataclass

import overload

CONTROL = ("control: one silent connection", "half-open", "--held", "1", "--rate", "1")
ANY_PORT = [
    ("messages of random bytes", "garbage", "--rate", "500"),
    ("connections that close", "connections", "--rate", "200"),
    ("300 silent connections, 256 descriptors", "half-open", "--held", "300", "--rate", "400"),
    ("bytes without a greeting", "bytes", "--held", "20", "--rate", "200"),
]
ATTACKS = {
    "shard": [
        CONTROL,
        ("insertions of 20 KB that open 512 chunks of 64 MiB", "open-chunks", "--rate", "20"),
        ("a message that never ends, 12 MiB/s", "endless", "--rate", "200"),
        ("insertions with 520,000 slices for each of 65,536 items", "large-shape", "--rate", "4"),
        ("insertions of 500 new shapes each", "new-shapes", "--rate", "8"),
        ("headers of 3 MiB", "long-header", "--rate", "4"),
        ("parts of 2^62 bytes", "announced", "--rate", "50"),
        ("priorities of 65,536 keys", "priorities", "--rate", "4"),
        ("requests for 65,536 items, answers unread", "samples", "--rate", "4"),
        ("requests without end, answers unread", "slow-readers", "--held", "10"),
        *ANY_PORT,
    ],
    "environment": [
        CONTROL,
        ("requests for taken environments", "hello", "--rate", "100"),
        ("a message that never ends, 12 MiB/s", "endless", "--rate", "200"),
        ("parts of 2^62 bytes", "announced", "--rate", "50"),
        *ANY_PORT,
    ],
    "http": [
        CONTROL,
        ("requests without the token", "http-no-token", "--rate", "50"),
        ("headers of 30 KB", "http-headers", "--rate", "50"),
        ("announced bodies of 1 GB", "http-body", "--rate", "50"),
        ("100 unfinished requests, a byte at a time", "http-slow", "--held", "100", "--rate", "400"),
        ("connections that close", "connections", "--rate", "200"),
        ("100 silent connections", "half-open", "--held", "100", "--rate", "400"),
        ("bytes that are not HTTP", "bytes", "--held", "20", "--rate", "200"),
    ],
    "head": [
        CONTROL,
        ("headers that announce 64 MiB", "caf", "--held", "60", "--rate", "200"),
        ("connections that close", "connections", "--rate", "200"),
        ("300 silent connections", "half-open", "--held", "300", "--rate", "400"),
        ("bytes that are not CAF's", "bytes", "--held", "20", "--rate", "200"),
    ],
}
TABLES = """table { name: "honest" column { name: "x" } max_items: 100000 }
table { name: "other" column { name: "x" } max_items: 1000 }
"""
BATCH = 256
ENVIRONMENTS = 4
DESCRIPTORS = 256
SETTLE = 0.5  # seconds of strangers before an interval
DEADLINE = 60  # seconds for an interval, or for a server's first line
LEAST = 0.9


@contextlib.contextmanager
def deadline(what):
    """Ends the program if the block takes too long."""
    def late(*_):
        raise TimeoutError(f"{what}: not done within {DEADLINE} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(DEADLINE)
    try:
        yield
    finally:
        signal.alarm(0)


@contextlib.contextmanager
def shard_client(server):
    import numpy
    from troupe import replay
    with replay.Client(server.reply["endpoint"], "honest") as client:
        writer = client.writer(reach=BATCH)
        values = numpy.ones(BATCH, numpy.float32)

        def turn():
            writer.extend(x=values)
            writer.add_items(writer.rows - BATCH, writer.rows, 1)
            writer.insert()
            client.flush()
            client.sample(BATCH)
            return 2 * BATCH

        yield turn


@contextlib.contextmanager
def environment_client(server):
    import numpy
    import troupe_env
    with troupe_env.Client(server.reply["endpoint"], environments=ENVIRONMENTS) as client:
        actions = numpy.zeros((ENVIRONMENTS, client.spec.actions))
        client.play(actions, resets={place: place for place in range(ENVIRONMENTS)})

        def turn():
            client.play(actions)
            return ENVIRONMENTS

        yield turn


@contextlib.contextmanager
def http_client(server):
    place = urllib.parse.urlsplit(server.reply["address"])
    headers = {"Authorization": f"Bearer {urllib.parse.parse_qs(place.query)['token'][0]}"}

    def turn():
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=10)
        try:
            connection.request("GET", "/metrics", headers=headers)
            reply = connection.getresponse()
            reply.read()
        finally:
            connection.close()
        if reply.status != 200:
            raise ConnectionError(f"status {reply.status}")
        return 1

    yield turn


@contextlib.contextmanager
def head_client(server):
    asker = overload.Asker(server.asks, server.port)

    def turn():
        time.sleep(0.1)
        return asker.told()[0]

    try:
        yield turn
    finally:
        asker.process.kill()
        asker.process.wait()


class Server:
    """A process of `troupe` with a limited address space and few descriptors, which reports where it listens in its first line."""

    def __init__(self, options, scratch, words):
        output = open(scratch / f"{words[0]}.log", "w")
        self.log = open(output.name)

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (options.limit << 10,) * 2)
            resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS,) * 2)

        self.process = subprocess.Popen([options.troupe, *words, "--json"], stdout=subprocess.PIPE, stderr=output, text=True, preexec_fn=limit)
        overload.STARTED.append(self.process)
        with deadline(" ".join(words)):
            line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{' '.join(words)} ended: {self.log.read()}")
        self.reply, self.pid = json.loads(line), self.process.pid
        self.port = urllib.parse.urlsplit(self.reply.get("endpoint") or self.reply["address"]).port

    def alive(self):
        return self.process.poll() is None

    def stop(self):
        self.process.kill()
        self.process.wait()

    def logged(self):
        """Returns the first line of what it has logged since the last call that reports a refusal."""
        lines = [line for line in self.log.read().splitlines() if "dropped" in line or "refused" in line]
        return lines[0].split("dropped ")[-1] if lines else ""


class Head:
    """A run over processes; `pid` is its head's."""

    def __init__(self, options, scratch):
        self.asks = os.path.join(os.path.dirname(options.troupe), "cluster_scale")
        self.run = overload.Run(options.troupe, scratch, "head", overload.CONFIG.format(name="head", actors=2, ratio=1))
        self.run.wait_until("learning", lambda row: row.get("updates", 0) > 10)
        roles = overload.children(self.run.process.pid)
        self.port = roles.pop("port")
        self.pid = next(process for process, role in roles.items() if role == "head")
        for process in roles:
            resource.prlimit(process, resource.RLIMIT_AS, (options.limit << 10,) * 2)

    def alive(self):
        return self.run.process.poll() is None

    def stop(self):
        self.run.stop()

    def logged(self):
        return ""


def started(options, scratch, target):
    """Returns a server, and what makes an honest client of it."""
    if target == "shard":
        tables = scratch / "tables.textproto"
        tables.write_text(TABLES)
        return Server(options, scratch, ["replay", "serve", "--config", str(tables), "--listen", "tcp://127.0.0.1:*"]), shard_client
    if target == "environment":
        words = ["serve", "environment", "cartpole_balance", "--endpoint", "tcp://127.0.0.1:*", "--count", str(ENVIRONMENTS)]
        return Server(options, scratch, words), environment_client
    if target == "http":
        runs = scratch / "runs_of_none"
        runs.mkdir()
        return Server(options, scratch, ["dashboard", str(runs)]), http_client
    return Head(options, scratch), head_client


def waited(processes):
    """Returns the seconds for which the threads of these processes have been ready to run and have waited for a processor."""
    seconds = 0.0
    for process in processes:
        for path in pathlib.Path(f"/proc/{process}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):  # the thread has ended
                seconds += int(path.read_text().split()[1]) * 1e-9
    return seconds


@dataclass
class Interval:
    rate: float = 0.0  # honest items per second
    busy_rate: float = 0.0  # per second in which no thread waits for a processor
    cost: float = 0.0  # the server's processor seconds per item
    memory: int = 0  # the server's greatest resident memory
    error: str = ""  # the first


def interval(options, server, client):
    count, looked, found = 0, 0.0, Interval(memory=overload.resident(server.pid))
    processes = (server.pid, os.getpid())
    with deadline("an interval"):
        try:
            with client(server) as turn:
                turn()
                before, delay, begin = overload.processor_seconds(server.pid), waited(processes), time.monotonic()
                while (now := time.monotonic()) < begin + options.seconds:
                    if now > looked + 0.1:
                        found.memory, looked = max(found.memory, overload.resident(server.pid)), now
                    count += turn()
                seconds = time.monotonic() - begin
                delay = waited(processes) - delay
                found.cost = (overload.processor_seconds(server.pid) - before) / max(count, 1)
                found.rate = count / seconds
                found.busy_rate = count / max(seconds - delay, seconds / 20)  # threads may have waited at the same time
        except (OSError, RuntimeError, http.client.HTTPException) as failure:
            found.error = f"{type(failure).__name__}: {failure}"
    return found


class Stranger:
    def __init__(self, port, how):
        self.process = subprocess.Popen([sys.executable, overload.STRANGERS, how[0], str(port), *how[1:]], stdout=subprocess.PIPE, text=True)
        overload.STARTED.append(self.process)
        with deadline("the stranger's start"):
            while not self.calls():
                time.sleep(0.02)
        self.begin, self.used = time.monotonic(), overload.processor_seconds(self.process.pid)
        time.sleep(SETTLE)

    def calls(self):
        """Returns whether it has installed the handler of the signal that asks for its counts; it then calls."""
        caught = re.search(r"SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{self.process.pid}/status").read_text())[1]
        return int(caught, 16) >> (signal.SIGUSR2 - 1) & 1

    def end(self):
        """Returns its counts without zeros and bytes, with the first refusal, and its share of a processor."""
        share = (overload.processor_seconds(self.process.pid) - self.used) / (time.monotonic() - self.begin)
        self.process.send_signal(signal.SIGUSR2)
        with deadline("the stranger"):
            counts, colon, refusal = self.process.stdout.readline().strip().partition(": ")
        self.process.kill()
        self.process.wait()
        overload.STARTED.remove(self.process)
        return ", ".join(one for one in counts.split(", ") if not re.fullmatch(r"\w+ 0|bytes \d+", one)) + colon + refusal, share


def measured(options, server, client, how):
    """Returns the cells of a row, and whether it meets the requirement."""
    server.logged()
    without, beside, told, shares = [interval(options, server, client)], [], "", []
    for _ in range(options.rounds):
        stranger = Stranger(server.port, how)
        beside.append(interval(options, server, client))
        told, share = stranger.end()
        shares.append(share)
        time.sleep(SETTLE)
        without.append(interval(options, server, client))
    logged = server.logged()

    def ratio(of):
        return statistics.median(2 * of(during) / max(of(before) + of(after), 1e-9) for before, during, after in zip(without, beside, without[1:]))

    errors = [one.error for one in without + beside if one.error]
    notes = [told, f"log: {logged}" if logged else "", f"honest: {errors[0]}" if errors else "", "" if server.alive() else "the server ended"]
    pair = [without, beside]
    fair = ratio(lambda one: one.busy_rate)
    good = max(fair, ratio(lambda one: one.rate)) >= LEAST and not errors and server.alive()
    cells = ["; ".join(filter(None, notes)).replace("|", "\\|"),
             " → ".join(f"{max(one.memory for one in group) / overload.MEBIBYTE:.0f}" for group in pair),
             *(f"{statistics.median(one.rate for one in group):,.0f}" for group in pair),
             f"{fair:.2f}" + ("" if good else " ✗"), f"{ratio(lambda one: one.rate):.2f}",
             " → ".join(f"{statistics.median(one.cost for one in group) * 1e6:.2f}" for group in pair), f"{statistics.median(shares) * 100:.0f} %"]
    return cells, good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("troupe", type=os.path.abspath, help="the program, with cluster_scale beside it")
    parser.add_argument("--only", default=",".join(ATTACKS), help="targets, separated by commas")
    parser.add_argument("--attack", choices=sorted({how for attacks in ATTACKS.values() for _, how, *_ in attacks}), help="only this kind of stranger")
    parser.add_argument("--seconds", type=float, default=2, help="of an interval")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=int, default=12_000_000, metavar="KIB", help="address space of each server")
    options = parser.parse_args()
    targets = options.only.split(",")
    if unknown := [target for target in targets if target not in ATTACKS]:
        parser.error(f"--only {unknown[0]}: must be of {', '.join(ATTACKS)}")
    if not 0.5 <= options.seconds <= DEADLINE / 3 or options.rounds < 1:
        parser.error(f"--seconds {options.seconds:g} --rounds {options.rounds}: must be 0.5 to {DEADLINE // 3} seconds, and at least one round")
    everything_good = True
    with overload.scratch_folder("beside") as scratch:
        print("| attack | what the stranger saw | memory of the server, MiB | honest items/s | with the stranger | ratio | by the wall clock "
              "| server's µs per honest item | stranger's processor |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
        for target in targets:
            server, client = started(options, scratch, target)
            for what, *how in ATTACKS[target]:
                if options.attack in (None, how[0]) and server.alive():
                    cells, good = measured(options, server, client, how)
                    everything_good = everything_good and good
                    print("| " + " | ".join([f"{target}: {what}", *cells]) + " |", flush=True)
            server.stop()
    sys.exit(0 if everything_good else 1)


if __name__ == "__main__":
    main()
