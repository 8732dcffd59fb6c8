"""Checks with the real Weights & Biases that Run.to_wandb() writes what its own schema finds again. Usage: wandb_checks.py <troupe>"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import troupe
from wandb.proto import wandb_internal_pb2

PROGRAM = sys.argv.pop(1)


BLOCK = 32768  # of LevelDB's log format
HEAD = 7       # of the file; of a fragment: checksum (4), length (2), whether its record ends


def records(folder):
    """All that an offline run holds."""
    data = next(folder.glob("run-*.wandb")).read_bytes()
    at, whole = HEAD, b""
    while at + HEAD <= len(data):
        left = BLOCK - at % BLOCK
        if left < HEAD:
            at += left
            continue
        length, kind = int.from_bytes(data[at + 4:at + 6], "little"), data[at + 6]
        whole += data[at + HEAD:at + HEAD + length]
        at += HEAD + length
        if kind in (1, 4):  # the whole record, or its last fragment
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            whole = b""
            yield record


def items(list_of_items):
    return {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in list_of_items}


class Wandb(unittest.TestCase):
    def test_settings_curves_returns_and_videos_are_found_again(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            subprocess.run([PROGRAM, "train", "cartpole_balance", "--runs", folder / "runs", "--quiet", "--set", "stop.environment_steps=2000", "--set", "evaluation.period=1000",
                            "--set", "evaluation.episodes=1", "--set", "evaluation.final_episodes=1", "--set", "replay.minimum_items=500",
                            "--set", "actors.random_steps=500", "--set", "seed=3"], check=True, stdout=subprocess.DEVNULL)
            run = troupe.Run(next(folder.glob("runs/cartpole_balance/*")))
            written = run.to_wandb("poles", folder)
            self.assertEqual(written.parent, folder / "wandb")
            config, history, summary, named = {}, [], {}, None
            for record in records(written):
                if record.HasField("run"):
                    named = record.run
                    config |= items(record.run.config.update)
                if record.HasField("config"):
                    config |= items(record.config.update)
                if record.HasField("history"):
                    history.append(items(record.history.item))
                if record.HasField("summary"):
                    summary |= items(record.summary.update)
            self.assertEqual((named.project, named.run_group, named.display_name), ("poles", "cartpole_balance", run.folder.name))
            self.assertEqual(config["seed"], "3")
            self.assertEqual(config["environment.task"], "cartpole_balance")
            rows = len(run.metrics("")["kind"])
            self.assertEqual([row["environment_steps"] for row in history[:rows]], list(run.metrics("")["environment_steps"]))
            self.assertEqual(summary["final/evaluation_return"], run.metrics("final")["evaluation_return"][0])
            self.assertEqual([int(video.stem) for video in run.videos], [row["environment_steps"] for row in history[rows:]])
            self.assertGreater(len(run.videos), 0)
            self.assertEqual(len(list(written.glob("files/media/videos/*.mp4"))), len(run.videos))


if __name__ == "__main__":
    sys.exit(0 if unittest.main(exit=False).result.wasSuccessful() else 1)  # wandb sends the code on, and takes no bool
