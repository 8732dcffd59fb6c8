#!/bin/sh
# data_python.sh BUILD_FOLDER OUT: writes data sets into OUT with the packages that users write them with. The virtual environment is created
# in the build folder on first use. Exit code 77: the packages are not available.
set -u
python=$(timeout 240 python3 "$(dirname "$0")/../../python_packages.py" "$1/python_data" numpy h5py netCDF4 webdataset pillow) || exit 77
"$python" - "$2" <<'PYTHON'
import csv
import os
import sys

import h5py
import netCDF4
import numpy as np
import webdataset
from PIL import Image

out = sys.argv[1]
x = np.arange(24, dtype=np.float32).reshape(4, 6) / 8
label = np.array([3, 0, 1, 2])
np.savez(f"{out}/a.npz", x=x, label=label)
np.savez_compressed(f"{out}/packed.npz", x=np.asfortranarray(x), label=label.astype(np.int16))
np.save(f"{out}/fortran.npy", np.asfortranarray(x))
with h5py.File(f"{out}/a.h5", "w") as file:
    file.create_dataset("x", data=x, chunks=(2, 3), compression="gzip", maxshape=(None, 6))
    file["label"] = label.astype(">i4")
    file["words"] = ["a", "b", "c", "d"]
with netCDF4.Dataset(f"{out}/a.nc", "w") as file:
    file.createDimension("row", None)
    file.createDimension("column", 6)
    file.createVariable("x", "f4", ("row", "column"), zlib=True)[:] = x
    file.createVariable("label", "i8", ("row",))[:] = label
with open(f"{out}/a.csv", "w", newline="") as file:
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    writer.writerow([f"c {i}, \"quoted\"" for i in range(6)] + ["label"])
    for row, number in zip(x, label):
        writer.writerow([repr(float(v)) for v in row] + [number])
pictures = np.random.default_rng(1).integers(0, 256, (4, 9, 7, 3)).astype(np.uint8)
np.save(f"{out}/pictures.npy", pictures)
os.makedirs(f"{out}/shards")
for shard in range(2):
    with webdataset.TarWriter(f"{out}/shards/{shard}.tar") as writer:
        for i in (2 * shard, 2 * shard + 1):
            writer.write({"__key__": f"{i:06d}", "png": pictures[i], "cls": i // 2})
for i, picture in enumerate(pictures):
    os.makedirs(f"{out}/folder/{i // 2}", exist_ok=True)
    Image.fromarray(picture).save(f"{out}/folder/{i // 2}/{i}.png")
PYTHON
