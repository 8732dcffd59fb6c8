"""A client of served environments: of ``troupe serve environment`` (C++) or of :class:`troupe_env.Server`."""

import operator
import secrets
import sys
import threading
import time

import numpy as np
import zmq

from troupe_env.endpoints import check_endpoint, heartbeat_endpoint
from troupe_env.keys import ClientKeys
from troupe_env.messages import PROTOCOL, Bye, Envelope, Hello, MessageError, Ping, Play, Refused, printable
from troupe_env.spec import FAILED, FIRST, LAST, MID, RESULT, check_actions, decode_spec, shaped

_MAX_HEADER = 1 << 20


class RemoteError(RuntimeError):
    """The peer stalls, has vanished, was restarted, breaks the protocol or speaks another version; or an environment failed."""


class _Heart:
    """A thread that sends heartbeats and records when the last answer came."""

    def __init__(self, context, endpoint, session, interval, keys):
        self.last = time.monotonic()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(context, endpoint, session, interval, keys), daemon=True)
        self._thread.start()

    def _run(self, context, endpoint, session, interval, keys):
        socket = context.socket(zmq.DEALER)
        if keys is not None:
            keys.set_on(socket)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.MAXMSGSIZE, 4096)
        socket.connect(endpoint)
        ping = Envelope(protocol=PROTOCOL, session=session, ping=Ping()).encode()
        while not self._stopped.wait(interval):
            try:
                socket.send(ping, zmq.DONTWAIT)
            except zmq.Again:
                pass
            while socket.poll(0):
                try:
                    pong = Envelope.decode(socket.recv())
                except MessageError:
                    continue
                if pong.session == session and pong.pong is not None:
                    self.last = time.monotonic()
        socket.close()

    def stop(self):
        self._stopped.set()
        self._thread.join()


