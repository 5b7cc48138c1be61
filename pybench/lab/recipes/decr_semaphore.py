"""A semaphore of `DECR` and `INCR`: the permits of crashed holders never come back."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pybench.lab.recipes.scene import SHORT_S, Recipe, Scene, Shown

if TYPE_CHECKING:
    from redis import Redis

PERMITS = 2


class Semaphore:
    """As published."""

    def __init__(self, redis: Redis, name: str) -> None:
        self.redis, self.name = redis, name
        redis.set(name, PERMITS, ex=60)

    def acquire(self) -> bool:
        """Take a permit, if one is left."""
        if self.redis.decr(self.name) >= 0:
            return True
        self.release()
        return False

    def release(self) -> None:
        """Return a permit."""
        self.redis.incr(self.name)


def wrong(scene: Scene) -> Shown:
    """All holders crash. Long afterwards another client asks."""
    semaphore = Semaphore(scene.redis, scene.name)
    took = [semaphore.acquire() for _ in range(PERMITS)]
    time.sleep(2 * SHORT_S)
    return _shown(is_wrong=all(took) and not semaphore.acquire())


def right(scene: Scene) -> Shown:
    """With `semaphore` each permit has a lease."""
    from pybench.lab.contest import attempt

    client = scene.client("semaphore", permits=PERMITS)
    with ExitStack() as crashed:
        # As after a crash, nobody renews them; they are released only when all is over.
        took = [crashed.enter_context(attempt(client, scene.name, ttl=f"{SHORT_S}s")) for _ in range(PERMITS)]
        time.sleep(2 * SHORT_S)
        with attempt(client, scene.name) as another:
            return _shown(is_wrong=any(one.held is None for one in took) or another.held is None)


def _shown(*, is_wrong: bool) -> Shown:
    if is_wrong:
        return Shown(
            went_wrong=True,
            sentence="the permits of crashed holders are lost: nobody gets one again",
            inside="crashed holders",
        )
    return Shown(
        went_wrong=False,
        sentence="the permits of crashed holders came back with the end of their leases",
        inside="another client",
    )


RECIPE = Recipe("DECR semaphore", "decr-semaphore", wrong, "semaphore", right)
