"""Cautions about a quota on CPU time: that there is one, and in which trials it stopped processes.

Promises: a record of before this was measured gives no caution.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from pybench.numbers import plural
from pybench.quota import quota_sentence
from pybench.report.caution import Caution
from pybench.report.view import View


def limited(view: View) -> Iterator[Caution]:
    """All that apply."""
    machine = view.run.manifest.get("machine") or {}
    sentence = quota_sentence(machine.get("cpu_quota"), machine.get("cores_allowed"))
    if sentence:
        yield Caution("CPU quota", f"{sentence[:1].upper()}{sentence[1:]}.")
    trials = view.run.trials
    periods, times_ms = (_figures(trials, name) for name in ("throttled_periods", "throttled_ms"))
    stopped = int(((periods > 0) | (times_ms > 0)).sum())
    if not stopped:
        return
    share = f"{stopped} of {plural(len(trials), 'trial')}"
    often = f", in up to {plural(int(periods.max()), 'period')} of a trial" if periods.max() > 0 else ""
    long = f", for up to {times_ms.max():.0f} ms of a trial" if times_ms.max() > 0 else ""
    yield Caution(
        "Throttled",
        f"In {share} the CPU quota stopped processes{often}{long}: latencies there are those of the quota, not of the "
        "lock. Raise the quota, or run outside of the control group.",
        grave=True,
    )


def _figures(trials: pd.DataFrame, name: str) -> pd.Series[Any]:
    """The figures in column `name`, 0 where nothing tells."""
    column = trials[name] if name in trials.columns else pd.Series(0.0, index=trials.index)
    return column.astype(float).fillna(0.0)
