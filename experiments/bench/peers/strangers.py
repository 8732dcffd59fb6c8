#!/usr/bin/env python3
"""Misuses ports of this host, as a stranger or a faulty client might. Runs until it is killed.

    experiments/bench/peers/strangers.py connections|half-open|bytes|slow-readers PORT... [--rate N] [--held N] [--user N]
    experiments/bench/peers/strangers.py sink COUNT    listens at COUNT ports, prints them, and closes every connection

connections: connects and closes, --rate times per second (1,000). half-open: keeps --held connections (200) to each port that send nothing. bytes: keeps
--held connections to each port that send meaningless blocks of 64 KiB. slow-readers: keeps --held connections to each port that request the description of a
replay shard again and again and never read an answer. Connections that a port closes are reopened, --rate times per second over all ports. Prints its
counts on SIGUSR2.
"""
import argparse
import itertools
import os
import pathlib
import re
import select
import signal
import socket
import sys
import time

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(16) + b"\x00" + bytes(31)  # the greeting of ZMTP 3.1
READY = b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"
ROUND = 0.01  # seconds between two calls of look()


def framed(part, more=False):
    return bytes([1 if more else 0, len(part)]) + part


def info_requests():
    """Returns about 64 KiB of messages Envelope{protocol, info {request: 1}} of replay.proto."""
    source = pathlib.Path(__file__).resolve().parents[3] / "replay/service/wire_format.hpp"
    protocol = int(re.search(r"kProtocol = (\d+);", source.read_text())[1])
    one = framed(bytes([0x08, protocol, 0x8A, 0x01, 0x02, 0x08, 0x01]))
    return one * (65536 // len(one))


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
            self.budget = min(self.budget + (now - last) * self.rate, self.rate)
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("how", choices=["connections", "half-open", "bytes", "slow-readers", "sink"])
    parser.add_argument("ports", nargs="+", type=int)
    parser.add_argument("--rate", type=float, default=1000)
    parser.add_argument("--held", type=int, default=200)
    parser.add_argument("--user", type=int, help="calls as this user, which takes root")
    options = parser.parse_args()
    if options.how == "sink":
        sink(options.ports[0])
    made = {"connections": lambda: Passer(options.ports, options.held, options.rate, b"", b""),
            "half-open": lambda: Caller(options.ports, options.held, options.rate, b"", b""),
            "bytes": lambda: Caller(options.ports, options.held, options.rate, b"", bytes(range(256)) * 256),
            "slow-readers": lambda: Caller(options.ports, options.held, options.rate, GREETING + READY, info_requests())}
    caller = made[options.how]()
    if options.user is not None:
        os.setgroups([])
        os.setgid(options.user)
        os.setuid(options.user)
    signal.signal(signal.SIGUSR2, lambda *_: print(*[f"{key} {value}" for key, value in caller.counts.items()], sep=", ", flush=True))
    caller.work()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(0)
