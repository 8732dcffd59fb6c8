#!/usr/bin/env python3
"""replay_in_python.py [--seconds S] [--rounds N]: compares items/s of troupe.replay.Table with cpprb, Reverb and TorchRL, all in this
process.

The rate of an operation is items divided by seconds, as the median over rounds; in each round, every library runs for S seconds, one after another.
`states`: observation and next observation of 17 float32, 6 actions, a reward and an end flag. `pixels`: 84x84 uint8 frames, stored once; batches have
stacks of 3 as observation and next observation, with 6 actions, a reward and an end flag. Every array of a batch is created. The tables are full, with
100,000 and 20,000 items. Libraries that are not installed are reported and left out. Needs NumPy and, on PYTHONPATH, <build>/python."""
import argparse
import importlib.util
import itertools
import pathlib
import statistics
import time

import numpy as np
from troupe.replay import Table

BATCH, MANY = 256, 64
SIZES = {"states": 100_000, "pixels": 20_000}


class Data:
    """Random steps: step i of MANY is row i."""

    def __init__(self, kind):
        random = np.random.default_rng(1)
        self.kind = kind
        self.actions = random.normal(size=(MANY, 6)).astype(np.float32)
        self.rewards = random.normal(size=MANY).astype(np.float32)
        self.ends = np.zeros(MANY, np.uint8)
        if kind == "states":
            self.observations = random.normal(size=(MANY, 17)).astype(np.float32)
            self.following = random.normal(size=(MANY, 17)).astype(np.float32)
        else:
            self.frames = random.integers(0, 256, (MANY + 3, 84, 84), np.uint8)
        self.priorities = random.uniform(0, 1, BATCH)


class Troupe:
    name = "troupe"

    def __init__(self, data, prioritized):
        first = {"observation": ((17,), "float32"), "next_observation": ((17,), "float32")}
        if data.kind == "pixels":
            first = {"frame": ((84, 84), "uint8")}
        columns = {**first, "action": ((6,), "float32"), "reward": ((), "float32"), "end": ((), "uint8")}
        self.pixels = data.kind == "pixels"
        self.table = Table(columns, length=4 if self.pixels else None, max_items=SIZES[data.kind],
                           sampler="prioritized" if prioritized else "uniform", priority_exponent=0.6)
        self.data = data
        common = {"action": data.actions, "reward": data.rewards, "end": data.ends}
        if self.pixels:
            self.many = {"frame": data.frames[:MANY], **common}
        else:
            self.many = {"observation": data.observations, "next_observation": data.following, **common}
        self.rows = [{name: values[i] for name, values in self.many.items()} for i in range(MANY)]

    def add_one(self):
        add = self.table.add
        for row in self.rows:
            add(**row)
        return MANY

    def add_many(self):
        self.table.extend(self.many)
        return MANY

    def sample(self):
        batch = self.table.sample(BATCH)
        arrays = [batch[name] for name in batch.columns]
        if self.pixels:
            arrays += [arrays[0][:, :3], arrays[0][:, 1:]]
        self.keys = batch.keys
        self.probabilities = batch.probabilities
        return BATCH

    def update(self):
        self.table.update_priorities(self.keys, self.data.priorities)
        return BATCH


class Cpprb:
    name = "cpprb"

    def __init__(self, data, prioritized):
        import cpprb

        self.pixels = data.kind == "pixels"
        observation = {"shape": (84, 84, 3), "dtype": np.uint8} if self.pixels else {"shape": 17}
        columns = {"obs": observation, "act": {"shape": 6}, "rew": {}, "done": {"dtype": np.uint8}}
        once = {"next_of": "obs", "stack_compress": "obs"} if self.pixels else {}
        if not self.pixels:
            columns["next_obs"] = {"shape": 17}
        kind = cpprb.PrioritizedReplayBuffer if prioritized else cpprb.ReplayBuffer
        self.buffer = kind(SIZES[data.kind], columns, **once)
        self.data = data
        if self.pixels:
            stacks = np.stack([np.moveaxis(data.frames[i : i + 3], 0, -1) for i in range(MANY + 1)])
            self.many = {"obs": stacks[:MANY], "next_obs": stacks[1:]}
        else:
            self.many = {"obs": data.observations, "next_obs": data.following}
        self.many.update(act=data.actions, rew=data.rewards, done=data.ends)
        self.rows = [{name: values[i] for name, values in self.many.items()} for i in range(MANY)]

    def add_one(self):
        add = self.buffer.add
        for row in self.rows:
            add(**row)
        return MANY

    def add_many(self):
        self.buffer.add(**self.many)
        return MANY

    def sample(self):
        batch = self.buffer.sample(BATCH)
        self.indexes = batch.get("indexes")
        return len(batch["rew"])

    def update(self):
        self.buffer.update_priorities(self.indexes, self.data.priorities)
        return BATCH


