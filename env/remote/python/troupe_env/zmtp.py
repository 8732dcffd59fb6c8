"""ZeroMQ's protocol for connections without security, ZMTP 3 with the NULL mechanism (https://rfc.zeromq.org/spec/23/), as functions of bytes."""

_MORE, _LONG, _COMMAND = 1, 2, 4
_GREETING_BYTES = 64
_MECHANISM = b"NULL".ljust(20, b"\0")
_MAX_COMMAND = 4096
_READY = b"\5READY"
_PING, _PONG = b"\4PING", b"\4PONG"
_TIME_TO_LIVE = 2  # bytes, before the context of a ping


class StrangerError(Exception):
    """The peer does not speak ZMTP 3 with NULL, or a part is larger than allowed."""


def head(size, more=False, command=False):
    """The header of a frame of `size` bytes."""
    flags = (_MORE if more else 0) | (_COMMAND if command else 0)
    return bytes([flags, size]) if size < 256 else bytes([flags | _LONG]) + size.to_bytes(8, "big")


def hello(socket_type):
    """The first bytes that a peer sends: its greeting and its READY command, for a socket of this type."""
    ready = _READY + b"\x0bSocket-Type" + len(socket_type).to_bytes(4, "big") + socket_type
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + _MECHANISM
    return greeting.ljust(_GREETING_BYTES, b"\0") + head(len(ready), command=True) + ready


def pong_to(command):
    """The frame that answers a command; None if it needs no answer."""
    if not command.startswith(_PING):
        return None
    body = _PONG + command[len(_PING) + _TIME_TO_LIVE :][:16]
    return head(len(body), command=True) + body


class ZmtpReader:
    """Parses what a peer sends, as the bytes arrive. However long a message is, it keeps at most `max_parts` parts of `max_part_bytes` bytes, and the
    bytes of the last feed(). Uses no socket and no clock."""

    def __init__(self, max_parts, max_part_bytes):
        self._max_parts, self._max_part_bytes = max_parts, max_part_bytes
        self._buffer = bytearray()
        self._greeted = False
        self.ready = False  # the handshake is complete
        self._frame = None  # (size, more follows, is a command) of the frame whose header has arrived
        self._parts = []
        self._cut = False  # the message has more parts than allowed; none of them is kept

    @property
    def held_bytes(self):
        return len(self._buffer) + sum(map(len, self._parts))

    def feed(self, data):
        """Adds received bytes."""
        self._buffer += data

    def take(self):
        """Returns the next command (bytes) or message (a list of parts; an empty one if it had too many), or None until more bytes have arrived.
        Raises StrangerError."""
        if not self._greeted and not self._greet():
            return None
        while self._frame is not None or self._head():
            size, more, is_command = self._frame
            if self._cut and len(self._buffer) < size:
                self._frame = (size - len(self._buffer), more, is_command)
                self._buffer.clear()
            if len(self._buffer) < size:
                return None
            body = b"" if self._cut else bytes(memoryview(self._buffer)[:size])
            del self._buffer[:size]
            self._frame = None
            if is_command:
                if self.ready:
                    return body
                if not body.startswith(_READY):
                    raise StrangerError("a handshake of another mechanism")
                self.ready = True
                continue
            if not self._cut:
                self._parts.append(body)
            if not more:
                parts, self._parts, self._cut = self._parts, [], False
                return parts
        return None

    def _greet(self):
        text = self._buffer[:_GREETING_BYTES]
        wrong = (text and text[0] != 0xFF) or (len(text) > 9 and text[9] != 0x7F) or (len(text) > 10 and text[10] < 3)
        if wrong or (len(text) >= 32 and text[12:32] != _MECHANISM):
            raise StrangerError("bytes that are not a greeting of ZMTP 3 without security")
        if len(text) < _GREETING_BYTES:
            return False
        del self._buffer[:_GREETING_BYTES]
        self._greeted = True
        return True

    def _head(self):
        """Reads the header of a frame. Returns False until all of it has arrived."""
        buffer = self._buffer
        if len(buffer) < 2 or (buffer[0] & _LONG and len(buffer) < 9):
            return False
        flags = buffer[0]
        size = int.from_bytes(buffer[1:9], "big") if flags & _LONG else buffer[1]
        more, is_command = bool(flags & _MORE), bool(flags & _COMMAND)
        # A command may come between messages, not within one.
        misplaced = (more or self._parts or self._cut) if is_command else not self.ready
        if flags & ~(_MORE | _LONG | _COMMAND) or misplaced or size > (_MAX_COMMAND if is_command else self._max_part_bytes):
            raise StrangerError(f"a frame of {size} bytes with the flags {flags}")
        del buffer[: 9 if flags & _LONG else 2]
        if not is_command and len(self._parts) == self._max_parts:
            self._parts, self._cut = [], True
        self._frame = (size, more, is_command)
        return True
