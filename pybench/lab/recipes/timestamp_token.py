"""Tokens of second and client name: two holders of one process have the same token, and each passes for the other."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

from pybench.lab.recipes.delete_without_owner import late_release, shown
from pybench.lab.recipes.scene import LONG_S, SHORT_S, Recipe, Scene, Shown

if TYPE_CHECKING:
    from redis import Redis

COMPARE_AND_DELETE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class Lock:
    """As published: the release compares, but tokens are not unique."""

    def __init__(self, redis: Redis, name: str) -> None:
        self.redis, self.name, self.token = redis, name, ""

    def acquire(self, seconds: float) -> bool:
        """Take it, if it is free."""
        self.token = f"{int(time.time())}_{socket.gethostname()}"
        return bool(self.redis.set(self.name, self.token, nx=True, px=round(seconds * 1_000)))

    def release(self) -> None:
        """Remove it if the token is ours."""
        self.redis.eval(COMPARE_AND_DELETE, 1, self.name, self.token)


def wrong(scene: Scene) -> Shown:
    """A's lease ends, B takes the lock within the same second, A releases it, and C takes it beside B."""
    a, b, c = (Lock(scene.redis, scene.name) for _ in range(3))
    scene.await_second()
    first = a.acquire(SHORT_S / 2)
    scene.await_end(scene.name)
    second = b.acquire(LONG_S)
    a.release()
    third = c.acquire(LONG_S)
    return shown(is_wrong=first and second and third)


RECIPE = Recipe("second_host token", "timestamp-token", wrong, "mutex", late_release)
