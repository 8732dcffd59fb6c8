"""Runs and captures the training of capture_test.sh, which calls it on the hosts of hosts.sh."""
import argparse
import collections
import csv
import glob
import math
import os
import socket
import statistics
import struct
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.realpath(__file__))
KEPT = 4 << 20  # bytes of a connection that are looked at
LONG = 256 << 10  # bytes from which its entropy says something
NOISE, PLAIN = 7.99, 7.9  # bits per byte: encrypted has at least, gradients in float32 at most
LEAST_SHARE = 0.9  # of the bytes of an encrypted update, that a plain one takes
LEAST_RATE = 0.7  # encrypted updates/s, of the plain ones
TCP = 6

EXPERIMENT = """
environment { task: "cartpole_swingup" }
replay { minimum_items: 500 samples_per_insert: 512 n_step: 3 discount: 0.99 }
d4pg { policy_layers: [256, 256, 256] critic_layers: [256, 256, 256] value_minimum: 0 value_maximum: 100 batch_size: 256 }
learner { replicas: 2 backend: TCP publish_period: 50 }
actors { environment: 1 random_steps: 500 }
evaluation { period: 0 final_episodes: 1 video: false }
checkpoint { minutes: 0 }
"""


def cluster_file(folder, troupe):
    ssh = {key: os.environ["TROUPE_SSH_" + key.upper()] for key in ("port", "identity", "known_hosts")}
    os.makedirs(f"{folder}/hosts")
    subprocess.run([troupe, "keys", "cluster", f"{folder}/keys"], check=True, stdout=subprocess.DEVNULL)
    with open(f"{folder}/cluster.textproto", "w") as file:
        file.write(f"""node {{ name: "host" count: 2 address: "10.77.0.[1-2]" cores: 2 }}
ssh {{ port: {ssh["port"]} identity_file: "{ssh["identity"]}" known_hosts: "{ssh["known_hosts"]}" program: "{troupe}" folder: "{folder}/hosts" }}
head {{ listen: "10.77.0.254:4242" }}
keys: "{folder}/keys"
oversubscribe: true
pin: false
role {{ name: "learner" apart: "learner" }}
""")
    with open(f"{folder}/gradients.textproto", "w") as file:
        file.write(EXPERIMENT)


