"""The messages of remote.proto in Protobuf's wire format.

They are written by hand, with tables of fields, so that nothing is generated and no particular version of the Protobuf library is needed: in
machine-learning environments, other packages often pin its version. A test compares every message with the output of Protobuf.
"""

import struct

PROTOCOL = 1
MAX_ENVIRONMENTS = 4096

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_UINT64 = (1 << 64) - 1


class MessageError(ValueError):
    """The bytes are not a message of the protocol."""


def _put_varint(out, value):
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _get_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise MessageError("a number ends too late or not at all")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _UINT64, at
        shift += 7


class _Kind:
    """How one kind of value is encoded: its wire type, its default, and conversions to and from bytes (or the number of a varint)."""

    def __init__(self, wire, default, write, read):
        self.wire, self.default, self.write, self.read = wire, default, write, read


def _signed(value):
    return value - (1 << 64) if value >> 63 else value


def _text(data):
    return bytes(data).decode("utf-8", "replace")


UINT = _Kind(_VARINT, 0, int, int)
INT = _Kind(_VARINT, 0, lambda value: value & _UINT64, _signed)
BOOL = _Kind(_VARINT, False, int, bool)
FIXED64 = _Kind(_EIGHT, 0, struct.Struct("<Q").pack, lambda data: struct.unpack("<Q", data)[0])
DOUBLE = _Kind(_EIGHT, 0.0, struct.Struct("<d").pack, lambda data: struct.unpack("<d", data)[0])
TEXT = _Kind(_BYTES, "", lambda value: value.encode("utf-8", "replace"), _text)
BYTES = _Kind(_BYTES, b"", bytes, bytes)


class Field:
    def __init__(self, number, name, kind, repeated=False, oneof=False):
        self.number, self.name, self.kind = number, name, kind
        self.repeated, self.oneof = repeated, oneof
        self.is_message = isinstance(kind, type)
        self.wire = _BYTES if self.is_message else kind.wire
        self.packed = repeated and self.wire != _BYTES


class Message:
    """Base class of the messages; `FIELDS` describes their fields. An absent message field is None."""

    FIELDS = ()

    def __init_subclass__(cls):
        cls._by_number = {field.number: field for field in cls.FIELDS}

    def __init__(self, **values):
        for field in self.FIELDS:
            default = [] if field.repeated else None if field.is_message else field.kind.default
            setattr(self, field.name, values.pop(field.name, default))
        if values:
            raise TypeError(f"{type(self).__name__} has no {', '.join(values)}")

    def __eq__(self, other):
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __repr__(self):
        shown = ", ".join(f"{k}={v!r}" for k, v in self.__dict__.items() if v not in (None, [], "", 0, b""))
        return f"{type(self).__name__}({shown})"

    def body(self):
        """The name of the oneof member that is set, or None."""
        for field in self.FIELDS:
            if field.oneof and getattr(self, field.name) is not None:
                return field.name
        return None

    def encode(self):
        out = bytearray()
        for field in self.FIELDS:
            value = getattr(self, field.name)
            if field.packed:
                if value:
                    _put_varint(out, field.number << 3 | _BYTES)
                    packed = _pack(field.kind, value)
                    _put_varint(out, len(packed))
                    out += packed
            elif field.repeated:
                for one in value:
                    _put(out, field, one)
            elif value is not None and (field.is_message or value != field.kind.default):
                _put(out, field, value)
        return bytes(out)

    @classmethod
    def decode(cls, data):
        message = cls()
        data = memoryview(data)
        at = 0
        while at < len(data):
            tag, at = _get_varint(data, at)
            at = message._take(tag >> 3, tag & 7, data, at)
        return message

    def _take(self, number, wire, data, at):
        value, at = _get(wire, data, at)
        field = self._by_number.get(number)
        if number == 0:
            raise MessageError("a field has number 0")
        if field is None:
            return at  # a field of a later version
        if field.packed and wire == _BYTES:
            getattr(self, field.name).extend(_unpack(field.kind, value))
            return at
        if wire != field.wire:
            raise MessageError(f"field {field.name} of {type(self).__name__} has wire type {wire}, not {field.wire}")
        value = field.kind.decode(value) if field.is_message else field.kind.read(value)
        if field.repeated:
            getattr(self, field.name).append(value)
            return at
        if field.oneof:
            for other in self.FIELDS:
                if other.oneof:
                    setattr(self, other.name, None)
        setattr(self, field.name, value)
        return at


