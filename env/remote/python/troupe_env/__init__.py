"""Environments between Troupe and Python.

Serving: ``python -m troupe_env serve gymnasium HalfCheetah-v5 --endpoint ipc:///tmp/cheetah --count 16``, or :class:`Server`.
Playing: :class:`GymnasiumEnv`, :class:`GymnasiumVectorEnv`, :class:`DmEnv`; below them :class:`Client`.

The classes are imported on first use: only the classes for Gymnasium and dm_env need these packages.
"""

from importlib import import_module

_HOMES = {
    "Adapter": "adapters",
    "Client": "client",
    "DmAdapter": "dm_adapter",
    "DmEnv": "dm",
    "GymnasiumAdapter": "gymnasium_adapter",
    "GymnasiumEnv": "gymnasium_env",
    "GymnasiumVectorEnv": "gymnasium_env",
    "Program": "program",
    "RemoteError": "client",
    "Server": "server",
    "Spec": "spec",
    "adapt": "adapters",
}

__all__ = sorted(_HOMES)
__version__ = "0.1.0"


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"troupe_env has no '{name}'; it has {', '.join(__all__)}")
    return getattr(import_module(f"troupe_env.{_HOMES[name]}"), name)
