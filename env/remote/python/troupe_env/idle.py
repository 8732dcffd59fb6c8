"""An environment that does nothing, to measure the cost of the protocol (``troupe bench remote``); also an example of an Adapter."""

import numpy as np

from troupe_env.adapters import Adapter
from troupe_env.spec import ArraySpec, Spec


class Idle(Adapter):
    spec = Spec("idle", (ArraySpec("observation", np.dtype("<f8"), (17,)),), (-1.0,) * 6, (1.0,) * 6)

    def reset(self, seed, views):
        views[0][:] = 0.0

    def step(self, action, views):
        views[0][:6] = action
        return 0.0, 1.0, False


def make():
    return Idle()
