#!/bin/sh
# saved_optimizer_python.sh BUILD_FOLDER FILE: checks with the official Python package that FILE has, by the parameters' names, the moments of
# AdamW after one step with gradients of 2. Exit code 77: the package is not available.
set -u
python=$(timeout 240 python3 "$(dirname "$0")/../../python_packages.py" "$1/python_safetensors" numpy safetensors) || exit 77
"$python" - "$2" <<'PYTHON'
import sys
import numpy as np
from safetensors.numpy import load_file

state = load_file(sys.argv[1])
shapes = {"fc.weight": (3, 4), "fc.bias": (3,)}
names = [f"optimizer.{field}.{name}" for name in shapes for field in ("exp_avg", "exp_avg_sq", "step")]
assert sorted(state) == sorted(names + ["optimizer.learning_rates", "wrapped.steps"]), sorted(state)
for name, shape in shapes.items():
    assert np.allclose(state[f"optimizer.exp_avg.{name}"], np.full(shape, 0.2)), name  # (1 - 0.9) * 2
    assert np.allclose(state[f"optimizer.exp_avg_sq.{name}"], np.full(shape, 0.004)), name  # (1 - 0.999) * 2 * 2
    assert state[f"optimizer.step.{name}"].tolist() == [1], name
assert state["optimizer.learning_rates"].tolist() == [0.25] and state["wrapped.steps"].tolist() == [1]
PYTHON
