"""The worlds of many seeds, on all cores: what went wrong, in the order of seeds.

Promises: the counts and the seeds found are the same on any number of cores.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybench.core_results import FuzzTally
    from pybench.fuzz.setting import Worlds

CHUNK_S = 0.2
"""About how long one call of the core takes: an interrupt waits for it."""
MOST_IN_CHUNK = 4_096


@dataclass(slots=True)
class Search:
    """What the worlds so far showed."""

    first: int
    worlds: int = 0
    events: int = 0
    """What happened in all worlds: messages that arrived, rounds of the loops, faults."""
    grants: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    """The faults that struck."""
    overruns: int = 0
    """Worlds in which a client was granted the lock while another still worked past its lease or session."""
    outside: list[int] = field(default_factory=list)
    """The seeds of worlds with a violation that the lock does not promise to avoid."""
    broken: list[int] = field(default_factory=list)
    """The seeds of worlds in which the lock broke its promise."""
    seconds: float = 0.0
    core_seconds: float = 0.0
    """The time that the core took, summed over all cores."""
    interrupted: bool = False

    def add(self, tally: FuzzTally) -> None:
        """Add the worlds of one call."""
        self.worlds += tally["worlds"]
        self.events += tally["events"]
        self.grants += tally["grants"]
        self.faults.update(tally["faults"])
        self.overruns += tally["overruns"]
        self.outside += tally["outside"]
        self.broken += tally["broken"]


def search(worlds: Worlds, found: Search, seeds: int, *, keep_going: bool) -> None:
    """Run the worlds of `seeds` seeds from `found.first`, up to the first broken promise unless `keep_going`.

    `found` grows meanwhile. An interrupt ends the search, which keeps what was found.
    """
    first, jobs = found.first, len(os.sched_getaffinity(0))
    began = time.monotonic()
    pool = ThreadPoolExecutor(jobs)
    try:
        for tally, seconds in _in_order(pool, worlds, range(first, first + seeds), jobs, keep_going=keep_going):
            found.add(tally)
            found.core_seconds += seconds
            found.seconds = time.monotonic() - began
            if found.broken and not keep_going:
                break
    except KeyboardInterrupt:
        found.interrupted = True
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    found.seconds = time.monotonic() - began


def _in_order(
    pool: ThreadPoolExecutor, worlds: Worlds, seeds: range, jobs: int, *, keep_going: bool
) -> Iterator[tuple[FuzzTally, float]]:
    """The results of the calls in the order of their seeds; each call is as long as the last ones suggest."""

    def call(first: int, count: int) -> tuple[FuzzTally, float]:
        began = time.thread_time()
        return worlds.core.run(first, count, not keep_going), time.thread_time() - began

    waiting: deque[Future[tuple[FuzzTally, float]]] = deque()
    count, next_seed = 1, seeds.start
    while waiting or next_seed < seeds.stop:
        while len(waiting) < 2 * jobs and next_seed < seeds.stop:
            count = min(count, seeds.stop - next_seed)
            waiting.append(pool.submit(call, next_seed, count))
            next_seed += count
        tally, seconds = waiting.popleft().result()
        yield tally, seconds
        each_s = max(seconds, 1e-6) / max(1, tally["worlds"])
        count = max(1, min(MOST_IN_CHUNK, 4 * count, round(CHUNK_S / each_s)))
