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

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "histograms": 0})
events.Reload()
assert sorted(events.Tags()["scalars"]) == ["evaluation/return", "learner/critic_loss"], events.Tags()
points = events.Scalars("evaluation/return")
assert len(points) == 1000, len(points)
for step, point in enumerate(points):
    assert (point.step, point.value, point.wall_time) == (10 * step, 0.5 * step, 1795255200.0 + step), point
losses = events.Scalars("learner/critic_loss")
assert all(abs(p.value + 1.0 / (i + 1)) < 1e-6 for i, p in enumerate(losses))
assert events.Tags()["histograms"] == ["parameters/critic.weight"], events.Tags()
histograms = events.Histograms("parameters/critic.weight")
assert [h.step for h in histograms] == [0, 10, 20], histograms
value = histograms[0].histogram_value
assert (value.min, value.max, value.num) == (-1.0, 0.99375, 320.0), value
assert value.bucket == [10.0] * 32 and value.bucket_limit == sorted(value.bucket_limit), value
assert value.bucket_limit[-1] == value.max, value
assert abs(value.sum + 1.0) < 1e-9 and abs(value.sum_squares - sum((i - 160) ** 2 for i in range(320)) / 160**2) < 1e-9, value
print("TensorBoard read 2000 scalars and 3 histograms")
"""


def main():
    writer, python = sys.argv[1], python_with(sys.argv[2], PACKAGES)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([writer, folder], check=True)
        return subprocess.run([python, "-c", READER, folder]).returncode


sys.exit(main())
