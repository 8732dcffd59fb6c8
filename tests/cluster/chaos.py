"""Injects the faults of chaos.sh, checks the run and reports. chaos.sh calls it on the hosts of hosts.sh."""
import argparse
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

from chaos_report import Report
from chaos_watch import Watch, on_host, role_process

HERE = os.path.dirname(os.path.realpath(__file__))
HOSTS = int(os.environ["TROUPE_HOSTS"])
ROLES = {"environment": 4, "replay": 3, "learner": 2, "evaluator": 1}
LOST = 8.0  # seconds: supervision.lost_seconds
FROZEN = 10.0  # seconds that a frozen process is
CUT = (2.0, 12.0)  # seconds that a host is cut off, from and to; the disk is full for as long
SHORT = (6.0, 8.0, (1.0, 8.0))  # the same in the short form
PATIENCE = 120.0  # seconds for anything that is waited for here


def settings(short, lost):
    """What is other than in everywhere.textproto."""
    words = ["name=chaos", "replay.capacity_items=2000000",  # all of an hour: what is missing was lost
             "actors.restarts=1000", "stop.environment_steps=2000000000", "checkpoint.keep=3", "learner.backend=TCP",
             f"supervision={{lost_seconds: {lost} heartbeat_seconds: 0.5 snapshot_seconds: {1 if short else 3}}}",
             f"checkpoint.minutes={0.2 if short else 0.5}", "seed=1"]
    if short:  # states, small networks: what is tested is the run, not the score
        words += ["environment.pixels=", "environment.frame_stack=1", "environment.action_repeat=4", "replay.minimum_items=300",
                  "replay.samples_per_insert=8", "d4pg.policy_layers=32,32", "d4pg.critic_layers=32,32", "d4pg.batch_size=32",
                  "evaluation.period=4000", "evaluation.final_episodes=2"]
    return [word for pair in words for word in ("--set", pair)]


def cluster_file(folder, troupe):
    ssh = {key: os.environ["TROUPE_SSH_" + key.upper()] for key in ("port", "identity", "known_hosts")}
    os.makedirs(f"{folder}/hosts")
    subprocess.run([troupe, "keys", "cluster", f"{folder}/keys"], check=True, stdout=subprocess.DEVNULL)
    with open(f"{folder}/cluster.textproto", "w") as file:
        file.write(f"""name: "chaos"
node {{ name: "host" count: {HOSTS} address: "10.77.0.[1-{HOSTS}]" cores: 2 }}
ssh {{ port: {ssh["port"]} identity_file: "{ssh["identity"]}" known_hosts: "{ssh["known_hosts"]}" program: "{troupe}" folder: "{folder}/hosts" }}
head {{ listen: "10.77.0.254:4242" }}
keys: "{folder}/keys"
oversubscribe: true
pin: false
supervision {{ lost_seconds: {LOST} grace_seconds: 30 node_losses: 1000000 }}
role {{ name: "replay" apart: "replay" }}
role {{ name: "learner" spread: SPREAD }}
""")


class Failed(Exception):
    pass


def until(what, condition, seconds=PATIENCE, alive=None):
    end = time.monotonic() + seconds
    while not condition():
        if alive is not None and alive.poll() is not None:
            raise Failed(f"the run ended with exit code {alive.returncode} before {what}")
        if time.monotonic() > end:
            raise Failed(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.1)


