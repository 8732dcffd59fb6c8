"""The dashboards of `troupe train`, `troupe sweep` and, over TLS, `troupe dashboard`, queried without a browser.

Usage: dashboard_test.py <troupe> <scratch folder> train|sweep|tls
"""

import http.client
import json
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

TROUPE = sys.argv[1]
SMALL = [word for value in ("evaluation.period=0", "evaluation.final_episodes=1", "evaluation.video=false", "replay.minimum_items=100", "actors.random_steps=100",
                            "d4pg.policy_layers=16", "d4pg.critic_layers=16", "actors.environment=1") for word in ("--set", value)]
ENDLESS = ["--set", "stop.environment_steps=100000000"]
FINISHED = ["--set", "stop.environment_steps=1500"]


def check(condition, *words):
    if not condition:
        sys.exit(" ".join(map(str, words)) or "failed")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def ask(address, path, context=None):
    base, token = address.split("/?token=")
    request = urllib.request.Request(base + path, headers={"Authorization": f"Bearer {token}"})
    return urllib.request.urlopen(request, timeout=60, context=context).read()


def until(holds):
    """Repeats the question until its answer is true, and returns that."""
    deadline = time.monotonic() + 120
    while not (found := holds()):
        check(time.monotonic() < deadline, "no answer within 120 s held")
    return found


class Trained:
    """A command that trains, and the address that it prints for its dashboard."""

    def __init__(self, *words):
        self.process = subprocess.Popen([TROUPE, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            if line.startswith("dashboard: "):
                self.address = line.split()[1]
                return
        sys.exit(f"no dashboard was announced: {lines}")

    def runs(self):
        return json.loads(ask(self.address, "/api/runs"))

    def run(self, name):
        return json.loads(ask(self.address, "/api/run?id=" + urllib.parse.quote(name)))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        told = self.process.communicate(timeout=120)[1]
        check(self.process.returncode == 0, "exit code", self.process.returncode, told)
        try:
            ask(self.address, "/api/runs")
        except urllib.error.URLError:
            return
        sys.exit("the dashboard answers after the command's end")


def train(folder):
    """The run is shown first, can be operated, and its dashboard listens on the chosen port until it ends."""
    port = free_port()
    refused = subprocess.run([TROUPE, "train", "cartpole_balance", "--runs", folder, "--dashboard-port", str(port)], capture_output=True, text=True)
    check(refused.returncode == 2 and "--dashboard" in refused.stderr, "a port without --dashboard was accepted:", refused)
    one = Trained("train", "cartpole_balance", "--runs", folder, "--quiet", "--dashboard", "--dashboard-port", port, *SMALL, *ENDLESS)
    check(one.address.startswith(f"http://127.0.0.1:{port}/?token="), one.address)
    told = until(lambda: (runs := one.runs())["runs"] and runs["runs"][0]["updates"] > 0 and runs)
    check(told["runs"][0]["state"] == "running" and told["selected"] == told["runs"][0]["id"], told)
    run = until(lambda: (about := one.run(told["selected"]))["status"] and (about["live"] or {}).get("actors") and about)
    check("stop" in run["actions"] and run["live"]["actors"][0]["seconds"], run)
    check(b"troupe_ready_batches" in ask(one.address, "/metrics"), "no queue length in /metrics")
    taken = subprocess.run([TROUPE, "train", "cartpole_balance", "--runs", folder, "--quiet", "--dashboard", "--dashboard-port", str(port), *SMALL, *FINISHED],
                           capture_output=True, text=True)
    check(taken.returncode != 0 and str(port) in taken.stderr and "cannot listen" in taken.stderr, taken)
    one.end()


def sweep(folder):
    """The runs of a sweep appear while it trains them, and a signal stops the sweep and its dashboard."""
    one = Trained("sweep", "cartpole_balance", "--runs", folder, "--name", "steps", "--seeds", "1,2", "--jobs", "2", "--dashboard", *SMALL, *ENDLESS)
    runs = until(lambda: (found := [run for run in one.runs()["runs"] if run["state"] == "running" and run["updates"] > 0]) and len(found) == 2 and found)
    check(all(run["sweep"] == "steps" for run in runs) and {run["seed"] for run in runs} == {"1", "2"}, runs)
    run = until(lambda: (about := one.run(runs[0]["id"]))["status"] and about)
    check("stop" in run["actions"], run)
    one.end()


def tls(folder):
    """Over TLS the dashboard listens on other addresses than loopback; a client that does not trust the certificate gets nothing."""
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2"]
    subprocess.run([*made, "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"], check=True, capture_output=True)
    subprocess.run([TROUPE, "train", "cartpole_balance", "--runs", folder / "runs", "--quiet", *SMALL, *FINISHED], check=True, stdout=subprocess.DEVNULL)
    refused = subprocess.run([TROUPE, "dashboard", folder / "runs", "--address", "0.0.0.0"], capture_output=True, text=True)
    check(refused.returncode == 2 and "--certificate" in refused.stderr, refused)
    process = subprocess.Popen([TROUPE, "dashboard", folder / "runs", "--address", "0.0.0.0", "--certificate", folder / "certificate.pem", "--key", folder / "key.pem",
                                "--token-file", folder / "token", "--json"], stdout=subprocess.PIPE, text=True)
    try:
        parts = urllib.parse.urlsplit(json.loads(process.stdout.readline())["address"])
        token = (folder / "token").read_text().strip()
        check(parts.scheme == "https" and parts.query == f"token={token}", parts)
        address = f"https://127.0.0.1:{parts.port}/?token={token}"
        trusted = ssl.create_default_context(cafile=folder / "certificate.pem")
        check(json.loads(ask(address, "/api/runs", trusted))["runs"][0]["state"] == "finished", "no finished run")
        check(b"<html" in ask(address, "/", trusted), "no page")
        opened = http.client.HTTPSConnection("127.0.0.1", parts.port, timeout=60, context=trusted)
        opened.request("GET", f"/?token={token}")
        cookie = opened.getresponse().getheader("Set-Cookie", "")
        check("Secure" in cookie and "HttpOnly" in cookie, "the cookie may travel without TLS:", cookie)
        for wrong, context in ((address, ssl.create_default_context()), (address.replace("https", "http"), None), (f"https://127.0.0.1:{parts.port}/?token=guess", trusted)):
            try:
                ask(wrong, "/api/runs", context)
            except (urllib.error.URLError, http.client.HTTPException, ConnectionError):
                continue
            sys.exit(f"{wrong} was answered")
    finally:
        process.terminate()
        check(process.wait(60) == 0, process.returncode)


def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[2]) as name:
        {"train": train, "sweep": sweep, "tls": tls}[sys.argv[3]](pathlib.Path(name))


main()
