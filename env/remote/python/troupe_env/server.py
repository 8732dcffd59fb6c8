"""Serves Python environments to Troupe's RemoteEnvironments (C++), or to this package's Client."""

import threading
import time

import numpy as np
import zmq

from troupe_env.adapters import adapt
from troupe_env.endpoints import check_endpoint, heartbeat_bind
from troupe_env.messages import (
    MAX_ENVIRONMENTS,
    PROTOCOL,
    Envelope,
    Failure,
    Gone,
    Heartbeat,
    MessageError,
    Played,
    Pong,
    Refused,
    Welcome,
    answer_to,
    printable,
)
from troupe_env.keys import ServerKeys
from troupe_env.ports import KeyedPort, PlainPort
from troupe_env.spec import FAILED, FIRST, LAST, MID, RESULT, check_actions, check_spec, encode_spec

_MAX_HEADER = 1 << 20
_MAX_PARTS = 2  # of a message: its header and a frame of actions
_NAP_MILLISECONDS = 1000
_EXAMPLE = "python -m troupe_env serve gymnasium HalfCheetah-v5 --endpoint ipc:///tmp/cheetah --count 16"


class _Session:
    """One client: its environments, memory for their results, and the last answer, which the client may request again."""

    def __init__(self, players, spec):
        self.players = players
        self.playing = [False] * len(players)
        self.request = 0
        self.seen = time.monotonic()
        self.results = np.zeros(len(players), RESULT)
        self.result_bytes = self.results.view(np.uint8)
        self.rows = np.zeros((len(players), spec.row_bytes), np.uint8)
        arrays = spec.views(self.rows)
        self.views = [[array[row, ...] for array in arrays] for row in range(len(players))]
        self.answer = []


