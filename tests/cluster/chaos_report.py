"""Checks the guarantees for a run under chaos (chaos.py), and prints a table of faults, recoveries and losses."""
import os
import re
import subprocess

NEVER = r"nothing has moved for|the deadline passed|did not come back within|did not answer|request_timeout|timed out|no checkpoint is started"


class Report:
    def __init__(self, options, lost_seconds, roles):
        self.options, self.lost_seconds, self.roles = options, lost_seconds, roles
        self.snapshot_seconds = 1 if options.short else 3
        self.faults = []  # dict: kind, role, index, seconds, begin, end, actors
        self.problems = []
        self.first = self.second = self.again = None  # Watch: to the head's death, to the launch's death, to the end
        self.begin = self.head_died = self.head_back = self.launch_died = self.hosts_empty = None
        self.exit_code = None
        self.final_checkpoint = None

    @staticmethod
    def missing(watch):
        """Actors that died and are not back."""
        away = {}
        for when, line in list(watch.log):
            match = re.search(r"(environment|replay|learner|evaluator) actor (\d+) (died|is back)", line)
            if match:
                away[match.group(1, 2)] = match.group(3) == "died"
        return [actor for actor, dead in away.items() if dead]

    def check(self, holds, sentence):
        if not holds:
            self.problems.append(sentence)
        return holds

    def lines(self):
        made = []
        if self.first is not None and self.begin is not None:
            for fault in self.faults:
                self._recovery(fault)
            gaps = self._audit_all(made)
            made += self._table(gaps)
            self._check_log()
        if self.again is not None and self.exit_code is not None:
            made += self._end()
        return made

    def _recovery(self, fault):
        """When its death was noticed, when all of it was back and when the run went on, in seconds from its beginning."""
        later = [other["begin"] for other in self.faults if other["begin"] > fault["begin"]]
        end = min(later, default=self.head_died)
        mine = {(role, index) for role, index in fault["actors"]}
        died = [when for when, role, index in self.first.said("died") if fault["begin"] <= when < end and (role, index) in mine]
        back = [when for when, role, index in self.first.said("is back") if fault["begin"] <= when and (role, index) in mine]
        fault["died"] = died[0] - fault["begin"] if died else None
        fault["back"] = None
        over = fault["end"]
        if died:
            returned = [min((when for when, r, i in self.first.said("is back") if (r, i) == actor and when >= died[0]), default=None)
                        for actor in {(r, i) for when, r, i in self.first.said("died") if fault["begin"] <= when < end and (r, i) in mine}]
            if self.check(back and None not in returned, f"{self._name(fault)}: not everybody came back"):
                over = max(returned)
                fault["back"] = over - fault["begin"]
        moved = self.first.progress_after(over)
        if self.check(moved is not None, f"{self._name(fault)}: no progress after it"):
            fault["progress"] = moved - fault["begin"]
        if died:
            allowed = fault["seconds"] + self.lost_seconds + 3
            self.check(fault["died"] <= allowed, f"{self._name(fault)}: noticed after {fault['died']:.1f} s, allowed are {allowed:.1f}")
        elif fault["kind"] == "kill -9" and fault["actors"]:
            self.check(False, f"{self._name(fault)}: its death was not reported")

    def _name(self, fault):
        return f"{fault['begin'] - self.begin:.1f} s: {fault['role']} {fault['index']} {fault['kind']}"

    def _run_audit(self, lists):
        every = max(1, max(len(folders) for folders in lists) // 12)
        words = [self.options.audit, "--every", str(every)]
        for i, folders in enumerate(lists):
            words += (["--"] if i else []) + folders
        done = subprocess.run(words, capture_output=True, text=True)
        rows = [dict(pair.split("=", 1) for pair in line.split()) for line in done.stdout.splitlines()]
        return done.returncode, rows, done.stderr

    def _audit_all(self, made):
        """Gaps in the sequences of writers by (shard, place in its snapshots); items of all snapshots and of the end."""
        shards = range(self.roles["replay"])
        kept = [self.first.snapshots(shard) for shard in shards]
        code, rows, error = self._run_audit([[folder for _, folder in snapshots] for snapshots in kept])
        self.check(code == 0, f"items of snapshots were lost, or are there twice (replay_audit: {code} {error.strip()}; "
                              + "; ".join(self._bad(rows)) + ")")
        self._check_order(kept[0])
        gaps = self._check_gaps(kept, rows)
        made.append(f"{sum(map(len, kept))} snapshots of {len(kept)} shards: "
                    f"{sum(int(row.get('lost', 0)) for row in rows)} items lost of a snapshot, {sum(int(row.get('twice', 0)) for row in rows)} twice; "
                    f"{sum(gaps.values())} insertions lost that no snapshot had; {self._refused(rows)} that were sent again refused")
        if self.final_checkpoint is not None:
            self._audit_resumed(made)
        return gaps

    def _audit_resumed(self, made):
        found = [(when, re.search(r"resumed at (\d+) updates", line)) for when, line in self.again.log]
        resumed = [(when, match.group(1)) for when, match in found if match]
        numbers = [number for _, number in resumed]
        kept = {**self.first.kept, **self.second.kept}
        base = kept.get(("checkpoint", int(numbers[0]))) if numbers else None
        if not self.check(base is not None, "the run did not say at which of its checkpoints it resumed"):
            return
        lists = [[f"{base[1]}/replay/shard-{i}", *(folder for when, folder in self.again.snapshots(i) if when > resumed[0][0]),
                  f"{self.final_checkpoint}/replay/shard-{i}"] for i in range(self.roles["replay"])]
        code, rows, error = self._run_audit(lists)
        self.check(code == 0, f"the resumed run lost items of its checkpoint, or has some twice (replay_audit: {code} {error.strip()}; "
                              + "; ".join(self._bad(rows)) + ")")
        self.check(all(int(row.get("gaps", 0)) == 0 for row in rows), "insertions are missing in the resumed run, where nobody died")
        made.append(f"resumed at {numbers[0]} updates: of its checkpoint {sum(int(row.get('lost', 0)) for row in rows)} items lost, "
                    f"{rows[-1].get('items', 0) if rows else 0} at the end, {rows[-1].get('in_several', 0) if rows else 0} in more than one shard")

    def _check_order(self, snapshots):
        """That the audit sees a loss: an older snapshot after a newer one."""
        if len(snapshots) > 1:
            code, _, _ = self._run_audit([[snapshots[-1][1], snapshots[0][1]]])
            self.check(code == 1, "replay_audit did not see that an older snapshot lacks items")

    def _check_gaps(self, kept, rows):
        deaths = [(when, index) for when, role, index in self.first.said("died") if role == "replay"]
        gaps = {}
        for shard, snapshots in enumerate(kept):
            mine = [row for row in rows if row.get("shard") == str(shard)]
            for (before, _), (now, _), row in zip(snapshots, snapshots[1:], mine[1:]):
                if int(row["gaps"]) == 0:
                    continue
                blamed = [when for when, index in deaths if index == shard and before - 30 < when <= now]
                if self.check(blamed, f"shard {shard} lacks {row['gaps']} insertions since {before - self.begin:.1f} s, and nobody died"):
                    fault = self._fault_before(blamed[-1])
                    gaps[id(fault)] = gaps.get(id(fault), 0) + int(row["gaps"])
                    older = [when for when, _ in snapshots if fault is None or when <= fault["begin"]]
                    age = (fault["begin"] if fault else blamed[-1]) - older[-1] if older else 0
                    self.check(age <= 3 * self.snapshot_seconds + 5, f"shard {shard} came back from a snapshot of {age:.1f} s before")
        return gaps

    def _fault_before(self, when):
        before = [fault for fault in self.faults if fault["begin"] <= when]
        return before[-1] if before else None

    @staticmethod
    def _bad(rows):
        words = ("lost", "twice", "forgotten")
        return [f"{row['folder']}: " + " ".join(f"{word}={row[word]}" for word in words if row.get(word, "0") != "0")
                for row in rows if "folder" in row and any(row.get(word, "0") != "0" for word in words)][:4]

    @staticmethod
    def _refused(rows):
        last = {row["shard"]: int(row["refused"]) for row in rows if "refused" in row}
        return sum(last.values())

    def _table(self, gaps):
        def seconds(value):
            return "" if value is None else f"{value:.1f}"
        made = ["| at, s | who | what | for, s | noticed after, s | back after, s | run goes on after, s | insertions lost |",
                "| --- | --- | --- | --- | --- | --- | --- | --- |"]
        for fault in self.faults:
            made.append(f"| {fault['begin'] - self.begin:.0f} | {fault['role']} {fault['index']} | {fault['kind']} | {fault['seconds'] or ''} | "
                        f"{seconds(fault['died'])} | {seconds(fault['back'])} | {seconds(fault.get('progress'))} | {gaps.get(id(fault), '') } |")
        for kind in ("kill -9", "frozen", "cut off", "full"):
            times = sorted(fault["progress"] for fault in self.faults if fault["kind"] == kind and "progress" in fault)
            if times:
                made.append(f"{kind}: {len(times)} times, the run went on after {times[len(times) // 2]:.1f} s (median), {times[-1]:.1f} s (longest)")
        rows = self.first.progress
        drops = [before[2] - after[2] for before, after in zip(rows, rows[1:]) if after[2] < before[2]]
        made.append(f"updates lost with learners: {sum(drops)} in {len(drops)} times, {max(drops, default=0)} at most, of {max(row[2] for row in rows)}; "
                    f"{rows[-1][1]} environment steps in {self.head_died - self.begin:.0f} s of faults; longest standstill {self._standstill():.1f} s")
        return made

    def _standstill(self):
        """The longest time in which neither environments nor learners moved."""
        longest, since, last = 0.0, self.begin, None
        for when, steps, updates in self.first.progress:
            if last is not None and (steps, updates) != last and when >= self.begin:
                longest, since = max(longest, when - since), when
            last = (steps, updates)
        return longest

    def _check_log(self):
        for watch in (self.first, self.second, self.again):
            for _, line in watch.log if watch is not None else []:
                self.check(not re.search(NEVER, line), f"a wait beyond its deadline: {line}")
        self.check(not self.missing(self.first), f"not back: {self.missing(self.first)}")

    def _end(self):
        scores = [row for row in self.first.scores + self.again.scores]
        final = [row[3] for row in scores if row[1] == "final"]
        self.check(self.exit_code == 0, f"the resumed run ended with exit code {self.exit_code}")
        if self.check(final, "the resumed run has no final evaluation"):
            self.check(final[-1] >= self.options.score, f"the final return is {final[-1]:.1f}, expected were {self.options.score}")
        left = subprocess.run(["bash", "-c", f"set -euo pipefail; . {os.path.dirname(os.path.realpath(__file__))}/host_tools.sh; left_on_hosts; "
                               f"find {self.options.folder}/hosts -mindepth 1"], capture_output=True, text=True).stdout.strip()
        self.check(not left, f"left on the hosts: {left}")
        best = max((row[3] for row in self.first.scores), default=float("nan"))
        return [f"evaluations amid the faults: {len(self.first.scores)}, the best {best:.1f}; head killed -9: the run went on by itself "
                f"after {self.head_back - self.head_died:.1f} s; launch killed -9: hosts empty after {self.hosts_empty - self.launch_died:.1f} s; resumed to the end: return {final[-1] if final else float('nan'):.1f} "
                f"after {scores[-1][2] if scores else 0} environment steps"]
