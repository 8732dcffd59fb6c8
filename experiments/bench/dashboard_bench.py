#!/usr/bin/env python3
"""Measures the dashboard. Usage: dashboard_bench.py [--troupe PROGRAM] size|cost|requests|cluster|page

  size   How long the page's requests take with --runs runs (200) of --rows rows each (100,000), after their files have been read: the curves of
         all runs, and the list. Also prints how long reading takes, which is spread over the requests.
  cost   The environment steps per second of a run and the processor time per step, with and without `--dashboard`, a page that polls it like
         a browser, and a Prometheus that polls it every second; interleaved --pairs times (6). This script plays the page, because a browser
         on the same cores would be measured too. If other programs run, processor time varies less than the rate.
  requests  The processor time of each of these requests while a run trains, and their sum per second.
  cluster  How long each request of the page and of Prometheus takes for a live run with --processes processes (1,000), which dashboard_cluster
         simulates; --requests of each (100), once a second those that ask the head, whose answer the dashboard keeps for 0.9 s.
  page   How long these take in Chromium with --runs runs (200) of --rows rows each, from the event until the next frame is painted, ten times each: to
         filter the list, to show all runs again, to sort the table that compares all runs, and to open a run. --rows 1000 suffices, because these do not depend on it.
         Installs Playwright in --venv (browser_venv beside the program) if it is missing.
"""
import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/experiments/web"))
from browser import PACKAGES, chromium, python_with

COLUMNS = ["kind", "environment_steps", "agent_steps", "episodes", "updates", "inserts", "samples", "frames", "replay_items", "replay_bytes",
           "replay_failed_spills", "failed_copies", "parameter_version", "parameter_lag", "training_seconds", "environment_steps_per_second",
           "updates_per_second", "frames_per_second", "episode_return", "evaluation_return", "evaluation_return_min", "evaluation_return_max",
           "evaluation_episodes", "critic_loss", "gradient_norm"]
PERIOD = 2  # seconds between the page's refreshes
CHARTS = ["headline", "episode_return", "environment_steps_per_second", "updates_per_second"]


class Client:
    def __init__(self, address):
        self.base, self.token = address.split("/?token=")

    def ask(self, path, body=None):
        headers = {"Authorization": f"Bearer {self.token}", "X-Troupe": "dashboard"}
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.urlopen(urllib.request.Request(self.base + path, data, headers), timeout=60).read()

    def series(self, column, known, points):
        wanted = [{"id": run, "version": version} for run, version in known.items()]
        answer = self.ask("/api/series", {"x": "environment_steps", "y": column, "points": points, "runs": wanted})
        length = int.from_bytes(answer[:4], "little")
        return json.loads(answer[4:4 + length])["runs"]


def write_runs(folder, config, count, rows):
    """Writes runs with identical files, except for the seed in the configuration."""
    rng = random.Random(1)
    lines = [",".join(COLUMNS)]
    for i in range(1, rows + 1):
        lines.append(f"progress,{500 * i},{500 * i},{i // 2},{250 * i},{500 * i},{16000 * i},0,{min(500 * i, 1000000)},{150 * min(500 * i, 1000000)},0,{250 * i},"
                     f"{rng.uniform(1, 9):.6f},{0.5 * i},{rng.uniform(900, 1100):.6f},{rng.uniform(450, 550):.6f},0,{rng.uniform(0, 1000):.6f},,,,,"
                     f"{rng.uniform(0, 1):.8f},{rng.uniform(0, 9):.8f}")
        if i % 100 == 0:
            lines.append(f"evaluation,{500 * i},,,{250 * i},,,,,,,,,{0.5 * i},,,,,{rng.uniform(0, 1000):.6f},0,1000,10,,")
    text = "\r\n".join(lines) + "\r\n"
    for n in range(count):
        run = folder / "balance" / f"2026-11-{1 + n // 24:02}T{n % 24:02}-00-00"
        run.mkdir(parents=True)
        (run / "config.textproto").write_text(re.sub(r"(?m)^seed:.*$", f"seed: {n}", config))
        (run / "metrics.csv").write_text(text)
    return len(text)


def timed(call, count, pause=0.0):
    times = []
    for _ in range(count):
        time.sleep(pause)
        begin = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - begin))
    return spread(times)


