"""Whether the ttl is long enough: the share of holds that outlived their lease, and the ttl that would leave fewer.

Holds count that were granted in the window and ended by themselves. A hold that the end of the trial cut short counts
only if it had already outlived its lease, with its length so far as the least length. A hold that was cut short inside
its lease does not count. A hold outlived its lease when its release was sent after the end of the lease that the holder
knew. Where the holds are too few to name a ttl, the distribution of the hold gives the ttl.
Does not do: locks that renew their leases: there a longer ttl is no remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pybench.analysis import histograms
from pybench.analysis.censored_quantiles import quantile
from pybench.analysis.histograms import Buckets
from pybench.matrix.durations import MS
from pybench.matrix.values import Distribution
from pybench.numbers import format_percent, format_us
from pybench.planning.forecast import needed_ttl_ns, shares_by_ttl

if TYPE_CHECKING:
    import pandas as pd

    from pybench.analysis.outcome import Counted

CUT: Final = "waiting"
"""The outcome of a hold that had outlived its lease when the end of the trial cut it short."""
LEFT = (0.01, 0.001)
"""The shares of holds past their lease for which the advice names a ttl."""


@dataclass(frozen=True, slots=True)
class Advice:
    """How many holds of a cell outlived their lease, and the ttls that would leave fewer."""

    holds: int
    outlived: int
    measured_ns: tuple[float | None, ...]
    """A ttl in nanoseconds for each share of `LEFT`, by the holds; None where too few holds were longer or ended."""
    drawn_ns: tuple[float | None, ...]
    """The same ttls by the distribution of the hold; None where the distribution is not known."""


def holds(rows: Sequence[Counted]) -> tuple[Buckets, Buckets]:
    """The holds of a trial that ended, and those that were cut short past their lease."""
    parts = {row.outcome: row.hdr for row in rows if row.phase == "hold"}
    cut = [parts.pop(CUT)] if CUT in parts else []
    return histograms.merged(list(parts.values())), histograms.merged(cut)


def outlived_share(rows: Sequence[Counted]) -> float | None:
    """The share of the holds of a trial that outlived their lease. None without a hold."""
    counts = {row.outcome: row.count for row in rows if row.phase == "hold"}
    total = sum(counts.values())
    return (counts.get("lost", 0) + counts.get(CUT, 0)) / total if total else None


def advice_of(
    cell: str,
    entry: Mapping[str, Any] | None,
    trials: pd.DataFrame,
    histogram: Callable[[str, str, str], Buckets],
) -> str | None:
    """The advice on the ttl of `cell` in words; None where no hold outlived its lease, or leases are renewed.

    `entry` is the manifest entry of the cell, `trials` has the trials of the run, and `histogram` gives the histogram
    of a cell, a phase and an outcome.
    """
    if entry is None or entry.get("lease_ms") is None or "renewals" not in trials:
        return None
    trials = trials[(trials["cell"] == cell) & (trials["status"] == "complete")]
    if trials["renewals"].sum() > 0:
        return None
    kept, lost, cut = (histogram(cell, "hold", outcome) for outcome in ("granted", "lost", CUT))
    drawn = Distribution.parse(entry["hold"]) if "hold" in entry else None
    advice = advise(kept, lost, cut, call_ns=call_ns(trials), drawn=drawn)
    return f"{cell}: {sentence(advice, entry['lease_ms'])}" if advice.outlived else None


def advise(kept: Buckets, lost: Buckets, cut: Buckets, *, call_ns: float, drawn: Distribution | None) -> Advice:
    """The advice by the holds of a cell: `kept` inside their lease, `lost` past it, and `cut` short past it.

    `call_ns` is the time of a granted call, which is part of the ttl because a lease counts from before the send.
    `drawn` is the distribution of the hold.
    """
    values = np.concatenate([kept.values_ns, lost.values_ns])
    counts = np.concatenate([kept.counts, lost.counts])
    order = np.argsort(values, kind="stable")
    ended = Buckets(values[order], counts[order])
    outlived = int(lost.counts.sum()) + int(cut.counts.sum())

    def needed(ns: float | None) -> float | None:
        return None if ns is None else needed_ttl_ns(ns, call_ns)

    return Advice(
        holds=int(kept.counts.sum()) + outlived,
        outlived=outlived,
        measured_ns=tuple(needed(quantile(ended, cut, 1 - share).value) for share in LEFT),
        drawn_ns=tuple(needed(drawn.quantile(1 - share) if drawn else None) for share in LEFT),
    )


def sentence(advice: Advice, ttl_ms: float) -> str:
    """Such as `2.1 % of 12,345 holds outlived the ttl of 2 s; a ttl of 2.4 s would leave 1 %, one of 3.1 s 0.1 %`."""
    share = advice.outlived / advice.holds
    ttl = format_us(ttl_ms * 1e3)
    outlived = f"{format_percent(share)} of {advice.holds:,} holds outlived their lease under the ttl of {ttl}"
    wanted = [left for left in LEFT if left < share]
    measured = [(ns, left) for ns, left in zip(advice.measured_ns, LEFT, strict=True) if ns and left in wanted]
    if any(ns <= ttl_ms * MS for ns, _ in measured):
        return f"{outlived}; the holds fit into the ttl, so grants came late: slow acquires, or paused clients"
    parts = [_would_leave(measured)] if measured else []
    unknown = [left for left in wanted if left not in {known for _, known in measured}]
    drawn = [
        (ns, left)
        for ns, left in zip(advice.drawn_ns, LEFT, strict=True)
        if ns and ns > ttl_ms * MS and left in unknown
    ]
    if drawn:
        parts.append(f"by the distribution of the hold, {_would_leave(drawn)}")
    elif unknown:
        parts.append(f"too few holds to compute the ttl that would leave {format_percent(unknown[0])}")
    return "; ".join([outlived, *parts])


def _would_leave(ttls: Sequence[tuple[float, float]]) -> str:
    return " and ".join(
        f"a ttl of {ttl} would leave {format_percent(left)}" for ttl, left in shares_by_ttl(ttls).items()
    )


def call_ns(trials: pd.DataFrame) -> float:
    """The time of one call under load in nanoseconds: the p99, else the p50, of a release; 0 where neither is known."""
    for column in ("release_p99_us", "release_p50_us"):
        if column in trials.columns and not trials[column].isna().all():
            return float(trials[column].median()) * 1e3
    return 0.0
