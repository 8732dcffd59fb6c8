"""Reads event files of ours with the real TensorBoard and its server, in a virtual environment inside the build tree.

Usage: tensorboard_test.py <event_writer> <folder for the virtual environment>; exit code 77: skipped.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from python_packages import python_with

PACKAGES = ["tensorboard==2.20.0", "setuptools==80.9.0"]  # newer ones lack what its server imports
READER = """
import io
import json
import os
import sys
import urllib.parse
import urllib.request
from PIL import Image
from tensorboard import program
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import api_pb2, metadata

events = EventAccumulator(os.path.join(sys.argv[1], "a"), size_guidance={"scalars": 0, "histograms": 0})
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

assert events.Tags()["images"] == ["pictures/samples", "evaluation/video"], events.Tags()
samples, = events.Images("pictures/samples")
assert (samples.step, samples.width, samples.height) == (7, 24, 16), samples
picture = Image.open(io.BytesIO(samples.encoded_image_string))
assert picture.format == "PNG" and picture.size == (24, 16) and picture.getpixel((5, 5)) == (255, 0, 0), picture
video, = events.Images("evaluation/video")
film = Image.open(io.BytesIO(video.encoded_image_string))
assert film.format == "GIF" and film.size == (video.width, video.height) == (32, 32) and film.n_frames == 5, film
for frame in range(5):
    film.seek(frame)
    shades = film.convert("L").resize((1, 1), Image.BOX).getpixel((0, 0))
    assert abs(shades - 50 * frame) < 25 and film.info["duration"] == 100, (frame, shades, film.info)

content = events.PluginTagToContent("hparams")
start = metadata.parse_session_start_info_plugin_data(content[metadata.SESSION_START_INFO_TAG])
assert start.start_time_secs == 1795255200 and start.hparams["d4pg.batch_size"].number_value == 256, start
assert start.hparams["evaluation.video"].bool_value is True and start.hparams["environment.task"].string_value == "cartpole_balance", start
end = metadata.parse_session_end_info_plugin_data(content[metadata.SESSION_END_INFO_TAG])
assert (end.status, end.end_time_secs) == (api_pb2.STATUS_SUCCESS, 1795255260), end

board = program.TensorBoard()
board.configure(logdir=sys.argv[1], port=0, host="127.0.0.1", load_fast="false", reload_interval=0, reload_task="blocking")
address = board.launch()
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(path, **body):
    sent = json.dumps(body).encode() if body else None
    with opener.open(urllib.request.Request(address + "data/plugin/" + path, sent, {"Content-Type": "application/json"})) as answer:
        return answer.read(), answer.headers["Content-Type"]


for tag, kind, bytes in [("pictures/samples", "image/png", samples.encoded_image_string), ("evaluation/video", "image/gif", video.encoded_image_string)]:
    listed = json.loads(ask("images/images?" + urllib.parse.urlencode({"run": "a", "tag": tag, "sample": 0}))[0])
    assert ask("images/individualImage?" + listed[0]["query"]) == (bytes, kind), (tag, listed)
experiment = json.loads(ask("hparams/experiment", experimentName="", includeMetrics=True)[0])
assert {one["name"] for one in experiment["hparamInfos"]} == {"d4pg.batch_size", "evaluation.video", "environment.task", "sac.batch_size"}, experiment
assert {one["name"]["tag"] for one in experiment["metricInfos"]} == {"evaluation/return", "learner/critic_loss", "evaluation/final_return"}, experiment
table = json.loads(ask("hparams/session_groups", experimentName="", allowedStatuses=["STATUS_SUCCESS", "STATUS_FAILURE"], startIndex=0, sliceSize=10,
                       colParams=[{"hparam": "environment.task", "includeInResult": True}, {"metric": {"tag": "evaluation/return", "group": ""}}])[0])
rows = {group["hparams"]["environment.task"]: group["sessions"][0] for group in table["sessionGroups"]}
assert {task: row["status"] for task, row in rows.items()} == {"cartpole_balance": "STATUS_SUCCESS", "walker_walk": "STATUS_FAILURE"}, table
assert [value["value"] for value in rows["cartpole_balance"]["metricValues"] if value["name"]["tag"] == "evaluation/return"] == [499.5], rows
print("TensorBoard read 2000 scalars, 3 histograms, 2 pictures and the settings of 2 runs, and its server shows them")
"""


def main():
    writer, python = sys.argv[1], python_with(sys.argv[2], PACKAGES)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([writer, folder], check=True)
        return subprocess.run([python, "-c", READER, folder]).returncode


sys.exit(main())
