"""Checks of runs with processes, and of runs that Ctrl-C interrupts; started by tests/env/remote/python_test.py.

Usage: processes_checks.py <the repository>
"""

import os
import re
import select
import signal
import subprocess
import sys
import unittest

import troupe
from training_checks import SMALL, InFolder

ENDLESS = {**SMALL, "stop": {"environment_steps": 100_000_000}}


class Processes(InFolder):
    def test_each_actor_in_a_process_and_its_files_reach_the_callbacks(self):
        seen = {"started": [], "progress": [], "evaluated": [], "log": []}
        callbacks = {name: lambda *given, kept=kept: kept.append(given) for name, kept in seen.items()}
        run = self.train(SMALL, {"evaluation.period": 1000}, processes=True, callbacks=callbacks)
        self.assertGreater(run.checkpoints[-1], 0)
        self.assertTrue(list((run.folder / "logs").glob("*.log")))
        self.assertEqual(seen["started"], [(str(run.folder),)])
        rows = run.metrics()
        self.assertEqual([numbers["updates"] for numbers, in seen["progress"]], list(rows["updates"]))
        self.assertIn("critic_loss", seen["progress"][-1][0])
        self.assertEqual([given[2] for given in seen["evaluated"]], [[value] for value in [*run.metrics("evaluation")["evaluation_return"], *run.metrics("final")["evaluation_return"]]])
        self.assertEqual([given[4] for given in seen["evaluated"]], [False] * (len(seen["evaluated"]) - 1) + [True])
        self.assertGreater(len(seen["evaluated"]), 1)
        self.assertEqual((seen["evaluated"][-1][1], seen["evaluated"][-1][3]), (run.checkpoints[-1], {}))
        self.assertTrue(any(level == "info" and "final evaluation" in text for level, text in seen["log"]))
        seen["progress"].clear()
        again = troupe.resume(run, {"stop.environment_steps": 4000}, processes=True, callbacks=callbacks, verbose=False)
        self.assertGreater(again.checkpoints[-1], rows["updates"][-1])
        self.assertGreaterEqual(seen["progress"][0][0]["environment_steps"], 3000)  # rows of the first part are not reported again

    def test_a_callback_stops_a_run_with_processes_and_threads_continue_it(self):
        def stop(progress):
            if progress["updates"] > 50:
                raise troupe.StopRun

        def fail(progress):
            raise ZeroDivisionError("in the callback")

        run = self.train(ENDLESS, callbacks=stop, processes=True)
        self.assertGreater(run.checkpoints[-1], 50)
        again = troupe.resume(run, {"stop.environment_steps": int(run.metrics()["environment_steps"][-1]) + 2000}, verbose=False)
        self.assertGreater(again.checkpoints[-1], run.metrics()["updates"][0])
        with self.assertRaisesRegex(ZeroDivisionError, "in the callback"):
            self.train(ENDLESS, callbacks=fail, processes=True)

    def test_mistakes_are_named(self):
        for call, words in [
            (lambda: self.train(SMALL, {"replay.shard": 2}, processes=True), "replay.shard is not a key; did you mean replay.shards"),
            (lambda: self.train(SMALL, callbacks={"episode": print}, processes=True), "callbacks has 'episode'"),
            (lambda: self.train(SMALL, agent=dict, processes=True), "an agent in Python cannot be reached"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                call()


class Interruptions(InFolder):
    def run_python(self, code):
        return subprocess.run([sys.executable, "-c", code, str(self.runs)], capture_output=True, text=True, timeout=120)

    def test_ctrl_c_ends_the_run_after_a_checkpoint_from_which_it_continues(self):
        for processes in (False, True):
            with self.subTest(processes=processes):
                code = f"""
import os, signal, sys, troupe
def interrupt(progress):
    if progress["updates"] > 50 and not sent:
        sent.append(os.kill(os.getpid(), signal.SIGINT))
sent = []
try:
    troupe.train({ENDLESS!r}, runs=sys.argv[1], verbose=False, callbacks=interrupt, processes={processes})
except KeyboardInterrupt:
    print("interrupted")
"""
                done = self.run_python(code)
                self.assertEqual(done.stdout, "interrupted\n", done.stderr)
                said, more = re.search(r'troupe.resume\("(.*)"(.*)\) continues', done.stderr).groups()
                self.assertEqual(more, ", processes=True" if processes else "")
                before = troupe.Run(said).checkpoints[-1]
                metrics = troupe.Run(said).metrics()  # the last row may be older than the checkpoint
                steps = int(metrics["environment_steps"][-1] * max(1, before / metrics["updates"][-1])) + 2000
                again = troupe.resume(said, {"stop.environment_steps": steps}, processes=processes, verbose=False)
                self.assertGreater(again.checkpoints[-1], before)

    def test_a_second_ctrl_c_ends_a_run_with_processes_at_once(self):
        code = f"""
import os, signal, sys, troupe, troupe.processes
children = []
class Watched(troupe.processes.subprocess.Popen):
    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        children.append(self)
    def send_signal(self, number):  # the program does not get SIGINT, so only the second Ctrl-C ends it
        if number == signal.SIGINT:
            os.kill(os.getpid(), signal.SIGINT)
        else:
            super().send_signal(number)
troupe.processes.subprocess.Popen = Watched
def interrupt(progress):
    raise KeyboardInterrupt
try:
    troupe.train({ENDLESS!r}, runs=sys.argv[1], verbose=False, callbacks=interrupt, processes=True)
except KeyboardInterrupt:
    print("interrupted", children[0].returncode)
"""
        done = self.run_python(code)
        self.assertEqual(done.stdout, "interrupted -9\n", done.stderr)

    def test_a_run_with_processes_ends_after_a_checkpoint_when_python_is_killed(self):
        code = f"""
import os, signal, sys, threading, troupe, troupe.processes
for _ in range(20):  # the system may tell the run of the end of each
    threading.Thread(target=threading.Event().wait, daemon=True).start()
class Watched(troupe.processes.subprocess.Popen):
    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        print(self.pid, flush=True)
troupe.processes.subprocess.Popen = Watched
def die(progress):
    if progress["updates"] > 50:
        os.kill(os.getpid(), signal.SIGKILL)
troupe.train({ENDLESS!r}, runs=sys.argv[1], verbose=False, callbacks=die, processes=True)
"""
        done = self.run_python(code)
        self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
        process = int(done.stdout)
        try:
            ended = os.pidfd_open(process)
        except ProcessLookupError:  # it has ended already
            pass
        else:
            self.addCleanup(os.close, ended)
            if not select.select([ended], [], [], 120)[0]:
                os.kill(process, signal.SIGKILL)
                self.fail("the run outlived its Python")
        (folder,) = self.runs.glob("*/*")
        self.assertGreater(troupe.Run(folder).checkpoints[-1], 50)

    def test_the_interpreter_ends_during_a_run(self):
        code = f"""
import sys, threading, troupe
begun = threading.Event()
thread = threading.Thread(target=troupe.train, args=({ENDLESS!r},), daemon=True,
                          kwargs=dict(runs=sys.argv[1], verbose=False, callbacks=lambda progress: begun.set()))
thread.start()
begun.wait()
"""
        done = self.run_python(code)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(verbosity=1)
