"""What a probe of a search shows: whether the lock sustains the rate, and if not, why.

A probe holds where the checker found no violation, the load generator kept its schedule, the lock keeps up, and every
threshold on the figures of a trial holds. A lock keeps up where no arrival was dropped, at least 98 % of the arrivals
were granted, and the responses do not grow: a lock that is behind by 1 % lets each arrival wait longer than the one
before, by 1 % of the time between them. This is the sustainable throughput of Karimov et al., "Benchmarking Distributed
Stream Data Processing Systems", ICDE 2018. The growth is the slope of Theil and Sen over the median responses of the
steps, which a pause of the machine hardly moves.

A threshold on a quantile is tested on the samples of the probe, however few.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pybench.analysis import histograms
from pybench.analysis.comparison.entrants import KEEPS_UP
from pybench.analysis.limits import GENERATOR, LIMIT_COLUMNS
from pybench.analysis.send_delay import late_reason
from pybench.analysis.stats import number, quantile_of_few
from pybench.analysis.thresholds import COMPARE
from pybench.analysis.verdicts import Verdict
from pybench.columns import COLUMNS
from pybench.numbers import format_percent, format_us, plural
from pybench.planning.limit_search import Shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pybench.analysis.outcome import Outcome
    from pybench.matrix.thresholds import Threshold

MOST_GROWTH = 0.01
"""How much the median response may grow, as a share of the time in which it grows."""
STALL_MS = 100.0
"""A load generator that stood still for so long did not offer the rate."""
LEAST_STEPS = 8
"""With fewer steps that have a grant, growth cannot be told from chance."""
OF_THE_WHOLE_CELL = ("grants_per_s", "safe_grants_per_s", "grants", "contended_grants", *LIMIT_COLUMNS)
"""Columns that the rate of a probe decides, or that only a whole search has: no probe is tested by them."""
_QUANTILES = {
    "acquire_p50_us": ("response", 0.5),
    "acquire_p99_us": ("response", 0.99),
    "acquire_p999_us": ("response", 0.999),
    "handoff_p50_us": ("handoff", 0.5),
}


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """What a probe has shown. `limited_by` and `reason` are empty where the rate held."""

    shown: Shown
    limited_by: str = ""
    """What the rate exceeds, in a few words: `throughput`, `growing waits`, `load generator`, a threshold."""
    reason: str = ""
    """The figures behind it."""


HELD = ProbeOutcome(Shown.HELD)


def outcome_of(row: Mapping[str, Any], result: Outcome, thresholds: Iterable[Threshold]) -> ProbeOutcome:
    """The outcome of the probe that measured `result`, whose record has the columns `row`."""
    if row["verdict"] == Verdict.UNSAFE:
        return ProbeOutcome(Shown.UNSAFE, "unsafe", plural(row["violations"], "violation"))
    late = late_reason(
        arrivals=row["arrivals"],
        drops=0,  # Dropped arrivals show that the lock does not keep up, and count below.
        under_test_is_limit=True,
        send_delay_p99_us=row["send_delay_p99_us"],
        acquire_us=own_quantile_us(result, "acquire_p99_us"),
    )
    if late is None and row["longest_stall_ms"] >= STALL_MS:
        late = f"the load generator stood still for {format_us(row['longest_stall_ms'] * 1e3)}"
    if late is not None:
        return ProbeOutcome(Shown.LATE, GENERATOR, late)
    behind = _behind(row, result.timeline)
    if behind is not None:
        return behind
    for threshold in thresholds:
        if threshold.selects(row) and not _holds(threshold, row, result):
            figure = COLUMNS[threshold.column].format.text(_figure(threshold, row, result))
            return ProbeOutcome(Shown.FAILED, threshold.check, f"{threshold.metric} was {figure}")
    return HELD


def of_a_probe(threshold: Threshold) -> bool:
    """Whether a search tests `threshold` at each probe: a figure of a trial that the rate alone does not decide."""
    column = COLUMNS.get(threshold.column)
    return column is not None and column.in_trials and threshold.column not in OF_THE_WHOLE_CELL


def growth(start_ns: Sequence[float] | NDArray[Any], median_ns: Sequence[float] | NDArray[Any]) -> float | None:
    """The slope of Theil and Sen of median responses over the time of their steps, in ns per ns.

    Steps without a grant, which have a median of 0, are left out. None where fewer than eight are left.
    """
    starts, medians = (np.asarray(values, dtype=np.float64) for values in (start_ns, median_ns))
    known = medians > 0
    starts, medians = starts[known], medians[known]
    if len(starts) < LEAST_STEPS:
        return None
    first, second = np.triu_indices(len(starts), k=1)
    return float(np.median((medians[second] - medians[first]) / (starts[second] - starts[first])))


def own_quantile_us(result: Outcome, column: str) -> float | None:
    """The quantile of `column` in microseconds over all samples of a probe; acquires that still wait count so far."""
    phase, q = _QUANTILES[column]
    outcomes = ("granted", "waiting")
    values, counts = histograms.merged(
        [row.hdr for row in result.histograms if row.phase == phase and row.outcome in outcomes]
    )
    found_ns = quantile_of_few(values, counts, q)
    return None if found_ns is None else found_ns / 1e3


def _behind(row: Mapping[str, Any], timeline: Mapping[str, NDArray[Any]]) -> ProbeOutcome | None:
    """The outcome of a probe whose lock does not keep up; None where it does."""
    arrivals, drops = int(row["arrivals"]), int(row["drops"])
    if drops:
        dropped = plural(drops, "arrival was dropped", "arrivals were dropped")
        return ProbeOutcome(Shown.FAILED, "dropped arrivals", dropped)
    # Grants of arrivals before the window count, too, so a steady lock grants as many as arrive.
    if not row["grants"] or row["grants"] < KEEPS_UP * arrivals - 1:
        share = format_percent(row["grants"] / arrivals) if arrivals else "none"
        return ProbeOutcome(Shown.FAILED, "throughput", f"granted {share} of the arrivals")
    grown = growth(timeline["start_ns"], timeline["p50_ns"])
    if grown is not None and grown > MOST_GROWTH:
        reason = f"the median response grew by {format_percent(grown)} of the time"
        return ProbeOutcome(Shown.FAILED, "growing waits", reason)
    return None


def _holds(threshold: Threshold, row: Mapping[str, Any], result: Outcome) -> bool:
    figure = _figure(threshold, row, result)
    return figure is not None and COMPARE[threshold.op](figure, threshold.value)


def _figure(threshold: Threshold, row: Mapping[str, Any], result: Outcome) -> float | None:
    if threshold.column in _QUANTILES:
        return own_quantile_us(result, threshold.column)
    return number(row[threshold.column])
