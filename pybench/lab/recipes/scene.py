"""What every recipe needs: a server, names of its own, and clients of pybench's lock beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pybench.lab.locks import ChosenLock

if TYPE_CHECKING:
    from redis import Redis

    from pybench.lab.stage import Stage
    from pybench.lock_client import LockClient

SHORT_S = 0.2
"""A lease that ends during an experiment."""
LONG_S = 30.0
"""A lease that does not."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What an interleaving showed."""

    went_wrong: bool
    sentence: str
    inside: str
    """Who was inside, or is kept out, at the end."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One interleaving of one recipe."""

    stage: Stage
    redis: Redis
    name: str
    """Of the lock; other keys begin with it."""

    def client(self, lock: str, **arguments: int) -> LockClient:
        """A client of a lock of pybench on the same server."""
        return self.stage.client(ChosenLock(lock, tuple(arguments.items())))

    def await_end(self, key: str) -> None:
        """Wait until the lease of `key` has ended on the server."""
        self.stage.wait_until(lambda: not self.redis.exists(key), what="a short lease ended")

    def await_second(self) -> None:
        """Wait for the beginning of a second of the wall clock: what follows happens in one second."""
        self.stage.wait_until(lambda: time.time() % 1 < SHORT_S, what="a second began")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A published lock that is wrong, and the lock of pybench beside it."""

    label: str
    key: str
    """For names of keys."""
    wrong: Callable[[Scene], Shown]
    lock: str
    right: Callable[[Scene], Shown]
