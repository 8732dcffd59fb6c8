"""Finds the owner of the other end of a connection within this host, as the kernel reports it."""

import os
import socket
import struct

_ESTABLISHED = "01"


def is_own_user(connection):
    """Whether the peer of an accepted connection belongs to this user. False if it has left, is on another host, or the system does not say."""
    try:
        if connection.family == socket.AF_UNIX:
            _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return user == os.geteuid()
        ends = [_end(connection.family, *name[:2]) for name in (connection.getpeername(), connection.getsockname())]
        table = "/proc/net/tcp6" if connection.family == socket.AF_INET6 else "/proc/net/tcp"
        with open(table, encoding="ascii") as lines:
            rows = [line.split() for line in lines]
        return any(row[1:4] == [*ends, _ESTABLISHED] and row[7] == str(os.geteuid()) for row in rows)
    except (OSError, AttributeError):
        return False


def _end(family, host, port):
    """An address as the kernel's tables write it: 32-bit words in native byte order."""
    words = struct.unpack(f"={'4I' if family == socket.AF_INET6 else 'I'}", socket.inet_pton(family, host))
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
