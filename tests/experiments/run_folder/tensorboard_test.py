"""Reads an event file of ours with the real TensorBoard, in a virtual environment inside the build tree.

Usage: tensorboard_test.py <event_writer> <folder for the virtual environment>; exit code 77: skipped.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from python_packages import python_with

PACKAGES = ["tensorboard==2.20.0"]
READER = """
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
assert sorted(events.Tags()["scalars"]) == ["evaluation/return", "learner/critic_loss"], events.Tags()
points = events.Scalars("evaluation/return")
assert len(points) == 1000, len(points)
for step, point in enumerate(points):
    assert (point.step, point.value, point.wall_time) == (10 * step, 0.5 * step, 1795255200.0 + step), point
losses = events.Scalars("learner/critic_loss")
assert all(abs(p.value + 1.0 / (i + 1)) < 1e-6 for i, p in enumerate(losses))
print("TensorBoard read 2000 scalars")
"""


def main():
    writer, python = sys.argv[1], python_with(sys.argv[2], PACKAGES)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([writer, folder], check=True)
        return subprocess.run([python, "-c", READER, folder]).returncode


sys.exit(main())
