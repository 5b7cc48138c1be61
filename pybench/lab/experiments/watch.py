"""`watch`: a holder that watches its primary drops its work when the primary dies, before the replica takes over."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pybench.errors import ServerError
from pybench.lab.contest import attempt, client_on, not_of_redis_alone, servers_of
from pybench.lab.experiment import Experiment
from pybench.lab.findings import Case, Expected, Figure

if TYPE_CHECKING:
    from pybench.lab.locks import ChosenLock
    from pybench.lab.stage import Stage
    from pybench.servers import Server

SECOND_WAITS = "2s"


class _Watcher:
    """Waits on a connection to the primary for its end."""

    def __init__(self, stage: Stage, primary: Server, key: str) -> None:
        self.ended_at: float | None = None
        self._stage, self._primary, self._key = stage, primary, key
        self._watches = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="pybench-watch", daemon=True)
        self._thread.start()
        self._watches.wait(stage.left_s)

    def join(self) -> None:
        """Wait until the end was seen."""
        self._thread.join(self._stage.left_s)

    def _watch(self) -> None:
        try:
            with self._primary.conversation(seconds=self._stage.left_s) as conversation:
                conversation.ask("PING")
                self._watches.set()
                conversation.ask("BLPOP", self._key, "0")
        except ServerError:
            self.ended_at = time.monotonic()


def _run(stage: Stage) -> Iterator[Case]:
    for lock in stage.locks:
        for watches in (False, True):
            yield _case(stage, lock, watches=watches)


def _case(stage: Stage, lock: ChosenLock, *, watches: bool) -> Case:
    from pybench.servers import harm

    label = f"{lock.text}, {'watches' if watches else 'blind'}"
    stage.note(label)
    name = f"{stage.prefix}lock:{label.replace(' ', '-')}"
    (primary,) = stage.own_redis(replicas=1)
    failover = harm.Failover(stage.pool, primary, 0.0)
    failover.cut()
    with attempt(client_on(stage, lock, [primary.endpoint]), name) as first:
        watcher = _Watcher(stage, primary, f"{name}:watch") if watches else None
        killed_at = time.monotonic()
        failover.take_over()
        failover.end()
        with attempt(client_on(stage, lock, [primary.endpoint]), name, wait=SECOND_WAITS) as second:
            is_double = first.holds and second.holds
        if watcher is not None:
            watcher.join()
    dropped = None if watcher is None else watcher.ended_at
    works_on = is_double and (dropped is None or dropped > second.at)
    if works_on:
        sentence = "the new primary granted the lock again while its first holder worked on"
    elif dropped is not None:
        sentence = "the first holder saw its connection end, and dropped its work before the lock was granted again"
    else:
        sentence = "the lock was not granted twice"
    return Case(
        label=label,
        strategy=lock.text,
        expected=Expected.RIGHT if watches else Expected.WRONG,
        went_wrong=works_on,
        sentence=sentence,
        figures=(
            Figure("dropped_ms", "work dropped after", None if dropped is None else _ms(dropped - killed_at)),
            Figure("granted_ms", "granted again after", _ms(second.at - killed_at) if second.held else None),
        ),
        clients=(first.row, second.row),
    )


def _ms(seconds: float) -> float:
    return round(seconds * 1e3, 3)


def _unfit(lock: ChosenLock) -> str:
    entry = lock.entry
    if entry is not None and entry.replicas(lock.arguments):
        return "it waits for its replica, so the first client has no lock"
    if servers_of(lock) > 1:
        return "the other servers keep what is granted: see failover"
    return not_of_redis_alone(lock)


WATCH = Experiment(
    name="watch",
    summary="A holder that watches its primary drops its work",
    steps=(
        "As in failover: the first client holds the lock, its primary dies, and a replica that lacks it takes over.",
        "Blind: the first client works on. Watches: it waits on a connection to the primary, and stops when that ends.",
    ),
    learn="A connection tells of a primary that dies, not of one that is cut off: watching helps, and is no proof.",
    run=_run,
    harms_servers=True,
    controls=("mutex",),
    strategies=("fenced",),
    unfit=_unfit,
)
