#!/usr/bin/env python3
"""Misuses ports of this host, as a stranger or a faulty client might. Runs until it is killed.

    experiments/bench/peers/strangers.py connections|half-open|bytes|slow-readers PORT... [--rate N] [--held N] [--user N]
    experiments/bench/peers/strangers.py MESSAGES PORT [--rate N] [--held N]    one of the kinds below
    experiments/bench/peers/strangers.py sink COUNT    listens at COUNT ports, prints them, and closes every connection

connections: connects and closes, --rate times per second (1,000). half-open: keeps --held connections (200) to each port that send nothing. bytes: keeps
--held connections to each port that send meaningless blocks of 64 KiB. slow-readers: keeps --held connections to each port that request the description of a
replay shard again and again and never read an answer. Connections that a port closes are reopened, --rate times per second over all ports. Prints its
counts on SIGUSR2.

The other kinds keep --held connections (1) on which they send --rate messages per second (10), and read the answers: attacks of a review on a
shard with a table "other" of one float32 per row, an environment server, a head or an HTTP port (hostile_messages.py).
"""
import argparse
import itertools
import os
import select
import signal
import socket
import sys
import time

from hostile_messages import GREETING, KINDS, READY, REFUSED, Heard, info_requests, refusal

ROUND = 0.01  # seconds between two calls of look()


class Caller:
    """Connections to ports. Each one sends `first`, and then `again` as fast as the port accepts it."""

    def __init__(self, ports, held, rate, first, again):
        self.ports, self.held, self.rate, self.first, self.again = itertools.cycle(ports), held * len(ports), rate, first, again
        self.open, self.counts, self.budget = {}, {"connections": 0, "closed": 0, "bytes": 0}, 0.0

    def call(self):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", next(self.ports)))
        self.open[one] = self.first
        self.counts["connections"] += 1

    def close(self, one):
        del self.open[one]
        one.close()
        self.counts["closed"] += 1

    def look(self):
        """Finds closed connections, and sends where there is room."""
        poll = select.poll()
        known = {one.fileno(): one for one in self.open}
        for number, one in known.items():
            poll.register(number, select.POLLRDHUP | (select.POLLOUT if self.again or self.open[one] else 0))
        for number, event in poll.poll(0):
            one = known[number]
            try:
                if event & (select.POLLHUP | select.POLLERR | select.POLLRDHUP):
                    self.close(one)
                elif event & select.POLLOUT:
                    sent = one.send(self.open[one] or self.again)
                    self.counts["bytes"] += sent
                    self.open[one] = (self.open[one] or self.again)[sent:]
            except OSError:
                self.close(one)

    def work(self):
        last = time.monotonic()
        while True:
            now = time.monotonic()
            self.budget = min(self.budget + (now - last) * self.rate, max(self.rate, 1.0))
            last = now
            while self.budget >= 1 and len(self.open) < self.held:
                self.call()
                self.budget -= 1
            self.look()
            time.sleep(ROUND)


class Passer(Caller):
    """Connects and closes immediately."""

    def look(self):
        for one in list(self.open):
            self.close(one)


class Sender(Caller):
    """Sends messages at a rate, and counts what is answered. Keeps the first refusal."""

    def __init__(self, port, held, rate, kind):
        super().__init__([port], held, rate, kind.first, b"")
        self.messages, self.of, self.heard, self.refused = kind.messages(port), kind.of, {}, ""
        self.counts |= {"messages": 0, "answers": 0}

    def close(self, one):
        self.heard.pop(one, None)
        super().close(one)

    def look(self):
        for one in list(self.open):
            try:
                self.send(one)
                if self.of:
                    self.read(one)
            except BlockingIOError:
                pass
            except OSError:
                self.close(one)

    def send(self, one):
        if not self.open[one] and self.budget >= 1 and (message := next(self.messages, None)):
            self.budget -= 1
            self.counts["messages"] += 1
            self.open[one] = message
        if self.open[one]:
            try:
                sent = one.send(self.open[one])
            except BlockingIOError:
                return
            self.counts["bytes"] += sent
            self.open[one] = memoryview(self.open[one])[sent:]

    def read(self, one):
        more = one.recv(65536)
        if not more:
            raise ConnectionError
        if self.of in REFUSED:
            texts = [refusal(part, self.of) for part in self.heard.setdefault(one, Heard()).take(more)]
        else:
            texts = [line[9:].decode(errors="replace") for line in more.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
        self.counts["answers"] += len(texts)
        self.refused = self.refused or next(filter(None, texts), "")


def sink(count):
    servers = []
    for _ in range(count):
        servers.append(socket.create_server(("127.0.0.1", 0), backlog=4096))
        servers[-1].setblocking(False)
    print(*[server.getsockname()[1] for server in servers], flush=True)
    while True:
        for server in select.select(servers, [], [])[0]:
            try:
                server.accept()[0].close()
            except OSError:
                pass


def told(caller):
    """Returns one line: the counts, and the first refusal."""
    refused = getattr(caller, "refused", "").replace("\n", " ")
    return ", ".join(f"{key} {value}" for key, value in caller.counts.items()) + (f": {refused}" if refused else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("how", choices=["connections", "half-open", "bytes", "slow-readers", "sink", *KINDS])
    parser.add_argument("ports", nargs="+", type=int)
    parser.add_argument("--rate", type=float, help="1,000 connections or 10 messages per second")
    parser.add_argument("--held", type=int, help="200 connections, or 1 for messages")
    parser.add_argument("--user", type=int, help="calls as this user, which takes root")
    options = parser.parse_args()
    if options.how == "sink":
        sink(options.ports[0])
    options.rate = options.rate or (10 if options.how in KINDS else 1000)
    options.held = options.held or (1 if options.how in KINDS else 200)
    if options.how in KINDS:
        caller = Sender(options.ports[0], options.held, options.rate, KINDS[options.how])
    elif options.how == "connections":
        caller = Passer(options.ports, options.held, options.rate, b"", b"")
    else:
        first, again = {"half-open": (b"", b""), "bytes": (b"", bytes(range(256)) * 256), "slow-readers": (GREETING + READY, info_requests())}[options.how]
        caller = Caller(options.ports, options.held, options.rate, first, again)
    if options.user is not None:
        os.setgroups([])
        os.setgid(options.user)
        os.setuid(options.user)
    signal.signal(signal.SIGUSR2, lambda *_: print(told(caller), flush=True))
    caller.work()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(0)
