"""Serves a trained policy with the real program over TLS, and queries it as other programs do.

Usage: serve_policy_test.py <troupe> <scratch folder>
"""

import http.client
import json
import pathlib
import ssl
import struct
import subprocess
import sys
import tempfile

TROUPE = sys.argv[1]
SMALL = ["evaluation.period=0", "evaluation.final_episodes=1", "evaluation.video=false", "replay.minimum_items=100", "actors.random_steps=100",
         "d4pg.policy_layers=16", "d4pg.critic_layers=16", "actors.environment=1"]


def fail(*words):
    sys.exit(" ".join(map(str, words)))


def check(condition, *words):
    if not condition:
        fail(*words)


def troupe(*words):
    done = subprocess.run([TROUPE, *map(str, words)], capture_output=True, text=True, timeout=240)
    check(done.returncode == 0, *words, done.stdout, done.stderr)
    return done.stdout


def samples_of(path):
    """(observations, actions), each a list of lists of numbers."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])

    def rows(name):
        begin, end = (8 + length + offset for offset in header[name]["data_offsets"])
        numbers = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
        width = len(numbers) // header[name]["shape"][0]
        return [numbers[i : i + width] for i in range(0, len(numbers), width)]

    return rows("observation"), rows("action")


class Server:
    def __init__(self, run, *flags, certificate=None):
        tls = ["--certificate", certificate[0], "--key", certificate[1]] if certificate else []
        self.process = subprocess.Popen([TROUPE, "serve", "policy", str(run), "--json", *map(str, flags), *map(str, tls)], stdout=subprocess.PIPE, text=True)
        told = json.loads(self.process.stdout.readline() or fail("the server ended"))
        self.token = told["token"]
        port = int(told["address"].rsplit(":", 1)[1])
        check(told["address"].startswith("https://" if certificate else "http://"), told)
        if certificate:
            self.client = http.client.HTTPSConnection("localhost", port, timeout=60, context=ssl.create_default_context(cafile=certificate[0]))
        else:
            self.client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        check(self.process.wait(60) == 0, "the server did not end well")

    def ask(self, path, body=None, status=200, token=None):
        words = {"Authorization": f"Bearer {self.token if token is None else token}"}
        self.client.request("GET" if body is None else "POST", path, body=None if body is None else json.dumps(body), headers=words)
        answer = self.client.getresponse()
        text = answer.read().decode()
        check(answer.status == status, path, body, answer.status, text)
        return json.loads(text) if text.startswith("{") else text


def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[2]) as name:
        folder = pathlib.Path(name)
        troupe("train", "cartpole_balance", "--runs", folder / "runs", "--quiet", "--set", "stop.environment_steps=1500",
               *(word for value in SMALL for word in ("--set", value)))
        run = next((folder / "runs").glob("*/*"))
        troupe("export", run, "--out", folder / "policy", "--format", "safetensors", "--samples", 50)
        observations, actions = samples_of(folder / "policy/samples.safetensors")
        updates = json.loads((folder / "policy/contract.json").read_text())["updates"]
        made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"]
        subprocess.run([*made, "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"], check=True, capture_output=True)

        refused = subprocess.run([TROUPE, "serve", "policy", str(run), "--address", "0.0.0.0"], capture_output=True, text=True)
        check(refused.returncode == 2 and "needs TLS; give --certificate" in refused.stderr, refused)
        refused = subprocess.run([TROUPE, "serve", "policy", str(run), "--version", f"old={run}@99999999"], capture_output=True, text=True)
        check(refused.returncode == 2 and "99999999" in refused.stderr, refused)
        refused = subprocess.run([TROUPE, "serve", "policy", str(run), "--version", "other=/me@site/run"], capture_output=True, text=True)
        check("/me@site/run" in refused.stderr and "after @" not in refused.stderr, refused)

        with Server(run, "--reload", 0.2, "--version", f"fixed={run}@{updates}", "--share", "fixed=1",
                    certificate=(folder / "certificate.pem", folder / "key.pem")) as server:
            check(server.ask("/healthz", token="") == "ok\n" and server.ask("/readyz", token="") == "ok\n", "probes")
            server.ask("/v1/act", {"observation": list(observations[0])}, status=401, token="guess")
            server.ask("/v1/act", status=405)
            server.ask("/v1/nothing", status=404)
            contract = server.ask("/v1/contract")
            check(contract == json.loads((folder / "policy/contract.json").read_text()), "the contract is not the exported one:", contract)
            array = contract["observations"][0]["name"]
            for observation, action in zip(observations, actions):
                given = server.ask("/v1/act", {"observation": {array: observation}})["action"]
                check(all(abs(a - b) < 1e-5 for a, b in zip(given, action)), observation, given, action)
            many = server.ask("/v1/act", {"observations": [{array: observation} for observation in observations]})["actions"]
            check(all(abs(a[0] - b[0]) < 1e-5 for a, b in zip(many, actions)), "a batch has other actions")
            server.ask("/v1/act", {"observation": {array: [1]}}, status=400)
            told = server.ask("/metrics")
            check('troupe_policy_requests_total{status="400",version=""} 1' in told, "a refused request is not counted:", told)
            for family in ("troupe_policy_requests_total", "troupe_policy_request_seconds_bucket", "troupe_policy_batch_size", "troupe_policy_queue_length"):
                check(family in told, family, "is not in /metrics")
            server.ask("/v1/shares", {"fixed": 0, "main": 1})
            check(server.ask("/v1/versions")["versions"][1] == {"name": "fixed", "share": 0, "updates": contract["updates"]}, server.ask("/v1/versions"))
            check(all(server.ask("/v1/act", {"observation": observations[0]})["version"] == "main" for _ in range(5)), "a share of 0 was asked")
            troupe("resume", run, "--set", "stop.environment_steps=2500")
            for _ in range(100_000):
                if server.ask("/v1/act", {"observation": observations[0]})["updates"] > contract["updates"]:
                    break
            else:
                fail("the newer checkpoint was not loaded")


main()
