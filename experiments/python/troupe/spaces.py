"""The spec of an environment, and the Gymnasium spaces for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

import numpy as np
from gymnasium import spaces


@dataclass(frozen=True)
class Array:
    name: str
    dtype: np.dtype
    shape: Tuple[int, ...]


@dataclass(frozen=True)
class Spec:
    """`action_choices`: n for a choice among 0 to n - 1, 0 for a continuous number; empty: all are continuous."""

    name: str
    observations: Tuple[Array, ...]
    action_minimum: Tuple[float, ...]
    action_maximum: Tuple[float, ...]
    action_choices: Tuple[int, ...]
    episode_steps: int  # until truncation; 0: no limit
    action_repeat: int
    frame_stack: int
    control_timestep_seconds: float
    saves_state: bool
    renders: bool  # a MuJoCo task

    @staticmethod
    def of(pool: Any) -> "Spec":
        fields: Dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in pool.spec().items()}
        fields["observations"] = tuple(Array(*array) for array in fields["observations"])
        return Spec(**fields)

    @property
    def actions(self) -> int:
        return len(self.action_minimum)

    @property
    def choices(self) -> Tuple[int, ...]:
        return self.action_choices or (0,) * self.actions


def _box(array: Array) -> spaces.Box:
    if array.dtype.kind == "f":
        return spaces.Box(-np.inf, np.inf, array.shape, array.dtype.type)
    limits = np.iinfo(array.dtype)
    return spaces.Box(limits.min, limits.max, array.shape, array.dtype.type)


def observation_space(spec: Spec) -> spaces.Space:
    """The space of the array if there is only one, otherwise a Dict by name."""
    if len(spec.observations) == 1:
        return _box(spec.observations[0])
    return spaces.Dict({array.name: _box(array) for array in spec.observations})


class Actions:
    """The action space of a spec: a Box for continuous numbers, Discrete for one choice and MultiDiscrete for several; for both kinds, a Tuple
    of a Box and a MultiDiscrete, each in the order of the spec."""

    def __init__(self, spec: Spec):
        counts = np.array(spec.choices)
        self._size = spec.actions
        self._columns = [columns for columns in (np.flatnonzero(counts == 0), np.flatnonzero(counts)) if len(columns)]
        parts = []
        if not counts.all():
            low, high = (np.array(bounds)[counts == 0].astype(np.float32) for bounds in (spec.action_minimum, spec.action_maximum))
            parts.append(spaces.Box(low, high, dtype=np.float32))
        if counts.any():
            parts.append(spaces.Discrete(int(counts[0])) if len(counts) == 1 else spaces.MultiDiscrete(counts[counts != 0]))
        self._shapes = [part.shape for part in parts]
        self.space = parts[0] if len(parts) == 1 else spaces.Tuple(parts)

    def vectors(self, actions: Any, count: Optional[int] = None) -> np.ndarray:
        """Returns `count` actions, batched as in Gymnasium, as an array that native pools take; None: one action that is not batched. Raises
        ValueError if the shape differs from the space's by more than axes of length 1."""
        leading = () if count is None else (count,)
        if len(self._columns) == 1:
            return _shaped(actions, (*leading, *self._shapes[0]))
        if len(actions) != len(self._columns):
            raise ValueError(f"an action of {self.space} has {len(self._columns)} parts; this one has {len(actions)}")
        out = np.empty((1 if count is None else count, self._size))
        for columns, shape, part in zip(self._columns, self._shapes, actions):
            out[:, columns] = _shaped(part, (*leading, *shape)).reshape(len(out), len(columns))
        return out


def _shaped(actions: Any, shape: Tuple[int, ...]) -> np.ndarray:
    array = np.asarray(actions)
    if array.shape != shape and [n for n in array.shape if n != 1] != [n for n in shape if n != 1]:
        raise ValueError(f"actions have the shape {array.shape}; they must have {shape}")
    return array
