"""Environments of Python as the server plays them: seeds, vectors of numbers and views of memory."""

import numpy as np

from troupe_env.spec import ArraySpec


class Adapter:
    """One environment. `views` are the arrays of one observation, in the order of `spec.observations`, to be written in place."""

    spec = None

    def reset(self, seed, views):
        raise NotImplementedError

    def step(self, action, views):
        """`action` is float64 [spec.actions] within the bounds. Gives (reward, discount, whether the episode has ended)."""
        raise NotImplementedError

    def close(self):
        pass


def adapt(environment, name=None):
    """The adapter of a Gymnasium or dm_env environment; an Adapter is its own."""
    if isinstance(environment, Adapter):
        return environment
    if hasattr(environment, "observation_space") and hasattr(environment, "action_space"):
        from troupe_env.gymnasium_adapter import GymnasiumAdapter

        return GymnasiumAdapter(environment, name)
    if callable(getattr(environment, "observation_spec", None)) and callable(getattr(environment, "action_spec", None)):
        from troupe_env.dm_adapter import DmAdapter

        return DmAdapter(environment, name)
    raise TypeError(
        f"{type(environment).__name__} is neither a Gymnasium environment (observation_space, action_space) nor a dm_env one "
        "(observation_spec(), action_spec()); wrap it in one of them, or in troupe_env.Adapter"
    )


def array_spec(name, dtype, shape):
    """How an array of this kind travels: bool and uint8 as uint8, other integers as int64, float16 as float32."""
    dtype = np.dtype(dtype)
    if dtype in (np.dtype(bool), np.dtype("u1")):
        sent = np.dtype("u1")
    elif dtype.kind in "iu" and dtype != np.dtype("u8"):
        sent = np.dtype("<i8")
    elif dtype.kind == "f" and dtype.itemsize <= 4:
        sent = np.dtype("<f4")
    elif dtype == np.dtype("f8"):
        sent = np.dtype("<f8")
    else:
        raise TypeError(f"observation '{name}' has elements of type {dtype}, which cannot be sent; wrap the environment to convert them")
    return ArraySpec(name, sent, tuple(int(n) for n in shape))


def write(view, value, name):
    """Copies one array of an observation into its place; an environment that breaks its own promise fails."""
    value = np.asarray(value)
    if value.shape != view.shape:
        raise ValueError(f"observation '{name}' has shape {value.shape}; the environment promised {view.shape}")
    view[...] = value


class ActionPart:
    """Some numbers of the action vector and what they mean to the environment."""

    def __init__(self, minimum, maximum, decode):
        self.minimum, self.maximum, self.decode = list(minimum), list(maximum), decode

    @property
    def size(self):
        return len(self.minimum)


def box_part(minimum, maximum, shape, dtype):
    low = np.broadcast_to(np.asarray(minimum, np.float64), shape).ravel()
    high = np.broadcast_to(np.asarray(maximum, np.float64), shape).ravel()
    dtype = np.dtype(dtype)

    def decode(vector):
        vector = np.clip(vector, low, high)
        if dtype.kind in "iu":
            vector = np.rint(vector)
        return vector.astype(dtype).reshape(shape)

    return ActionPart(low, high, decode)


def choice_part(count, first=0):
    """One of `count`: a number in [-1, 1] for each, and the greatest decides."""
    return ActionPart([-1.0] * count, [1.0] * count, lambda vector: int(np.argmax(vector)) + first)
