"""The adapter of Gymnasium environments."""

import numpy as np
from gymnasium import spaces

from troupe_env.adapters import ActionPart, Adapter, Picture, array_spec, box_part, choices_part, narrow_seed, write
from troupe_env.spec import Spec


def _leaves(space, name=""):
    """The arrays of an observation space: (spec, how to find the array in an observation, its Picture or None)."""
    if isinstance(space, spaces.Dict):
        children = [(key, inner) for key, inner in space.spaces.items()]
    elif isinstance(space, spaces.Tuple):
        children = list(enumerate(space.spaces))
    else:
        picture = None
        if isinstance(space, spaces.Discrete):
            found = array_spec(name or "observation", np.int64, ())
        elif isinstance(space, spaces.Box) and Picture.is_one(space.dtype, space.shape, flat=_has_grey_levels(space)):
            picture = Picture(space.dtype, space.shape)
            found = array_spec(name or "observation", space.dtype, picture.sent_shape)
        elif isinstance(space, (spaces.Box, spaces.MultiBinary, spaces.MultiDiscrete)):
            found = array_spec(name or "observation", space.dtype, space.shape)
        else:
            raise TypeError(
                f"observations in a {type(space).__name__} have no fixed shape; wrap the environment in one of Gymnasium's "
                "wrappers that make them a Box or a Dict of Boxes"
            )
        return [(found, (), picture)]
    out = []
    for key, inner in children:
        for spec, path, picture in _leaves(inner, f"{name}/{key}" if name else str(key)):
            out.append((spec, (key, *path), picture))
    return out


def _has_grey_levels(space):
    return bool((space.low == 0).all() and (space.high == 255).all())


def _actions(space):
    """The parts of the action vector for an action space."""
    if isinstance(space, spaces.Box):
        return box_part(space.low, space.high, space.shape, space.dtype)
    if isinstance(space, spaces.Discrete):
        one = choices_part(space.n, space.start, np.int64)
        return ActionPart(one.minimum, one.maximum, one.choices, lambda vector: int(one.decode(vector)))
    if isinstance(space, spaces.MultiBinary):
        return choices_part(np.full(space.shape, 2), 0, space.dtype)
    if isinstance(space, spaces.MultiDiscrete):
        return choices_part(space.nvec, space.start, space.dtype)
    if isinstance(space, spaces.Dict):
        keys = list(space.spaces)
        whole = _joined([_actions(space[key]) for key in keys])
        return ActionPart(whole.minimum, whole.maximum, whole.choices, lambda vector: dict(zip(keys, whole.decode(vector))))
    if isinstance(space, spaces.Tuple):
        return _joined([_actions(inner) for inner in space.spaces])
    raise TypeError(f"actions in a {type(space).__name__} cannot be made from a vector of numbers; wrap the environment")


def _joined(parts):
    ends = np.cumsum([part.size for part in parts])

    def decode(vector):
        return tuple(part.decode(vector[end - part.size : end]) for part, end in zip(parts, ends))

    minimum, maximum, choices = ([x for part in parts for x in getattr(part, name)] for name in ("minimum", "maximum", "choices"))
    return ActionPart(minimum, maximum, choices, decode)


class GymnasiumAdapter(Adapter):
    """Termination becomes discount 0, truncation discount 1. Box actions are clipped to their bounds. A Discrete(n) action is one choice
    of n (`start` is added), a MultiDiscrete action is one choice per element, and a MultiBinary action is choices of 2. A Dict or Tuple
    of these concatenates their numbers in its order."""

    def __init__(self, environment, name=None):
        self._environment = environment
        leaves = _leaves(environment.observation_space)
        self._paths = [path for _, path, _ in leaves]
        self._pictures = [picture for _, _, picture in leaves]
        self._action = _actions(environment.action_space)
        registered = environment.spec
        limit = registered.max_episode_steps if registered is not None else None
        timestep = getattr(environment.unwrapped, "dt", 0.0)
        self.spec = Spec(
            name=name or (registered.id if registered is not None else type(environment.unwrapped).__name__),
            observations=tuple(spec for spec, _, _ in leaves),
            episode_steps=int(limit or 0),
            control_timestep_seconds=float(timestep) if isinstance(timestep, (int, float)) else 0.0,
            **self._action.of_spec(),
        )

    def _write(self, observation, views):
        for path, view, spec, picture in zip(self._paths, views, self.spec.observations, self._pictures):
            value = observation
            for key in path:
                value = value[key]
            write(view, value, spec.name, picture)

    def reset(self, seed, views):
        observation, _ = self._environment.reset(seed=narrow_seed(seed))
        self._write(observation, views)

    def step(self, action, views):
        observation, reward, terminated, truncated, _ = self._environment.step(self._action.decode(action))
        self._write(observation, views)
        return float(reward), 0.0 if terminated else 1.0, bool(terminated or truncated)

    def close(self):
        self._environment.close()
