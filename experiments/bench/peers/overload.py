#!/usr/bin/env python3
"""Overloads a run: ten times more environment actors than the learner can use, each role in a separate process; then also strangers at all ports.

    experiments/bench/peers/overload.py build/release/troupe [--actors 10] [--seconds 60] [--budget 64] [--same-user] [--json]

Two runs of cartpole from states differ only in replay.samples_per_insert. In the first, the learner requests almost nothing, so the
environment actors step as fast as they can. In the second, the learner is the bottleneck, and the shards' rate limiters hold the actors back.
During the second run, the script records the resident memory of every process twice a second, and how long the head's supervisor takes to
answer another process that asks all the time (cluster_scale --join). After it, the checkpoint shows how many transitions the environment
actors made and how many the shards accepted.

Then strangers connect to every port of the run with strangers.py: 1,000 connections per second that are closed immediately, 200 per port that send
nothing, and 20 per port that send meaningless bytes. They are another user of the host (nobody, which takes root), or with --same-user the same user,
whom the ports admit. Beside them, 10 clients of each shard send requests forever and read no answer. Strangers would take processor time from the
run even if it ignored them. The same calls therefore also go to a program that closes every connection, alternating with the run, three times each.
Updates count from the moment at which the strangers start; those of the first three seconds are also shown by themselves.

--budget is what all of them together may add to a process's memory, in MiB. A port keeps less than 64 KiB for each of the 220 connections of
strangers and 512 answers of some hundred bytes for each client that does not read, which is below 20 MiB.

Exit code 1: the overload is below 10, a process's memory in the last quarter exceeds its previous maximum by more than a twentieth plus
8 MiB, fewer than 99% of the answers arrive within 100 ms, a transition is lost, the run's exit code is not 0, the run keeps less than 80 % of
its updates/s when strangers call at its ports, or a process's memory then exceeds its greatest without strangers plus the budget by more than 10 %.
"""
import argparse
import collections
import contextlib
import csv
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

CONFIG = """name: "{name}"
environment {{ task: "cartpole_balance" }}
replay {{ shards: 2 minimum_items: 500 capacity_items: 4000 samples_per_insert: {ratio} n_step: 5 }}
d4pg {{ policy_layers: [256, 256] critic_layers: [256, 256] batch_size: 256 }}
actors {{ environment: {actors} random_steps: 500 }}
evaluation {{ period: 0 final_episodes: 1 video: false }}
checkpoint {{ minutes: 0 }}
stop {{ environment_steps: 2000000000 }}
"""
N_STEP = 5
STARTED = []  # processes that must not outlive this program
MEBIBYTE = 1 << 20
NOBODY = 65534
STRANGERS = pathlib.Path(__file__).with_name("strangers.py")
CALLS = (("connections", "--rate", "1000"), ("half-open", "--held", "200"), ("bytes", "--held", "20"))
TURNS = 3
EARLY = 3  # seconds
COUNTERS = ("agent_steps", "updates", "inserts", "samples", "replay_items", "replay_bytes", "training_seconds")


@contextlib.contextmanager
def scratch_folder(name):
    """Yields a folder for a measurement. Then kills the processes of STARTED that have not ended, and removes the folder."""
    scratch = pathlib.Path(tempfile.mkdtemp(prefix=f"troupe_{name}_"))
    try:
        yield scratch
    finally:
        for process in STARTED:
            process.kill()
            process.wait()
        shutil.rmtree(scratch, ignore_errors=True)


def children(process):
    """Returns the processes that `process` started for a run, with their roles, and under "port" the port of its head."""
    below = collections.defaultdict(list)
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # the process has ended
            below[int(path.read_text().rsplit(")", 1)[1].split()[1])].append(int(path.parent.name))
    found, left = {}, list(below[process])
    while left:
        child = left.pop()
        left += below[child]
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{child}/cmdline").read_text().split("\0")
            if "--role" in words:
                found[child] = words[words.index("--role") + 1] + " " + words[words.index("--index") + 1]
                found["port"] = int(words[words.index("--head-port") + 1])
            elif words[1:2] == ["train"]:
                found[child] = "head"
    return found


