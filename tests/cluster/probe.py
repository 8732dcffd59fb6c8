"""Measures a link. probe.py serve PORT (prints "ready"; echoes TCP and counts UDP datagrams on PORT until killed)
probe.py connect HOST PORT SECONDS | rtt HOST PORT ROUNDS | rate HOST PORT BYTES | lost HOST PORT DATAGRAMS"""
import socket
import sys
import threading
import time


def serve(port):
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("", port))
    datagrams.setblocking(False)
    seen = set()
    counting = threading.Lock()

    def count():  # what came before the question, however late this process runs
        with counting:
            while True:
                try:
                    seen.add(datagrams.recv(64))
                except BlockingIOError:
                    return len(seen)

    server = socket.create_server(("", port))
    print("ready", flush=True)

    def talk(peer):
        with peer:
            while data := peer.recv(1 << 16):
                if data == b"count":
                    peer.sendall(str(count()).encode())
                else:
                    peer.sendall(data if len(data) < 64 else b"." * (len(data) // 1024))

    while True:
        threading.Thread(target=talk, args=(server.accept()[0],), daemon=True).start()


def rtt(peer, rounds):
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times = []
    for _ in range(rounds):
        begin = time.monotonic()
        peer.sendall(b"!")
        peer.recv(1)
        times.append(time.monotonic() - begin)
    return 1e3 * min(times)


def rate(peer, size):
    """Megabits a second, until the far end has it all."""
    begin = time.monotonic()
    block = b"x" * 65536
    answers = threading.Thread(target=lambda: [None for _ in iter(lambda: peer.recv(1 << 16), b"")])
    answers.start()
    for _ in range(size // len(block)):
        peer.sendall(block)
    peer.shutdown(socket.SHUT_WR)
    answers.join()
    return 8e-6 * size / (time.monotonic() - begin)


def lost(host, port, peer, datagrams):
    """Datagrams that did not arrive, of so many; a few at a time, so that no buffer runs over."""
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def arrived():
        peer.sendall(b"count")
        return int(peer.recv(64))

    before = arrived()
    for i in range(datagrams):
        out.sendto(f"{time.monotonic_ns()} {i}".encode(), (host, port))
        if i % 50 == 49:
            arrived()
    return before + datagrams - arrived()


def main():
    what, *rest = sys.argv[1:]
    if what == "serve":
        serve(int(rest[0]))
    host, port, number = rest[0], int(rest[1]), int(rest[2])
    with socket.create_connection((host, port), timeout=number if what == "connect" else 60) as peer:
        peer.settimeout(60)
        if what == "connect":
            print("connected")
        else:
            print(lost(host, port, peer, number) if what == "lost" else {"rtt": rtt, "rate": rate}[what](peer, number))


main()
