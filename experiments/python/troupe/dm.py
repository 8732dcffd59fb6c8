"""Environments that step in C++ in this process, with the interface of dm_env."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Optional

import dm_env
import numpy as np
from dm_env import specs

from troupe.environments import _DISCOUNTS, _OBSERVATIONS, _REWARDS, _STATUSES, _STEP_TYPES, DEADLINE, _Pool

_FIRST, _LAST = 0, 2  # values of StepType


def make(task: str, **options: Any) -> "Environment":
    return Environment(task, **options)


class Environment(dm_env.Environment):
    """One of Troupe's environments. Observations are an OrderedDict by name. Without wrappers they are the task's arrays, bit for bit equal
    to dm_control's, and actions have the task's bounds. With options of troupe.Env that wrap the task (pixels, observations,
    action_repeat …), they are those of the wrapped environment. `seed` is the seed of the first episode; later episodes follow from it.

    The action is a DiscreteArray if it is a single choice, a BoundedArray of int64 for several choices, and one of float64 if it is
    continuous. With both kinds it is a BoundedArray of float64, in which each choice is a whole number from 0 to its maximum:
    `action_choices` has n for a choice and 0 for a continuous number. Continuous numbers are clipped; a choice out of range raises
    RuntimeError."""

    def __init__(self, task: str, *, seed: Optional[int] = None, deadline: float = DEADLINE, **options: Any):
        bare = options.keys() <= {"models", "options", "plugin"}
        self._pool = _Pool(task, options, 1, 1, seed, False, deadline, bare)
        self.task_spec = self._pool.spec
        self.action_choices = self.task_spec.choices
        if seed is not None:
            self._pool.native.seed(self._pool.all, np.array([seed], np.uint64))
        self._ended = True

    def reset(self) -> dm_env.TimeStep:
        result = self._pool.native.reset(self._pool.all, self._pool.deadline)
        self._ended = False
        return dm_env.restart(self._observation(result))

    def step(self, action: Any) -> dm_env.TimeStep:
        if self._ended:
            return self.reset()
        result = self._pool.native.step(np.asarray(action, np.float64), self._pool.deadline)
        observation = self._observation(result)
        if result[_STEP_TYPES][0] == _FIRST:  # after load_state() of the end of an episode
            return dm_env.restart(observation)
        self._ended = result[_STEP_TYPES][0] == _LAST
        kind = dm_env.StepType.LAST if self._ended else dm_env.StepType.MID
        return dm_env.TimeStep(kind, float(result[_REWARDS][0]), float(result[_DISCOUNTS][0]), observation)

    def _observation(self, result: Any) -> "OrderedDict[str, np.ndarray]":
        if result[_STATUSES][0]:
            self._ended = True
            raise RuntimeError(self._pool.native.error(0))
        return OrderedDict((array.name, values[0]) for array, values in zip(self.task_spec.observations, result[_OBSERVATIONS]))

    def observation_spec(self) -> "OrderedDict[str, specs.Array]":
        return OrderedDict((array.name, specs.Array(array.shape, array.dtype, array.name)) for array in self.task_spec.observations)

    def action_spec(self) -> specs.Array:
        spec = self.task_spec
        if spec.actions == 1 and spec.choices[0] != 0:
            return specs.DiscreteArray(spec.choices[0], np.int64, "action")
        dtype = np.int64 if all(spec.choices) else np.float64
        low, high = (np.array(bounds).astype(dtype) for bounds in (spec.action_minimum, spec.action_maximum))
        return specs.BoundedArray((spec.actions,), dtype, low, high, "action")

    def control_timestep(self) -> float:
        """Seconds between two steps."""
        return self.task_spec.control_timestep_seconds * self.task_spec.action_repeat

    def save_state(self) -> bytes:
        return self._pool.native.save_state()

    def load_state(self, state: bytes) -> None:
        self._pool.native.load_state(state)
        self._ended = False
