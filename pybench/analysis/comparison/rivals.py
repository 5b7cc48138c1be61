"""The pairs of locks at each load: each pair is tested once in every figure, and the results are looked up here.

In a closed loop throughput places two locks. In an open loop, where both locks keep up, the p99 response places them,
or the longest wait where trials have too few grants for a p99. Where searches set the rate, limits place two locks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

from pybench.analysis.comparison.claims import Figure, LongerWait
from pybench.analysis.comparison.entrants import Entrant, LoadCells, Row
from pybench.analysis.comparison.pairs import (
    ENOUGH_BLOCKS,
    TESTED,
    Sample,
    compare_pairs,
    floor_of,
    paired_logs,
    positive,
)
from pybench.analysis.limits import GENERATOR
from pybench.analysis.significance import Ratio, Tested
from pybench.analysis.starvation import GIVES_UP, refused_share, serves_all, starving
from pybench.numbers import missing

if TYPE_CHECKING:
    import pandas as pd

Columns = Mapping[str, Sequence[object]]
"""The columns of the trials of one cell."""

_AT_LEAST = {Figure.RESPONSE: "acquire_p99_at_least_us"}
"""The columns with lower bounds of figures that unfinished waits leave without a value."""
_OF_THE_SERVED = {Figure.STARVATION, Figure.FAIRNESS, Figure.RESPONSE, Figure.LONGEST_WAIT}
"""Figures of granted acquires only: in these a lock that refuses many acquires never counts as better."""


@dataclass(frozen=True, slots=True)
class Rivals:
    """The tested pairs of locks of a run."""

    tested: Mapping[object, Tested]
    bounded: frozenset[tuple[str, Figure]]
    """Cells and figures of which some trial has only a lower bound: such a cell never counts as better."""
    refusals: Mapping[str, float] = field(default_factory=dict)
    """Cell -> the share of its acquires that were refused or timed out."""
    starving: Mapping[str, int] = field(default_factory=dict)
    """Cell -> how many clients starved in its worst trial, beyond chance; 0 where each trial served all clients."""
    unserved: Mapping[str, int] = field(default_factory=dict)
    """Cell -> how many clients had no grant in its worst trial, including by chance."""

    def ratio(self, one: Entrant, other: Entrant, figure: Figure) -> Ratio | None:
        """How many times better `one` is than `other`; None with too few trials."""
        found = self.tested.get((figure, one.cell, other.cell))
        if found is not None:
            return found.ratio
        turned = self.tested.get((figure, other.cell, one.cell))
        return None if turned is None else inverse(turned.ratio)

    def gives_up(self, one: Entrant) -> bool:
        """Whether so many acquires had no grant that the waits of the granted ones do not describe the lock."""
        return self.refusals.get(one.cell, 0.0) > GIVES_UP

    def starves_where(self, one: Entrant, other: Entrant) -> bool:
        """Whether `one` starves measurably more clients than `other`."""
        return self.better(other, one, Figure.STARVATION)

    def better(self, one: Entrant, other: Entrant, figure: Figure) -> bool:
        """Whether `one` is measurably better than `other`: by the test, and by the medians in the tables."""
        if figure is Figure.REFUSALS:
            # The other must exceed twice the limit, so that two locks near the limit count as equal.
            is_known = one.cell in self.refusals
            return is_known and not self.gives_up(one) and self.refusals.get(other.cell, 0.0) > 2 * GIVES_UP
        if figure in _OF_THE_SERVED and self.gives_up(one):
            return False
        ratio = self.ratio(one, other, figure)
        found = self.tested.get((figure, one.cell, other.cell)) or self.tested.get((figure, other.cell, one.cell))
        if ratio is None or found is None or not found.differs or ratio.value <= 1:
            return False
        if (one.cell, figure) in self.bounded:
            return False
        if figure is Figure.STARVATION:
            starves = (self.starving.get(other.cell) or 0) > 0
            return starves and self.unserved[one.cell] < self.unserved[other.cell]
        if figure is Figure.LIMIT and not _limit_is_above(one, other):
            return False
        own, others = shown(one, figure), shown(other, figure)
        if own is None or others is None:
            return False
        high, low = (others, own) if figure.least_is_best else (own, others)
        return high > low * (1 + TESTED[figure].band)


def _limit_is_above(one: Entrant, other: Entrant) -> bool:
    """Whether the interval of the limit of `one` lies above that of `other`.

    The interval of `other` has no end where no rate failed, or where the load generator ended the search.
    """
    low, high = one.figure("limit_low_per_s"), other.figure("limit_high_per_s")
    return low is not None and high is not None and low >= high and other.row.get("limited_by") != GENERATOR


def deciding(one: Entrant, other: Entrant, load: LoadCells) -> Figure:
    """The figure that places the two locks."""
    if load.is_search:
        return Figure.LIMIT
    return load.wait_figure if load.has_kept_up(one) and load.has_kept_up(other) else Figure.THROUGHPUT


def shown(one: Entrant, figure: Figure) -> float | None:
    """The figure of a cell in the summary: the median over its trials, or the lower bound of a quantile."""
    value = one.figure(figure.value)
    return one.figure(_AT_LEAST[figure]) if value is None and figure in _AT_LEAST else value


def inverse(ratio: Ratio) -> Ratio:
    """The ratio with the two locks exchanged."""
    low, high = 1 / ratio.high if ratio.high else math.inf, 1 / ratio.low if ratio.low else math.inf
    return Ratio(1 / ratio.value if ratio.value else math.inf, low, high, ratio.confidence, ratio.blocks)


def tested_rivals(loads: Sequence[LoadCells], trials: pd.DataFrame | None) -> Rivals:
    """Test the ranked locks of each load pair by pair; without `trials` no pair has a result."""
    if trials is None or "cell" not in trials:
        return Rivals({}, frozenset())
    complete = trials[trials["status"] == "complete"] if "status" in trials else trials
    groups = {str(cell): rows for cell, rows in complete.groupby("cell", sort=False)}
    columns = _columns(complete)
    samples: dict[object, Sample] = {}
    bounded: set[tuple[str, Figure]] = set()
    for load in loads:
        ranked = [one for one in load.entrants if one.out is None and one.cell in groups]
        for figure in TESTED:
            blocks = {one.cell: _blocks(columns[one.cell], figure, one) for one in ranked}
            bounded |= {(one.cell, figure) for one in ranked if _is_bounded(columns[one.cell], figure)}
            floor = floor_of(value for values in blocks.values() for value in values.values())
            values = {cell: positive(found, floor) for cell, found in blocks.items()}
            for one, other in combinations(ranked, 2):
                p99 = samples.get((Figure.RESPONSE, one.cell, other.cell))
                has_p99 = p99 is not None and len(p99.logs) >= ENOUGH_BLOCKS
                if not _asked(one, other, figure, load) or (figure is Figure.LONGEST_WAIT and has_p99):
                    continue
                logs = paired_logs(values[one.cell], values[other.cell])
                turned = [-log for log in logs] if figure.least_is_best and figure is not Figure.STARVATION else logs
                samples[figure, one.cell, other.cell] = Sample(turned, figure, load.values, len(ranked))
    rows = {one.cell: one.row for load in loads for one in load.entrants}
    worst = {cell: _starving(groups[cell], row) for cell, row in rows.items() if cell in groups}
    known = {cell: count for cell, count in worst.items() if count is not None}
    refusals = {cell: share for cell, of in groups.items() if (share := refused_share(of)) is not None}
    counts = {
        cell: [one for one in _column(of, Figure.STARVATION.value) if one is not None] for cell, of in columns.items()
    }
    unserved = {cell: int(max(found)) for cell, found in counts.items() if found}
    return Rivals(compare_pairs(samples), frozenset(bounded), refusals, known, unserved)


def waiting_longer(ranked: Sequence[Entrant], rivals: Rivals) -> dict[str, LongerWait]:
    """Cell -> the lock of its load with the greatest measurable lead in waiting over it, and both waits."""
    found = {}
    for one in ranked:
        for figure in (Figure.RESPONSE, Figure.LONGEST_WAIT):
            less = [other for other in ranked if other is not one and rivals.better(other, one, figure)]
            ratios = {other.cell: rivals.ratio(other, one, figure) for other in less}
            known = [(ratio, other) for other in less if (ratio := ratios[other.cell]) is not None]
            if known:
                ratio, best = max(known, key=lambda pair: pair[0].value)
                found[one.cell] = LongerWait(best.lock, figure, shown(one, figure), shown(best, figure), ratio)
                break
    return found


def _starving(trials: pd.DataFrame, row: Row) -> int | None:
    if serves_all(trials):
        return 0
    if not {"grants", "window_s"} <= set(trials.columns):
        return None
    worst = starving(trials, int(row["concurrency"]))
    return None if worst is None else worst[0]


def _asked(one: Entrant, other: Entrant, figure: Figure, load: LoadCells) -> bool:
    """Whether `figure` can decide between the two locks. Needless tests are left out: each makes all others weaker."""
    if load.is_search or figure is Figure.LIMIT:
        # Each lock has a rate of its own, so all other figures are of different loads.
        return load.is_search and figure is Figure.LIMIT
    if figure is Figure.LONGEST_WAIT and dict(load.values).get("concurrency") == 1:
        return False  # A single client waits for no other.
    if load.offered_per_s is None or figure in {Figure.FAIRNESS, Figure.STARVATION}:
        return True
    placing = deciding(one, other, load)
    return figure is placing or placing is Figure.THROUGHPUT


def _blocks(rows: Columns, figure: Figure, of: Entrant) -> dict[int, float]:
    """Block -> the figure of its trial, where there is one; the lower bound where a p99 has no value.

    For starvation, the value is the number of served clients.
    """
    values = _column(rows, figure.value)
    if figure is Figure.STARVATION:
        clients = of.figure("concurrency") or 0.0
        values = [None if value is None else max(clients - value, 0.0) for value in values]
    bounds = _column(rows, _AT_LEAST.get(figure, ""))
    numbers = _column(rows, "block") if "block" in rows else _column(rows, "trial")
    found = {}
    for number, (block, value, bound) in enumerate(zip(numbers, values, bounds, strict=True)):
        known = bound if value is None else value
        if known is not None:
            found[number if block is None else int(block)] = known
    return found


def _is_bounded(rows: Columns, figure: Figure) -> bool:
    bounds, values = _column(rows, _AT_LEAST.get(figure, "")), _column(rows, figure.value)
    return any(value is None and bound is not None for value, bound in zip(values, bounds, strict=True))


def _columns(trials: pd.DataFrame) -> dict[str, Columns]:
    """What the pairs are tested by, cell by cell: a frame is slow to ask for one column of few rows after another."""
    names = ["cell", "block", "trial", *(figure.value for figure in TESTED), *_AT_LEAST.values()]
    whole = trials[[name for name in dict.fromkeys(names) if name in trials]].to_dict("list")
    found: dict[str, Any] = {}
    for place, cell in enumerate(whole["cell"]):
        own = found.setdefault(str(cell), {str(name): [] for name in whole})
        for name, values in whole.items():
            own[str(name)].append(values[place])
    return found


def _column(rows: Columns, name: str) -> list[float | None]:
    values = rows.get(name) or [None] * len(rows["cell"])
    return [None if missing(value) or isinstance(value, str) else float(value) for value in values]  # type: ignore[arg-type] # not missing, so a number
