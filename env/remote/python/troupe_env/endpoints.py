"""Addresses: ipc://<path> or tcp://<host>:<port>, on loopback by default."""

import ipaddress

from troupe_env.messages import printable


def check_endpoint(endpoint, allow_other_hosts=False, any_port=False):
    """Raises ValueError with the endpoint, the rule and the remedy."""
    what = f"endpoint '{printable(endpoint, 200)}'"
    if endpoint.startswith("ipc://"):
        if not 1 <= len(endpoint[6:].encode()) <= 97 or "\0" in endpoint:
            raise ValueError(f"{what}: the path of a socket must have 1 to 97 bytes; choose a shorter one, for example below /tmp")
        return
    host, colon, port = endpoint[6:].rpartition(":")
    good_port = port.isascii() and port.isdigit() and 0 < int(port) < 65536
    if not endpoint.startswith("tcp://") or not colon or not host or not (good_port or (any_port and port == "*")):
        raise ValueError(f"{what} must be ipc://<path> or tcp://<host>:<port>, for example tcp://127.0.0.1:5555")
    if not allow_other_hosts and not _is_loopback(host):
        raise ValueError(
            f"{what} is not on this host's loopback interface, and nothing is encrypted; give keys, use 127.0.0.1 or an ssh tunnel, or allow other "
            "hosts (--allow-other-hosts) on a network that you trust"
        )


def _is_loopback(host):
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def heartbeat_bind(endpoint):
    return endpoint + ".heartbeat" if endpoint.startswith("ipc://") else endpoint.rpartition(":")[0] + ":*"


def heartbeat_endpoint(endpoint, port):
    return endpoint + ".heartbeat" if endpoint.startswith("ipc://") else f"{endpoint.rpartition(':')[0]}:{port}"
