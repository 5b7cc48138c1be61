"""Estimates how long the rest of a run will take, from the planned times and the overhead of the trials so far.

The overhead of a trial depends on its cell (a million keys take seconds to remove). So each cell is expected to need
its own mean overhead so far, and a cell without a trial the mean of the others.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pybench.planning.plan import TRIAL_OVERHEAD_NS, before_trials_ns

if TYPE_CHECKING:
    from pybench.running.watch import Slot


EARLIER_COUNTS_FOR = 10
"""The overhead of an earlier part counts as much as that of so many cells, so that a first slow cell moves little."""


class Clock:
    """Starts when it is created, before the trials in `left` and before what a run measures ahead of its trials."""

    def __init__(self, left: Sequence[Slot], *, is_resumed: bool = False, overhead_s: float | None = None) -> None:
        """`overhead_s` is the overhead of a trial, in seconds, in an earlier part of the run, if it is known."""
        self._trials_left = Counter(slot.cell.id for slot in left)
        self._planned_left_s = sum(slot.planned_s for slot in left)
        self._before_s = before_trials_ns([slot.cell for slot in left], is_resumed=is_resumed) / 1e9
        self._usual_s = TRIAL_OVERHEAD_NS / 1e9 if overhead_s is None else overhead_s
        self._usual_counts_for = 0 if overhead_s is None else EARLIER_COUNTS_FOR
        self._took: dict[str, list[float]] = {}
        """Cell -> seconds beyond the planned time, for each of its trials."""
        self._mark = time.monotonic()
        """Start of the running trial, its overhead included, or of the measurements before all trials."""
        self._running: Slot | None = None

    def begin(self, slot: Slot) -> None:
        """The trial of `slot` begins now."""
        if slot.is_control:
            return
        if self._before_s:
            self._before_s, self._mark = 0.0, time.monotonic()
        self._running = slot

    def end(self, slot: Slot) -> None:
        """The trial of `slot` is over and saved."""
        if slot.is_control:
            return
        now = time.monotonic()
        self._took.setdefault(slot.cell.id, []).append(max(0.0, now - self._mark - slot.planned_s))
        self._trials_left[slot.cell.id] -= 1
        self._planned_left_s -= slot.planned_s
        self._mark, self._running = now, None

    def left_s(self) -> float:
        """Seconds until the last trial is saved."""
        elsewhere = self._elsewhere_s()
        beyond_s = sum(count * self._beyond_s(cell, elsewhere) for cell, count in self._trials_left.items())
        left_s = self._before_s + self._planned_left_s + beyond_s
        # An overdue trial must not shorten the estimate for the trials after it.
        ran_s = time.monotonic() - self._mark
        if self._running is None:
            return left_s - min(ran_s, self._before_s)
        return left_s - min(ran_s, self._running.planned_s + self._beyond_s(self._running.cell.id, elsewhere))

    def _beyond_s(self, cell: str, elsewhere_s: float) -> float:
        took = self._took.get(cell)
        return sum(took) / len(took) if took else elsewhere_s

    def _elsewhere_s(self) -> float:
        """The overhead that is expected of a cell without a trial."""
        means = [sum(took) / len(took) for took in self._took.values()]
        if not means:
            return self._usual_s
        count = self._usual_counts_for
        return (count * self._usual_s + sum(means)) / (count + len(means))
