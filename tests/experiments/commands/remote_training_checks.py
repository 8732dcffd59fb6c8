"""Trains on environments of the real Gymnasium and dm_control, served from Python, and on our versions of the tasks; both must reach the score.

Usage: remote_training_checks.py <troupe>
"""

import json
import pathlib
import subprocess
import sys
import tempfile

# our task, arguments of `python -m troupe_env serve`, return to reach, keys that differ from COMMON
CASES = [
    ("InvertedPendulum-v5", ["gymnasium", "InvertedPendulum-v5"], 900, {"d4pg.value_maximum": 100, "stop.environment_steps": 60000}),
    ("cartpole_balance", ["dm_control", "cartpole", "balance"], 900, {"d4pg.value_maximum": 100, "stop.environment_steps": 60000}),
]
COMMON = {"replay.minimum_items": 500, "replay.samples_per_insert": 64, "replay.n_step": 3, "d4pg.policy_layers": "64,64",
          "d4pg.critic_layers": "128,128", "d4pg.batch_size": 128, "d4pg.policy_learning_rate": 1e-3, "d4pg.critic_learning_rate": 1e-3,
          "actors.environment": 1, "actors.random_steps": 500, "d4pg.noise_start": 0.3, "evaluation.period": 2000,
          "evaluation.episodes": 3, "evaluation.video": "false"}


def train(program, folder, task, keys, served=None):
    (folder / "experiment.textproto").write_text(f'environment {{ task: "{task}" }}\n')
    keys = dict(keys)
    if served:
        keys["environment.options"] = f"endpoint={served}"
    sets = [part for key, value in keys.items() for part in ("--set", f"{key}={value}")]
    run = subprocess.run([program, "train", "experiment.textproto", "--json", *sets], cwd=folder, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr[-2000:]
    summary = json.loads(next(line for line in reversed(run.stdout.splitlines()) if line.startswith("{")))
    return sum(summary["returns"]) / len(summary["returns"]), summary


def main():
    program = sys.argv[1]
    for task, serve, goal, keys in CASES:
        keys = {**COMMON, **keys, "stop.evaluation_return": goal}
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            endpoint = f"ipc://{folder}/environments"
            server = subprocess.Popen([sys.executable, "-m", "troupe_env", "serve", *serve, "--endpoint", endpoint, "--count", "4"])
            try:
                remote, _ = train(program, folder, "remote", keys, endpoint)
            finally:
                server.terminate()
                server.wait(timeout=30)
            native, _ = train(program, folder, task, keys)
        print(f"{task}: return {remote:.1f} served from Python, {native:.1f} natively, to reach: {goal}", flush=True)
        assert remote >= goal and native >= goal
    return 0


sys.exit(main())
