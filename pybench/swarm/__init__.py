"""Locks at native speed under Locust: its users add and remove native clients, its statistics show what they did.

    from pybench.swarm import NativeLocks

    class Lock(NativeLocks):
        pass

Locust is an extra of the package, and has to be imported first: it patches the standard library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybench.swarm.users import NativeLocks

__all__ = ["NativeLocks"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    try:
        from pybench.swarm.users import NativeLocks
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("locust", "gevent"):
            raise
        from pybench.errors import InputError

        raise InputError(
            "a native swarm needs Locust, which is not installed", hint="pip install 'pybench[locust]'"
        ) from error
    return NativeLocks
