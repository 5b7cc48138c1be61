"""Release without a look at the owner: `DEL` removes the lock of whoever holds it by then."""

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

    def release(self) -> None:
        """Remove it, whoever holds it."""
        self.redis.delete(self.name)


def wrong(scene: Scene) -> Shown:
    """A's lease ends, B takes the lock, A releases it, and C takes it beside B."""
    a, b, c = (Lock(scene.redis, scene.name) for _ in range(3))
    first = a.acquire(SHORT_S)
    scene.await_end(scene.name)
    second = b.acquire(LONG_S)
    a.release()
    third = c.acquire(LONG_S)
    return shown(is_wrong=first and second and third)


def right(scene: Scene) -> Shown:
    """The same with a lock whose release compares its token."""
    return late_release(scene)


def late_release(scene: Scene) -> Shown:
    """With `mutex`: A's release comes after B's grant, and C asks."""
    from pybench.lab.contest import attempt

    client = scene.client("mutex")
    with attempt(client, scene.name, ttl=f"{SHORT_S}s"):
        scene.await_end(scene.name)
        second = attempt(client, scene.name)
        b = second.__enter__()
    # A has released here.
    with attempt(client, scene.name) as c:
        result = shown(is_wrong=b.holds and c.holds)
    second.__exit__(None, None, None)
    return result


def shown(*, is_wrong: bool) -> Shown:
    """B holds the lock; whether C has it, too."""
    if is_wrong:
        return Shown(
            went_wrong=True,
            sentence="the late release removed the lock of the next holder: two clients held it",
            inside="B and C",
        )
    return Shown(went_wrong=False, sentence="the late release left the lock of the next holder alone", inside="B")


RECIPE = Recipe("DEL by anybody", "delete-without-owner", wrong, "mutex", right)
