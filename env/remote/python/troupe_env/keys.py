"""Keys of encrypted connections (CURVE), from files of `troupe keys new`: one key per line, after the word "public" or "secret"."""

import os
import stat

import zmq

_LETTERS = 40


def _keys(path):
    """Returns the [(word, key)] in a file."""
    with open(path, encoding="ascii", errors="replace") as lines:
        rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    if not rows or any(len(row) != 2 or row[0] not in ("public", "secret") or len(row[1]) != _LETTERS for row in rows):
        raise ValueError(f"{path}: is not a file of keys; make one with `troupe keys new FOLDER`")
    return [(word, key.encode()) for word, key in rows]


def read_secret_key(path):
    """Returns (public, secret) from a file with one secret key, which only its owner may be able to read."""
    rows = _keys(path)
    if [word for word, _ in rows] != ["secret"]:
        raise ValueError(f"{path}: must have one secret key, as troupe.secret of `troupe keys new FOLDER`")
    if stat.S_IMODE(os.stat(path).st_mode) & 0o077:
        raise ValueError(f"{path}: others may read it; chmod 600 {path}")
    return zmq.curve_public(rows[0][1]), rows[0][1]


def read_public_keys(path):
    """Returns all public keys of a file; for a secret key, its public key."""
    return {key if word == "public" else zmq.curve_public(key) for word, key in _keys(path)}


class ClientKeys:
    """With these keys, the client proves that it has its secret key, and the server that it has the one of `server_key`."""

    def __init__(self, secret_key, server_key):
        self._public, self._secret = read_secret_key(secret_key)
        servers = read_public_keys(server_key)
        if len(servers) != 1:
            raise ValueError(f"{server_key}: must have the public key of one server, not {len(servers)}")
        self._server = servers.pop()

    def set_on(self, socket):
        socket.curve_publickey, socket.curve_secretkey, socket.curve_serverkey = self._public, self._secret, self._server


class ServerKeys:
    """Clients must prove that they have the secret key of a key in `allowed_keys`. A thread answers ZeroMQ's requests until close()."""

    def __init__(self, context, secret_key, allowed_keys):
        from zmq.auth.thread import ThreadAuthenticator

        _, self._secret = read_secret_key(secret_key)
        self._allowed = read_public_keys(allowed_keys)
        self._authenticator = ThreadAuthenticator(context)
        self._authenticator.start()
        self._authenticator.configure_curve_callback("*", self)

    def callback(self, domain, key):
        """ZeroMQ asks whether a client with this key may connect."""
        return key in self._allowed

    def set_on(self, socket):
        socket.curve_server, socket.curve_secretkey = True, self._secret

    def close(self):
        self._authenticator.stop()
