"""A renewal that outlives its lock: the thread that renews sends `SET` once more after the release."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from pybench.lab.recipes.scene import Recipe, Scene, Shown

if TYPE_CHECKING:
    from redis import Redis

LEASE_S = 0.6


class Lock:
    """As published: the release does not wait for the thread that renews."""

    def __init__(self, redis: Redis, name: str, before_renewal: threading.Event) -> None:
        self.redis, self.name = redis, name
        self._is_held = False
        self._before_renewal = before_renewal
        self.looked = threading.Event()
        """Set when the thread has seen that the lock is held."""
        self._renewing = threading.Thread(target=self._renew, daemon=True)

    def acquire(self) -> bool:
        """Take it, if it is free, and renew it from then on."""
        self._is_held = bool(self.redis.set(self.name, "ours", nx=True, px=round(LEASE_S * 1_000)))
        self._renewing.start()
        return self._is_held

    def release(self) -> None:
        """Remove it."""
        self._is_held = False
        self.redis.delete(self.name)

    def await_renewal(self) -> None:
        """Wait until the thread has ended."""
        self._renewing.join()

    def _renew(self) -> None:
        while self._is_held:
            self.looked.set()
            # Between the look and the command anything may happen; here, the release does.
            self._before_renewal.wait()
            self.redis.set(self.name, "ours", px=round(LEASE_S * 1_000))


def wrong(scene: Scene) -> Shown:
    """A releases its lock between the look and the renewal; B asks."""
    goes_on = threading.Event()
    a = Lock(scene.redis, scene.name, goes_on)
    first = a.acquire()
    a.looked.wait(scene.stage.left_s)
    a.release()
    goes_on.set()
    a.await_renewal()
    second = scene.redis.set(scene.name, "B", nx=True, px=round(LEASE_S * 1_000))
    return _shown(is_wrong=first and not second)


def right(scene: Scene) -> Shown:
    """A lock with renewals is released, and longer than an interval of renewals passes; B asks."""
    from pybench.lab.contest import attempt

    client = scene.client("watchdog")
    with attempt(client, scene.name, ttl=f"{LEASE_S}s") as a:
        time.sleep(LEASE_S / 2)  # It renews three times in each lease.
    time.sleep(LEASE_S / 2)
    with attempt(client, scene.name) as b:
        return _shown(is_wrong=a.held is not None and b.held is None)


def _shown(*, is_wrong: bool) -> Shown:
    if is_wrong:
        return Shown(
            went_wrong=True,
            sentence="the renewal brought the released lock back: nobody holds it, and nobody gets it",
            inside="nobody",
        )
    return Shown(
        went_wrong=False, sentence="no renewal came after the release: the next client had the lock", inside="B"
    )


RECIPE = Recipe("renews when released", "renewal-after-release", wrong, "watchdog", right)
