"""Queries a policy that the real program serves, with messages of the real pyzmq, as in the README. Usage: messages_checks.py <troupe> <README>"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import zmq

TROUPE, README = sys.argv[1], pathlib.Path(sys.argv[2]).read_text()


def main():
    with tempfile.TemporaryDirectory() as name:
        runs = pathlib.Path(name, "runs")
        subprocess.run([TROUPE, "train", "cartpole_balance", "--runs", runs, "--quiet", "--set", "stop.environment_steps=600", "--set", "evaluation.period=0",
                        "--set", "evaluation.final_episodes=1", "--set", "evaluation.video=false", "--set", "replay.minimum_items=100",
                        "--set", "actors.random_steps=100"], check=True, stdout=subprocess.DEVNULL)
        served = subprocess.Popen([TROUPE, "serve", "policy", next(runs.glob("*/*")), "--messages", "tcp://127.0.0.1:*", "--json"], stdout=subprocess.PIPE, text=True)
        try:
            told = json.loads(served.stdout.readline())
            block, = re.findall(r"```python\n(.*?)```", README, re.S)
            code = block.replace("tcp://127.0.0.1:5555", told["messages"]).replace("TOKEN", told["token"])
            names = {"zmq": zmq, "json": json}
            exec(code, names)  # noqa: S102: the README's own
            assert json.loads(names["head"]) == {"status": 200, "type": "application/json", "id": 1}, names["head"]
            assert len(json.loads(names["body"])["action"]) == 1, names["body"]
            names["socket"].close()
        finally:
            served.terminate()
            code = served.wait(60)
        assert code == 0, code


main()