def spread(times):
    times = sorted(times)
    return {"p50_ms": round(times[len(times) // 2], 1), "p99_ms": round(times[int(0.99 * len(times))], 1), "max_ms": round(times[-1], 1)}


def short_run(troupe, folder):
    subprocess.run([troupe, "train", "cartpole_balance", "--runs", folder, "--set", "stop.environment_steps=1500", "--set", "evaluation.video=false", "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("*/*/config.textproto")).read_text()


def size(options, folder):
    config = short_run(options.troupe, folder / "config")
    each = write_runs(folder / "runs", config, options.runs, options.rows)
    dashboard = subprocess.Popen([options.troupe, "dashboard", folder / "runs", "--json"], stdout=subprocess.PIPE, text=True)
    client = Client(json.loads(dashboard.stdout.readline())["address"])
    begin = time.perf_counter()
    longest = 0
    while json.loads(client.ask("/api/runs"))["pending"]:
        pass
    ids = [run["id"] for run in json.loads(client.ask("/api/runs"))["runs"]]
    nothing = {run: 0 for run in ids}
    while True:
        asked = time.perf_counter()
        read = [run["read"] for run in client.series("episode_return", nothing, 300)]
        longest = max(longest, time.perf_counter() - asked)
        if min(read) == 1:
            break
    told = {"runs": len(ids), "rows": options.rows, "bytes_each": each, "reading_seconds": round(time.perf_counter() - begin, 1),
            "longest_request_while_reading_ms": round(1000 * longest, 1)}
    for name, call in {"curves_of_all": lambda: client.series("episode_return", nothing, 300), "list": lambda: client.ask("/api/runs"),
                       "result_of_all": lambda: client.series("headline", nothing, 300)}.items():
        told[name] = timed(call, 100)
    told["dashboard_bytes"] = 4096 * int(pathlib.Path(f"/proc/{dashboard.pid}/statm").read_text().split()[1])
    dashboard.terminate()
    dashboard.wait()
    print(json.dumps(told))


def poll(address, over):
    """Sends the page's requests, every two seconds."""
    client = Client(address)
    known = {column: {} for column in CHARTS}
    while True:
        runs = json.loads(client.ask("/api/runs"))["runs"]
        for column in CHARTS:
            for run in client.series(column, {run["id"]: known[column].get(run["id"], 0) for run in runs}, 600):
                known[column][run["id"]] = run["version"]
        client.ask("/api/run?id=" + urllib.request.quote(runs[0]["id"]))
        for _ in range(PERIOD):
            client.ask("/metrics")
            if over.wait(1):
                return


def one_run(options, folder, dashboard):
    words = [options.troupe, "train", "cartpole_balance", "--runs", folder, "--json", "--quiet", "--set", f"stop.environment_steps={options.steps}", "--set",
             "evaluation.video=false", "--set", "evaluation.period=0", "--set", "evaluation.final_episodes=1"]
    run = subprocess.Popen(words + ["--dashboard"] * dashboard, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    over = threading.Event()
    poller = None
    errors = run.stderr
    for line in errors:
        if line.startswith("dashboard: "):
            poller = threading.Thread(target=poll, args=(line.split()[1], over), daemon=True)
            poller.start()
            break
    result = json.loads(run.stdout.read())
    over.set()
    used = os.wait4(run.pid, 0)[2]
    run.returncode = 0
    steps = result["environment_steps"]
    return steps / result["training_seconds"], 1e6 * (used.ru_utime + used.ru_stime) / steps


def cost(options, folder):
    made = {False: [], True: []}
    for pair in range(options.pairs):
        for dashboard in (False, True) if pair % 2 == 0 else (True, False):
            made[dashboard].append(one_run(options, folder, dashboard))
    told = {"steps": options.steps}
    for i, what in enumerate(("steps_per_second", "processor_us_per_step")):
        off, on = ([run[i] for run in made[dashboard]] for dashboard in (False, True))
        ratios = [b / a for a, b in zip(off, on)]
        told[what] = {"without": [round(value) for value in off], "with": [round(value) for value in on], "median_ratio": round(statistics.median(ratios), 4),
                      "least_ratio": round(min(ratios), 4), "greatest_ratio": round(max(ratios), 4)}
    print(json.dumps(told))


def processor_ms(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return 1000 * (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def requests(options, folder):
    """Measures a separate program, whose processor time is only that of the requests."""
    run = subprocess.Popen([options.troupe, "train", "cartpole_balance", "--runs", folder, "--quiet", "--set", "stop.environment_steps=100000000", "--set",
                            "evaluation.video=false", "--set", "evaluation.period=0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    dashboard = subprocess.Popen([options.troupe, "dashboard", folder, "--json"], stdout=subprocess.PIPE, text=True)
    client = Client(json.loads(dashboard.stdout.readline())["address"])
    while not (runs := json.loads(client.ask("/api/runs"))["runs"]) or not runs[0]["updates"]:
        time.sleep(0.5)
    run_of = "/api/run?id=" + urllib.request.quote(runs[0]["id"])
    told = {}
    for name, call, count, pause in (("list", lambda: client.ask("/api/runs"), 200, 0), ("curve", lambda: client.series("episode_return", {runs[0]["id"]: 0}, 600), 200, 0),
                                     ("run", lambda: client.ask(run_of), 20, 1), ("metrics", lambda: client.ask("/metrics"), 200, 0)):
        before = processor_ms(dashboard.pid)
        for _ in range(count):
            call()
            time.sleep(pause)
        told[name + "_ms"] = round((processor_ms(dashboard.pid) - before) / count, 2)
    told["together_ms_per_second"] = round((told["list_ms"] + len(CHARTS) * told["curve_ms"] + told["run_ms"]) / PERIOD + told["metrics_ms"], 2)
    before, begin = processor_ms(run.pid), time.perf_counter()
    time.sleep(10)
    told["run_ms_per_second"] = round((processor_ms(run.pid) - before) / (time.perf_counter() - begin))
    for process in (run, dashboard):
        process.kill()
        process.wait()
    print(json.dumps(told))


def cluster(options, folder):
    program = pathlib.Path(options.troupe).parent / "dashboard_cluster"
    served = subprocess.Popen([program, "--processes", str(options.processes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    client = Client(json.loads(served.stdout.readline())["address"])
    run = json.loads(client.ask("/api/runs"))["runs"][0]
    named = urllib.request.quote(run["id"])
    about = json.loads(client.ask(f"/api/run?id={named}"))
    assert run["state"] == "running" and len(about["status"]["processes"]) == options.processes, (run, about["why_no_actions"])
    calls = {"page": lambda: client.ask("/"), "list": lambda: client.ask("/api/runs"), "run": lambda: client.ask(f"/api/run?id={named}"),
             "config": lambda: client.ask(f"/api/config?id={named}"), "logs": lambda: client.ask(f"/api/logs?id={named}"),
             "logs_filtered": lambda: client.ask(f"/api/logs?id={named}&who=environment/3&contains=works"),
             "curve": lambda: client.series("episode_return", {run["id"]: 0}, 600), "compare": lambda: client.ask("/api/compare", {"runs": [run["id"]]}),
             "metrics": lambda: client.ask("/metrics")}
    told = {"processes": options.processes, "live_bytes": len(json.dumps(about["live"])), "run_bytes": len(json.dumps(about)), "goal_ms": 200}
    for name, call in calls.items():
        told[name] = timed(call, options.requests, 1.0 if name == "run" else 0.0)
    served.stdin.close()
    assert served.wait(60) == 0, served.returncode
    print(json.dumps(told))


# Interactions with the page: each is a function of the round, which may return a promise.
FILTER = "(text) => { const input = document.getElementById('run-filter'); input.value = text; input.dispatchEvent(new Event('input')); }"
INTERACTIONS = {
    "filter": f"(round) => ({FILTER})(`seed ${{round}}`)",
    "show_all": f"() => ({FILTER})('')",
    "sort": "(round) => { const heads = document.querySelectorAll('#view-compare th button'); heads[round % heads.length].click(); }",
    "open": """(round) => new Promise((done) => {
      new MutationObserver((_, seen) => { seen.disconnect(); done(); }).observe(document.querySelector('#view-run .flow-box'), {childList: true});
      document.querySelectorAll('.run-button')[10 + round].click();
    })""",
}
# A task that a frame's callback adds runs after the frame was painted.
TIMED = "async (round) => {{ const begin = performance.now(); await ({})(round); await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); return performance.now() - begin; }}"


def page(options, folder):
    config = short_run(options.troupe, folder / "config")
    live = next(folder.glob("config/*/*/live.json")).read_text()
    write_runs(folder / "runs", config, options.runs, options.rows)
    for run in folder.glob("runs/*/*"):
        (run / "live.json").write_text(live)
    dashboard = subprocess.Popen([options.troupe, "dashboard", folder / "runs", "--json"], stdout=subprocess.PIPE, text=True)
    told = {"runs": options.runs, "rows": options.rows}
    with chromium() as browser:
        shown = browser.new_page(viewport={"width": 1440, "height": 900})
        shown.goto(json.loads(dashboard.stdout.readline())["address"])
        shown.locator("#run-list li").nth(options.runs - 1).wait_for()

        def measure(*names):
            times = {name: [] for name in names}
            for turn in range(10):
                for name in names:
                    times[name].append(shown.evaluate(TIMED.format(INTERACTIONS[name]), turn))
            told.update({name: spread(times[name]) for name in names})

        measure("filter", "show_all")
        shown.click("#show-all")
        shown.click("nav a[href='#compare']")
        shown.locator("#view-compare tbody tr").nth(options.runs - 1).wait_for()
        measure("sort")
        shown.click("nav a[href='#run']")
        shown.wait_for_selector("svg.flow")
        measure("open")
    dashboard.terminate()
    dashboard.wait()
    print(json.dumps(told))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["size", "cost", "requests", "cluster", "page"])
    parser.add_argument("--troupe", default=str(pathlib.Path(__file__).resolve().parents[2] / "build/release/troupe"))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=1_000)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--steps", type=int, default=4_000)
    parser.add_argument("--venv", type=pathlib.Path)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.what == "page" and not options.inside:
        venv = options.venv or pathlib.Path(options.troupe).parent / "browser_venv"
        sys.exit(subprocess.run([python_with(venv, PACKAGES), *sys.argv, "--inside"]).returncode)
    with tempfile.TemporaryDirectory() as folder:
        {"size": size, "cost": cost, "requests": requests, "cluster": cluster, "page": page}[options.what](options, pathlib.Path(folder))


if __name__ == "__main__":
    main()
