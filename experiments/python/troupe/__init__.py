"""Troupe in Python: environments that step in C++, a ray caster for MuJoCo models, and replay tables.

    envs = troupe.make_vec("cheetah_run", num_envs=16, num_threads=2)
    observations, info = envs.reset(seed=1)

`troupe.make` and `troupe.make_vec` return Gymnasium's Env and VectorEnv, and `troupe.dm.make` returns dm_env's Environment. `troupe.render`
draws models of the package `mujoco`, and `troupe.replay` stores experience. Parts are imported on first use: Gymnasium, dm_env and MuJoCo are
only needed by the parts that use them. `gymnasium.make("troupe/cheetah_run")` finds the tasks after `import troupe`.
"""

import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
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


def _register() -> None:
    try:
        import_module("troupe.environments")
    except ImportError as error:  # of the extension module, or of a Gymnasium that is too old
        warnings.warn(f"gymnasium.make() does not find Troupe's tasks: {error}", stacklevel=2)


class _AfterGymnasium:
    """A finder of sys.meta_path that registers the tasks once Gymnasium is imported. So `import troupe` loads neither Gymnasium nor the
    extension module."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                _register()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if "gymnasium" in sys.modules:
    _register()
else:
    sys.meta_path.insert(0, _AfterGymnasium())
