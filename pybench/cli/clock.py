"""Estimates how long the rest of a run will take, from the planned times and the overhead of the trials so far.

The overhead of a trial depends on its cell (a million keys take seconds to remove) and on what else the machine does;
`overheads` separates the two. The duration of a search depends on its cell, too: its planned time is a guess, and what
its searches took so far says more.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pybench.cli.figures import wall_time, wall_times
from pybench.cli.overheads import Overheads, sequence_of
from pybench.planning.plan import TRIAL_OVERHEAD_NS
from pybench.running.watch import NOTHING_AROUND, Around

if TYPE_CHECKING:
    from pybench.running.watch import Slot

EARLIER_COUNTS_FOR = 10
"""The overhead of an earlier part counts as much as that of so many cells, so that a first slow cell moves little."""
REACH = 2.0
"""In standard deviations. Overheads have long tails, so that this covers nine of ten runs, not nineteen of twenty."""
MOST_VAGUE = 0.1
"""One number stands for a time whose range reaches no further than this share to each side."""
LEAST_RANGE_S = 10.0
"""Below so many seconds one number is enough."""


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """Seconds until the report is written. Nine of ten times should lie between `low_s` and `high_s`."""

    seconds: float
    low_s: float
    high_s: float

    @property
    def text(self) -> str:
        """One time, or a range where one time would promise too much."""
        vague = self.high_s - self.seconds > MOST_VAGUE * self.seconds and self.seconds >= LEAST_RANGE_S
        return f"about {wall_times(self.low_s, self.high_s) if vague else wall_time(self.seconds)}"


class Clock:
    """Starts when it is created, before the trials in `left` and before what a run measures ahead of its trials."""

    def __init__(self, left: Sequence[Slot], around: Around = NOTHING_AROUND) -> None:
        trials = [slot for slot in left if not slot.cell.mode.is_search]
        searches = [slot for slot in left if slot.cell.mode.is_search]
        self._trials_left = Counter(slot.cell.id for slot in trials)
        self._searches_left = Counter(slot.cell.id for slot in searches)
        self._planned_left_s = sum(slot.planned_s for slot in trials)
        self._before_s, self._ending_s = around.before_s, around.ending_s
        sequence = sequence_of(len(self._trials_left))
        if around.overhead_s is None:
            self._overheads = Overheads(TRIAL_OVERHEAD_NS / 1e9, sequence)
        else:
            self._overheads = Overheads(around.overhead_s, sequence, EARLIER_COUNTS_FOR)
        planned_s = {slot.cell.id: slot.planned_s for slot in searches}
        usual_s = sum(planned_s.values()) / max(1, len(planned_s))
        self._searches = Overheads(usual_s, sequence_of(len(self._searches_left)))
        """What searches took, each as a whole: one that has ended says more than the plan."""
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
        now, cell = time.monotonic(), slot.cell.id
        if cell in self._searches_left:
            self._searches.add(cell, now - self._mark)
            self._searches_left[cell] -= 1
        else:
            self._overheads.add(cell, max(0.0, now - self._mark - slot.planned_s))
            self._trials_left[cell] -= 1
            self._planned_left_s -= slot.planned_s
        self._mark, self._running = now, None

    def left(self) -> TimeLeft:
        """The time until the report is written."""
        expected = self._overheads.of_all(self._trials_left) + self._searches.of_all(self._searches_left)
        sure_s = self._before_s + self._planned_left_s + self._ending_s - self._ran_s()
        reach = REACH * expected.deviation
        seconds = sure_s + expected.value
        return TimeLeft(seconds, max(sure_s, seconds - reach), seconds + reach)

    def _ran_s(self) -> float:
        """The seconds for which the running trial has run. An overdue one must not shorten the time for the others."""
        ran_s = time.monotonic() - self._mark
        if self._running is None:
            return min(ran_s, self._before_s)
        cell = self._running.cell.id
        if cell in self._searches_left:
            return min(ran_s, self._searches.of(cell))
        return min(ran_s, self._running.planned_s + self._overheads.of(cell))