def resident(process):
    """Returns the resident memory in bytes; 0 if the process has ended."""
    try:
        return int(pathlib.Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0


def processor_seconds(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def listening(processes):
    """Returns {process: its listening ports}."""
    owners = {}
    for process in processes:
        for path in pathlib.Path(f"/proc/{process}/fd").glob("*"):
            try:
                owners[os.readlink(path)] = process
            except OSError:
                pass  # closed meanwhile
    found = {process: [] for process in processes}
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and (owner := owners.get(f"socket:[{words[9]}]")):
            found[owner].append(int(words[1].split(":")[1], 16))
    return found


class Strangers:
    """Runs strangers.py at these ports until end()."""

    def __init__(self, ports, of_shards, user):
        """`user` is the strangers' user id; None: the same user as this program."""
        self.user = user
        self.started = [self.start(how, ports) for how in CALLS]
        self.started.append(self.start(("slow-readers", "--held", "10"), of_shards, friend=True))

    def start(self, how, ports, friend=False):
        another = [] if friend or self.user is None else ["--user", str(self.user)]
        process = subprocess.Popen([sys.executable, STRANGERS, how[0], *map(str, ports), *how[1:], *another], stdout=subprocess.PIPE, text=True)
        STARTED.append(process)
        return process

    def end(self):
        """Ends the strangers. Returns what they did and the processor seconds that they used."""
        told, seconds = [], 0.0
        for process in self.started:
            process.send_signal(signal.SIGUSR2)
            told.append(process.stdout.readline().strip())
            seconds += processor_seconds(process.pid)
            process.kill()
            process.wait()
        return told, seconds


def sink(count):
    process = subprocess.Popen([sys.executable, STRANGERS, "sink", str(count)], stdout=subprocess.PIPE, text=True)
    STARTED.append(process)
    return process, [int(word) for word in process.stdout.readline().split()]


class Run:
    def __init__(self, troupe, scratch, name, text):
        """Trains the experiment of this name and text."""
        self.folder = scratch / "runs"
        self.name = name
        config = scratch / f"{name}.textproto"
        config.write_text(text)
        self.output = open(scratch / f"{name}.out", "w+")
        self.process = subprocess.Popen([troupe, "train", str(config), "--processes", "--quiet", "--runs", str(self.folder)],
                                        stdout=self.output, stderr=subprocess.STDOUT)
        STARTED.append(self.process)

    def last(self):
        """Returns the newest complete row of the run's metrics that has counters."""
        rows = {}
        for path in self.folder.glob(f"{self.name}/*/metrics.csv"):
            with open(path, newline="") as file:
                for row in csv.DictReader(file):
                    if row["agent_steps"] and row["learning_rate_scale"] is not None:
                        rows = row
        return {key: float(rows[key] or 0) for key in COUNTERS} if rows else {}

    def wait_until(self, what, holds, patience=300):
        end = time.monotonic() + patience
        while not holds(self.last()):
            if self.process.poll() is not None or time.monotonic() > end:
                self.output.seek(0)
                sys.exit(f"the run \"{self.name}\" {'ended' if self.process.poll() is not None else 'waited'} before {what}:\n"
                         + self.output.read())
            time.sleep(0.5)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)

    def state(self):
        """Returns the counters of the run's last checkpoint."""
        manifests = sorted(self.folder.glob(f"{self.name}/*/checkpoints/*/manifest.json"), key=lambda path: path.stat().st_mtime)
        return {key: int(value) for key, value in json.loads(manifests[-1].read_text())["state"].items() if isinstance(value, str)}


def rates(first, last):
    seconds = max(last["training_seconds"] - first["training_seconds"], 1e-9)
    return {key: (last[key] - first[key]) / seconds for key in ("agent_steps", "updates", "inserts", "samples")}


def free_rate(options, scratch):
    """Returns agent steps per second when nothing holds the actors back."""
    run = Run(options.troupe, scratch, "free", CONFIG.format(name="free", actors=options.actors, ratio=0.01))
    run.wait_until("stepping", lambda row: row.get("agent_steps", 0) > 5000)
    first = run.last()
    run.wait_until("ten more seconds", lambda row: row["training_seconds"] > first["training_seconds"] + 10)
    last = run.last()
    run.stop()
    return rates(first, last)["agent_steps"]


class Asker:
    def __init__(self, program, port):
        self.process = subprocess.Popen([program, "--join", f"{port}:0:0:0:1:"], stdout=subprocess.PIPE, text=True)
        STARTED.append(self.process)
        self.process.stdout.readline()

    def told(self):
        """Returns the number of answers, and the milliseconds within which half, 99% and all of them arrived."""
        self.process.send_signal(signal.SIGUSR2)
        return [float(word) for word in self.process.stdout.readline().split()[1:]]


def overload(options, scratch):
    run = Run(options.troupe, scratch, "overload", CONFIG.format(name="overload", actors=options.actors, ratio=options.samples_per_insert))
    run.wait_until("learning", lambda row: row.get("updates", 0) > 100)
    roles = children(run.process.pid)
    asker = Asker(options.asks, roles.pop("port"))
    first = run.last()
    asker.told()
    memory = {process: [] for process in roles}
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        for process, samples in memory.items():
            samples.append(resident(process))
        time.sleep(0.5)
    answers = asker.told()
    last = run.last()
    flood = flooded(options, run, roles, asker)
    asker.process.kill()
    asker.process.wait()
    return {"rates": rates(first, last), "answers": answers, "flood": flood, "code": run.stop(), "state": run.state(),
            "memory": {roles[process]: samples for process, samples in memory.items()}}


def flooded(options, run, roles, asker):
    """Runs strangers alternately at the run's ports and at those of a sink."""
    ports = listening(roles)
    everywhere = [port for of_one in ports.values() for port in of_one]
    of_shards = [port for process, of_one in ports.items() for port in of_one if roles[process].startswith("replay")]
    other, elsewhere = sink(len(everywhere))
    found = {"here": [], "elsewhere": [], "early": [], "answers": [], "memory": {role: 0 for role in roles.values()}, "told": []}
    for _ in range(TURNS):
        for where, at, shards in (("elsewhere", elsewhere, elsewhere[:len(of_shards)]), ("here", everywhere, of_shards)):
            asker.told()
            first, early = run.last(), None
            strangers = Strangers(at, shards, None if options.same_user else NOBODY)
            end = time.monotonic() + options.seconds / TURNS
            while time.monotonic() < end:
                time.sleep(0.5)
                last = run.last()
                if early is None and last["training_seconds"] >= first["training_seconds"] + EARLY:
                    early = last
                for process, role in roles.items() if where == "here" else ():
                    found["memory"][role] = max(found["memory"][role], resident(process))
            found[where].append(rates(first, last)["updates"])
            if where == "here":
                found["answers"].append(asker.told())
                found["early"].append(rates(first, early or last)["updates"])
            told, seconds = strangers.end()
            found["told"].append(f"{where}: {'; '.join(told)}; {seconds:.1f} s of processors")
    other.kill()
    other.wait()
    return found


def judge(options, free, found):
    """Returns rows of (what, value, unit, whether the value meets its requirement)."""
    ratio = free / found["rates"]["agent_steps"]
    count, half, most, all_of_them = found["answers"]
    state = found["state"]
    missing = state["agent_steps"] - state["inserts"]
    rows = [
        ("agent steps while nobody is held back", free, "1/s", True),
        ("agent steps in overload", found["rates"]["agent_steps"], "1/s", True),
        ("updates in overload", found["rates"]["updates"], "1/s", True),
        ("overload", ratio, "times", ratio >= 10),
        ("answers of the supervisor", count, "answers", count > 0),
        ("an answer of the supervisor, median", half, "ms", True),
        ("an answer of the supervisor, 99% within", most, "ms", most <= 100),
        ("an answer of the supervisor, longest", all_of_them, "ms", True),
        ("transitions made", state["agent_steps"], "items", True),
        # An episode's first transition is complete after n_step steps; transitions of unfinished episodes are still waiting for that.
        ("made and not in the shards, at most n_step - 1 per actor wait for their episode", missing, "items",
         0 <= missing <= options.actors * (N_STEP - 1)),
        ("exit code", found["code"], "", found["code"] == 0),
    ]
    flood = found["flood"]
    here, elsewhere = statistics.median(flood["here"]), statistics.median(flood["elsewhere"])
    alone = max(found["rates"]["updates"], 1e-9)
    late = max(answer[2] for answer in flood["answers"])
    rows += [
        ("updates with strangers at other ports", elsewhere, "1/s", True),
        ("updates with strangers at the run's ports", here, "1/s", True),
        (f"updates in the first {EARLY} s of strangers at the run's ports", statistics.median(flood["early"]), "1/s", True),
        ("share of the updates with strangers at other ports", here / elsewhere, "", True),
        ("share of the updates without strangers", here / alone, "", here >= 0.8 * alone),
        ("an answer of the supervisor with strangers, 99% within", late, "ms", late <= 100),
    ]
    for role, size in sorted(flood["memory"].items()):
        budget = max(found["memory"][role]) / MEBIBYTE + options.budget
        rows.append((f"memory of {role} with strangers and friends that do not read: budget", budget, "MiB", True))
        rows.append((f"memory of {role} with strangers and friends that do not read: greatest", size / MEBIBYTE, "MiB",
                     0 < size <= 1.1 * budget * MEBIBYTE))
    for role, samples in sorted(found["memory"].items()):
        quarter = len(samples) * 3 // 4
        before, after = max(samples[:quarter]), max(samples[quarter:])
        rows.append((f"memory of {role}: greatest in the last quarter of {len(samples) / 2:.0f} s", after / MEBIBYTE, "MiB",
                     0 < min(samples) and after <= before * 1.05 + 8 * MEBIBYTE))
        rows.append((f"memory of {role}: greatest before", before / MEBIBYTE, "MiB", True))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("troupe", type=os.path.abspath, help="the program, with cluster_scale beside it")
    parser.add_argument("--actors", type=int, default=10, help="environment actors")
    parser.add_argument("--seconds", type=float, default=60, help="of overload, after the first updates")
    parser.add_argument("--samples-per-insert", type=float, default=256)
    parser.add_argument("--budget", type=float, default=64, metavar="MIB", help="that strangers and friends may add to a process's memory")
    parser.add_argument("--same-user", action="store_true", help="strangers are the same user, whom the ports admit")
    parser.add_argument("--json", action="store_true", help="a JSON object per line")
    options = parser.parse_args()
    if not options.same_user and os.getuid() != 0:
        parser.error("only root can call as another user; use --same-user")
    if options.seconds < TURNS * EARLY:
        parser.error(f"--seconds {options.seconds:g}: must be at least {TURNS * EARLY}, for {TURNS} turns of {EARLY} s")
    options.asks = os.path.join(os.path.dirname(options.troupe), "cluster_scale")
    with scratch_folder("overload") as scratch:
        free = free_rate(options, scratch)
        found = overload(options, scratch)
        rows = judge(options, free, found)
    for line in found["flood"]["told"]:
        print(line, file=sys.stderr)
    for what, value, unit, good in rows:
        if options.json:
            print(json.dumps({"bench": "overload", "metric": what, "value": value, "unit": unit, "config": {"actors": str(options.actors)}}))
        else:
            print(f"{what}: {value:.4g} {unit}{'' if good else '  <- not as it must be'}")
    sys.exit(0 if all(good for *_, good in rows) else 1)


if __name__ == "__main__":
    main()