class Client:
    """Steps `environments` environments of the peer at `endpoint`. One thread at a time may use it. Times are in seconds. `secret_key` and
    `server_key`, files of `troupe keys new`, encrypt the connection. While too few environments are free, connecting waits until
    `connect_deadline`, which should exceed the server's silence: a lost connection frees its environments only then. After a RemoteError
    that concerns the whole peer, a call of play() that resets all environments reconnects."""

    def __init__(
        self, endpoint, environments=1, connect_deadline=15.0, deadline=30.0, silence=5.0, retry_interval=1.0,
        allow_other_hosts=False, max_message_bytes=64 << 20, secret_key=None, server_key=None,
    ):
        if (secret_key is None) != (server_key is None):
            raise ValueError("give both secret_key and server_key, or neither")
        self._keys = None if secret_key is None else ClientKeys(secret_key, server_key)
        check_endpoint(endpoint, allow_other_hosts or self._keys is not None)
        self.endpoint, self.count = endpoint, environments
        self._connect_deadline, self._deadline, self._silence = connect_deadline, deadline, silence
        self._retry_interval, self._max_bytes = retry_interval, max_message_bytes
        self._context = zmq.Context()
        self._socket = self._heart = self.spec = None
        self._lost = ""
        self._all = list(range(environments))
        try:
            self._connect()
        except BaseException:
            self._disconnect()  # term() waits for open sockets, forever
            self._context.term()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Releases the environments; waits at most 0.2 s."""
        if self._context is None:
            return
        if self._socket is not None:
            try:
                self._ask(Envelope(bye=Bye()))
                self._wait("gone", 0.2, "a bye", "farewell")
            except (MessageError, zmq.ZMQError):  # the peer takes the environments back by itself
                pass
        self._disconnect()
        self._context.destroy(linger=0)  # at exit, the heart's thread has left its socket open
        self._context = None

    def __del__(self):
        if getattr(self, "_context", None) is not None:
            self.close()

    def play(self, actions, resets=(), rows=None):
        """Steps the environments `rows` (None: all), each with its row of `actions` [len(rows), n], in one message. Environments in `resets`,
        a mapping from environment to seed, begin an episode instead. Continuous numbers are clipped to their bounds; a choice (see
        spec.choices) must be one of the whole numbers 0 to n - 1. Returns (results, arrays, failures): a structured array of reward,
        discount and step_type; the arrays of the observations [len(rows), ...] in the order of the spec, valid until the next call; and
        the error messages of failed environments, by row. Raises ValueError, before anything is sent, if `rows` are not one or more
        distinct environments, `resets` are not among them, the shape of `actions` differs by more than axes of length 1, a number is not
        finite or a choice is not one of its whole numbers."""
        if self._context is None:
            raise RemoteError(f"{self.endpoint}: the client is closed")
        which = self._all if rows is None else [operator.index(row) for row in rows]
        if rows is not None and (len(set(which)) != len(which) or not set() < set(which) <= set(self._all)):
            raise ValueError(f"rows are {which[:20]}; they must be one or more distinct environments of 0 to {self.count - 1}")
        resets = dict(resets)
        if resets and not set(resets) <= set(which):
            raise ValueError(f"resets are of environments {sorted(set(resets) - set(which))[:20]}, which are not among the rows")
        if self._socket is None:
            if rows is not None or len(resets) != self.count:
                raise RemoteError(f"{self.endpoint} was lost; reset all environments to reconnect. The cause: {self._lost}")
            self._connect()
        play = Play(environments=[] if rows is None else which)
        if resets:
            play.resets = bytes(1 if i in resets else 0 for i in which)
            play.seeds = [int(resets[i]) & (1 << 64) - 1 for i in which if i in resets]
        vectors = np.zeros((len(which), self.spec.actions), "<f8")
        if len(resets) < len(which):
            vectors[:] = shaped(actions, vectors.shape)
            check_actions(self.spec, vectors)
            np.clip(vectors, self.spec.action_minimum, self.spec.action_maximum, out=vectors)
        try:
            self._ask(Envelope(play=play), vectors.tobytes())
            answer, frames = self._wait("played", self._deadline, f"a turn of {len(which)} environments", "deadline")
            return self._results(answer.played, frames, play, which)
        except MessageError as error:
            self._lose(str(error))

    def _results(self, played, frames, play, which):
        spec, count = self.spec, len(which)
        sizes = [len(frame) for frame in frames]
        if sizes != [count * RESULT.itemsize, count * spec.row_bytes]:
            raise MessageError(
                f"it contradicts its spec: its answer has frames of {sizes[:4]} bytes where {count} rows of 24 and of "
                f"{spec.row_bytes} are expected"
            )
        results = np.frombuffer(frames[0], RESULT)
        failures = {}
        for failure in played.failures:
            if failure.row >= count or results["step_type"][failure.row] != FAILED:
                raise MessageError(f"it reports a failure of row {failure.row}, which is not among those that failed")
            failures[failure.row] = printable(failure.message)
        for row, kind in enumerate(results["step_type"]):
            reset = bool(play.resets and play.resets[row])
            if kind == FAILED:
                failures.setdefault(row, "(no reason given)")
            elif kind not in ((FIRST,) if reset else (MID, LAST)):
                raise MessageError(f"environment {which[row]} answers a {'reset' if reset else 'step'} with step type {kind}")
        return results, spec.views(np.frombuffer(frames[1], np.uint8).reshape(count, spec.row_bytes)), failures

    def _connect(self):
        self._socket = self._context.socket(zmq.DEALER)
        if self._keys is not None:
            self._keys.set_on(self._socket)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.MAXMSGSIZE, max(self._max_bytes, _MAX_HEADER))
        self._request = 0
        self._session = secrets.randbits(63) + 1  # identifies this client; has no effect on the results of a run
        try:
            self._socket.connect(self.endpoint)
            self._ask(Envelope(hello=Hello(environments=self.count, client="troupe_env")))
            answer, _ = self._wait("welcome", self._connect_deadline, "a hello (does anything serve there?)", "connect_deadline")
            welcome = answer.welcome
            if welcome.spec is None or welcome.environments != self.count:
                raise MessageError(f"it offers {welcome.environments} environments where {self.count} were asked for")
            spec = decode_spec(welcome.spec, self._max_bytes)
            if welcome.row_bytes != spec.row_bytes:
                raise MessageError(f"it contradicts its spec: {spec.row_bytes} bytes by its arrays and {welcome.row_bytes} by row_bytes")
            if self.count * spec.row_bytes > self._max_bytes:
                raise MessageError(f"observations of {self.count} environments exceed max_message_bytes = {self._max_bytes}")
            if self.spec is not None and spec != self.spec:
                raise MessageError(f"it has returned with a different spec: '{spec.name}' where '{self.spec.name}' was, or other arrays")
            self._listen(welcome.heartbeat)
            self.spec = spec
        except (MessageError, zmq.ZMQError) as error:
            self._lose(str(error))

    def _listen(self, heartbeat):
        if heartbeat is None:
            return
        if heartbeat.port > 65535 or not 1 <= heartbeat.silence_milliseconds <= 86400000:
            raise MessageError("its heartbeat has a port or a silence out of range")
        interval = min(0.5, self._silence / 4, heartbeat.silence_milliseconds / 3000)
        self._heart = _Heart(self._context, heartbeat_endpoint(self.endpoint, heartbeat.port), self._session, interval, self._keys)

    def _disconnect(self):
        if self._heart is not None:
            if not sys.is_finalizing():  # otherwise the thread has been stopped and cannot be joined
                self._heart.stop()
            self._heart = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _lose(self, why):
        self._disconnect()
        self._lost = why
        raise RemoteError(f"remote environments at {self.endpoint}: {why}") from None

    def _ask(self, question, frame=None):
        self._request += 1
        question.protocol, question.session, question.request = PROTOCOL, self._session, self._request
        self._question = [question.encode()] if frame is None else [question.encode(), frame]
        self._socket.send_multipart(self._question)

    def _wait(self, expected, patience, what, key):
        """Waits for the answer of this kind and returns it with its data frames; raises MessageError."""
        begin = time.monotonic()
        interval = self._retry_interval
        retry = begin + interval
        self._full = ""  # the peer's last refusal because too few environments are free
        while True:
            now = time.monotonic()
            wait = min(begin + patience, retry, now + 0.1) - now
            if self._socket.poll(max(0, int(wait * 1000) + 1)):
                parts = self._socket.recv_multipart()
                answer = self._answer(parts, expected, what)
                if answer is not None:
                    return answer, parts[1:]
                if self._full:
                    interval = self._retry_interval
                    retry = time.monotonic() + interval
            now = time.monotonic()
            if now - begin >= patience:
                if self._full:
                    raise MessageError(self._full)
                alive = ", although its heartbeats arrive: it has stalled, or is too slow" if self._heart else ""
                raise MessageError(f"no answer to {what} within {patience} s ({key}){alive}")
            if self._heart is not None and now - self._heart.last > self._silence:
                raise MessageError(f"no heartbeat for {self._silence} s (silence): the peer has vanished")
            if now >= retry:
                self._socket.send_multipart(self._question)
                interval *= 2
                retry = now + interval

    def _answer(self, parts, expected, what):
        if len(parts[0]) > _MAX_HEADER or len(parts) > 3:
            raise MessageError("it sent a message that exceeds the limits")
        answer = Envelope.decode(parts[0])
        if answer.protocol != PROTOCOL:
            raise MessageError(
                f"it speaks version {answer.protocol} of the protocol and this side version {PROTOCOL}; use Troupe and troupe_env of the "
                "same release on both sides"
            )
        if answer.session != self._session or answer.request < self._request:
            return None  # the answer to a repeated request, or to one of an earlier session
        if answer.refused is not None:
            refusal = f"it refused {what}: {printable(answer.refused.message)}"
            if answer.refused.reason != Refused.FULL:
                raise MessageError(refusal)
            self._full = refusal
            return None
        if answer.request > self._request or getattr(answer, expected) is None:
            raise MessageError(f"it answered {what} with a message of kind {answer.body()}, not {expected}")
        return answer
