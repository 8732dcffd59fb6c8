"""What an environment promises, as troupe::env::EnvironmentSpec, and how observations lie in memory."""

import math
from dataclasses import dataclass, field

import numpy as np

from troupe_env.messages import Array, MessageError, SpecMessage, printable

DTYPES = {1: np.dtype("u1"), 2: np.dtype("<f4"), 3: np.dtype("<f8"), 4: np.dtype("<i8")}
_CODES = {dtype: code for code, dtype in DTYPES.items()}

# One row of results. Step types: 0 first, 1 mid, 2 last, 3 failed.
RESULT = np.dtype([("reward", "<f8"), ("discount", "<f8"), ("step_type", "<i8")])
FIRST, MID, LAST, FAILED = range(4)


@dataclass(frozen=True)
class ArraySpec:
    name: str
    dtype: np.dtype  # uint8, float32, float64 or int64
    shape: tuple

    @property
    def nbytes(self):
        return self.dtype.itemsize * math.prod(self.shape)


@dataclass(frozen=True)
class Spec:
    """An observation is one block of bytes: the arrays in order, each at a multiple of 8."""

    name: str
    observations: tuple
    action_minimum: tuple
    action_maximum: tuple
    episode_steps: int = 0  # until truncation; 0: no limit
    action_repeat: int = 1
    frame_stack: int = 1
    control_timestep_seconds: float = 0.0
    row_bytes: int = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "row_bytes", sum((a.nbytes + 7) // 8 * 8 for a in self.observations))

    @property
    def actions(self):
        return len(self.action_minimum)

    def views(self, rows):
        """The arrays [rows, ...] that lie in `rows`, uint8 [rows, row_bytes], by position in the spec; no copies."""
        views = []
        offset = 0
        for array in self.observations:
            inner = np.empty(array.shape, array.dtype).strides
            views.append(
                np.ndarray(
                    (len(rows), *array.shape), array.dtype, buffer=rows, offset=offset, strides=(self.row_bytes, *inner)
                )
            )
            offset += (array.nbytes + 7) // 8 * 8
        return views


def is_name(text):
    return 0 < len(text.encode("utf-8")) <= 200 and text.isprintable()


def check_spec(spec, max_bytes):
    """Raises MessageError where the spec is not one that an environment can have: what Troupe's client checks, too."""

    def require(good, complaint):
        if not good:
            raise MessageError(f"its spec: {complaint}")

    require(is_name(spec.name), f"'{printable(spec.name, 200)}' is no name of an environment (1 to 200 bytes, printable)")
    require(1 <= len(spec.observations) <= 64, f"{len(spec.observations)} observations; 1 to 64 are allowed")
    names = [array.name for array in spec.observations]
    require(len(set(names)) == len(names), "two observations have the same name")
    for array in spec.observations:
        require(is_name(array.name), f"'{printable(array.name, 200)}' is no name of an observation")
        require(len(array.shape) <= 8 and all(n >= 1 for n in array.shape), f"observation '{array.name}' has shape {array.shape}")
        require(array.nbytes <= max_bytes, f"observation '{array.name}' has more than {max_bytes} bytes")
    require(spec.row_bytes <= max_bytes, f"an observation has more than {max_bytes} bytes")
    low, high = spec.action_minimum, spec.action_maximum
    require(len(low) == len(high) and 1 <= len(low) <= 4096, f"{len(low)} action minima and {len(high)} maxima")
    for i, (a, b) in enumerate(zip(low, high)):
        require(a < b, f"action[{i}] is bounded by {a} and {b}; the minimum must be below the maximum")
    require(spec.episode_steps >= 0, f"episode_steps is {spec.episode_steps}")
    require(1 <= spec.action_repeat <= 1000000, f"action_repeat is {spec.action_repeat}")
    require(1 <= spec.frame_stack <= 1024, f"frame_stack is {spec.frame_stack}")
    dt = spec.control_timestep_seconds
    require(math.isfinite(dt) and dt >= 0, f"control_timestep_seconds is {dt}")


def encode_spec(spec):
    return SpecMessage(
        name=spec.name,
        observations=[Array(name=a.name, type=_CODES[a.dtype], shape=list(a.shape)) for a in spec.observations],
        action_minimum=list(spec.action_minimum),
        action_maximum=list(spec.action_maximum),
        episode_steps=spec.episode_steps,
        action_repeat=spec.action_repeat,
        frame_stack=spec.frame_stack,
        control_timestep_seconds=spec.control_timestep_seconds,
    )


def decode_spec(message, max_bytes):
    arrays = []
    for array in message.observations:
        if array.type not in DTYPES:
            raise MessageError(f"its spec: observation '{printable(array.name, 200)}' has element type {array.type}")
        arrays.append(ArraySpec(array.name, DTYPES[array.type], tuple(array.shape)))
    spec = Spec(
        name=message.name,
        observations=tuple(arrays),
        action_minimum=tuple(message.action_minimum),
        action_maximum=tuple(message.action_maximum),
        episode_steps=message.episode_steps,
        action_repeat=message.action_repeat,
        frame_stack=message.frame_stack,
        control_timestep_seconds=message.control_timestep_seconds,
    )
    check_spec(spec, max_bytes)
    return spec
