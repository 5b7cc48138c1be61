"""Quantiles of acquires: of those that ended with a grant, and of waits of which only a least length is known.

An acquire that still waits when the window closes takes at least as long as it has waited. To leave it out would make
the slowest acquires vanish; to count its wait so far as its length would make it look shorter than it is. The
product-limit estimator uses exactly what is known of both (Kaplan and Meier, "Nonparametric Estimation from Incomplete
Observations", Journal of the American Statistical Association 53, 1958). The samples come as buckets of histograms, so
the estimator is weighted by their counts; `scipy.stats.ecdf` gives the same from single samples.

Promises: without unfinished waits a quantile is that of `stats.quantile`; where its rank falls among them it has no
value, but a bound that the true quantile is not below; a higher quantile is never below a lower one.
Does not do: acquires that were refused, timed out or failed. They ended, and not with a grant: they are counted apart.
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
"""The quantiles of the response, the lowest first, by the beginning of their columns' names."""

HANDOFF = "handoff_p50"

_ROUNDING = 1e-9
"""Products of shares may come out a hair below a quantile that they reach."""


class Quantile(NamedTuple):
    """Of a quantile, its value or a bound that it is not below; neither where there are too few samples."""

    value: float | None = None
    at_least: float | None = None
    pooled: bool = False
    """Taken from the merged samples of all trials, because a single trial has too few."""

    @property
    def least(self) -> float:
        """What it is not below; NaN where nothing is known."""
        known = [figure for figure in (self.value, self.at_least) if figure is not None]
        return known[0] if known else np.nan

    def columns(self, name: str) -> dict[str, float | None]:
        """Its columns of a trial or a cell, in the unit of its figures."""
        return {f"{name}_us": self.value, f"{name}_at_least_us": self.at_least}


class Waits(NamedTuple):
    """The acquires of which a length is known, and those of which only a least length is known."""

    granted: Buckets
    waiting: Buckets

    @classmethod
    def of(cls, parts: Mapping[str, Sequence[bytes]]) -> Waits:
        """Those in the histograms of one phase, by outcome."""
        return cls(histograms.merged(parts.get("granted", ())), histograms.merged(parts.get("waiting", ())))

    def quantile_us(self, q: float) -> Quantile:
        """The quantile `q` in microseconds."""
        value, at_least, _ = quantile(self.granted, self.waiting, q)
        return Quantile(_us(value), _us(at_least))


def quantile(ended: Buckets, unfinished: Buckets, q: float) -> Quantile:
    """The smallest value that at least the share `q` of all is expected not to exceed.

    A sample of `unfinished` is only known to be larger than its value. Without ten samples beyond the rank there is
    neither a value nor a bound.
    """
    if not len(unfinished.counts):
        return Quantile(stats.quantile(*ended, q))
    if not stats.enough(int(ended.counts.sum()) + int(unfinished.counts.sum()), q):
        return Quantile()
    values, ends, still = _side_by_side(ended, unfinished)
    # Of equal values those that ended come first: who still waits at that point is longer than it.
    at_risk = np.cumsum((ends + still)[::-1])[::-1]
    surviving = np.cumprod(1 - ends / at_risk)
    reached = np.flatnonzero(1 - surviving >= q - _ROUNDING)
    if len(reached):
        return Quantile(float(values[reached[0]]))
    # A value stands for its bucket, and a wait in it may be as short as the bucket begins. Where a grant lies there
    # too, lower quantiles have the value.
    return Quantile(None, float(values[-1] if ends[-1] else histograms.lowest_of(values[-1])))


