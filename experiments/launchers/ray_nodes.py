"""Starts and monitors Troupe nodes in a Ray cluster. Each node runs in one Ray actor, in a bundle of a placement group.

The launcher (ray_launcher.hpp) runs this program, writes lines of JSON to its standard input and reads lines from its output:
  {"start": [{"name", "words", "environment", "bundle"}], "folder", "strategy", "seconds"}
  {"stop": true}                                                     SIGTERM to all nodes
  troupe-ray started NAME HOST | line NAME TEXT | ended NAME CODE | lost NAME REASON | failed REASON
When the input ends, everything ends. A node dies with its actor, and the actors die with this program.
"""

import collections
import ctypes
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

MOST_LINES, MOST_LETTERS = 10_000, 4 << 20  # unread lines of a node; older ones are dropped and counted
LONGEST_LINE = 1 << 16  # the rest becomes another line
REACH = 10.0  # seconds to reach the cluster's head
RESERVE = 1  # whole seconds that Ray is asked to wait for bundles between looks at the orders
LOOK = 1.0  # seconds that a node waits for a line before it reports that there is none
PR_SET_PDEATHSIG = 1


def say(*words):
    print("troupe-ray", *words, flush=True)


class Node:
    """Runs in a Ray process on the node's host."""

    def __init__(self):
        self.changed = threading.Condition()
        self.lines = collections.deque()
        self.letters = self.dropped = 0
        self.process = None
        self.code = None
        self.problem = None

    def start(self, words, environment, folder):
        threading.Thread(target=self._run, args=(words, environment, folder), daemon=True).start()
        with self.changed:
            self.changed.wait_for(lambda: self.process or self.problem)
        if self.problem:
            raise RuntimeError(self.problem)
        return socket.gethostname()

    def _run(self, words, environment, folder):
        parent, libc = os.getpid(), ctypes.CDLL(None)

        def die_with_parent():  # the parent is this thread, which lives until the node ends
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

        # Ray sets this to the actor's CPUs; the processes of a node have threads of their own.
        whole = {**{name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}, **environment}
        try:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=whole,
                                       cwd=folder if os.path.isdir(folder) else None, start_new_session=True, preexec_fn=die_with_parent,
                                       text=True, errors="replace")
        except (OSError, subprocess.SubprocessError) as error:
            with self.changed:
                self.problem = f"{words[0]} cannot be started: {error}; the program must be at the same path on all hosts"
                self.changed.notify_all()
            return
        with self.changed:
            self.process = process
            self.changed.notify_all()
        for line in iter(lambda: process.stdout.readline(LONGEST_LINE), ""):
            self._keep(line.rstrip("\n"))
        code = process.wait()
        try:
            os.killpg(process.pid, signal.SIGKILL)  # its remaining processes
        except ProcessLookupError:
            pass
        with self.changed:
            self.code = code if code >= 0 else 128 - code
            self.changed.notify_all()

    def _keep(self, line):
        with self.changed:
            self.lines.append(line)
            self.letters += len(line)
            while len(self.lines) > MOST_LINES or self.letters > MOST_LETTERS:
                self.letters -= len(self.lines.popleft())
                self.dropped += 1
            self.changed.notify_all()

    def read(self):
        """Returns lines and, once all lines are read, the exit code as in a shell."""
        with self.changed:
            self.changed.wait_for(lambda: self.lines or self.code is not None, timeout=LOOK)
            lines = list(self.lines)
            self.lines.clear()
            self.letters = 0
            if self.dropped:
                lines.insert(0, f"({self.dropped} lines are left out: they came too fast)")
                self.dropped = 0
            return lines, self.code

    def stop(self):
        with self.changed:
            if self.process and self.code is None:
                self.process.send_signal(signal.SIGTERM)


