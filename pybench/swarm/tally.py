"""What a live trial has counted so far, added up drain by drain; it travels in the reports of a worker.

Promises: adding loses no count. A tally consists of numbers, texts and bytes, as Locust's messages need it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pybench.analysis.histograms import merged
from pybench.analysis.stats import quantile
from pybench.records.parts import MOST_VIOLATIONS, OF_CLIENTS, Histogram, TrialPart, merged_histograms

if TYPE_CHECKING:
    from pybench._core import Drained
    from pybench.analysis.histograms import Buckets
    from pybench.analysis.outcome import Outcome
    from pybench.core_results import Violation

FAILURES = ("refused", "timeouts", "errors", "unknown")
"""The counters of acquires that ended without a grant."""

ONLY_AT_THE_END = (
    *("began_ns", "window_start_ns", "window_ns", "contended_grants", "lease_freed_grants", "overtakes"),
    *("longest_stall_ns", "longest_streak", "longest_wait_ns"),
)
"""Totals of a trial that no drain brings."""
OF_STEPS = ("start_ns", "grants", "refused", "errors", "p50_ns", "p99_ns")


@dataclass(slots=True)
class Tally:
    """Counters, histograms and violations since some point in time."""

    counters: Counter[str] = field(default_factory=Counter)
    histograms: list[Histogram] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    elapsed_ns: int = 0
    """How long the trial ran while this was counted."""

    @classmethod
    def drained(cls, drained: Drained, elapsed_ns: int) -> Self:
        """What one drain brought."""
        rows = [Histogram(row.phase, row.outcome, row.count, row.hdr) for row in drained.histograms]
        return cls(Counter(drained.counters), rows, list(drained.violations), elapsed_ns)

    @classmethod
    def read(cls, message: Mapping[str, Any]) -> Self:
        """The tally of a `message`."""
        rows = [Histogram(*row) for row in message["histograms"]]
        return cls(Counter(message["counters"]), rows, list(message["violations"]), message["elapsed_ns"])

    def message(self) -> dict[str, Any]:
        """The tally in the types that Locust's messages carry."""
        return {
            "counters": dict(self.counters),
            "histograms": [(row.phase, row.outcome, row.count, row.hdr) for row in self.histograms],
            "violations": [dict(violation) for violation in self.violations],
            "elapsed_ns": self.elapsed_ns,
        }

    def add(self, other: Tally) -> None:
        """Add what `other` counted after this."""
        self.counters.update(other.counters)
        self.histograms = merged_histograms([*self.histograms, *other.histograms])
        self.violations = [*self.violations, *other.violations][:MOST_VIOLATIONS]
        self.elapsed_ns += other.elapsed_ns

    def replace_by(self, whole: Outcome) -> None:
        """Take the counts of the whole trial, which has ended, in place of those so far."""
        self.counters = Counter(whole.totals)
        self.histograms = [Histogram(row.phase, row.outcome, row.count, row.hdr) for row in whole.histograms]
        self.violations = list(whole.violations)
        self.elapsed_ns = whole.totals["window_ns"]

    def __getitem__(self, counter: str) -> int:
        """The count; 0 where there is none."""
        return self.counters[counter]

    @property
    def grants_per_s(self) -> float | None:
        """The mean rate; None before any time has passed."""
        return self["grants"] / self.elapsed_ns * 1e9 if self.elapsed_ns > 0 else None

    @property
    def failures(self) -> dict[str, int]:
        """How many acquires ended without a grant, by the name of the counter."""
        return {name: self[name] for name in FAILURES if self[name]}

    def buckets(self, phase: str, *outcomes: str) -> Buckets:
        """The buckets of `phase`, of these outcomes or of all."""
        return merged([row.hdr for row in self.histograms if row.phase == phase and _is(row.outcome, outcomes)])

    def quantile_us(self, phase: str, q: float, *outcomes: str) -> float | None:
        """The quantile `q` of a phase in microseconds; None with too few samples."""
        value_ns = quantile(*self.buckets(phase, *outcomes), q)
        return None if value_ns is None else value_ns / 1e3

    def part(self) -> TrialPart:
        """The tally as the counts of a trial whose end was never reported: without a time line and without clients."""
        return TrialPart(
            totals={**dict.fromkeys(ONLY_AT_THE_END, 0), **self.counters, "window_ns": self.elapsed_ns},
            histograms=list(self.histograms),
            timeline={name: np.zeros(0, dtype=np.uint64) for name in OF_STEPS},
            clients={name: np.zeros(0, dtype=np.uint64) for name in OF_CLIENTS},
            violations=list(self.violations),
        )


def summed(tallies: Iterable[Tally]) -> Tally:
    """What all `tallies` counted at the same time: the time is that of the longest."""
    whole = Tally()
    longest_ns = 0
    for tally in tallies:
        longest_ns = max(longest_ns, tally.elapsed_ns)
        whole.add(tally)
    whole.elapsed_ns = longest_ns
    return whole


def _is(outcome: str, outcomes: tuple[str, ...]) -> bool:
    return not outcomes or outcome in outcomes