class Capture:
    """Every frame of host 0's link. What TCP carries, by connection and direction."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 256 << 20)  # SO_RCVBUFFORCE
        self.socket.bind(("port0", 0))
        self.socket.settimeout(0.2)
        self.carried = {}
        self.bytes = {}
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()
        self.socket.close()

    def _run(self):
        while not self.ending.is_set():
            try:
                frame = self.socket.recv(1 << 17)
            except TimeoutError:
                continue
            self._take(frame)

    def _take(self, frame):
        if len(frame) < 54 or frame[12:14] != b"\x08\x00" or frame[23] != TCP:
            return
        words = 14 + (frame[14] & 15) * 4
        end = 14 + struct.unpack_from("!H", frame, 16)[0] or len(frame)
        here, there = struct.unpack_from("!HH", frame, words)
        payload = frame[words + (frame[words + 12] >> 4) * 4:max(end, 14)]
        if not payload:
            return
        key = (socket.inet_ntoa(frame[26:30]), here, socket.inet_ntoa(frame[30:34]), there)
        self.bytes[key] = self.bytes.get(key, 0) + len(payload)
        kept = self.carried.setdefault(key, bytearray())
        if len(kept) < KEPT:
            kept += payload

    def between_hosts(self):
        """[(connection, bytes, entropy)] of the long ones, the longest first."""
        hosts = {"10.77.0.1", "10.77.0.2"}
        found = [(key, self.bytes[key], entropy(kept)) for key, kept in self.carried.items() if len(kept) >= LONG and {key[0], key[2]} == hosts]
        return sorted(found, key=lambda one: -one[1])


def entropy(data):
    """Bits per byte."""
    counts = [data.count(bytes((value,))) for value in range(256)]
    return -sum(n / len(data) * math.log2(n / len(data)) for n in counts if n)


def run(troupe, folder, trusted, seconds):
    """Trains, and gives the updates/s of the second half, and the number of updates."""
    name = "trusted" if trusted else "encrypted"
    command = [troupe, "launch", f"{folder}/cluster.textproto", f"{folder}/gradients.textproto", "--runs", f"{folder}/runs", "--set", f"name={name}",
               "--set", f"stop.minutes={seconds / 60}", *(["--trusted-network"] if trusted else [])]
    before = set(glob.glob(f"{folder}/runs/{name}/*"))
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds + 300)
    made = set(glob.glob(f"{folder}/runs/{name}/*")) - before
    if done.returncode != 0 or len(made) != 1:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-4000:]}")
    with open(f"{made.pop()}/metrics.csv") as file:
        rows = [(float(row["training_seconds"]), float(row["updates"])) for row in csv.DictReader(file) if float(row["updates"]) > 0]
    half = [row for row in rows if row[0] >= rows[-1][0] / 2]
    if len(half) < 2:
        sys.exit(f"{name}: too few rows in metrics.csv; train for more --seconds")
    return (half[-1][1] - half[0][1]) / (half[-1][0] - half[0][0]), rows[-1][1]


def see(troupe, folder, trusted, seconds):
    """What was seen between the hosts, and the bytes per update of the busiest connection, both ways: that of the gradients. The others carry more
    per update where updates are slow."""
    with Capture() as capture:
        rate, updates = run(troupe, folder, trusted, seconds)
    seen = capture.between_hosts()
    print(f"{'trusted network' if trusted else 'encrypted'}: {rate:.1f} updates/s while captured; connections between the hosts:")
    for (source, port, target, other), size, bits in seen:
        print(f"  {source}:{port} to {target}:{other}: {size / 1e6:.1f} MB, {bits:.4f} bits per byte")
    both_ways = collections.Counter()
    for (source, port, target, other), size, _ in seen:
        both_ways[frozenset([(source, port), (target, other)])] += size
    each = max(both_ways.values(), default=0) / updates
    print(f"  {each / 1e3:.1f} kB of gradients per update")
    return seen, each


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("troupe")
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--rates", default="0", type=lambda text: [int(word) for word in text.split(",")])
    flags = parser.parse_args()
    cluster_file(flags.folder, flags.troupe)
    hidden, encrypted_bytes = see(flags.troupe, flags.folder, False, flags.seconds)
    shown, plain_bytes = see(flags.troupe, flags.folder, True, flags.seconds)
    problems = []
    if sum(size for _, size, _ in hidden) < 1 << 20:
        problems.append("the encrypted run exchanged less than a megabyte between its hosts: nothing was shown")
    problems += [f"{key}: {bits:.4f} bits per byte are no noise" for key, _, bits in hidden if bits < NOISE]
    if not any(bits < PLAIN for _, _, bits in shown):
        problems.append("no gradients were seen on the trusted network: this check could not fail")
    if encrypted_bytes * LEAST_SHARE > plain_bytes:
        problems.append(f"an encrypted update takes {encrypted_bytes:.0f} bytes between the hosts, a plain one {plain_bytes:.0f}: less than {LEAST_SHARE}")
    for rate in flags.rates if flags.rounds > 0 else []:
        subprocess.run(["bash", "-c", f". {HERE}/host_tools.sh; link_rate 0 {rate}"], check=rate != 0, stderr=subprocess.DEVNULL)
        pairs = [tuple(run(flags.troupe, flags.folder, trusted, flags.seconds)[0] for trusted in (False, True)) for _ in range(flags.rounds)]
        ratio = statistics.median(encrypted / plain for encrypted, plain in pairs)
        words = ", ".join(f"{encrypted:.1f}/{plain:.1f}" for encrypted, plain in pairs)
        print(f"{f'{rate} Mbit/s' if rate else 'no limit'}: encrypted/plain updates/s {words}: median ratio {ratio:.2f}")
        if ratio < LEAST_RATE:
            problems.append(f"{rate} Mbit/s: encrypted training has {ratio:.2f} of the plain rate, less than {LEAST_RATE}")
    print("\n".join(problems) or "nothing of the gradients was seen where they are encrypted")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
