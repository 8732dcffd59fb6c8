"""Adapters: Python environments as the server steps them, with seeds, vectors of numbers and views of memory."""

import dataclasses

import numpy as np

from troupe_env.spec import ArraySpec


class Adapter:
    """One environment. It writes each observation into `views`, arrays in the order of `spec.observations`."""

    spec = None

    def reset(self, seed, views):
        raise NotImplementedError

    def step(self, action, views):
        """Steps with `action`, float64 [spec.actions]. A choice is one of its whole numbers; a continuous number is finite and, if the client
        keeps the rules, within its bounds. Returns (reward, discount, whether the episode has ended)."""
        raise NotImplementedError

    def close(self):
        pass


def adapt(environment, name=None, action_repeat=1):
    """Returns an adapter for a Gymnasium or dm_env environment; an Adapter is returned unchanged. `action_repeat`: environment steps per step."""
    adapter = _adapter(environment, name)
    if action_repeat != 1:
        adapter.spec = dataclasses.replace(adapter.spec, action_repeat=action_repeat)
    return adapter


def _adapter(environment, name):
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
    """The spec as which such an array is sent: bool and uint8 as uint8, other integers as int64, float16 as float32."""
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


class Picture:
    """A picture, uint8 or bool [height, width], [height, width, channels] or [channels, height, width], which is sent as Troupe's: uint8
    [channels, height, width]. The channels are the last axis if it has 1, 3 or 4 elements or fewer than both others. True is sent as 255."""

    def __init__(self, dtype, shape):
        self.shape = tuple(int(n) for n in shape)
        self._is_bool = np.dtype(dtype) == np.dtype(bool)
        self._channels_last = len(self.shape) == 3 and (self.shape[2] in (1, 3, 4) or self.shape[2] < min(self.shape[:2]))
        if self._channels_last:
            self.sent_shape = (self.shape[2], *self.shape[:2])
        else:
            self.sent_shape = (1, *self.shape)[-3:]

    @staticmethod
    def is_one(dtype, shape, flat=False):
        """Whether such an array is a picture: Troupe takes every array of uint8 with three axes for one. `flat`: whether [height, width] of
        uint8 counts, too."""
        is_uint8 = np.dtype(dtype) == np.dtype("u1")
        return (len(shape) == 3 and (is_uint8 or np.dtype(dtype) == np.dtype(bool))) or (flat and is_uint8 and len(shape) == 2)

    def view(self, sent):
        """A view of the array `sent` in the environment's layout."""
        if self._channels_last:
            return sent.transpose(1, 2, 0)
        return sent[0] if len(self.shape) == 2 else sent

    def levels(self, value):
        return np.where(value, np.uint8(255), np.uint8(0)) if self._is_bool else value


def write(view, value, name, picture=None):
    """Copies one array of an observation into `view`. Raises if it does not match the environment's spec."""
    value = np.asarray(value)
    if picture is not None:
        view, value = picture.view(view), picture.levels(value)
    if value.shape != view.shape:
        raise ValueError(f"observation '{name}' has shape {value.shape}; the environment promised {view.shape}")
    view[...] = value


def narrow_seed(seed):
    """A seed below 2**32, as NumPy's RandomState and many environments need it: `seed` itself, or a number derived from it."""
    return seed if seed < 1 << 32 else int(np.random.SeedSequence(seed).generate_state(1)[0])


class ActionPart:
    """Consecutive numbers of the action vector, and their meaning for the environment."""

    def __init__(self, minimum, maximum, choices, decode):
        self.minimum, self.maximum, self.choices, self.decode = list(minimum), list(maximum), list(choices), decode

    @property
    def size(self):
        return len(self.minimum)

    def of_spec(self):
        """The fields of Spec that describe the action."""
        return {
            "action_minimum": tuple(self.minimum),
            "action_maximum": tuple(self.maximum),
            "action_choices": tuple(self.choices) if any(self.choices) else (),
        }


def box_part(minimum, maximum, shape, dtype):
    low = np.broadcast_to(np.asarray(minimum, np.float64), shape).ravel()
    high = np.broadcast_to(np.asarray(maximum, np.float64), shape).ravel()
    dtype = np.dtype(dtype)

    def decode(vector):
        vector = np.clip(vector, low, high)
        if dtype.kind in "iu":
            vector = np.rint(vector)
        return vector.astype(dtype).reshape(shape)

    return ActionPart(low.tolist(), high.tolist(), [0] * low.size, decode)


def choices_part(counts, first, dtype):
    """The part for one choice per element of `counts`: the environment gets an array of the same shape, with choices counted from `first`."""
    counts = np.asarray(counts)
    first = np.broadcast_to(np.asarray(first, np.int64), counts.shape)
    flat = [int(n) for n in counts.ravel()]
    for n in flat:
        if not 2 <= n <= 1 << 53:
            raise TypeError(
                f"an action has a choice of {n}; a choice must be of 2 or more (and at most 2^53): wrap the environment so that it "
                "fills in what cannot be chosen"
            )

    def decode(vector):
        return np.asarray(vector.astype(np.int64).reshape(counts.shape) + first, dtype)

    return ActionPart([0.0] * len(flat), [n - 1.0 for n in flat], flat, decode)
