"""Readers counted in one key, the lock of the writer in another: between the two commands a writer slips in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.lab.recipes.scene import LONG_S, Recipe, Scene, Shown

if TYPE_CHECKING:
    from redis import Redis


class Lock:
    """As published: the first reader takes the lock of the writer for all readers."""

    def __init__(self, redis: Redis, name: str) -> None:
        self.redis, self.name = redis, name

    def begin_read(self) -> int:
        """First command of a reader: count it."""
        return int(self.redis.incr(f"{self.name}:readers"))

    def end_read(self, count: int) -> bool:
        """Second command of a reader: the first one takes the lock, all others go in."""
        return count > 1 or self.begin_write("readers")

    def begin_write(self, owner: str = "writer") -> bool:
        """Take the lock of the writer."""
        return bool(self.redis.set(self.name, owner, nx=True, px=round(LONG_S * 1_000)))


def wrong(scene: Scene) -> Shown:
    """Reader A is counted; the writer takes its lock; reader B is counted, is not the first, and goes in."""
    lock = Lock(scene.redis, scene.name)
    scene.redis.expire(f"{scene.name}:readers", 60)
    a = lock.begin_read()
    writes = lock.begin_write()
    b_reads = lock.end_read(lock.begin_read())
    a_reads = lock.end_read(a)
    scene.redis.delete(f"{scene.name}:readers")
    return _shown(is_wrong=writes and b_reads and not a_reads)


def right(scene: Scene) -> Shown:
    """With `read-write` a reader is counted and let in by one script."""
    from pybench.lab.contest import attempt

    client = scene.client("read-write")
    with attempt(client, scene.name) as writer, attempt(client, scene.name, shared=True) as b:
        return _shown(is_wrong=writer.holds and b.holds)


def _shown(*, is_wrong: bool) -> Shown:
    if is_wrong:
        return Shown(
            went_wrong=True,
            sentence="the second reader relied on the first, who had no lock: it read beside a writer",
            inside="writer, B",
        )
    return Shown(went_wrong=False, sentence="the reader was refused while the writer wrote", inside="writer")


RECIPE = Recipe("two-key readers", "reader-count", wrong, "read-write", right)
