"""Checks that a notebook executed by the real Jupyter runs the guide's examples and displays pictures, curves and tables.

Usage: notebook_checks.py <README of the package>
"""

import base64
import io
import pathlib
import re
import sys
import tempfile
import unittest

import imageio.v3
import nbclient
import nbformat
import numpy as np
from troupe.pictures import Picture, png

README = pathlib.Path(sys.argv.pop(1))

SETUP = """
import mujoco, numpy as np, troupe, troupe.render
from troupe.replay import Table
model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><light pos='0 0 3'/><geom type='sphere' size='.3' rgba='1 0 0 1'/></worldbody></mujoco>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
caster = troupe.render.RayCaster(model, height=48, width=64)
env = troupe.make("cheetah_run", render_mode="rgb_array", render_size=(40, 60))
_ = env.reset(seed=1)
table = Table({"state": 3, "pixels": ((4, 4), "uint8")}, max_items=100, sampler="prioritized")
table.add(state=np.zeros(3), pixels=np.zeros((4, 4), np.uint8))
"""


def executed(*sources):
    """The last output of each cell by MIME type."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    with tempfile.TemporaryDirectory() as folder:
        nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    results = [[output for output in cell.outputs if output.output_type == "execute_result"] for cell in notebook.cells]
    return [found[-1].data if found else {} for found in results]


def picture_of(result):
    return imageio.v3.imread(io.BytesIO(base64.b64decode(result["image/png"])))


class Notebook(unittest.TestCase):
    def test_the_guides_examples_run(self):
        blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        self.assertGreaterEqual(len(blocks), 4)
        results = executed(*blocks, "run", "pixels")
        self.assertIn("<svg", results[-2]["text/html"])
        self.assertIn("<polyline", results[-2]["text/html"])
        self.assertEqual(picture_of(results[-1]).shape, (84, 84, 3))

    def test_pictures_curves_and_tables_display_themselves(self):
        _, drawn, depth, objects, many, plain, one, several, flat, contents = executed(
            SETUP,
            "caster.rgb(data)",
            "caster.depth(data)",
            "caster.segmentation(data)",
            "caster.positions(np.zeros((3, 0)))",
            "np.asarray(caster.rgb(data)) / 255.0",
            "env",
            "envs = troupe.make_vec('cheetah_run', 3, render_mode='rgb_array', render_size=(40, 60)); envs",
            "troupe.make('CartPole-v1')",
            "table",
        )
        picture = picture_of(drawn)
        self.assertEqual(picture.shape, (48, 64, 3))
        self.assertGreater(picture[24, 32, 0], picture[24, 32, 1] + 20)  # the ball is red
        depths = picture_of(depth)
        self.assertEqual(depths.shape, (48, 64))
        self.assertGreater(depths[24, 32], depths[0, 0])
        self.assertEqual(picture_of(objects).shape, (48, 64, 3))
        self.assertEqual(picture_of(many).shape, (96, 128, 3))
        self.assertNotIn("image/png", plain)
        self.assertEqual(picture_of(one).shape, (40, 60, 3))
        self.assertEqual(picture_of(several).shape, (80, 120, 3))
        self.assertNotIn("image/png", flat)
        for text in ("state float32[3]", "pixels uint8[4, 4]", "1 of 100", "prioritized"):
            self.assertIn(text, contents["text/html"])


class Pictures(unittest.TestCase):
    def test_a_png_has_the_colours(self):
        rng = np.random.default_rng(0)
        for shape in ((5, 7, 3), (5, 7, 1)):
            colours = rng.integers(0, 256, shape, np.uint8)
            np.testing.assert_array_equal(imageio.v3.imread(io.BytesIO(png(colours))).reshape(shape), colours)
        tiles = rng.integers(0, 256, (3, 5, 7, 3), np.uint8)
        both = imageio.v3.imread(io.BytesIO(png(tiles)))
        np.testing.assert_array_equal(both[:5, 7:], tiles[1])
        np.testing.assert_array_equal(both[5:, :7], tiles[2])
        self.assertEqual(both[5:, 7:].max(), 0)

    def test_what_is_no_picture_has_none(self):
        for array in (np.zeros((5, 7), np.uint8), np.zeros((5, 7, 2), np.uint8), np.zeros((0, 7, 3), np.uint8), np.zeros((5, 7, 3)), np.zeros(5, np.float32)):
            self.assertIsNone(array.view(Picture)._repr_png_())
        self.assertIsNotNone(np.full((2, 2), np.nan, np.float32).view(Picture)._repr_png_())


if __name__ == "__main__":
    unittest.main(verbosity=1)
