"""Messages that a faulty or malicious client might send to a port, as bytes: ZMTP and Protobuf, HTTP, and CAF's first header. strangers.py sends them."""
import itertools
import pathlib
import random
import re
import socket
import struct
from dataclasses import dataclass
from typing import Callable

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(16) + b"\x00" + bytes(31)  # the greeting of ZMTP 3.1
READY = b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"
TABLE = b"other"  # the table that the messages name
PATIENCE = 10  # seconds for an answer of a shard
REFUSED = {"shard": (10, 2), "environment": (16, 1)}  # fields of the refusal in its envelope and of the text in it
SHAPES = 500  # per insertion of new_shapes()


def framed(part, more=False):
    long = len(part) > 255
    return bytes([(2 if long else 0) + (1 if more else 0)]) + len(part).to_bytes(8 if long else 1, "big") + part


def message(*parts):
    return b"".join(framed(part, place + 1 < len(parts)) for place, part in enumerate(parts))


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def fixed(field, value):
    return varint(field << 3 | 1) + struct.pack("<Q", value)


def block(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def fields(text):
    """Yields (number, value) of a Protobuf message; a value of 8 or 4 bytes as bytes."""
    at = 0

    def integer():
        nonlocal at
        value = 0
        for shift in range(0, 70, 7):
            value |= (text[at] & 127) << shift
            at += 1
            if text[at - 1] < 128:
                break
        return value

    while at < len(text):
        tag = integer()
        size = {1: 8, 5: 4}.get(tag & 7)
        if tag & 7 == 0:
            yield tag >> 3, integer()
            continue
        size = integer() if size is None else size
        yield tag >> 3, text[at:at + size]
        at += size


def first_field(text, wanted):
    return next((value for field, value in fields(text) if field == wanted), None)


class Heard:
    """Parses what a ZMTP server sends."""

    def __init__(self):
        self.bytes, self.greeted, self.begins = bytearray(), False, True

    def take(self, more):
        """Returns the first parts of the messages that are complete."""
        self.bytes += more
        parts = []
        if not self.greeted and len(self.bytes) >= len(GREETING):
            del self.bytes[:len(GREETING)]
            self.greeted = True
        while self.greeted and len(self.bytes) >= 2:
            flags, head = self.bytes[0], 9 if self.bytes[0] & 2 else 2
            size = int.from_bytes(self.bytes[1:head], "big")
            if len(self.bytes) < max(head + size, head):
                break
            part = bytes(self.bytes[head:head + size])
            del self.bytes[:head + size]
            if flags & 4:
                continue  # a command
            if self.begins:
                parts.append(part)
            self.begins = not flags & 1
        return parts


def protocol():
    source = pathlib.Path(__file__).resolve().parents[3] / "replay/service/wire_format.hpp"
    return int(re.search(r"kProtocol = (\d+);", source.read_text())[1])


def info_requests():
    """Returns about 64 KiB of messages Envelope{protocol, info {request: 1}} of replay.proto."""
    one = framed(number(1, protocol()) + block(17, number(1, 1)))
    return one * (65536 // len(one))


def fingerprint(port):
    """Returns the fingerprint of the table's signature, which a shard reports."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(GREETING + READY + framed(number(1, protocol()) + block(16, TABLE) + block(17, number(1, 1))))
        heard = Heard()
        while more := connection.recv(65536):
            for part in heard.take(more):
                if (reply := first_field(part, 18)) is not None:
                    return int.from_bytes(first_field(reply, 4), "little")
    raise ConnectionError(f"the shard at port {port} closed the connection before it described the table \"{TABLE.decode()}\"")


class Shard:
    """Makes messages for the shard at `port`. One row of the table has 16 bytes."""

    def __init__(self, port):
        self.envelope = number(1, protocol()) + fixed(2, fingerprint(port)) + block(16, TABLE)
        self.writer = random.getrandbits(63)

    def insertion(self, sequence, header, items, *rows):
        """`items`: records of 20 bytes."""
        head = fixed(1, self.writer) + number(2, sequence) + number(4, 1) + header
        return message(self.envelope + block(3, head), items, *rows)

    def open_chunks(self):
        """An insertion of 20 KB that opens 512 chunks of 64 MiB and is then refused."""
        rows = b"".join(block(6, number(1, place) + number(3, 1) + block(4, b"\0")) for place in range(512))
        header = block(5, varint(0)) + rows + number(7, 4 << 20)
        return itertools.repeat(self.insertion(1, header, struct.pack("<5I", 0, 0xFFFFFFFF, 1, 0, 0), *[bytes(16)] * 512))

    def large_shape(self):
        """An insertion of 2.4 MB: 65,536 items with one shape of 520,000 slices."""
        header = block(5, varint(7)) + block(6, number(1, 7) + number(3, 1) + block(4, b"\0")) + number(7, 1) + block(9, block(1, block(1, bytes(1_040_000))))
        return itertools.repeat(self.insertion(1, header, struct.pack("<5I", 0, 0, 1, 0, 1) * 65536, bytes(16)))

    def new_shapes(self):
        """Insertions that are accepted, each with 500 items of shapes that the table has not had before."""
        pairs = itertools.combinations(range(425), 2)
        for sequence in itertools.count(1):
            shapes = [block(9, block(1, block(1, varint(a) + varint(1) + varint(b) + varint(1)))) for a, b in itertools.islice(pairs, SHAPES)]
            if not shapes:
                return
            header = block(5, varint(sequence)) + block(6, number(1, sequence) + number(3, 425) + block(4, bytes(425))) + number(7, 425) + b"".join(shapes)
            items = b"".join(struct.pack("<5I", 0, 0, 425, 0, place + 1) for place in range(len(shapes)))
            yield self.insertion(sequence, header, items, bytes(16 * 425))

    def long_header(self):
        """A header of 3 MiB; 2 MiB are allowed."""
        return itertools.repeat(framed(self.envelope + block(3, bytes(3 << 20))))

    def priorities(self):
        """Priorities of 65,536 keys, as many as are allowed."""
        update = number(1, 1) + block(2, bytes(8 << 16)) + block(3, struct.pack("<d", 1.0) * 65536)
        return itertools.repeat(framed(self.envelope + block(13, update)))

    def samples(self):
        """An item, and then requests for samples of 65,536 items."""
        header = block(5, varint(1)) + block(6, number(1, 1) + number(3, 1) + block(4, b"\0")) + number(7, 1)
        yield self.insertion(1, header, struct.pack("<5I", 0, 0, 1, 0, 0), bytes(16))
        for request in itertools.count(1):
            yield framed(self.envelope + block(4, number(1, request) + number(2, 65536) + number(4, 48 << 20)))


def garbage(_):
    """Messages of random bytes."""
    chance = random.Random(1)
    return (framed(chance.randbytes(64)) for _ in itertools.count())


def endless(_):
    """One message that never ends, in parts of 64 KiB."""
    return itertools.repeat(framed(bytes(65536), more=True))


def announced(_):
    """The header of a part of 2^62 bytes."""
    return itertools.repeat(b"\x02" + (1 << 62).to_bytes(8, "big"))


def hello(_):
    """A client that asks an environment server for 4096 environments."""
    return (framed(number(1, 1) + fixed(2, session) + number(3, 1) + block(4, number(1, 4096))) for session in itertools.count(1))


def caf(_):
    """CAF's first header, which announces 64 MiB."""
    return itertools.repeat(struct.pack(">BBBBI", 1, 0, 0, 0, 64 << 20) + bytes(24))


def http(text):
    return lambda _: itertools.repeat(text.encode())


@dataclass(frozen=True)
class Kind:
    first: bytes  # of each connection
    messages: Callable  # of the port's number: an iterator of messages
    of: str = ""  # whose answers are read: "shard", "environment", "http", "head", or "": nothing is read


KINDS = {kind: Kind(GREETING + READY, lambda port, kind=kind: getattr(Shard(port), kind.replace("-", "_"))(), "shard")
         for kind in ("open-chunks", "large-shape", "new-shapes", "long-header", "priorities")}
KINDS |= {
    "samples": Kind(GREETING + READY, lambda port: Shard(port).samples()),
    "garbage": Kind(GREETING + READY, garbage, "shard"),
    "endless": Kind(GREETING + READY, endless, "shard"),
    "announced": Kind(GREETING + READY, announced, "shard"),
    "hello": Kind(GREETING + READY, hello, "environment"),
    "caf": Kind(b"", caf, "head"),
    "http-no-token": Kind(b"", http("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), "http"),
    "http-headers": Kind(b"", http("GET / HTTP/1.1\r\nX: " + "x" * 30000 + "\r\n\r\n"), "http"),
    "http-body": Kind(b"", http("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000000\r\n\r\n"), "http"),
    "http-slow": Kind(b"GET / HTTP/1.1\r\nX: ", http("x"), "http"),
}


def refusal(part, of):
    """Returns the text of a refusal, or "" for another message."""
    field, text = REFUSED[of]
    found = first_field(part, field)
    return (first_field(found, text) or b"").decode(errors="replace") if found is not None else ""