def _put(out, field, value):
    _put_varint(out, field.number << 3 | field.wire)
    if field.is_message:
        value = value.encode()
    else:
        value = field.kind.write(value)
    if field.wire == _VARINT:
        _put_varint(out, value)
        return
    if field.wire == _BYTES:
        _put_varint(out, len(value))
    out += value


def _get(wire, data, at):
    if wire == _VARINT:
        return _get_varint(data, at)
    if wire == _BYTES:
        size, at = _get_varint(data, at)
    elif wire in (_EIGHT, _FOUR):
        size = 8 if wire == _EIGHT else 4
    else:
        raise MessageError(f"wire type {wire} is not a Protobuf wire type in use")
    if size > len(data) - at:
        raise MessageError("a field ends after its message")
    return data[at : at + size], at + size


def _pack(kind, values):
    out = bytearray()
    for value in values:
        if kind.wire == _VARINT:
            _put_varint(out, kind.write(value))
        else:
            out += kind.write(value)
    return out


def _unpack(kind, data):
    if kind.wire == _EIGHT:
        if len(data) % 8:
            raise MessageError("packed numbers of 8 bytes do not end at the end of one")
        return [kind.read(data[i : i + 8]) for i in range(0, len(data), 8)]
    values = []
    at = 0
    while at < len(data):
        value, at = _get_varint(data, at)
        values.append(kind.read(value))
    return values


class Array(Message):
    FIELDS = (Field(1, "name", TEXT), Field(2, "type", UINT), Field(3, "shape", INT, repeated=True))


class SpecMessage(Message):
    FIELDS = (
        Field(1, "name", TEXT),
        Field(2, "observations", Array, repeated=True),
        Field(3, "action_minimum", DOUBLE, repeated=True),
        Field(4, "action_maximum", DOUBLE, repeated=True),
        Field(5, "episode_steps", INT),
        Field(6, "action_repeat", INT),
        Field(7, "frame_stack", INT),
        Field(8, "control_timestep_seconds", DOUBLE),
        Field(9, "action_choices", INT, repeated=True),
    )


class Hello(Message):
    FIELDS = (Field(1, "environments", UINT), Field(2, "client", TEXT))


class Heartbeat(Message):
    FIELDS = (Field(1, "port", UINT), Field(2, "silence_milliseconds", UINT))


class Welcome(Message):
    FIELDS = (
        Field(1, "spec", SpecMessage),
        Field(2, "environments", UINT),
        Field(3, "row_bytes", UINT),
        Field(4, "can_save", BOOL),
        Field(5, "heartbeat", Heartbeat),
    )


class Play(Message):
    FIELDS = (
        Field(1, "environments", UINT, repeated=True),
        Field(2, "resets", BYTES),
        Field(3, "seeds", FIXED64, repeated=True),
    )


class Failure(Message):
    FIELDS = (Field(1, "row", UINT), Field(2, "message", TEXT))


class Played(Message):
    FIELDS = (Field(1, "failures", Failure, repeated=True),)


class Save(Message):
    FIELDS = (Field(1, "environment", UINT),)


class Load(Message):
    FIELDS = (Field(1, "environment", UINT),)


class Ping(Message):
    pass


class Pong(Message):
    pass


class Bye(Message):
    pass


class Gone(Message):
    pass


class Saved(Message):
    pass


class Loaded(Message):
    pass


class Refused(Message):
    OTHER, PROTOCOL, SESSION, FULL, REQUEST = range(5)
    FIELDS = (Field(1, "message", TEXT), Field(2, "reason", UINT))


class Envelope(Message):
    FIELDS = (
        Field(1, "protocol", UINT),
        Field(2, "session", FIXED64),
        Field(3, "request", UINT),
        *(
            Field(number, kind.__name__.lower(), kind, oneof=True)
            for number, kind in enumerate(
                (Hello, Play, Save, Load, Ping, Bye, Welcome, Played, Saved, Loaded, Pong, Gone, Refused), start=4
            )
        ),
    )


def answer_to(question, **body):
    return Envelope(protocol=PROTOCOL, session=question.session, request=question.request, **body)


def printable(text, limit=2000):
    """Returns a peer's text as one line without control characters, so that it is safe to show."""
    return "".join(c if c.isprintable() else "?" for c in str(text))[:limit]