class Nodes:
    def __init__(self, ray):
        self.ray = ray
        self.groups = []
        self.places = {}  # bundles of the group by name; a restarted node keeps its own
        self.actors = {}
        self.pending = {}  # reference: (name, deadline)
        self.node_class = ray.remote(Node)

    def reserve(self, nodes, order, orders):
        """Reserves a bundle for each node in a placement group. Returns why this failed, if it did.

        Another order means that the launcher stops, and ends the wait.
        """
        from ray.util.placement_group import placement_group, remove_placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        group = placement_group([node["bundle"] for node in nodes], strategy=order["strategy"])
        limit = time.monotonic() + order["seconds"]
        while not group.wait(RESERVE):
            if time.monotonic() < limit and orders.empty():
                continue
            remove_placement_group(group)
            wanted = ", ".join(f"{node['name']} {json.dumps(node['bundle'])}" for node in nodes)
            return f"Ray had not reserved {wanted} ({order['strategy']}) after {order['seconds']:g} s; it has {json.dumps(self.ray.available_resources())}"
        self.groups.append(group)
        for index, node in enumerate(nodes):
            self.places[node["name"]] = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index)
        return None

    def start(self, order, orders):
        new = [node for node in order["start"] if node["name"] not in self.places]
        problem = self.reserve(new, order, orders) if new else None
        for node in order["start"]:
            name, bundle = node["name"], node["bundle"]
            if name not in self.places:
                say("lost", name, problem)
                continue
            actor = self.node_class.options(num_cpus=bundle["CPU"], num_gpus=bundle.get("GPU", 0), max_concurrency=4, max_restarts=0,
                                            scheduling_strategy=self.places[name]).remote()
            self.actors[name] = actor
            reference = actor.start.remote(node["words"], node["environment"], order["folder"])
            self.pending[reference] = (name, time.monotonic() + order["seconds"])

    def look(self):
        """Forwards the nodes' lines and reports how nodes end."""
        if not self.pending:
            return
        ready, _ = self.ray.wait(list(self.pending), num_returns=len(self.pending), timeout=0.05)
        for reference in ready:
            name, limit = self.pending.pop(reference)
            try:
                result = self.ray.get(reference)
            except self.ray.exceptions.ActorUnavailableError as error:  # Ray is still finding out whether it is dead
                if limit is None:
                    self.pending[self.actors[name].read.remote()] = (name, None)
                else:
                    self.lose(name, error)
                continue
            except Exception as error:  # an error of the node, or its actor died
                self.lose(name, error)
                continue
            if limit is not None:
                say("started", name, result)
            else:
                lines, code = result
                for line in lines:
                    say("line", name, line)
                if code is not None and not lines:
                    say("ended", name, code)
                    self.ray.kill(self.actors.pop(name))
                    continue
            self.pending[self.actors[name].read.remote()] = (name, None)
        for reference, (name, limit) in list(self.pending.items()):
            if limit is not None and time.monotonic() > limit:
                del self.pending[reference]
                self.lose(name, "Ray had not started it in time")

    def lose(self, name, why):
        text = str(getattr(why, "cause", None) or why).strip().splitlines() or [type(why).__name__]
        say("lost", name, text[-1] if isinstance(why, self.ray.exceptions.RayTaskError) else text[0])
        actor = self.actors.pop(name, None)
        if actor is not None:
            self.ray.kill(actor)

    def stop(self):
        for actor in self.actors.values():
            actor.stop.remote()

    def end(self):
        from ray.util.placement_group import remove_placement_group

        for actor in self.actors.values():
            self.ray.kill(actor)
        for group in self.groups:
            remove_placement_group(group)


def read_orders(orders):
    for line in sys.stdin:
        orders.put(json.loads(line))
    orders.put(None)


def main():
    try:
        import ray
    except ImportError:
        say("failed", f"{sys.executable} has no package ray; install it (pip install ray), or name another Python by ray.python")
        return 1
    orders = queue.SimpleQueue()
    threading.Thread(target=read_orders, args=(orders,), daemon=True).start()
    address = sys.argv[1]
    try:
        if ":" in address:  # Ray itself would keep trying for minutes
            host, port = address.removeprefix("ray://").rsplit(":", 1)
            socket.create_connection((host, int(port)), REACH).close()
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", namespace="troupe")
    except Exception as error:
        lines = str(error).strip().splitlines()
        say("failed", f"no Ray cluster at {address}: {lines[0] if lines else type(error).__name__}; start one (ray start --head), or name it by ray.address")
        return 1
    nodes = Nodes(ray)
    while True:
        try:
            order = orders.get(timeout=0 if nodes.pending else 0.1)
        except queue.Empty:
            nodes.look()
            continue
        if order is None:
            break
        if "start" in order:
            nodes.start(order, orders)
        if "stop" in order:
            nodes.stop()
    nodes.end()
    ray.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
