"""One ttl for all readers: each new one renews the share of one that crashed, and the writer waits for ever."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pybench.lab.recipes.scene import Recipe, Scene, Shown

if TYPE_CHECKING:
    from redis import Redis

LEASE_S = 0.5
STEP_S = 0.02
LEASES = 3
"""The writer asks after so many leases of the crashed reader."""


class Lock:
    """As published: a counter of readers with one lease, which each of them renews."""

    def __init__(self, redis: Redis, name: str) -> None:
        self.redis, self.readers = redis, f"{name}:readers"

    def begin_read(self) -> None:
        """Count a reader."""
        self.redis.incr(self.readers)
        self.redis.pexpire(self.readers, round(LEASE_S * 1_000))

    def end_read(self) -> None:
        """A reader leaves."""
        self.redis.decr(self.readers)

    def may_write(self) -> bool:
        """Whether no reader is counted."""
        return int(self.redis.get(self.readers) or 0) == 0


def wrong(scene: Scene) -> Shown:
    """Reader A crashes. Others come and go all the time. The writer asks long after A's lease."""
    lock = Lock(scene.redis, scene.name)
    lock.begin_read()
    for _ in range(round(LEASES * LEASE_S / STEP_S)):
        lock.begin_read()
        time.sleep(STEP_S)
        lock.end_read()
    is_wrong = not lock.may_write()
    scene.redis.delete(lock.readers)
    return _shown(is_wrong=is_wrong)


def right(scene: Scene) -> Shown:
    """With `read-write` each reader has a lease of its own."""
    from pybench.lab.contest import attempt

    client = scene.client("read-write")
    # As after a crash, A renews nothing; it is released only when all is over.
    with attempt(client, scene.name, shared=True, ttl=f"{LEASE_S}s") as a:
        for _ in range(round(LEASES * LEASE_S / STEP_S)):
            with attempt(client, scene.name, shared=True, ttl=f"{LEASE_S}s"):
                time.sleep(STEP_S)
        with attempt(client, scene.name, wait="1s") as writer:
            return _shown(is_wrong=a.held is None or writer.held is None)


def _shown(*, is_wrong: bool) -> Shown:
    if is_wrong:
        return Shown(
            went_wrong=True,
            sentence=f"after {LEASES} leases the crashed reader still kept the writer out",
            inside="a crashed reader",
        )
    return Shown(
        went_wrong=False,
        sentence="the share of the crashed reader ended with its own lease: the writer had the lock",
        inside="writer",
    )


RECIPE = Recipe("one ttl for readers", "shared-ttl", wrong, "read-write", right)
