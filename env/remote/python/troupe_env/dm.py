"""Troupe's environments with the interface of dm_env."""

from collections import OrderedDict

import dm_env
import numpy as np
from dm_env import specs

from troupe_env.client import RemoteError
from troupe_env.program import connect
from troupe_env.spec import LAST


class DmEnv(dm_env.Environment):
    """DmEnv("cheetah_run", seed=3) is a task of Troupe; DmEnv(endpoint="ipc:///tmp/x") is an environment served there. Observations are an
    OrderedDict by name. The seeds of the episodes are drawn from `seed`; `reset_to(n)` begins Troupe's episode n. `program` and `arguments`
    are passed to troupe_env.Program, further options to troupe_env.Client.

    The action is a DiscreteArray if it is a single choice, a BoundedArray of int64 for several choices, and one of float64 if it is
    continuous. With both kinds it is a BoundedArray of float64, in which each choice is a whole number from 0 to its maximum:
    `action_choices` has n for a choice and 0 for a continuous number. Continuous numbers are clipped; a choice out of range raises
    ValueError."""

    def __init__(self, task=None, *, seed=None, endpoint=None, program="troupe", arguments=(), **options):
        self._client, self._program = connect(task, endpoint, 1, program, arguments, options)
        self._seeds = np.random.default_rng(seed)
        self._ended = True
        self.task_name = self._client.spec.name
        self.action_choices = self._client.spec.choices

    def reset(self):
        return self.reset_to(int(self._seeds.integers(1 << 63)))

    def reset_to(self, seed):
        _, observation = self._play(None, {0: seed})
        self._ended = False
        return dm_env.restart(observation)

    def step(self, action):
        if self._ended:
            return self.reset()
        result, observation = self._play(action, {})
        self._ended = result["step_type"] == LAST
        kind = dm_env.StepType.LAST if self._ended else dm_env.StepType.MID
        return dm_env.TimeStep(kind, float(result["reward"]), float(result["discount"]), observation)

    def _play(self, action, resets):
        results, arrays, failures = self._client.play(action, resets)
        if failures:
            self._ended = True
            raise RemoteError(f"environment '{self.task_name}' at {self._client.endpoint}: {failures[0]}")
        names = [array.name for array in self._client.spec.observations]
        return results[0], OrderedDict((name, array[0, ...].copy()) for name, array in zip(names, arrays))

    def observation_spec(self):
        return OrderedDict((a.name, specs.Array(a.shape, a.dtype, a.name)) for a in self._client.spec.observations)

    def action_spec(self):
        spec = self._client.spec
        if spec.actions == 1 and self.action_choices[0] != 0:
            return specs.DiscreteArray(self.action_choices[0], np.int64, "action")
        dtype = np.int64 if all(self.action_choices) else np.float64
        low, high = (np.array(bounds).astype(dtype) for bounds in (spec.action_minimum, spec.action_maximum))
        return specs.BoundedArray((spec.actions,), dtype, low, high, "action")

    def control_timestep(self):
        """Seconds between two steps."""
        return self._client.spec.control_timestep_seconds * self._client.spec.action_repeat

    def close(self):
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._program is not None:
            self._program.close()
            self._program = None
