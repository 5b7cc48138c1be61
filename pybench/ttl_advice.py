"""Whether the ttl is right: which share of the holds went past the end of their lease, and which ttl leaves few.

Counted are the holds that were granted in the window and ended by themselves; a hold that the end of the window cut
short has no length. A hold outlived its lease when its release was sent after the end that its holder knew of.
Does not do: locks that renew their leases: there a longer ttl is not what keeps a hold inside its lease.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pybench.durations import MS
from pybench.numbers import format_percent, format_us
from pybench.stats import enough, quantile

if TYPE_CHECKING:
    import pandas as pd

    from pybench._core import HistogramRow
    from pybench.histograms import Buckets
    from pybench.records import Run

MARGIN_SHARE = 0.01
MARGIN_NS = 2 * MS
"""The clock-skew margin: by so much a holder counts its lease shorter than the ttl."""
LEFT = (0.01, 0.001)
"""The shares of holds past their lease for which a ttl is named."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What the holds of a cell say of its ttl."""

    holds: int
    outlived: int
    ttl_ns: tuple[float | None, ...]
    """A ttl for each share of `LEFT`; None where fewer than ten holds were longer."""


def outlived_share(rows: Sequence[HistogramRow]) -> float | None:
    """Of a trial: the share of its holds that outlived their lease. None without a hold."""
    counts = {row.outcome: row.count for row in rows if row.phase == "hold"}
    holds = sum(counts.values())
    return counts.get("lost", 0) / holds if holds else None


def advice_of(run: Run, cell: str) -> str | None:
    """What to say of the ttl of `cell`; None where no hold outlived its lease, or leases are renewed."""
    trials = run.trials[(run.trials["cell"] == cell) & (run.trials["status"] == "complete")]
    entry = next((entry for entry in run.manifest.get("cells", ()) if entry["id"] == cell), None)
    if entry is None or entry.get("lease_ms") is None or "renewals" not in trials or trials["renewals"].sum() > 0:
        return None
    kept, outlived = (run.histogram(cell, "hold", outcome) for outcome in ("granted", "lost"))
    advice = advise(kept, outlived, call_ns=call_ns(trials))
    return f"{cell}: {sentence(advice, entry['lease_ms'])}" if advice.outlived else None


def advise(kept: Buckets, outlived: Buckets, *, call_ns: float) -> Advice:
    """What the lengths of all holds of a cell say, those inside their lease and those past it.

    `call_ns` is how long the call that is granted takes, for a lease counts from before its send.
    """
    values = np.concatenate([kept[0], outlived[0]])
    counts = np.concatenate([kept[1], outlived[1]])
    order = np.argsort(values, kind="stable")
    longest = [quantile(values[order], counts[order], 1 - share) for share in LEFT]
    return Advice(
        holds=int(counts.sum()),
        outlived=int(outlived[1].sum()),
        ttl_ns=tuple(None if ns is None else needed_ttl_ns(ns, call_ns) for ns in longest),
    )


def needed_ttl_ns(hold_ns: float, call_ns: float) -> float:
    """The least ttl, to two digits upwards, whose lease a hold of `hold_ns` ends within."""
    exact = (hold_ns + call_ns + MARGIN_NS) / (1 - MARGIN_SHARE)
    step = 10.0 ** (math.floor(math.log10(exact)) - 1)
    return float(math.ceil(round(exact / step, 9)) * step)


def sentence(advice: Advice, ttl_ms: float) -> str:
    """Such as `2.1 % of 12,345 holds outlived the ttl of 2 s; a ttl of 2.4 s would leave 1 %, one of 3.1 s 0.1 %`."""
    share = advice.outlived / advice.holds
    ttl = format_us(ttl_ms * 1e3)
    told = f"{format_percent(share)} of {advice.holds:,} holds outlived their lease under the ttl of {ttl}"
    known = [(ns, left) for ns, left in zip(advice.ttl_ns, LEFT, strict=True) if ns is not None and left < share]
    if known:
        leaves = " and ".join(f"a ttl of {format_us(ns / 1e3)} would leave {left * 100:g} %" for ns, left in known)
        return f"{told}; {leaves}"
    if not enough(advice.holds, 1 - LEFT[0]):
        return f"{told}; these are too few holds to say which ttl would leave 1 %"
    return f"{told}; these are too few holds to say which ttl would leave 0.1 %" if share <= LEFT[0] else told


def call_ns(trials: pd.DataFrame) -> float:
    """What one call takes while the load goes on: the p99, else the p50, of a release; 0 where neither is known."""
    for column in ("release_p99_us", "release_p50_us"):
        if column in trials.columns and not trials[column].isna().all():
            return float(trials[column].median()) * 1e3
    return 0.0
