"""Troupe's environments with the interfaces of Gymnasium's Env and VectorEnv."""

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from troupe_env.client import RemoteError
from troupe_env.program import connect
from troupe_env.spec import LAST, shaped

_SEEDS = 1 << 63


def _box(array):
    if array.dtype.kind == "f":
        return spaces.Box(-np.inf, np.inf, array.shape, array.dtype.type)
    limits = np.iinfo(array.dtype)
    return spaces.Box(limits.min, limits.max, array.shape, array.dtype.type)


def _observation_space(spec):
    """The space of the array if there is only one, otherwise a Dict by name."""
    if len(spec.observations) == 1:
        return _box(spec.observations[0])
    return spaces.Dict({array.name: _box(array) for array in spec.observations})


class _Actions:
    """The action space of a spec, and its actions as vectors. The space is a Box for continuous numbers, Discrete for one choice and
    MultiDiscrete for several; for both kinds it is a Tuple of a Box and a MultiDiscrete, each in the order of the spec."""

    def __init__(self, spec):
        counts = np.array(spec.choices)
        self._size = spec.actions
        self._columns = [columns for columns in (np.flatnonzero(counts == 0), np.flatnonzero(counts)) if len(columns)]
        parts = []
        if not counts.all():
            low, high = (np.array(bounds)[counts == 0].astype(np.float32) for bounds in (spec.action_minimum, spec.action_maximum))
            parts.append(spaces.Box(low, high, dtype=np.float32))
        if counts.any():
            parts.append(spaces.Discrete(counts[0]) if len(counts) == 1 else spaces.MultiDiscrete(counts[counts != 0]))
        self._shapes = [part.shape for part in parts]
        self.space = parts[0] if len(parts) == 1 else spaces.Tuple(parts)

    def vectors(self, actions, count=None):
        """Returns `count` actions, batched as in Gymnasium, as float64 [count, actions]; None: one action that is not batched."""
        leading = () if count is None else (count,)
        parts = actions if len(self._columns) > 1 else (actions,)
        if len(parts) != len(self._columns):
            raise ValueError(f"an action of {self.space} has {len(self._columns)} parts; this one has {len(parts)}")
        out = np.empty((1 if count is None else count, self._size))
        for columns, shape, part in zip(self._columns, self._shapes, parts):
            out[:, columns] = shaped(part, (*leading, *shape)).reshape(len(out), len(columns))
        return out


class _Arrays:
    """Converts arrays in the order of the spec to observations: copies, which later steps do not change."""

    def __init__(self, spec):
        self._names = [array.name for array in spec.observations]

    def __call__(self, arrays):
        if len(self._names) == 1:
            return arrays[0].copy()
        return {name: array.copy() for name, array in zip(self._names, arrays)}


class GymnasiumEnv(gymnasium.Env):
    """GymnasiumEnv("cheetah_run") is a task of Troupe; GymnasiumEnv(endpoint="ipc:///tmp/x") is an environment served there.

    `reset(seed=n)` begins Troupe's episode n; without a seed, one is drawn from `np_random`. An episode that ends by Troupe's time limit is
    truncated; one that ends with discount 0 is terminated. `info["discount"]` has the discount. An environment that fails raises
    RemoteError and may be reset.

    The action space is a Box if the action is continuous, Discrete(n) if it is one choice, MultiDiscrete if it is several, and
    Tuple((Box, MultiDiscrete)) if it has both: the continuous numbers in their order, and the choices in theirs. Continuous numbers are
    clipped; a choice out of range raises ValueError.

    `program` and `arguments` are passed to troupe_env.Program, further options to troupe_env.Client."""

    metadata = {"render_modes": []}

    def __init__(self, task=None, *, endpoint=None, program="troupe", arguments=(), render_mode=None, **options):
        if render_mode is not None:
            raise ValueError(f"render_mode is '{render_mode}'; it must be None: ask for pixels as observations (arguments=['--pixels'])")
        self.render_mode = None
        self._client, self._program = connect(task, endpoint, 1, program, arguments, options)
        remote = self._client.spec
        self.observation_space = _observation_space(remote)
        self._actions = _Actions(remote)
        self.action_space = self._actions.space
        self.task = remote.name
        self._observation = _Arrays(remote)

    def _play(self, action, resets):
        results, arrays, failures = self._client.play(action, resets)
        if failures:
            raise RemoteError(f"environment '{self.task}' at {self._client.endpoint}: {failures[0]}")
        return results[0], self._observation([array[0, ...] for array in arrays])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        number = int(self.np_random.integers(_SEEDS)) if seed is None else seed
        _, observation = self._play(None, {0: number})
        return observation, {"discount": 1.0}

    def step(self, action):
        result, observation = self._play(self._actions.vectors(action), {})
        last, discount = result["step_type"] == LAST, float(result["discount"])
        terminated = bool(last and discount == 0)
        return observation, float(result["reward"]), terminated, bool(last and not terminated), {"discount": discount}

    def close(self):
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._program is not None:
            self._program.close()
            self._program = None


