"""Quantiles of acquires: of granted acquires, and of unfinished waits, of which only the least length is known.

An acquire that still waits when the window closes takes at least as long as it has waited. Leaving such acquires out
would hide the slowest ones; counting their waits so far as whole lengths would make them look too short. The
product-limit estimator makes neither error (Kaplan and Meier, "Nonparametric Estimation from Incomplete Observations",
Journal of the American Statistical Association 53, 1958). The samples come as buckets of histograms, so
the estimator is weighted by their counts; `scipy.stats.ecdf` gives the same from single samples.

Promises: without unfinished waits a quantile equals that of `stats.quantile`. Where its rank falls among unfinished
waits, the quantile has no value, only a lower bound. A higher quantile is never below a lower one.
Does not do: acquires that were refused, timed out or failed. They ended without a grant and have counts of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pybench.analysis import histograms, stats
from pybench.analysis.histograms import Buckets

ACQUIRE = {"acquire_p50": 0.5, "acquire_p99": 0.99, "acquire_p999": 0.999}
"""The quantiles of the response, the lowest first, by the prefix of their column names."""

HANDOFF = "handoff_p50"

_ROUNDING = 1e-9
"""Rounding may leave a product of shares slightly below the quantile that the product reaches."""


class Quantile(NamedTuple):
    """The value of a quantile, or a lower bound of it; neither where there are too few samples."""

    value: float | None = None
    at_least: float | None = None
    pooled: bool = False
    """Whether the quantile is that of the merged samples of all trials, because a single trial has too few."""

    @property
    def least(self) -> float:
        """The value, else the lower bound; NaN where neither is known."""
        known = [figure for figure in (self.value, self.at_least) if figure is not None]
        return known[0] if known else np.nan

    def columns(self, name: str) -> dict[str, float | None]:
        """The columns of the quantile in the row of a trial or a cell, in the unit of its figures."""
        return {f"{name}_us": self.value, f"{name}_at_least_us": self.at_least}


class Waits(NamedTuple):
    """The granted acquires, whose length is known, and the waiting ones, of which only the least length is known."""

    granted: Buckets
    waiting: Buckets

    @classmethod
    def of(cls, parts: Mapping[str, Sequence[bytes]]) -> Waits:
        """The waits in the histograms `parts` of one phase, by outcome."""
        return cls(histograms.merged(parts.get("granted", ())), histograms.merged(parts.get("waiting", ())))

    def quantile_us(self, q: float) -> Quantile:
        """The quantile `q` in microseconds."""
        value, at_least, _ = quantile(self.granted, self.waiting, q)
        return Quantile(_us(value), _us(at_least))


def quantile(ended: Buckets, unfinished: Buckets, q: float) -> Quantile:
    """The smallest value that the share `q` of all samples is estimated not to exceed.

    The true length of a sample of `unfinished` is larger than its value. With fewer than ten samples beyond the rank
    there is neither a value nor a bound.
    """
    if not len(unfinished.counts):
        return Quantile(stats.quantile(*ended, q))
    if not stats.enough(int(ended.counts.sum()) + int(unfinished.counts.sum()), q):
        return Quantile()
    values, ends, still = _side_by_side(ended, unfinished)
    # Of equal values the ended samples come first: an unfinished wait is longer than its value.
    at_risk = np.cumsum((ends + still)[::-1])[::-1]
    surviving = np.cumprod(1 - ends / at_risk)
    reached = np.flatnonzero(1 - surviving >= q - _ROUNDING)
    if len(reached):
        return Quantile(float(values[reached[0]]))
    # A wait in a bucket may be as short as the bucket's lowest value, and so is the bound. Where a grant lies in the
    # same bucket, lower quantiles have the bucket's value, and the bound must not be below them.
    return Quantile(None, float(values[-1] if ends[-1] else histograms.lowest_of(values[-1])))


def _us(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e3


def _side_by_side(ended: Buckets, unfinished: Buckets) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """All values, ascending, and the counts of ended and of unfinished samples at each value."""
    values = np.union1d(ended.values_ns, unfinished.values_ns)
    counts = []
    for buckets in (ended, unfinished):
        column = np.zeros(len(values))
        column[np.searchsorted(values, buckets.values_ns)] = buckets.counts
        counts.append(column)
    return values, counts[0], counts[1]


def of_cell(complete: pd.DataFrame, latency: pd.DataFrame | None) -> dict[str, Quantile]:
    """The quantiles of a cell's acquires, in microseconds, by name; `latency` has the histograms of its trials.

    A quantile is the median over the `complete` trials where most trials have it, and otherwise the quantile of the
    samples of all trials together.
    """
    each = _over_trials(complete)
    # Merging histograms takes most of the time of a summary, so it is left out where every trial has every quantile.
    pooled = _pooled(complete, latency) if len(each) < len(ACQUIRE) else {}
    found: dict[str, Quantile] = {}
    above = Quantile()
    # From the highest down: a median above a pooled higher quantile is replaced by a pooled quantile.
    for name in reversed(ACQUIRE):
        own = each.get(name, pooled.get(name, Quantile()))
        if above.pooled and not _fits_below(own, above):
            own = pooled[name]
        found[name] = above = own
    return {name: found[name] for name in ACQUIRE}


def handoff_of_cell(complete: pd.DataFrame, latency: pd.DataFrame | None) -> Quantile:
    """The median handoff of a cell in microseconds, as in `of_cell`; no handoff is unfinished."""
    each = _values(complete, HANDOFF)
    if 2 * np.count_nonzero(~np.isnan(each)) > len(each):
        return Quantile(float(np.nanmedian(each)))
    if latency is None or len(complete) < 2:
        return Quantile()
    parts = [one for found in _histograms("handoff", complete, latency).values() for one in found]
    return Quantile(_us(stats.quantile(*histograms.merged(parts), 0.5)), pooled=True)


def _fits_below(lower: Quantile, higher: Quantile) -> bool:
    is_open = lower.value is None and higher.value is not None
    return not is_open and lower.least <= higher.least


def _over_trials(complete: pd.DataFrame) -> dict[str, Quantile]:
    """Medians over trials of the quantiles that more than half of the trials have, as a value or as a bound.

    All medians are over the trials that have the highest quantile, so that no higher quantile is below a lower one.
    """
    values = {name: _values(complete, name) for name in ACQUIRE}
    bounds = {name: _bounds(complete, name) for name in ACQUIRE}
    shown = [name for name in ACQUIRE if 2 * np.count_nonzero(~np.isnan(bounds[name])) > len(complete)]
    same = ~np.isnan(bounds[shown[-1]]) if shown else np.zeros(len(complete), dtype=bool)
    return {name: _median(values[name][same], bounds[name][same]) for name in shown}


def _median(values: NDArray[np.float64], bounds: NDArray[np.float64]) -> Quantile:
    """The median over trials; a trial with a bound only counts as longer than every value."""
    middle = float(np.median(np.where(np.isnan(values), np.inf, values)))
    return Quantile(middle) if np.isfinite(middle) else Quantile(None, float(np.median(bounds)))


def _values(complete: pd.DataFrame, name: str) -> NDArray[np.float64]:
    return complete[f"{name}_us"].to_numpy(dtype=np.float64, na_value=np.nan)


def _bounds(complete: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """The value, else the lower bound, of each trial's quantile; older records have no bounds."""
    values = _values(complete, name)
    column = f"{name}_at_least_us"
    if column not in complete:
        return values
    at_least = complete[column].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isnan(values), at_least, values)


def _histograms(phase: str, complete: pd.DataFrame, latency: pd.DataFrame) -> dict[str, list[bytes]]:
    """The histograms of one phase of the `complete` trials, by outcome."""
    # As lists: a big run has thousands of these small frames, and each question to a frame takes longer than a list.
    trials, found = set(complete["trial"].to_list()), dict[str, list[bytes]]()
    columns = (latency[name].to_list() for name in ("phase", "trial", "outcome", "hdr"))
    for of_phase, trial, outcome, histogram in zip(*columns, strict=True):
        if of_phase == phase and trial in trials:
            found.setdefault(outcome, []).append(histogram)
    return found


def _pooled(complete: pd.DataFrame, latency: pd.DataFrame | None) -> dict[str, Quantile]:
    """The quantiles of the samples of all trials together; empty for a single trial."""
    if latency is None or len(complete) < 2:
        return {}
    waits = Waits.of(_histograms("response", complete, latency))
    return {
        name: found._replace(pooled=True)
        for name, q in ACQUIRE.items()
        if not np.isnan((found := waits.quantile_us(q)).least)
    }
