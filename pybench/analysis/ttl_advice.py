"""Whether the ttl is right: which share of the holds went past the end of their lease, and which ttl leaves few.

Counted are the holds that were granted in the window and ended by themselves, and of those that the end of the trial
cut short the ones that had outlived their lease by then: such a hold would have been longer still. One that was cut
short inside its lease tells nothing. A hold outlived its lease when its release was sent after the end that its holder
knew of. Where the holds are too few for a ttl, the distribution that they are drawn from says it.
Does not do: locks that renew their leases: there a longer ttl is not what keeps a hold inside its lease.
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
from pybench.planning.forecast import needed_ttl_ns

if TYPE_CHECKING:
    import pandas as pd

    from pybench._core import HistogramRow

CUT: Final = "waiting"
"""The outcome of a hold that had outlived its lease when the end of the trial cut it short."""
LEFT = (0.01, 0.001)
"""The shares of holds past their lease for which a ttl is named."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What the holds of a cell say of its ttl."""

    holds: int
    outlived: int
    measured_ns: tuple[float | None, ...]
    """A ttl for each share of `LEFT`, by the holds; None where fewer than ten were longer, or all were cut short."""
    drawn_ns: tuple[float | None, ...]
    """The same by the distribution that the holds are drawn from; None where it is not known."""


def holds(rows: Sequence[HistogramRow]) -> tuple[Buckets, Buckets]:
    """Of a trial: the holds that ended, and those that were cut short past their lease."""
    parts = {row.outcome: row.hdr for row in rows if row.phase == "hold"}
    cut = [parts.pop(CUT)] if CUT in parts else []
    return histograms.merged(list(parts.values())), histograms.merged(cut)


def outlived_share(rows: Sequence[HistogramRow]) -> float | None:
    """Of a trial: the share of its holds that outlived their lease. None without a hold."""
    counts = {row.outcome: row.count for row in rows if row.phase == "hold"}
    total = sum(counts.values())
    return (counts.get("lost", 0) + counts.get(CUT, 0)) / total if total else None


def advice_of(
    cell: str,
    entry: Mapping[str, Any] | None,
    trials: pd.DataFrame,
    histogram: Callable[[str, str, str], Buckets],
) -> str | None:
    """What to say of the ttl of `cell`; None where no hold outlived its lease, or leases are renewed.

    `entry` is the manifest's of the cell, `trials` those of its run, and `histogram` that of a cell, a phase and an
    outcome.
    """
    trials = trials[(trials["cell"] == cell) & (trials["status"] == "complete")]
    if entry is None or entry.get("lease_ms") is None or "renewals" not in trials or trials["renewals"].sum() > 0:
        return None
    kept, lost, cut = (histogram(cell, "hold", outcome) for outcome in ("granted", "lost", CUT))
    drawn = Distribution.parse(entry["hold"]) if "hold" in entry else None
    advice = advise(kept, lost, cut, call_ns=call_ns(trials), drawn=drawn)
    return f"{cell}: {sentence(advice, entry['lease_ms'])}" if advice.outlived else None


def advise(kept: Buckets, lost: Buckets, cut: Buckets, *, call_ns: float, drawn: Distribution | None) -> Advice:
    """What the lengths of all holds of a cell say: those inside their lease, those past it, those cut short past it.

    `call_ns` is how long the call that is granted takes, for a lease counts from before its send; `drawn` is what the
    holds are drawn from.
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
    told = f"{format_percent(share)} of {advice.holds:,} holds outlived their lease under the ttl of {ttl}"
    wanted = [left for left in LEFT if left < share]
    measured = [(ns, left) for ns, left in zip(advice.measured_ns, LEFT, strict=True) if ns and left in wanted]
    if any(ns <= ttl_ms * MS for ns, _ in measured):
        return f"{told}; the holds fit into it, so their grants came late: acquires took long, or clients stood still"
    parts = [_would_leave(measured)] if measured else []
    unknown = [left for left in wanted if left not in {known for _, known in measured}]
    drawn = [
        (ns, left)
        for ns, left in zip(advice.drawn_ns, LEFT, strict=True)
        if ns and ns > ttl_ms * MS and left in unknown
    ]
    if drawn:
        parts.append(f"by the distribution that they are drawn from, {_would_leave(drawn)}")
    elif unknown:
        parts.append(f"these are too few holds to say which ttl would leave {format_percent(unknown[0])}")
    return "; ".join([told, *parts])


def _would_leave(ttls: Sequence[tuple[float, float]]) -> str:
    return " and ".join(f"a ttl of {format_us(ns / 1e3)} would leave {format_percent(left)}" for ns, left in ttls)


def call_ns(trials: pd.DataFrame) -> float:
    """What one call takes while the load goes on: the p99, else the p50, of a release; 0 where neither is known."""
    for column in ("release_p99_us", "release_p50_us"):
        if column in trials.columns and not trials[column].isna().all():
            return float(trials[column].median()) * 1e3
    return 0.0
