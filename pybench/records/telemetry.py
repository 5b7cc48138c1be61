"""The rows of `telemetry.parquet`: samples of a trial's servers and of this machine, placed in steps of the time line.

A sample is taken at any moment, so a count is interpolated to the borders of the steps: what came between two samples
is spread evenly over that time. A number of the moment is that of the sample next to the middle of the step.

Promises: where samples are too far apart for that, the figure is None. Whole counts add up to what was counted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pybench.records.parts import STEP_NS, step_ns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pybench.analysis.outcome import Outcome
    from pybench.servers.sampling import Sample

WIDEST_GAP_NS = 3 * STEP_NS
"""Between samples that are further apart, nothing is known."""
SHARE_DIGITS = 4
"""Of shares of a core: samples of 100 ms do not know more."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The samples taken while a trial ran."""

    servers: Sequence[Sequence[Sample]]
    """Of each server, in the order in which the lock numbers them."""
    machine: Sequence[Sample] = ()
    """Of the machine and the process that made the load."""


def telemetry_rows(watched: Watched, result: Outcome) -> list[dict[str, Any]]:
    """The rows of one trial, ordered by step and server; none where no sample was taken."""
    starts_ns = result.timeline.get("start_ns", np.zeros(0)).astype(np.int64)
    series = [*watched.servers, watched.machine]
    if not len(starts_ns) or not any(series):
        return []
    length_ns = step_ns(starts_ns, STEP_NS)
    edges_ns = np.append(starts_ns, starts_ns[-1] + length_ns) + result.totals["window_start_ns"]
    numbers: list[int | None] = [*range(1, len(watched.servers) + 1), None]
    placed = [_Placed.of(samples, edges_ns, length_ns) for samples in series]
    return [
        {"start_ns": int(start_ns), "server": number, **one.row(step, length_ns)}
        for step, start_ns in enumerate(starts_ns)
        for number, one in zip(numbers, placed, strict=True)
        if one.samples
    ]


@dataclass(frozen=True, slots=True)
class _Placed:
    """The samples of one server, or of the machine, at the borders and in the middles of the steps."""

    samples: Sequence[Sample]
    counts: dict[str, NDArray[np.float64]]
    """How much each counter grew in each step; NaN where it is unknown."""
    nearest: NDArray[np.int64]
    """The sample next to the middle of each step; -1 where none is near."""

    @classmethod
    def of(cls, samples: Sequence[Sample], edges_ns: NDArray[np.int64], length_ns: int) -> _Placed:
        at_ns = np.array([sample.at_ns for sample in samples], dtype=np.int64)
        widest_ns = max(WIDEST_GAP_NS, 2 * length_ns)
        names = {name for sample in samples for name in sample.counters}
        counts = {
            name: _growth(
                at_ns, np.array([one.counters.get(name, np.nan) for one in samples]), edges_ns, widest_ns=widest_ns
            )
            for name in names
        }
        middles_ns = (edges_ns[:-1] + edges_ns[1:]) // 2
        nearest = np.full(len(middles_ns), -1)
        if len(at_ns):
            after = np.searchsorted(at_ns, middles_ns).clip(max=len(at_ns) - 1)
            before = (after - 1).clip(min=0)
            closer = np.where(abs(at_ns[before] - middles_ns) <= abs(at_ns[after] - middles_ns), before, after)
            nearest = np.where(abs(at_ns[closer] - middles_ns) <= length_ns, closer, -1)
        return cls(samples, counts, nearest)

    def row(self, step: int, length_ns: int) -> dict[str, Any]:
        """The columns of one step."""
        place = int(self.nearest[step])
        sample = self.samples[place] if place >= 0 else None
        waits = None if sample is None or sample.waits is None else json.dumps(dict(sample.waits), sort_keys=True)
        shares = {"cpu_share": "cpu_us", "steal_share": "steal_us", "sampling_share": "sampling_us"}
        counts = {"commands": "commands", "slow_commands": "slow", "wal_bytes": "wal_bytes"}
        return {
            **{column: self._share(name, step, length_ns) for column, name in shares.items()},
            **{column: self._count(name, step) for column, name in counts.items()},
            "waiting": None if sample is None else sample.levels.get("waiting"),
            "waits": waits,
        }

    def _share(self, name: str, step: int, length_ns: int) -> float | None:
        grown_us = self._grown(name, step)
        return None if grown_us is None else round(grown_us * 1e3 / length_ns, SHARE_DIGITS)

    def _count(self, name: str, step: int) -> int | None:
        grown = self._grown(name, step)
        return None if grown is None else round(grown)

    def _grown(self, name: str, step: int) -> float | None:
        growth = self.counts.get(name)
        return None if growth is None or np.isnan(growth[step]) else max(0.0, float(growth[step]))


def _growth(
    at_ns: NDArray[np.int64], counts: NDArray[np.float64], edges_ns: NDArray[np.int64], *, widest_ns: int
) -> NDArray[np.float64]:
    """How much a counter grew between each two of `edges_ns`; NaN where a border lies in no pair of near samples."""
    known = ~np.isnan(counts)
    at_ns, counts = at_ns[known], counts[known]
    if len(at_ns) < 2:
        return np.full(len(edges_ns) - 1, np.nan)
    after = np.searchsorted(at_ns, edges_ns).clip(1, len(at_ns) - 1)
    is_near = (at_ns[after] - at_ns[after - 1] <= widest_ns) & (edges_ns >= at_ns[0]) & (edges_ns <= at_ns[-1])
    # Seen from the first sample: a float holds nanoseconds of a whole day, but not those since the machine started.
    at_edges = np.interp(edges_ns - at_ns[0], at_ns - at_ns[0], counts - counts[0])
    whole = np.round(at_edges, 3)
    return np.where(is_near[:-1] & is_near[1:], np.diff(whole), np.nan)
