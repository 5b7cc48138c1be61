"""Cautions about a quota on CPU time: that there is one, and in which trials it stopped processes.

Promises: a record of before this was measured gives no caution.
"""

from __future__ import annotations

from collections.abc import Iterator

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
    if "throttled_ms" not in trials.columns:
        return
    stopped = trials["throttled_ms"].astype(float).fillna(0.0)
    if (stopped > 0).any():
        share = f"{int((stopped > 0).sum())} of {plural(len(trials), 'trial')}"
        yield Caution(
            "Throttled",
            f"In {share} the CPU quota stopped processes, for up to {stopped.max():.0f} ms of a trial: latencies there "
            "are those of the quota, not of the lock. Raise the quota, or run outside of the control group.",
            grave=True,
        )
