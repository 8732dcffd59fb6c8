"""Troupe in Python: environments that step in C++, a ray caster for MuJoCo models, and replay tables.

    envs = troupe.make_vec("cheetah_run", num_envs=16, num_threads=2)
    observations, info = envs.reset(seed=1)

`troupe.make` and `troupe.make_vec` return Gymnasium's Env and VectorEnv, and `troupe.dm.make` returns dm_env's Environment. `troupe.render`
draws models of the package `mujoco`, and `troupe.replay` stores experience. Parts are imported on first use: Gymnasium, dm_env and MuJoCo are
only needed by the parts that use them.
"""

from importlib import import_module
from typing import Any, List

_HOMES = {
    "Env": "environments",
    "VectorEnv": "environments",
    "make": "environments",
    "make_vec": "environments",
    "register": "environments",
    "environment_names": "_native",
    "Policy": "runs",
    "Run": "runs",
    "StopRun": "training",
    "resume": "training",
    "train": "training",
    "agent": "agents",
}
_MODULES = ("agents", "dm", "environments", "render", "replay", "runs", "spaces", "training")

__all__ = sorted([*_HOMES, *_MODULES])
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"troupe.{name}")
    if name not in _HOMES:
        raise AttributeError(f"troupe has no '{name}'; it has {', '.join(__all__)}")
    return getattr(import_module(f"troupe.{_HOMES[name]}"), name)


def __dir__() -> List[str]:
    return __all__