def _us(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e3


def _side_by_side(ended: Buckets, unfinished: Buckets) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """All values, ascending, and how many ended and how many were unfinished at each."""
    values = np.union1d(ended.values_ns, unfinished.values_ns)
    counts = []
    for buckets in (ended, unfinished):
        column = np.zeros(len(values))
        column[np.searchsorted(values, buckets.values_ns)] = buckets.counts
        counts.append(column)
    return values, counts[0], counts[1]


def of_cell(complete: pd.DataFrame, latency: pd.DataFrame | None) -> dict[str, Quantile]:
    """The quantiles of a cell's acquires, in microseconds, by name; `latency` has the histograms of its trials.

    Each is the median over the `complete` trials, where most of them have it, and otherwise that of all their samples
    together.
    """
    each, pooled = _over_trials(complete), _pooled(complete, latency)
    found: dict[str, Quantile] = {}
    above = Quantile()
    # From the highest down: one that does not fit below a pooled one is taken from the same samples.
    for name in reversed(ACQUIRE):
        own = each.get(name, pooled.get(name, Quantile()))
        if above.pooled and not _fits_below(own, above):
            own = pooled[name]
        found[name] = above = own
    return {name: found[name] for name in ACQUIRE}


def handoff_of_cell(complete: pd.DataFrame, latency: pd.DataFrame | None) -> Quantile:
    """The median hand-off of a cell in microseconds: as `of_cell`, and nobody's hand-off is unfinished."""
    each = _values(complete, HANDOFF)
    if 2 * np.count_nonzero(~np.isnan(each)) > len(each):
        return Quantile(float(np.nanmedian(each)))
    if latency is None or len(complete) < 2:
        return Quantile()
    parts = list(_rows_of("handoff", complete, latency)["hdr"])
    return Quantile(_us(stats.quantile(*histograms.merged(parts), 0.5)), pooled=True)


def _fits_below(lower: Quantile, higher: Quantile) -> bool:
    is_open = lower.value is None and higher.value is not None
    return not is_open and lower.least <= higher.least


def _over_trials(complete: pd.DataFrame) -> dict[str, Quantile]:
    """Medians over trials, of the quantiles that more than half of them have, if only by a bound.

    All are over the same trials, those that have the highest of them, so that none comes out below a lower one.
    """
    values = {name: _values(complete, name) for name in ACQUIRE}
    bounds = {name: _bounds(complete, name) for name in ACQUIRE}
    shown = [name for name in ACQUIRE if 2 * np.count_nonzero(~np.isnan(bounds[name])) > len(complete)]
    same = ~np.isnan(bounds[shown[-1]]) if shown else np.zeros(len(complete), dtype=bool)
    return {name: _median(values[name][same], bounds[name][same]) for name in shown}


def _median(values: NDArray[np.float64], bounds: NDArray[np.float64]) -> Quantile:
    """Of what trials have; one that has a bound alone is longer than that, by nobody knows how much."""
    middle = float(np.median(np.where(np.isnan(values), np.inf, values)))
    return Quantile(middle) if np.isfinite(middle) else Quantile(None, float(np.median(bounds)))


def _values(complete: pd.DataFrame, name: str) -> NDArray[np.float64]:
    return complete[f"{name}_us"].to_numpy(dtype=np.float64, na_value=np.nan)


def _bounds(complete: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """What each trial's quantile is not below; older records know no unfinished waits."""
    values = _values(complete, name)
    column = f"{name}_at_least_us"
    if column not in complete:
        return values
    at_least = complete[column].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isnan(values), at_least, values)


def _rows_of(phase: str, complete: pd.DataFrame, latency: pd.DataFrame) -> pd.DataFrame:
    return latency[(latency["phase"] == phase) & latency["trial"].isin(complete["trial"])]


def _pooled(complete: pd.DataFrame, latency: pd.DataFrame | None) -> dict[str, Quantile]:
    """Of the samples of all trials together; none of a single trial, which has them already."""
    if latency is None or len(complete) < 2:
        return {}
    rows = _rows_of("response", complete, latency)
    parts = {str(outcome): list(group["hdr"]) for outcome, group in rows.groupby("outcome")}
    waits = Waits.of(parts)
    return {
        name: found._replace(pooled=True)
        for name, q in ACQUIRE.items()
        if not np.isnan((found := waits.quantile_us(q)).least)
    }
