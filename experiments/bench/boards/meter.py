"""The processor time of the runs of a sweep, while it goes on."""
import csv
import os
import pathlib
import time

COLUMNS = ["session", "environment_steps", "processor_seconds"]


class Meter:
    """Writes the processor time of each run of a sweep, with all its processes, to processor_seconds.csv in its part of the sweep's folder."""

    PERIOD = 10  # seconds between rows

    def __init__(self, folder):
        self.folder, self.known = folder, {}  # part -> [session, steps, seconds, when it was written]

    def look(self, sweep):
        """To be called every second."""
        children, seconds, starts = {}, {}, {}
        for pid in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else []):
            try:
                fields = pathlib.Path("/proc", pid, "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:  # it ended
                continue
            children.setdefault(int(fields[1]), []).append(int(pid))
            seconds[int(pid)], starts[int(pid)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK"), fields[19]

        def tree(pid):
            return seconds[pid] + sum(map(tree, children.get(pid, [])))

        alive = set()
        for pid in children.get(sweep, []):
            part = self.part_of(pid)
            if part:
                alive.add(part)
                before = self.known.get(part)
                session = f"{pid}-{starts[pid]}"
                self.known[part] = [session, self.steps(part), tree(pid), before[3] if before and before[0] == session else -self.PERIOD]
                if time.monotonic() - self.known[part][3] >= self.PERIOD:
                    self.write(part)
        for part in set(self.known) - alive:
            self.close(part)

    def end(self):
        for part in list(self.known):
            self.close(part)

    def close(self, part):
        self.known[part][1] = self.steps(part)
        self.write(part)
        del self.known[part]

    def write(self, part):
        session, steps, seconds, _ = self.known[part]
        path = part / "processor_seconds.csv"
        is_new = not path.exists()
        with open(path, "a", newline="") as file:
            csv.writer(file).writerows([COLUMNS] * is_new + [[session, steps, f"{seconds:.2f}"]])
        self.known[part][3] = time.monotonic()

    def part_of(self, pid):
        """The part of the sweep's folder that a process was started with."""
        try:
            words = pathlib.Path("/proc", str(pid), "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            return None
        for word in words:
            if word.startswith(f"{self.folder}/") and (part := self.folder / word[len(str(self.folder)) + 1:].split("/")[0]).is_dir():
                return part
        return None

    @staticmethod
    def steps(part):
        """Of the newest complete row of the newest run."""
        metrics = max(part.glob("*/*/metrics.csv"), default=None)
        if not metrics:
            return 0
        with open(metrics, "rb") as file:
            names = file.readline().decode().strip().split(",")
            file.seek(max(file.tell(), os.path.getsize(metrics) - 4096))
            lines = file.read().decode(errors="replace").split("\n")[:-1]
        fields = lines[-1].split(",") if lines else []
        return int(float(fields[names.index("environment_steps")] or 0)) if len(fields) == len(names) else 0