class Draw:
    """Which fault comes next: every kind as often as the others, likewise every role of those that it can hit."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.bags = {}

    def _next(self, name, of):
        if not self.bags.get(name):
            self.bags[name] = list(of)
            self.random.shuffle(self.bags[name])
        return self.bags[name].pop()

    def fault(self, frozen, cut):
        kind = self._next("kind", ("kill -9", "frozen", "cut off", "full"))
        if kind == "full":
            # "head": it dies while the disk is full
            return {"kind": kind, "role": self._next(kind, ("disk", "head")), "index": 0, "seconds": round(self.random.uniform(*cut), 1)}
        roles = (*ROLES, "node", "head") if kind == "kill -9" else (*ROLES, "node")
        role = "node" if kind == "cut off" else self._next(kind, roles)
        index = self.random.randrange({**ROLES, "node": HOSTS, "head": 1}[role])
        seconds = {"kill -9": 0.0, "frozen": frozen, "cut off": round(self.random.uniform(*cut), 1)}[kind]
        return {"kind": kind, "role": role, "index": index, "seconds": seconds}


def head_process(run):
    with open(f"{run}/head.json") as file:
        return json.load(file)["process"]


def victims(fault, run):
    """The processes of a fault, and the actors that are theirs: [(role, index)]."""
    if fault["role"] == "head":  # what it leads lives on
        return [head_process(run)], []
    if fault["role"] != "node":
        pid = role_process(fault["role"], fault["index"])
        return ([pid] if pid else []), [(fault["role"], fault["index"])]
    found = on_host(fault["index"])
    actors = [(words[words.index("--role") + 1], int(words[words.index("--index") + 1]))
              for words in found.values() if words[1] == "actor"]
    if fault["kind"] == "kill -9":  # its processes die with it
        return [pid for pid, words in found.items() if words[1] == "node"], actors
    return list(found), actors


def signal_all(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def fill(disk, seconds, halfway):
    """Leaves no byte free on the disk for so long."""
    end, path = time.monotonic() + seconds, os.path.join(disk, "filler")
    middle = time.monotonic() + seconds / 2
    with open(path, "wb") as file:
        while time.monotonic() < end:
            free = os.statvfs(disk)
            if free.f_bavail > 0:
                try:
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, free.f_bavail * free.f_frsize)
                except OSError:  # the run was faster
                    pass
            if halfway and time.monotonic() > middle:
                halfway, _ = None, halfway()
            time.sleep(0.02)
    os.remove(path)


def strike(fault, run):
    """Does it to the end of a freeze, cut or full disk; fills in what was hit and when."""
    if fault["kind"] == "full":
        fault["actors"], fault["begin"] = [], time.monotonic()
        fill(run.disk, fault["seconds"],
             (lambda: signal_all([head_process(run.folder)], signal.SIGKILL)) if fault["role"] == "head" else None)
        fault["end"] = time.monotonic()
        return
    until(f"{fault['role']} {fault['index']} to be there", lambda: victims(fault, run.folder)[0], alive=run.process)
    pids, fault["actors"] = victims(fault, run.folder)
    fault["begin"] = time.monotonic()
    port = f"port{fault['index']}"
    if fault["kind"] == "kill -9":
        signal_all(pids, signal.SIGKILL)
    elif fault["kind"] == "frozen":
        signal_all(pids, signal.SIGSTOP)
        time.sleep(fault["seconds"])
        signal_all(pids, signal.SIGCONT)
    else:
        subprocess.run(["ip", "link", "set", port, "down"], check=True)
        time.sleep(fault["seconds"])
        subprocess.run(["ip", "link", "set", port, "up"], check=True)
    fault["end"] = time.monotonic()


class Run:
    """`troupe launch` and what is seen of it."""

    def __init__(self, options, name, words):
        self.out, self.disk = open(f"{options.folder}/{name}.out", "w"), f"{options.folder}/disk"
        before = set(glob.glob(f"{options.folder}/disk/runs/chaos/*"))
        self.process = subprocess.Popen([options.troupe, "launch", f"{options.folder}/cluster.textproto",
                                         f"{HERE}/everywhere.textproto", "--runs", f"{options.folder}/disk/runs", *words],
                                        stdout=self.out, stderr=subprocess.STDOUT)
        resumed = "--resume" in words
        until("the run's folder", lambda: resumed or set(glob.glob(f"{options.folder}/disk/runs/chaos/*")) - before, alive=self.process)
        self.folder = max(glob.glob(f"{options.folder}/disk/runs/chaos/*"))
        self.watch = Watch(self.folder, f"{options.folder}/disk/kept/{name}", skip=resumed)

    def updates(self):
        return self.watch.progress[-1][2] if self.watch.progress else 0


def play(options, report):
    """The run with its faults; then the head's death, the launch's death, and the run's end."""
    lost, frozen, cut = SHORT if options.short else (LOST, FROZEN, CUT)
    words = settings(options.short, lost)
    first = Run(options, "first", words)
    report.first = first.watch
    try:
        until("updates", lambda: first.updates() > 300, alive=first.process)
        until("a snapshot of every shard", lambda: all(first.watch.snapshots(i) for i in range(ROLES["replay"])), alive=first.process)
        report.begin = time.monotonic()
        draw = Draw(options.seed)
        for number in range(options.faults):
            due = report.begin + number * options.period
            time.sleep(max(0.0, due - time.monotonic()))
            fault = draw.fault(frozen, cut)
            strike(fault, first)
            report.faults.append(fault)
            print(f"{fault['begin'] - report.begin:7.1f} s: {fault['role']} {fault['index']} {fault['kind']} "
                  f"{fault['seconds'] or ''}", flush=True)
        last = report.faults[-1]["end"]
        until("the run to go on after the last fault", lambda: first.watch.progress_after(last + 1), alive=first.process)
        until("all actors back", lambda: not report.missing(first.watch), alive=first.process)
        back = time.monotonic()
        until("the run to go on with all actors", lambda: first.watch.progress_after(back), alive=first.process)
        until("a checkpoint", lambda: first.watch.snapshots("checkpoint"), alive=first.process)
    finally:
        report.head_died = time.monotonic()
        if first.process.poll() is None:
            signal_all([head_process(first.folder)], signal.SIGKILL)
        first.watch.stop()
    second = report.second = Watch(first.folder, f"{options.folder}/disk/kept/second", skip=True)
    try:
        until("the run to go on after the head's death", lambda: second.progress and second.progress_after(second.progress[0][0]),
              alive=first.process)
        report.head_back = second.progress_after(second.progress[0][0])
        until("a checkpoint of the new head", lambda: second.snapshots("checkpoint"), alive=first.process)
    finally:
        report.launch_died = time.monotonic()
        first.process.kill()
        first.process.wait()
        second.stop()
    until("the hosts to be empty after the launch's death", lambda: not any(on_host(i) for i in range(HOSTS)))
    report.hosts_empty = time.monotonic()
    steps = second.progress[-1][1] + (4000 if options.short else 16000)
    again = Run(options, "again", [*words, "--set", f"stop.environment_steps={steps}", "--resume"])
    report.again = again.watch
    try:
        until("the resumed run's updates", lambda: again.watch.progress_after(report.hosts_empty), alive=again.process)
        until("the resumed run's end", lambda: again.process.poll() is not None, 600)
    finally:
        again.process.kill()
        again.process.wait()
        again.watch.stop()
    report.exit_code = again.process.returncode
    report.final_checkpoint = max(glob.glob(f"{again.folder}/checkpoints/*"), key=lambda path: int(os.path.basename(path)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("troupe")
    parser.add_argument("audit")
    parser.add_argument("folder")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--period", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--score", type=float, default=800)
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    if options.short:
        options.period, options.score = 9.0, 0.0
        options.faults = 8
    else:
        options.faults = max(1, int(options.minutes * 60 / options.period))
    cluster_file(options.folder, options.troupe)
    report = Report(options, SHORT[0] if options.short else LOST, ROLES)
    try:
        play(options, report)
    except Failed as problem:
        report.problems.append(str(problem))
    for line in report.lines():
        print(line)
    for out in sorted(glob.glob(f"{options.folder}/*.out")) if report.problems else []:
        print(f"--- {out}", *open(out).read().split("\n")[-12:], sep="\n")
    for log in sorted(glob.glob(f"{options.folder}/disk/runs/chaos/*/log.txt")) if report.problems else []:
        print(f"--- {log}", *open(log).read().split("\n")[-30:], sep="\n")
    if report.problems:  # the disk ends with the hosts
        shutil.copytree(f"{options.folder}/disk/runs", f"{options.folder}/runs", ignore=shutil.ignore_patterns("snapshots", "checkpoints"))
    for problem in report.problems:
        print(f"chaos: {re.sub(chr(10), ' ', problem)}")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