class Reverb:
    name = "reverb"

    def __init__(self, data, prioritized):
        import reverb

        self.pixels = data.kind == "pixels"
        sampler = reverb.selectors.Prioritized(0.6) if prioritized else reverb.selectors.Uniform()
        self.server = reverb.Server([reverb.Table("table", sampler, reverb.selectors.Fifo(), SIZES[data.kind], reverb.rate_limiters.MinSize(1))])
        self.client = reverb.Client(f"localhost:{self.server.port}")
        self.data = data
        common = {"action": data.actions, "reward": data.rewards, "end": data.ends}
        if self.pixels:
            many = {"frame": data.frames[:MANY], **common}
        else:
            many = {"observation": data.observations, "next_observation": data.following, **common}
        self.rows = [{name: values[i] for name, values in many.items()} for i in range(MANY)]
        self.writer = self.client.trajectory_writer(4 if self.pixels else 1)
        self.steps = 0
        self.sampler = None

    def _write(self, flush_each):
        length = 4 if self.pixels else 1
        for row in self.rows:
            self.writer.append(row)
            self.steps += 1
            if self.steps >= length:
                self.writer.create_item("table", 1.0, {name: column[-length:] for name, column in self.writer.history.items()})
            if flush_each:
                self.writer.flush(64)
        self.writer.flush()
        return MANY

    def add_one(self):
        return self._write(True)

    def add_many(self):
        return self._write(False)

    def sample(self):
        if self.sampler is None:  # one sampler that is kept, as its documentation advises
            self.sampler = self.client.sample("table", 1 << 40, emit_timesteps=False)
        batch = list(itertools.islice(self.sampler, BATCH))
        for place in range(len(batch[0].data)):
            np.stack([item.data[place] for item in batch])
        self.keys = [int(item.info.key) for item in batch]
        return len(batch)

    def update(self):
        self.client.mutate_priorities("table", dict(zip(self.keys, self.data.priorities)))
        return BATCH


class TorchRL:
    name = "torchrl"

    def __init__(self, data, prioritized):
        import tensordict
        import torch
        from torchrl.data import LazyTensorStorage, TensorDictPrioritizedReplayBuffer, TensorDictReplayBuffer

        torch.set_num_threads(1)
        storage = LazyTensorStorage(SIZES[data.kind])
        if prioritized:
            self.buffer = TensorDictPrioritizedReplayBuffer(alpha=0.6, beta=0.4, storage=storage, batch_size=BATCH)
        else:
            self.buffer = TensorDictReplayBuffer(storage=storage, batch_size=BATCH)
        many = {"action": data.actions, "reward": data.rewards, "end": data.ends}
        if data.kind == "pixels":  # it stores whole stacks
            many["observation"] = np.stack([data.frames[i : i + 3] for i in range(MANY)])
            many["next_observation"] = np.stack([data.frames[i + 1 : i + 4] for i in range(MANY)])
        else:
            many.update(observation=data.observations, next_observation=data.following)
        self.many = tensordict.TensorDict({name: torch.from_numpy(values) for name, values in many.items()}, batch_size=[MANY])
        self.rows = [self.many[i] for i in range(MANY)]
        self.priorities = torch.from_numpy(data.priorities).float()

    def add_one(self):
        for row in self.rows:
            self.buffer.add(row)
        return MANY

    def add_many(self):
        self.buffer.extend(self.many.clone())
        return MANY

    def sample(self):
        batch = self.buffer.sample()
        self.index = batch["index"]
        return len(batch)

    def update(self):
        self.buffer.update_priority(self.index, self.priorities)
        return BATCH


def rate(operation, seconds):
    items, begin = 0, time.perf_counter()
    while True:
        items += operation()
        passed = time.perf_counter() - begin
        if passed >= seconds:
            return items / passed


def measure(kind, prioritized, libraries, options):
    data = Data(kind)
    tables = []
    for library in libraries:
        table = library(data, prioritized)
        filling = time.perf_counter()
        for _ in range(SIZES[kind] // MANY + 1):
            table.add_many()
            if time.perf_counter() - filling > options.fill_seconds:
                print(f"{table.name}: {kind} not full after {options.fill_seconds} s")
                break
        table.sample()
        tables.append(table)
    sampler = "prioritized" if prioritized else "uniform"
    operations = ["add_one", "add_many", "sample"] + (["update"] if prioritized else [])
    rates = {(table.name, operation): [] for table in tables for operation in operations}
    for _ in range(options.rounds):
        for operation in operations:
            for table in tables:
                rates[table.name, operation].append(rate(getattr(table, operation), options.seconds))
    for operation in operations:
        values = [statistics.median(rates[table.name, operation]) for table in tables]
        print(f"| {kind}, {sampler} | {operation} | " + " | ".join(f"{value / 1e3:,.1f} k ({values[0] / value:.1f})" for value in values) + " |", flush=True)


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "unknown processor"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fill-seconds", type=float, default=30)
    parser.add_argument("--kinds", nargs="+", default=list(SIZES))
    parser.add_argument("--libraries", nargs="+", default=["troupe", "cpprb", "reverb", "torchrl"])
    options = parser.parse_args()
    libraries = []
    for library in (Troupe, Cpprb, Reverb, TorchRL):
        if library.name not in options.libraries:
            continue
        if importlib.util.find_spec(library.name):
            libraries.append(library)
        else:
            print(f"{library.name} is not installed and left out")
    print(f"{processor()}; items/s, and by how much Troupe has more\n")
    print("| | | " + " | ".join(library.name for library in libraries) + " |")
    print("| --- | --- |" + " --- |" * len(libraries))
    for kind in options.kinds:
        for prioritized in (False, True):
            measure(kind, prioritized, libraries, options)


if __name__ == "__main__":
    main()
