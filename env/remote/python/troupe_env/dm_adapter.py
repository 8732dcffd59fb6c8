"""The adapter of dm_env environments."""

import math

import numpy as np

from troupe_env.adapters import Adapter, Picture, array_spec, box_part, choices_part, narrow_seed, write
from troupe_env.spec import Spec


def _leaves(spec, name=""):
    if isinstance(spec, dict) or hasattr(spec, "items"):
        children = spec.items()
    elif isinstance(spec, (list, tuple)):
        children = enumerate(spec)
    else:
        picture = Picture(spec.dtype, spec.shape) if Picture.is_one(spec.dtype, spec.shape) else None
        shape = picture.sent_shape if picture else spec.shape
        return [(array_spec(name or spec.name or "observation", spec.dtype, shape), (), picture)]
    out = []
    for key, inner in children:
        for found, path, picture in _leaves(inner, f"{name}/{key}" if name else str(key)):
            out.append((found, (key, *path), picture))
    return out


def _action(spec):
    """The parts of the action vector. Bounded integers (as in a DiscreteArray) are choices, counted from their minimum."""
    if not hasattr(spec, "dtype"):
        raise TypeError("the action is not one array; wrap the environment so that it is")
    if hasattr(spec, "minimum") and np.dtype(spec.dtype).kind in "iu":
        low, high = (np.broadcast_to(bound, spec.shape).astype(object) for bound in (spec.minimum, spec.maximum))
        return choices_part(high - low + 1, low, spec.dtype)
    return box_part(getattr(spec, "minimum", -math.inf), getattr(spec, "maximum", math.inf), spec.shape, spec.dtype)


class DmAdapter(Adapter):
    """An episode of dm_control depends only on its seed, with which ``environment.task.random`` is seeded before each episode. Other
    environments are seeded by their ``seed(number)`` if they have it; otherwise seeds have no effect and `seeded` is False."""

    def __init__(self, environment, name=None):
        self._environment = environment
        leaves = _leaves(environment.observation_spec())
        self._paths = [path for _, path, _ in leaves]
        self._pictures = [picture for _, _, picture in leaves]
        self._action = _action(environment.action_spec())
        limit = getattr(environment, "_step_limit", math.inf)
        timestep = environment.control_timestep() if hasattr(environment, "control_timestep") else 0.0
        self.spec = Spec(
            name=name or type(getattr(environment, "task", environment)).__name__,
            observations=tuple(spec for spec, _, _ in leaves),
            episode_steps=int(math.ceil(limit)) if math.isfinite(limit) else 0,
            control_timestep_seconds=float(timestep),
            **self._action.of_spec(),
        )
        random = getattr(getattr(environment, "task", None), "random", None)
        if isinstance(random, np.random.RandomState):
            self._seed = random.seed
        else:
            self._seed = getattr(environment, "seed", None)
        self.seeded = callable(self._seed)

    def _write(self, observation, views):
        for path, view, spec, picture in zip(self._paths, views, self.spec.observations, self._pictures):
            value = observation
            for key in path:
                value = value[key]
            write(view, value, spec.name, picture)

    def reset(self, seed, views):
        if self.seeded:
            self._seed(narrow_seed(seed))
        self._write(self._environment.reset().observation, views)

    def step(self, action, views):
        step = self._environment.step(self._action.decode(action))
        if step.first():
            raise RuntimeError("the environment began an episode by itself")
        self._write(step.observation, views)
        return float(step.reward), float(step.discount), bool(step.last())

    def close(self):
        self._environment.close()