class GymnasiumVectorEnv(VectorEnv):
    """`num_envs` environments of Troupe, stepped by one message. An environment whose episode has ended is reset by the next step
    (AutoresetMode.NEXT_STEP); one that fails is truncated with `info["failure"]` and is also reset by the next step. Rewards and discounts
    are float64. Action spaces are those of GymnasiumEnv, batched."""

    def __init__(self, task=None, num_envs=1, *, endpoint=None, program="troupe", arguments=(), **options):
        self.metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.num_envs = num_envs
        self.render_mode = None
        self._client, self._program = connect(task, endpoint, num_envs, program, arguments, options)
        remote = self._client.spec
        self.task = remote.name
        self.single_observation_space = _observation_space(remote)
        self._actions = _Actions(remote)
        self.single_action_space = self._actions.space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._observation = _Arrays(remote)
        self._ended = np.ones(num_envs, bool)
        self._last = None

    def _seeds(self, seed):
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, (int, np.integer)):
            return [int(seed) + i for i in range(self.num_envs)]
        seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"{len(seeds)} seeds for {self.num_envs} environments")
        return seeds

    def _drawn(self):
        return int(self.np_random.integers(_SEEDS))

    def reset(self, *, seed=None, options=None):
        seeds = self._seeds(seed)
        super().reset(seed=seeds[0])
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, bool)))
        if mask.shape != (self.num_envs,) or mask.dtype != bool or not mask.any():
            raise ValueError(f"reset_mask must be bool [{self.num_envs}] with at least one True")
        rows = None if mask.all() else [int(i) for i in np.flatnonzero(mask)]
        if rows is not None and self._last is None:
            raise ValueError("the first reset must be of all environments")
        chosen = range(self.num_envs) if rows is None else rows
        resets = {i: self._drawn() if seeds[i] is None else seeds[i] for i in chosen}
        _, arrays, failures = self._client.play(None, resets, rows)
        if failures:
            raise RemoteError(f"environments '{self.task}' at {self._client.endpoint}: {next(iter(failures.values()))}")
        if rows is None:
            self._last = [array.copy() for array in arrays]
        else:
            for whole, part in zip(self._last, arrays):
                whole[rows] = part
        self._ended[list(chosen)] = False
        return self._observation(self._last), {"discount": np.ones(self.num_envs), "_discount": np.ones(self.num_envs, bool)}

    def step(self, actions):
        if self._last is None:
            raise gymnasium.error.ResetNeeded("call reset() before the first step()")
        resets = {int(i): self._drawn() for i in np.flatnonzero(self._ended)}
        results, arrays, failures = self._client.play(self._actions.vectors(actions, self.num_envs), resets)
        self._last = [array.copy() for array in arrays]
        last = results["step_type"] == LAST
        terminated = last & (results["discount"] == 0)
        truncated = last & ~terminated
        info = {"discount": results["discount"].copy(), "_discount": np.ones(self.num_envs, bool)}
        if failures:
            truncated[list(failures)] = True
            info["_failure"] = np.isin(np.arange(self.num_envs), list(failures))
            info["failure"] = np.array([failures.get(i, "") for i in range(self.num_envs)], dtype=object)
        self._ended = terminated | truncated
        return self._observation(self._last), results["reward"].copy(), terminated, truncated, info

    def close_extras(self, **kwargs):
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._program is not None:
            self._program.close()
            self._program = None
