"""Renewal by `PEXPIRE`: it renews the lock of the next holder, and tells the old one that all is well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.lab.recipes.scene import LONG_S, SHORT_S, Recipe, Scene, Shown

if TYPE_CHECKING:
    from redis import Redis


class Lock:
    """As published."""

    def __init__(self, redis: Redis, name: str) -> None:
        self.redis, self.name = redis, name

    def acquire(self, seconds: float) -> bool:
        """Take it, if it is free."""
        return bool(self.redis.set(self.name, "locked", nx=True, px=round(seconds * 1_000)))

    def renew(self, seconds: float) -> bool:
        """Extend it; whether it is still held, as far as this program can tell."""
        return bool(self.redis.pexpire(self.name, round(seconds * 1_000)))


def wrong(scene: Scene) -> Shown:
    """A's lease ends, B takes the lock, and A's renewal succeeds."""
    a, b = Lock(scene.redis, scene.name), Lock(scene.redis, scene.name)
    first = a.acquire(SHORT_S)
    scene.await_end(scene.name)
    second = b.acquire(LONG_S)
    return _shown(is_wrong=first and second and a.renew(LONG_S))


def right(scene: Scene) -> Shown:
    """The same with a renewal that compares the token."""
    from pybench.lab.contest import attempt
    from pybench.lock_client import LockLost

    client = scene.client("mutex")
    with attempt(client, scene.name, ttl=f"{SHORT_S}s") as a:
        scene.await_end(scene.name)
        with attempt(client, scene.name) as b:
            assert a.held is not None, "nobody else asks for this lock"
            try:
                a.held.extend()
            except LockLost:
                return _shown(is_wrong=False)
            return _shown(is_wrong=b.holds)


def _shown(*, is_wrong: bool) -> Shown:
    if is_wrong:
        return Shown(
            went_wrong=True,
            sentence="the renewal of a lease that had ended succeeded: two clients believed to hold it",
            inside="A and B",
        )
    return Shown(went_wrong=False, sentence="the renewal of a lease that had ended was refused", inside="B")


RECIPE = Recipe("PEXPIRE by anybody", "renew-without-compare", wrong, "mutex", right)
