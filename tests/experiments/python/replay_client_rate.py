"""How many items a Python process writes and samples per second through troupe.replay. Usage: replay_client_rate.py <troupe> [seconds].

A step is an item. Medians of 3; the server is `troupe replay serve` on the same host, reached through ipc and shared memory.
"""

import json
import statistics
import subprocess
import sys
import time

import numpy as np
from troupe import replay

TROUPE = sys.argv[1]
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 0.5
KINDS = {
    "states": (["state:float32:24", "action:float32:6", "reward", "discount"], 1_000_000),
    "pixels": (["pixels:uint8:9,84,84", "action:float32:6", "reward", "discount"], 10_000),
}


def rate(turn):
    rates = []
    for _ in range(3):
        items, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < SECONDS:
            items += turn()
        rates.append(items / (time.perf_counter() - begin))
    return statistics.median(rates)


def measure(kind, columns, capacity):
    flags = [flag for column in columns for flag in ("--column", column)]
    server = subprocess.Popen([TROUPE, "replay", "serve", "--json", "--end-with-input", "--set", f"max_items={capacity}", *flags],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    client = replay.Client(json.loads(server.stdout.readline())["endpoint"])
    rows = {column.name: np.ones((256, *column.shape), column.dtype) for column in client.columns}
    step = {name: values[0] for name, values in rows.items()}
    writer = client.writer()
    many = client.writer(reach=256)

    def single():
        for _ in range(64):
            writer.append(**step)
            writer.add_item(1)
            writer.insert()
        client.flush()
        return 64

    def batched():
        many.extend(**rows)
        many.add_items(many.rows - 256, many.rows, 1)
        many.insert()
        client.flush()
        return 256

    def sampled():
        batch = client.sample(256)
        return len(batch[client.columns[0].name])

    for name, turn in (("insert, one at a time", single), ("insert, 256 at a time", batched), ("sample of 256", sampled)):
        print(f"{kind}: {name}: {rate(turn):.4g} items/s", flush=True)
    client.close()
    server.stdin.close()
    server.wait(20)


for kind, (columns, capacity) in KINDS.items():
    measure(kind, columns, capacity)
