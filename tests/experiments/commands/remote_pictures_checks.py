"""Trains on pictures that Python plays: DQN on the real Breakout, stacked natively, and DQN and PPO on a picture with numbers beside it.

Usage: remote_pictures_checks.py <troupe> <experiments/configs/games>
"""

import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile

PROGRAM, CONFIGS = sys.argv[1], pathlib.Path(sys.argv[2])
LIT = '''
import gymnasium
import numpy as np


class Lit(gymnasium.Env):
    """One column of the picture is lit; the right choice is 1 if it is in the half that the number says. Neither is enough alone."""

    observation_space = gymnasium.spaces.Dict(
        {"image": gymnasium.spaces.Box(0, 255, (8, 8, 1), np.uint8), "half": gymnasium.spaces.Box(-1, 1, (1,), np.float32)}
    )
    action_space = gymnasium.spaces.Discrete(2)

    def drawn(self):
        self.column, self.half = int(self.np_random.integers(8)), int(self.np_random.integers(2))
        image = np.zeros((8, 8, 1), np.uint8)
        image[:, self.column] = 255
        return {"image": image, "half": np.array([2.0 * self.half - 1], np.float32)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.drawn(), {}

    def step(self, action):
        right = (self.column >= 4) == (self.half == 1)
        self.steps += 1
        return self.drawn(), float(action == right), False, self.steps == 20, {}
'''
LIT_CONFIG = """environment { task: "remote" observations: "half" observations: "image" frame_stack: 2 }
replay { discount: 0.5 %s }
%s
evaluation { period: 100000 final_episodes: 5 video: false }
stop { environment_steps: 8000 }
"""
AGENTS = {
    "dqn": ("minimum_items: 500 samples_per_insert: 16 n_step: 3",
            "dqn { layers: [32] batch_size: 32 learning_rate: 1e-3 target_period: 50 epsilon_steps: 3000 } actors { random_steps: 500 }"),
    "ppo": ("", "ppo { layers: [32] rollout: 32 batch_size: 8 learning_rate: 2e-3 } actors { environment: 1 environments_per_actor: 4 }"),
}


@contextlib.contextmanager
def served(folder, *arguments):
    endpoint = f"ipc://{folder}/environments"
    server = subprocess.Popen([sys.executable, "-m", "troupe_env", "serve", *arguments, "--endpoint", endpoint, "--count", "8", "--quiet"],
                              cwd=folder)
    try:
        yield f"environment.options=endpoint={endpoint}"
    finally:
        server.terminate()
        server.wait(timeout=30)


def troupe(folder, *arguments):
    run = subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, timeout=600)
    return run.returncode, run.stdout, run.stderr


def trained(folder, *arguments):
    code, out, error = troupe(folder, *arguments, "--json")
    assert code == 0, error[-2000:]
    return json.loads(next(line for line in reversed(out.splitlines()) if line.startswith("{")))


def parameters(folder, experiment):
    newest = max((folder / "runs" / experiment).iterdir())
    checkpoint = max((newest / "checkpoints").iterdir(), key=lambda path: int(path.name))
    return (checkpoint / "learner.safetensors").read_bytes()


def breakout():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "breakout.textproto").write_text((CONFIGS / "dqn_atari_breakout.textproto").read_text())
        with served(folder, "gymnasium", "ALE/Breakout-v5", "--make", "frameskip=1", "--wrap", "AtariPreprocessing,noop_max=0",
                    "--action-repeat", "4") as options:
            keys = {"environment.time_limit": 200, "replay.minimum_items": 500, "actors.random_steps": 500, "actors.environments_per_actor": 2,
                    "stop.environment_steps": 4000, "evaluation.final_episodes": 1}
            summary = trained(folder, "train", "breakout.textproto", "--set", options,
                              *(part for key, value in keys.items() for part in ("--set", f"{key}={value}")))
        assert summary["environment_steps"] >= 4000 and summary["updates"] > 50, summary
        print("Breakout: trained", summary["updates"], "updates", flush=True)


def picture_with_numbers(agent):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "lit.py").write_text(LIT)
        (folder / "lit.textproto").write_text(LIT_CONFIG % AGENTS[agent])
        with served(folder, "python", "lit:Lit") as options:
            train = ("train", "lit.textproto", "--set", options)
            returns = {}
            for more in ((), ("--processes",)):
                summary = trained(folder, *train, *more)
                returns[more] = sum(summary["returns"]) / len(summary["returns"])
            # The maximum is 20; a player who sees the picture or the number alone gets 10.
            assert min(returns.values()) > 15, returns
            equal = []
            for _ in range(2):
                trained(folder, *train, "--set", "deterministic=true", "--set", "stop.environment_steps=3000")
                equal.append(parameters(folder, "lit"))
            assert equal[0] == equal[1]
            if agent == "dqn":
                code, _, error = troupe(folder, *train, "--set", "environment.observations=half,steps")
                assert code == 2 and "'steps' is not an observation of" in error, error
        print(agent, "from a picture and a number: returns", *returns.values(), flush=True)


breakout()
for name in AGENTS:
    picture_with_numbers(name)
