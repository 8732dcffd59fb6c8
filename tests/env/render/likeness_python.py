"""Compares our structural similarity with that of the real scikit-image, in a virtual environment inside the build tree.

Usage: likeness_python.py <similarity_writer> <folder for the virtual environment>; exit code 77: skipped.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from python_packages import python_with

PACKAGES = ["scikit-image==0.25.2"]
READER = """
import sys
import numpy as np
from skimage.metrics import structural_similarity

for line in sys.stdin:
    number, height, width, channels, ours = line.split()
    a, b = (np.fromfile(f"{sys.argv[1]}/{number}.{end}", np.uint8).reshape(int(height), int(width), int(channels)) for end in "ab")
    theirs = structural_similarity(a, b, channel_axis=-1, data_range=255)
    assert abs(theirs - float(ours)) < 1e-9, (number, theirs, ours)
    print(number, theirs)
"""


def main():
    writer, python = sys.argv[1], python_with(sys.argv[2], PACKAGES)
    with tempfile.TemporaryDirectory() as folder:
        told = subprocess.run([writer, folder], check=True, capture_output=True, text=True).stdout
        assert len(told.splitlines()) == 12
        return subprocess.run([python, "-c", READER, folder], input=told, text=True).returncode


sys.exit(main())
