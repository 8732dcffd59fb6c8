#!/usr/bin/env python3
"""Serves one policy alternately with `troupe serve policy` and with FastAPI, uvicorn and PyTorch, loads both with wrk, and prints requests/s and latency
at 1, 32 and 1,024 clients as a Markdown table.

    experiments/bench/peers/serving_rival.py PROGRAM RUN --python PYTHON [--clients 1,32,1024] [--seconds 5] [--rounds 3]

PROGRAM: `troupe`. RUN: the folder of a run from states. PYTHON: an interpreter with fastapi, uvicorn[standard], torch and safetensors. wrk: Debian's package.
Each client sends a request when it has the answer to its previous one, over a connection that stays open. Both servers get the same observations as JSON
and compute layers of the same sizes; PyTorch uses one thread and no gradients. Figures are medians over the rounds."""
import argparse, collections, json, pathlib, re, statistics, subprocess, sys, tempfile, time, urllib.request

RIVAL = '''
import json, pathlib, sys
import torch, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from safetensors.torch import load_file

torch.set_num_threads(1)
tensors = load_file(pathlib.Path(sys.argv[1]) / "policy.safetensors")
layers = []
for name in sorted((name for name in tensors if name.endswith(".weight") and tensors[name].dim() == 2), key=lambda name: int(name[5:-7])):
    weight, bias = tensors[name], tensors[name[:-6] + "bias"]
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0])
    layer.weight.data, layer.bias.data = weight, bias
    layers += [layer, torch.nn.ReLU()]
policy = torch.nn.Sequential(*layers[:-1], torch.nn.Tanh()).eval()


class Asked(BaseModel):
    observation: dict[str, list[float]]


app = FastAPI()


@app.post("/v1/act")
async def act(asked: Asked):
    with torch.inference_mode():
        state = torch.tensor([number for numbers in asked.observation.values() for number in numbers])
        return {"action": policy(state).tolist()}


@app.get("/healthz")
async def healthz():
    return "ok"


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="error", access_log=False)
'''
LUA = 'wrk.method = "POST"\nwrk.body = [[{body}]]\nwrk.headers["Content-Type"] = "application/json"\nwrk.headers["Authorization"] = "Bearer {token}"\n'
UNITS = {"us": 1e-3, "ms": 1, "s": 1e3}


def load(address, script, clients, seconds):
    """Returns (requests/s, p50 in ms, p99 in ms)."""
    done = subprocess.run(["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "10s", "--latency", "-s", str(script), address + "/v1/act"],
                          check=True, capture_output=True, text=True).stdout
    if re.search("Non-2xx|Socket errors", done):
        sys.exit(f"{address} with {clients} clients:\n{done}")
    at = {percent: float(value) * UNITS[unit] for percent, value, unit in re.findall(r"(50|99)%\s+([\d.]+)(us|ms|s)", done)}
    return float(re.search(r"Requests/sec:\s+([\d.]+)", done)[1]), at["50"], at["99"]


def wait_for(address, process):
    for _ in range(600):
        if process.poll() is not None:
            sys.exit(f"the server at {address} ended with {process.returncode}")
        try:
            urllib.request.urlopen(address + "/healthz", timeout=1)
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{address} does not answer")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--clients", default="1,32,1024")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([options.program, "export", options.run, "--out", folder / "policy", "--format", "safetensors"], check=True, stdout=subprocess.DEVNULL)
        contract = json.loads((folder / "policy/contract.json").read_text())
        observation = {array["name"]: [0.125] * array["shape"][0] for array in contract["observations"]}
        (folder / "rival.py").write_text(RIVAL)
        ours = subprocess.Popen([options.program, "serve", "policy", options.run, "--json", "--reload", "0"], stdout=subprocess.PIPE, text=True)
        rival = subprocess.Popen([options.python, folder / "rival.py", folder / "policy", "8971"])
        try:
            served = json.loads(ours.stdout.readline())
            servers = {"troupe serve policy": (served["address"], ours), "FastAPI and PyTorch": ("http://127.0.0.1:8971", rival)}
            script = folder / "act.lua"
            script.write_text(LUA.format(body=json.dumps({"observation": observation}), token=served["token"]))
            figures = collections.defaultdict(list)
            for address, process in servers.values():
                wait_for(address, process)
                load(address, script, 8, 1)
            for _ in range(options.rounds):
                for clients in map(int, options.clients.split(",")):
                    for server, (address, _) in servers.items():
                        figures[clients, server].append(load(address, script, clients, options.seconds))
        finally:
            for process in (ours, rival):
                process.terminate()
                process.wait()
    print("| clients | server | requests/s | p50 ms | p99 ms | ours is faster |\n| --- | --- | --- | --- | --- | --- |")
    medians = {key: [statistics.median(column) for column in zip(*values)] for key, values in figures.items()}
    for (clients, server), (rate, half, most) in medians.items():
        ratio = f"{medians[clients, 'troupe serve policy'][0] / rate:.1f}" if server != "troupe serve policy" else ""
        print(f"| {clients:,} | {server} | {rate:,.0f} | {half:.2f} | {most:.2f} | {ratio} |")


main()
