"""The spec of an environment, like troupe::env::EnvironmentSpec, and the memory layout of observations."""

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
    """An observation is one block of bytes: the arrays in order, each at an offset that is a multiple of 8. An action is a vector of numbers.
    Each is either continuous within its bounds, or a choice: one of the whole numbers 0 to n - 1."""

    name: str
    observations: tuple
    action_minimum: tuple
    action_maximum: tuple
    episode_steps: int = 0  # until truncation; 0: no limit
    action_repeat: int = 1
    frame_stack: int = 1
    control_timestep_seconds: float = 0.0
    action_choices: tuple = ()  # n for a choice, whose bounds are 0 and n - 1; 0: continuous. Empty: all are continuous
    row_bytes: int = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "row_bytes", sum((a.nbytes + 7) // 8 * 8 for a in self.observations))

    @property
    def actions(self):
        return len(self.action_minimum)

    @property
    def choices(self):
        """For each number of the action: n for a choice, 0 for a continuous number."""
        return self.action_choices or (0,) * self.actions

    def views(self, rows):
        """Views of the arrays [rows, ...] in `rows`, uint8 [rows, row_bytes], in the order of the spec; nothing is copied."""
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


def shaped(actions, shape):
    """Returns `actions` as a float64 array. Raises ValueError if its shape differs from `shape` by more than axes of length 1."""
    array = np.asarray(actions, np.float64)
    if [n for n in array.shape if n != 1] != [n for n in shape if n != 1]:
        raise ValueError(f"actions have the shape {array.shape}; they must have {shape}")
    return array.reshape(shape)


def check_actions(spec, actions):
    """Raises ValueError if a number of `actions`, float64 [actions] or [rows, actions], is not finite, or a choice is not one of its
    whole numbers."""
    good = np.isfinite(actions)
    if spec.action_choices:
        counts = np.array(spec.action_choices)
        good &= (counts == 0) | ((actions >= 0) & (actions < counts) & (actions == np.floor(actions)))
    if good.all():
        return
    *row, i = np.argwhere(~good)[0]
    n = spec.choices[i]
    rule = f"it must be a whole number from 0 to {n - 1}" if n else "actions must be finite"
    raise ValueError(f"action[{i}]{f' of row {row[0]}' if row else ''} is {actions[(*row, i)]:g}; {rule}")


def problem_of_action(minimum, maximum, choices):
    """Returns what is wrong with the action, or "". Rules and messages are those of troupe::env::problem_of()."""
    if len(minimum) != len(maximum):
        return f"{len(minimum)} action minima and {len(maximum)} maxima; their numbers must be equal"
    if choices and len(choices) != len(minimum):
        return f"{len(choices)} numbers of choices for {len(minimum)} action dimensions; there must be one for each, or none"
    for i, (low, high, n) in enumerate(zip(minimum, maximum, choices or (0,) * len(minimum))):
        if n != 0 and n < 2:
            return f"action[{i}] has {n} choices; it must have 2 or more, or be continuous (0)"
        if n != 0 and (low != 0 or high != float(n - 1)):
            return f"action[{i}] has {n} choices and the bounds {low:f} and {high:f}; they must be 0 and {n - 1}"
        if not low < high:  # also NaN
            return f"action[{i}] is bounded by {low:f} and {high:f}; the minimum must be below the maximum"
    return ""


def check_spec(spec, max_bytes):
    """Raises MessageError if no environment can have this spec. Troupe's client checks the same rules."""

    def require(good, complaint):
        if not good:
            raise MessageError(f"its spec: {complaint}")

    require(is_name(spec.name), f"'{printable(spec.name, 200)}' is not a valid name of an environment (1 to 200 bytes, printable)")
    require(1 <= len(spec.observations) <= 64, f"{len(spec.observations)} observations; 1 to 64 are allowed")
    names = [array.name for array in spec.observations]
    require(len(set(names)) == len(names), "two observations have the same name")
    for array in spec.observations:
        require(is_name(array.name), f"'{printable(array.name, 200)}' is not a valid name of an observation")
        require(len(array.shape) <= 8 and all(n >= 1 for n in array.shape), f"observation '{array.name}' has shape {array.shape}")
        require(array.nbytes <= max_bytes, f"observation '{array.name}' has more than {max_bytes} bytes")
    require(spec.row_bytes <= max_bytes, f"an observation has more than {max_bytes} bytes")
    problem = problem_of_action(spec.action_minimum, spec.action_maximum, spec.action_choices)
    require(not problem, problem)
    require(1 <= spec.actions <= 4096, f"{spec.actions} action dimensions; 1 to 4096 are allowed")
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
        action_choices=list(spec.action_choices),
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
        action_choices=tuple(message.action_choices),
    )
    check_spec(spec, max_bytes)
    return spec
