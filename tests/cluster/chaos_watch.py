"""Observes a run under chaos: records its output with times, and copies the snapshots that it writes."""
import os
import re
import shutil
import threading
import time


def words_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def role_process(role, index):
    """The process of an actor, or None while it is not there."""
    for pid in sorted(processes(), reverse=True):
        words = words_of(pid)
        if "--role" in words and words[words.index("--role") + 1:][:1] == [role]:
            if words[words.index("--index") + 1:][:1] == [str(index)]:
                return pid
    return None


def on_host(number):
    """{pid: words} of the programs of ours that run on a host."""
    with open(f"/run/hosts/host{number}.pid") as file:
        net = os.readlink(f"/proc/{file.read().strip()}/ns/net")
    found = {}
    for pid in processes():
        try:
            if os.readlink(f"/proc/{pid}/ns/net") != net:
                continue
        except OSError:
            continue
        words = words_of(pid)
        if len(words) > 1 and words[1] in ("node", "actor"):
            found[pid] = words
    return found


class Lines:
    """Complete lines that were added to a file. A head may replace the incomplete last line of its predecessor."""

    def __init__(self, path, skip):
        self.path = path
        self.at = os.path.getsize(path) if skip else 0

    def new(self):
        try:
            with open(self.path, "rb") as file:
                file.seek(self.at)
                data = file.read()
        except OSError:
            return []
        data = data[:data.rfind(b"\n") + 1]
        self.at += len(data)
        return [line.rstrip("\r") for line in data.decode(errors="replace").split("\n")[:-1]]


class Watch:
    """Looks at a run's folder ten times a second, in a thread of its own, until stop(). skip: what is there already does not count."""

    def __init__(self, run, keep, skip=False):
        self.run, self.keep = run, keep
        self.began = time.time() if skip else 0.0
        self.log = []       # (time, line)
        self.progress = []  # (time, environment steps, updates)
        self.scores = []    # (time, kind, environment steps, return)
        self.kept = {}      # (shard, number): (time, folder)
        self.files = {name: Lines(os.path.join(run, name), skip) for name in ("log.txt", "metrics.csv")}
        self.columns = None
        if skip:
            with open(os.path.join(run, "metrics.csv")) as file:
                self.columns = file.readline().strip().split(",")
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def stop(self):
        self.ended.set()
        self.thread.join()
        self._look()

    def _work(self):
        while not self.ended.wait(0.1):
            self._look()

    def _look(self):
        now = time.monotonic()
        self.log += [(now, line) for line in self.files["log.txt"].new()]
        for line in self.files["metrics.csv"].new():
            fields = line.split(",")
            if self.columns is None:
                self.columns = fields
                continue
            row = dict(zip(self.columns, fields))
            if row["kind"] == "progress":
                self.progress.append((now, int(row["environment_steps"]), int(row["updates"])))
            else:
                self.scores.append((now, row["kind"], int(row["environment_steps"]), float(row["evaluation_return"])))
        for what, root in (("shard", "snapshots"), ("checkpoint", "checkpoints")):
            self._keep(now, what, os.path.join(self.run, root))

    def _keep(self, now, what, root):
        """Hard links of complete snapshots (snapshots/shard-0/17) and checkpoints (checkpoints/4711)."""
        shards = [(int(name[6:]), os.path.join(root, name)) for name in self._list(root) if name.startswith("shard-")]
        for shard, folder in shards if what == "shard" else [("checkpoint", root)]:
            for name in self._list(folder):
                path = os.path.join(folder, name)
                if not name.isdigit() or (shard, int(name)) in self.kept:
                    continue
                copy = os.path.join(self.keep, str(shard), name)
                try:
                    if os.stat(path).st_mtime < self.began:
                        continue
                    shutil.copytree(path, copy, copy_function=os.link)
                    self.kept[(shard, int(name))] = (now, copy)
                except (OSError, shutil.Error):  # it was removed meanwhile: no longer of those that count
                    shutil.rmtree(copy, ignore_errors=True)

    @staticmethod
    def _list(folder):
        try:
            return os.listdir(folder)
        except OSError:
            return []

    def snapshots(self, shard):
        """(when, folder) in their order."""
        return [self.kept[(shard, number)] for number in sorted(number for kind, number in list(self.kept) if kind == shard)]

    # What the log says: (time, role, index).
    def said(self, words):
        found = []
        for when, line in self.log:
            match = re.search(r"(environment|replay|learner|evaluator) actor (\d+) " + words, line)
            if match:
                found.append((when, match.group(1), int(match.group(2))))
        return found

    def progress_after(self, when):
        """When the run had both stepped its environments and updated its learners since then."""
        before = [row for row in self.progress if row[0] <= when]
        steps, updates = before[-1][1:] if before else (0, 0)
        for at, new_steps, new_updates in self.progress:
            if at > when:
                updates = min(updates, new_updates)  # a learner came back with an earlier state
                if new_steps > steps and new_updates > updates:
                    return at
        return None
