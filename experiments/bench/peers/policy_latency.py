#!/usr/bin/env python3
"""Measures the latency of exported policies at batch 1, alternately for the header and ONNX Runtime, on the recorded observations.

    experiments/bench/peers/policy_latency.py FOLDER... [--rounds 5] [--compiler g++]

FOLDER: a folder of `troupe export`, from states and without a memory. Needs onnxruntime, numpy and safetensors. Prints one line of JSON for each figure:
p50 and p99 of one action in microseconds, as the median, minimum and maximum over rounds. The header is compiled with -O3 -march=native and called from
C++. ONNX Runtime has one thread, does not spin, uses bound inputs and outputs, and is called from Python; its figure includes that call."""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

import numpy
import onnxruntime
from safetensors.numpy import load_file


def runtime_of(folder):
    """Returns a function that acts on row i through bound buffers, and the number of rows."""
    contract = json.loads((folder / "contract.json").read_text())
    if contract["state_size"] > 0 or len(contract["observations"]) > 1:
        raise SystemExit(f"{folder}: takes more than one array or has a memory; export a policy from states without one")
    samples = load_file(folder / "samples.safetensors")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(folder / "policy.onnx", options, providers=["CPUExecutionProvider"])
    observation = numpy.ascontiguousarray(samples["observation"][:1])
    action = numpy.empty((1, len(contract["actions"])), numpy.float32)
    binding = session.io_binding()
    for bind, name, array in ((binding.bind_input, contract["observations"][0]["name"], observation), (binding.bind_output, "action", action)):
        bind(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)

    def act(row):
        observation[0] = samples["observation"][row]
        begin = time.perf_counter_ns()
        session.run_with_iobinding(binding)
        return time.perf_counter_ns() - begin

    for row in range(len(samples["first"])):
        act(row)
        assert numpy.abs(action[0] - samples["action"][row]).max() < 1e-5, (folder, row)
    return act, len(samples["first"])


def show(folder, name, weights, rounds):
    for key in ("p50_us", "p99_us"):
        values = [one[key] for one in rounds]
        print(json.dumps({"bench": "policy_latency", "metric": f"{name} {key[:3]}", "value": round(statistics.median(values), 3), "unit": "us",
                          "least": round(min(values), 3), "greatest": round(max(values), 3), "config": {"policy": folder.name, "weights": weights}}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--compiler", default="g++")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as built:
        for folder in options.folder:
            cmake = (folder / "CMakeLists.txt").read_text()
            namespace = re.search(r"project\((\w+)", cmake).group(1)
            weights = re.search(r"Weights: (\w+)", (folder / "policy.hpp").read_text()).group(1)
            program = pathlib.Path(built) / "parity"
            subprocess.run([options.compiler, "-std=c++17", "-O3", "-march=native", f"-DPOLICY={namespace}", "-o", program, folder / "parity.cpp"], check=True)
            act, rows = runtime_of(folder)
            header, runtime = [], []
            for _ in range(options.rounds):
                said = subprocess.run([program, folder / "samples.safetensors", "1"], capture_output=True, text=True, check=True).stdout
                header.append(json.loads(said))
                taken = sorted(act(row) for row in range(rows))
                runtime.append({"p50_us": taken[rows // 2] / 1000, "p99_us": taken[rows * 99 // 100] / 1000})
            show(folder, "header", weights, header)
            if weights == "float":
                show(folder, "ONNX Runtime", "float", runtime)


main()
