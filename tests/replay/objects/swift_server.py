#!/usr/bin/python3
"""Runs OpenStack Swift with its S3 interface on free ports of the loopback interface, for tests. Its four servers are in this process.

Usage: swift_server.py FOLDER [--tls]

FOLDER keeps the objects and may have those of an earlier server; rings and configuration are written into it. Prints "skipped: …" and ends
with exit code 77 where Swift is not installed; else prints "ready http://127.0.0.1:PORT" and serves until it is killed or its parent ends.
With --tls at https://…, with the certificate FOLDER/certificate.pem. Access key "test:tester", secret key "testing", region us-east-1, one empty bucket "bucket".
"""
import ctypes
import os
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def skip(why):
    print(f"skipped: {why}", flush=True)
    sys.exit(77)


try:
    import eventlet
    eventlet.monkey_patch()
    import eventlet.wsgi
    from swift.common import utils
    from swift.common.ring import RingBuilder
except ImportError as missing:
    skip(f"OpenStack Swift is not installed ({missing}); see experiments/packaging/apt-packages-tests.txt")

HASHES = """[swift-hash]
swift_hash_path_suffix = test

[storage-policy:0]
name = gold
default = yes
"""
SERVER = """[DEFAULT]
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
workers = 0

[pipeline:main]
pipeline = {kind}-server

[app:{kind}-server]
use = egg:swift#{kind}
fallocate_reserve = 0
"""
PROXY = """[DEFAULT]
swift_dir = {folder}

[pipeline:main]
pipeline = {pipeline} proxy-server

[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
node_timeout = 30
conn_timeout = 5

[filter:catch_errors]
use = egg:swift#catch_errors

[filter:s3api]
use = egg:swift#s3api
location = us-east-1

[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin

[filter:bulk]
use = egg:swift#bulk

[filter:slo]
use = egg:swift#slo
"""


class Memory:
    """What Swift asks of memcached, in this process."""

    def __init__(self):
        self.values = {}

    def get(self, key, raise_on_error=False):
        return self.values.get(key)

    def set(self, key, value, **unused):
        self.values[key] = value

    def delete(self, key, server_key=None):
        self.values.pop(key, None)

    def incr(self, key, delta=1, time=0):
        self.values[key] = self.values.get(key, 0) + delta
        return self.values[key]

    def get_multi(self, keys, server_key):
        return [self.values.get(key) for key in keys]

    def set_multi(self, mapping, server_key, **unused):
        self.values.update(mapping)


def with_memory(app):
    memory = Memory()

    def call(env, start_response):
        env["swift.cache"] = memory
        return app(env, start_response)
    return call


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def main():
    folder = os.path.abspath(sys.argv[1])
    disk = os.path.join(folder, "devices", "disk")
    os.makedirs(disk, exist_ok=True)
    try:
        os.setxattr(disk, "user.swift.test", b"1")
    except OSError as refused:
        skip(f"{disk} has no extended attributes, in which Swift keeps what it knows of objects ({refused})")
    os.dup2(os.open(os.path.join(folder, "errors.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    utils.SWIFT_CONF_FILE = write(os.path.join(folder, "swift.conf"), HASHES)
    from swift.common import storage_policy, wsgi  # read the configuration when they are imported
    from swift.common.internal_client import InternalClient
    storage_policy.SWIFT_CONF_FILE = utils.SWIFT_CONF_FILE
    storage_policy.reload_storage_policies()
    utils.validate_hash_conf()

    sockets = {}
    for kind in ("account", "container", "object"):
        sockets[kind] = eventlet.listen(("127.0.0.1", 0))
        builder = RingBuilder(part_power=2, replicas=1, min_part_hours=0)
        builder.add_dev({"id": 0, "region": 1, "zone": 1, "weight": 1, "ip": "127.0.0.1", "device": "disk",
                         "port": sockets[kind].getsockname()[1]})
        builder.rebalance(seed=1)
        builder.get_ring().save(os.path.join(folder, f"{kind}.ring.gz"))

    def serve(socket, path):
        app = with_memory(wsgi.loadapp(path, global_conf={"log_level": "ERROR"}))
        eventlet.spawn(eventlet.wsgi.server, socket, app, log=open(os.path.join(folder, "requests.log"), "a", buffering=1), max_size=64)

    for kind, socket in sockets.items():
        serve(socket, write(os.path.join(folder, f"{kind}.conf"), SERVER.format(folder=folder, kind=kind)))
    inside = write(os.path.join(folder, "inside.conf"), PROXY.format(folder=folder, pipeline="catch_errors"))
    InternalClient(inside, "test", request_tries=1).create_container("AUTH_test", "bucket")
    front = eventlet.listen(("127.0.0.1", 0))
    port = front.getsockname()[1]
    if tls := "--tls" in sys.argv:
        files = [os.path.join(folder, name) for name in ("certificate.pem", "key.pem")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
        front = eventlet.wrap_ssl(front, certfile=files[0], keyfile=files[1], server_side=True)
    serve(front, write(os.path.join(folder, "proxy.conf"),
                       PROXY.format(folder=folder, pipeline="catch_errors s3api tempauth bulk slo")))
    print(f"ready http{'s' if tls else ''}://127.0.0.1:{port}", flush=True)
    eventlet.Event().wait()


if __name__ == "__main__":
    main()
