"""Ports at which a server gets messages from its clients: PlainPort without keys, KeyedPort with keys. Both have the same functions; one thread uses each."""

import collections
import errno
import os
import selectors
import socket
import stat
import time

import zmq

from troupe_env.peers import is_own_user
from troupe_env.zmtp import StrangerError, ZmtpReader, head, hello, pong_to

_READ_AT_ONCE = 64 << 10
_HANDSHAKE_SECONDS = 10.0
_PAUSE_SECONDS = 0.5
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_KEYED_MESSAGES = 16  # of a client, that may wait


def _cannot_bind(endpoint, why):
    return RuntimeError(f"cannot bind {endpoint}: {why}; choose another endpoint, or end the program that holds it")


def _is_served(path):
    """Whether a process accepts connections at the path."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # the queue of connections is full
            pass
        return True


def _free_path(endpoint):
    """Removes the socket of a server that has ended. Raises RuntimeError if a server is alive there, or a file of another kind."""
    path = endpoint[6:]
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise _cannot_bind(endpoint, "a file that is not a socket is there and is kept")
    if _is_served(path):
        raise _cannot_bind(endpoint, "a server accepts connections there (ss -lxp shows it)")
    old = f"{path}.{os.getpid()}"  # only the process that renames the path removes it; another one may have bound here since the check
    os.rename(path, old)
    if _is_served(old):
        os.link(old, path)
        os.unlink(old)
        raise _cannot_bind(endpoint, "a server accepts connections there (ss -lxp shows it)")
    os.unlink(old)


class _Peer:
    def __init__(self, connection, reader):
        self.connection, self.reader = connection, reader
        self.came = time.monotonic()
        self.has_sent = False
        self.unsent = memoryview(b"")


class PlainPort:
    """A ROUTER for connections without keys. It speaks ZeroMQ's protocol itself, because libzmq does not limit the parts of a message, takes over the
    paths of live servers, and aborts when descriptors run out. It reads only inside poll(), and what it holds has a limit: one unfinished message and
    one unsent answer for each of at most `max_peers` peers, and `max_held_bytes` for each kind of all peers together. Unless `any_user`, it accepts
    only processes of its own user. `drop` gets a description of each peer that is disconnected."""

    def __init__(self, endpoint, max_parts, max_part_bytes, any_user=False, drop=lambda why: None, max_peers=1024, max_held_bytes=256 << 20):
        self._limits, self._any_user, self._drop = (max_parts, max_part_bytes), any_user, drop
        self._max_peers, self._max_held_bytes = max_peers, max_held_bytes
        self._held = self._unsent = 0
        self._peers = {}
        self._numbers = 0
        self._turns = collections.deque()  # numbers of peers whose bytes may have a message
        self._next = None
        self._looked = time.monotonic()
        self._path = None
        self._listener = self._listen(endpoint)
        self._selector = selectors.DefaultSelector()
        self._accepts = False
        self._accept(True)

    def _listen(self, endpoint):
        is_path = endpoint.startswith("ipc://")
        address = endpoint[6:]
        host, _, port = address.rpartition(":")
        if is_path and not address.startswith("@"):
            _free_path(endpoint)
        family = socket.AF_UNIX if is_path else socket.AF_INET6 if host.startswith("[") else socket.AF_INET
        listener = socket.socket(family)
        try:
            if is_path:
                listener.bind("\0" + address[1:] if address.startswith("@") else address)
                self.endpoint = endpoint
                if not address.startswith("@"):
                    self._path = (address, os.lstat(address).st_ino)
            else:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(("" if host == "*" else host.strip("[]"), 0 if port == "*" else int(port)))
                host, port = listener.getsockname()[:2]
                self.endpoint = f"tcp://[{host}]:{port}" if family == socket.AF_INET6 else f"tcp://{host}:{port}"
            listener.listen(1024)
        except OSError as error:
            listener.close()
            raise _cannot_bind(endpoint, error.strerror or error) from None
        listener.setblocking(False)
        return listener

    def _accept(self, on):
        if on != self._accepts:
            self._accepts = on
            self._selector.register(self._listener, selectors.EVENT_READ) if on else self._selector.unregister(self._listener)

    def poll(self, milliseconds):
        """Waits for a message, which receive() then returns. Returns False if there is none in time."""
        deadline = time.monotonic() + milliseconds / 1000
        while True:
            while self._turns and self._next is None:
                self._take(self._turns.popleft())
            now = time.monotonic()
            if now - self._looked >= _PAUSE_SECONDS:
                self._look_at_clock(now)
            if self._next is not None or now >= deadline:
                return self._next is not None
            for key, events in self._selector.select(min(deadline - now, _PAUSE_SECONDS)):
                if key.data is None:
                    self._accept_one()
                elif key.data in self._peers:
                    self._serve(key.data, events)

    def receive(self):
        """Returns (peer, parts) after a successful poll(). There are no parts if the message had too many."""
        taken, self._next = self._next, None
        return taken

    def send(self, peer, parts):
        """Never waits. Drops the message if the peer has left or has not yet read the one before."""
        views = [view.cast("B") if view.nbytes else memoryview(b"") for view in map(memoryview, parts)]
        frames = []
        for i, view in enumerate(views):
            frames += [head(view.nbytes, more=i + 1 < len(views)), view]
        self._send(peer, frames)

    def close(self):
        for number in list(self._peers):
            self._leave(number)
        self._selector.close()
        self._listener.close()
        if self._path is not None:
            path, inode = self._path
            try:
                if os.lstat(path).st_ino == inode:
                    os.unlink(path)
            except FileNotFoundError:
                pass

    def _accept_one(self):
        if len(self._peers) >= self._max_peers and not self._make_room():
            return self._accept(False)
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            return self._accept(error.errno not in _NO_ROOM)  # the connection waits in the kernel's queue
        if not self._any_user and not is_own_user(connection):
            connection.close()
            return self._drop("a connection of another user of this host, or of another host")
        connection.setblocking(False)
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._numbers += 1
        self._peers[self._numbers] = _Peer(connection, ZmtpReader(*self._limits))
        self._selector.register(connection, selectors.EVENT_READ, self._numbers)
        self._send(self._numbers, [hello(b"ROUTER")])

    def _make_room(self):
        """Disconnects the oldest peer that has sent no message although it has had time to."""
        silent = min(((p.came, n) for n, p in self._peers.items() if not p.has_sent), default=None)
        if silent is None or time.monotonic() - silent[0] < _HANDSHAKE_SECONDS:
            return False
        self._leave(silent[1], "a connection without a message, in favour of another one")
        return True

    def _look_at_clock(self, now):
        self._looked = now
        self._accept(True)
        for number in [n for n, p in self._peers.items() if not p.reader.ready and now - p.came > _HANDSHAKE_SECONDS]:
            self._leave(number, "a connection without a handshake")

    def _serve(self, number, events):
        peer = self._peers[number]
        try:
            if events & selectors.EVENT_WRITE:
                return self._flush(number, peer.connection.send(peer.unsent))
            data = peer.connection.recv(_READ_AT_ONCE)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            data = b""
        if not data:
            return self._leave(number)
        peer.reader.feed(data)
        self._held += len(data)
        return self._turns.append(number)

    def _flush(self, number, sent):
        """The peer took `sent` of its unsent bytes. While some are left, nothing is read from it."""
        peer = self._peers[number]
        peer.unsent = peer.unsent[sent:]
        self._unsent -= sent
        events = selectors.EVENT_WRITE if peer.unsent.nbytes else selectors.EVENT_READ
        if self._selector.get_key(peer.connection).events != events:
            self._selector.modify(peer.connection, events, number)

    def _take(self, number):
        """Takes a message or command out of a peer's bytes."""
        peer = self._peers.get(number)
        if peer is None:
            return
        before, taken, wrong = peer.reader.held_bytes, None, None
        try:
            taken = peer.reader.take()
        except StrangerError as why:
            wrong = str(why)
        self._held += peer.reader.held_bytes - before
        if wrong is not None:
            return self._leave(number, wrong)
        if self._held > self._max_held_bytes:
            most = max(self._peers, key=lambda n: self._peers[n].reader.held_bytes)
            self._leave(most, "the longest of too many unfinished messages")
        if taken is None or number not in self._peers:
            return
        self._turns.append(number)  # there may be more
        if isinstance(taken, bytes):
            answer = pong_to(taken)
            if answer is not None:
                self._send(number, [answer])
        else:
            peer.has_sent = True
            self._next = (number, taken)

    def _send(self, number, buffers):
        peer = self._peers.get(number)
        if peer is None or peer.unsent.nbytes:
            return
        try:
            sent = peer.connection.sendmsg(buffers)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            return self._leave(number)
        left = sum(map(len, buffers)) - sent
        if left and self._unsent + left > self._max_held_bytes:
            return self._leave(number, "a peer that does not read")
        if left:
            peer.unsent = memoryview(b"".join(buffers))
            self._unsent += sent + left
            self._flush(number, sent)

    def _leave(self, number, why=None):
        peer = self._peers.pop(number)
        self._selector.unregister(peer.connection)
        peer.connection.close()
        self._held -= peer.reader.held_bytes
        self._unsent -= peer.unsent.nbytes
        self._accept(True)
        if why is not None:
            self._drop(why)


class KeyedPort:
    """A ROUTER whose connections are encrypted by libzmq and admit only clients with an allowed key."""

    def __init__(self, context, keys, endpoint, max_part_bytes):
        if endpoint.startswith("ipc://") and not endpoint.startswith("ipc://@"):
            _free_path(endpoint)
        self._socket = context.socket(zmq.ROUTER)
        for option, value in [
            (zmq.LINGER, 0), (zmq.MAXMSGSIZE, max_part_bytes), (zmq.RCVHWM, _KEYED_MESSAGES), (zmq.SNDHWM, _KEYED_MESSAGES), (zmq.TCP_KEEPALIVE, 1)
        ]:
            self._socket.setsockopt(option, value)
        keys.set_on(self._socket)
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as error:
            self._socket.close()
            raise _cannot_bind(endpoint, error) from None
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def poll(self, milliseconds):
        return self._socket.poll(milliseconds) != 0

    def receive(self):
        peer, *parts = self._socket.recv_multipart()
        return peer, parts

    def send(self, peer, parts):
        try:
            self._socket.send_multipart([peer, *parts], zmq.DONTWAIT)
        except zmq.Again:
            pass  # the client does not read; it will ask again

    def close(self):
        self._socket.close()
