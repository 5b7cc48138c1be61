"""How long the trials of a run take beyond their planned time, from the record of its earlier part.

Promises: the pause between two parts of a run, however long, is no overhead of a trial.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median

from pybench.running.watch import Slot


def overhead_of(slots: Sequence[Slot], starts: Mapping[tuple[str, int], datetime]) -> float | None:
    """The seconds that a trial of an earlier part took beyond its planned time; None without two trials in sequence.

    The planned time of a search is a guess, so a search has no overhead.

    `slots` are all trials of the run in their order, `starts` has the beginning of each recorded one by cell and block.
    """
    known = [(slot, starts.get((slot.cell.id, slot.block))) for slot in slots]
    beyond = [
        (later - earlier).total_seconds() - slot.planned_s
        for (slot, earlier), (_, later) in pairwise(known)
        if earlier is not None and later is not None and not slot.cell.mode.is_search
    ]
    return max(0.0, median(beyond)) if beyond else None