class Server:
    """Serves `count` environments, each made by calling `make`, which returns a Gymnasium or dm_env environment, or an Adapter. The thread
    that calls serve() steps them; another one answers heartbeats. Use it as a context manager, or close() it.

    If an environment raises, only that environment fails: the client gets the reason and must reset it. Bytes from strangers are dropped and
    counted; processes of other users are disconnected unless `allow_other_hosts` is set or keys are given. `action_repeat`: how many
    environment steps Troupe counts per step, for environments that repeat actions. `secret_key` and `allowed_keys`, files of `troupe keys
    new`, encrypt the connections and admit only clients with these keys."""

    def __init__(
        self, make, endpoint="tcp://127.0.0.1:*", count=1, name=None, allow_other_hosts=False, silence_seconds=10.0,
        max_message_bytes=64 << 20, log=lambda text: None, action_repeat=1, secret_key=None, allowed_keys=None,
    ):
        if (secret_key is None) != (allowed_keys is None):
            raise ValueError("give both secret_key and allowed_keys, or neither")
        check_endpoint(endpoint, allow_other_hosts or secret_key is not None, any_port=True)
        if not 1 <= count <= MAX_ENVIRONMENTS:
            raise ValueError(f"count is {count}; it must be 1 to {MAX_ENVIRONMENTS}: {_EXAMPLE}")
        if not 0.001 <= silence_seconds <= 86400:
            raise ValueError(f"silence_seconds is {silence_seconds}; it must be 0.001 to 86400")
        self._players = []
        self._context = self._port = self._heart = None
        self._stopped = threading.Event()
        self._lock = threading.Lock()  # guards the sessions: the heartbeat thread updates them
        self._sessions = {}
        self._silence = silence_seconds
        self._any_user = allow_other_hosts or secret_key is not None
        self._key_files, self._keys = (secret_key, allowed_keys), None
        self._log = log
        self.garbage = 0
        try:
            for _ in range(count):
                self._players.append(adapt(make(), name, action_repeat))
            self.spec = self._players[0].spec
            if any(player.spec != self.spec for player in self._players):
                raise ValueError("environments of one server must have the same spec; these differ")
            check_spec(self.spec, max_message_bytes)
            if not all(getattr(player, "seeded", True) for player in self._players):
                log(f"{self.spec.name} has no seed(): its episodes cannot be repeated")
            self._free = list(range(count))
            self._bind(endpoint, max(_MAX_HEADER, 8 * count * self.spec.actions))
        except BaseException:
            self.close()
            raise

    def _bind(self, endpoint, max_bytes):
        if self._key_files[0] is not None:
            self._context = zmq.Context()
            self._keys = ServerKeys(self._context, *self._key_files)
        self._port = self._port_at(endpoint, _MAX_PARTS, max_bytes, self._drop)
        self.endpoint = self._port.endpoint
        heart = self._port_at(heartbeat_bind(self.endpoint), 1, 4096)
        self._heart_port = 0 if heart.endpoint.startswith("ipc://") else int(heart.endpoint.rpartition(":")[2])
        if self._any_user and self._keys is None:
            self._log(
                f"nothing is encrypted, and every user and host that reaches {self.endpoint} may use its environments (--allow-other-hosts); keys "
                "exclude others (--secret-key, --allowed-keys)"
            )
        self._heart = threading.Thread(target=self._answer_heartbeats, args=(heart,), name="troupe-heart", daemon=True)
        self._heart.start()

    def _port_at(self, endpoint, max_parts, max_part_bytes, drop=lambda why: None):
        if self._keys is not None:
            return KeyedPort(self._context, self._keys, endpoint, max_part_bytes)
        return PlainPort(endpoint, max_parts, max_part_bytes, self._any_user, drop)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def serve(self):
        """Steps the environments until stop(). Call it from one thread."""
        while not self._stopped.is_set():
            if self._port.poll(_NAP_MILLISECONDS):
                self._handle(*self._port.receive())

    def stop(self):
        """Ends serve() within a second. Any thread may call it."""
        self._stopped.set()

    def close(self):
        """Ends the heartbeats and closes the environments. Call it after serve()."""
        self._stopped.set()
        if self._heart is not None:
            self._heart.join()
        if self._port is not None:
            self._port.close()
        if self._keys is not None:
            self._keys.close()
        if self._context is not None:
            self._context.term()
        self._heart = self._port = self._keys = self._context = None
        for player in self._players:
            player.close()
        self._players = []

    def _answer_heartbeats(self, port):
        while not self._stopped.is_set():
            if not port.poll(200):
                continue
            peer, parts = port.receive()
            try:
                ping = Envelope.decode(parts[0]) if len(parts) == 1 else Envelope()
            except MessageError:
                continue
            if ping.protocol == PROTOCOL and ping.ping is not None and self._seen(ping.session):
                port.send(peer, [answer_to(ping, pong=Pong()).encode()])
        port.close()

    def _seen(self, session):
        with self._lock:
            found = self._sessions.get(session)
            if found is not None:
                found.seen = time.monotonic()
            return found is not None

    def _drop(self, why):
        self.garbage += 1
        if self.garbage <= 100:
            self._log(f"dropped: {printable(why, 300)}")

    def _refuse(self, peer, question, reason, text):
        refused = Refused(message=printable(text, 500), reason=reason)
        self._port.send(peer, [answer_to(question, refused=refused).encode()])

    def _handle(self, peer, parts):
        try:
            question = Envelope.decode(parts[0]) if 1 <= len(parts) <= _MAX_PARTS and len(parts[0]) <= _MAX_HEADER else None
        except MessageError as error:
            return self._drop(f"a header that is not an Envelope: {error}")
        if question is None:
            return self._drop("a message with the wrong number of frames")
        if question.protocol != PROTOCOL:
            self._drop(f"version {question.protocol} of the protocol")
            text = f"this peer speaks version {PROTOCOL} of the protocol; use Troupe and troupe_env of the same release on both sides"
            return self._refuse(peer, question, Refused.PROTOCOL, text)
        if question.hello is not None:
            return self._welcome(peer, question)
        session = self._sessions.get(question.session)
        if session is None:
            if question.bye is None:
                text = (
                    "it does not know this client: it was restarted, or the client's heartbeats stopped for longer than "
                    f"{self._silence} s and its environments were given to another; the episodes are lost, reset begins new ones"
                )
                self._refuse(peer, question, Refused.SESSION, text)
            return None
        session.seen = time.monotonic()
        if question.request < session.request:
            return None  # already answered, and the client has sent later requests
        if question.request > session.request:
            try:
                session.answer = self._obey(session, question, parts[1:])
                session.request = question.request
            except (MessageError, ValueError) as error:
                self._drop(f"a request that breaks a rule: {error}")
                return self._refuse(peer, question, Refused.REQUEST, str(error))
        self._port.send(peer, session.answer)
        if question.bye is not None:
            self._forget(question.session)
            self._log("a client gave its environments back")
        return None

    def _forget(self, number):
        with self._lock:
            session = self._sessions.pop(number)
        self._free = sorted(self._free + session.players)

    def _welcome(self, peer, question):
        session = self._sessions.get(question.session)
        if session is not None:
            if session.request == question.request:
                self._port.send(peer, session.answer)
            return
        count = question.hello.environments
        if question.session == 0 or not 1 <= count <= len(self._players):
            text = f"{count} environments in session {question.session} were asked for; there are {len(self._players)}"
            self._refuse(peer, question, Refused.REQUEST, text)
            return
        if len(self._free) < count:
            now = time.monotonic()
            silent = {n: len(other.players) for n, other in self._sessions.items() if now - other.seen > self._silence}
            for number in silent if len(self._free) + sum(silent.values()) >= count else ():
                self._forget(number)
                self._log("a client has been silent for too long; its environments were taken back")
        if len(self._free) < count:
            text = (
                f"{len(self._free)} of {len(self._players)} environments are free and {count} were asked for; serve more (--count), or "
                "end another client"
            )
            self._refuse(peer, question, Refused.FULL, text)
            return
        session = _Session(self._free[:count], self.spec)
        self._free = self._free[count:]
        session.request = question.request
        welcome = Welcome(
            spec=encode_spec(self.spec),
            environments=count,
            row_bytes=self.spec.row_bytes,
            heartbeat=Heartbeat(port=self._heart_port, silence_milliseconds=int(self._silence * 1000)),
        )
        session.answer = [answer_to(question, welcome=welcome).encode()]
        with self._lock:
            self._sessions[question.session] = session
        self._log(f"a client ({printable(question.hello.client, 200)}) plays {count} environments")
        self._port.send(peer, session.answer)

    def _obey(self, session, question, frames):
        if question.play is not None:
            return self._play(session, question, frames)
        if question.bye is not None:
            return [answer_to(question, gone=Gone()).encode()]
        if question.save is not None or question.load is not None:
            raise MessageError("Python environments cannot save states")
        raise MessageError(f"a message of kind {question.body()} is not meant for a server of environments")

    def _play(self, session, question, frames):
        play = question.play
        which, resets, seeds = _checked_play(play, len(session.players))
        count = len(which)
        if len(frames) != 1 or len(frames[0]) != 8 * count * self.spec.actions:
            raise MessageError(f"actions are not one frame of float64 [{count}, {self.spec.actions}]")
        actions = np.frombuffer(frames[0], "<f8").reshape(count, self.spec.actions)
        failures = []
        results = session.results
        for row in range(count):
            failure = self._play_one(session, which[row], row, resets and resets[row], seeds, actions[row])
            if failure:
                results[row] = (0.0, 1.0, FAILED)
                session.rows[row] = 0
                failures.append(Failure(row=row, message=printable(failure, 200)))
        header = answer_to(question, played=Played(failures=failures)).encode()
        return [header, session.result_bytes[: count * RESULT.itemsize], session.rows[:count]]

    def _play_one(self, session, environment, row, reset, seeds, action):
        """Steps or resets one environment. Returns why it failed, or None."""
        if not reset and not session.playing[environment]:
            return "there is no episode to step: reset first"
        player = self._players[session.players[environment]]
        session.playing[environment] = False
        try:
            if reset:
                player.reset(next(seeds), session.views[row])
                session.results[row] = (0.0, 1.0, FIRST)
                session.playing[environment] = True
            else:
                check_actions(self.spec, action)
                reward, discount, last = player.step(action, session.views[row])
                session.results[row] = (reward, discount, LAST if last else MID)
                session.playing[environment] = not last
            return None
        except Exception as error:  # user code: the client gets whatever it raises
            return f"{type(error).__name__}: {error}"


def _checked_play(play, count):
    """Returns the environments, which of them are reset (or None), and the seeds. Raises MessageError."""
    which = play.environments or range(count)
    if play.environments and (max(which) >= count or len(set(which)) != len(which)):
        raise MessageError(f"environments {list(which)[:20]} are not different ones of this client's {count}")
    resets = play.resets
    if resets and len(resets) != len(which):
        raise MessageError(f"{len(resets)} flags of resets for {len(which)} environments")
    if sum(1 for flag in resets if flag) != len(play.seeds):
        raise MessageError("there are not as many seeds as resets")
    return which, resets, iter(play.seeds)
