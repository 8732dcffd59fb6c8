#!/bin/sh
# safetensors_python.sh BUILD_FOLDER OURS THEIRS: checks the values of OURS with the official Python package and writes THEIRS with it.
# Exit code 77: the package is not available.
set -u
python=$(timeout 240 python3 "$(dirname "$0")/../../python_packages.py" "$1/python_safetensors" numpy safetensors) || exit 77
"$python" - "$2" "$3" <<'PYTHON'
import sys
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

ours, theirs = sys.argv[1:]
values = np.arange(12, dtype=np.float32).reshape(3, 4) / 8
with safe_open(ours, framework="np") as f:
    assert sorted(f.keys()) == ["f32", "f64", "i64", "transposed", "u8"], f.keys()
    assert f.metadata() == {"made_by": "troupe"}, f.metadata()
    for name, expected in {"f32": values, "f64": values.astype(np.float64), "i64": np.arange(5), "transposed": values.T,
                           "u8": np.arange(256, dtype=np.uint8)}.items():
        tensor = f.get_tensor(name)
        assert tensor.dtype == expected.dtype and np.array_equal(tensor, expected), name
save_file({"f32": values * 2, "i64": np.arange(5) - 2, "u8": np.full((2, 2), 9, np.uint8)}, theirs, {"made_by": "python"})
PYTHON
