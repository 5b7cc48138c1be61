"""Forecasts before a run: how long a p99 takes to measure, and which holds outlast their lease.

Promises: a function of the cells alone. The expected rate is the highest rate that clients, keys and arrivals allow
with an idle server. The measured rate is rarely higher, so a p99 takes at least as long as forecast.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pybench.matrix.conditions import AxisValue, say_conditions
from pybench.matrix.durations import MS, S, format_duration, format_lease
from pybench.numbers import format_percent, format_seconds, format_us, plural
from pybench.planning.ceilings import CALL_NS, most_per_s
from pybench.planning.impossible import skew_margin_ns
from pybench.planning.network import added_ns
from pybench.strategies import CATALOGUE

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell

P99_GRANTS = 1_000
"""A p99 needs ten samples beyond it, and so 1,000 grants."""

MARGIN_SHARE = 0.01
MARGIN_NS = 2 * MS
"""The clock-skew margin, together with `MARGIN_SHARE`: a holder counts its lease as shorter than the ttl."""
LEAST_SHARE = 0.001
"""Below this share of holds that outlast the lease there is no warning."""
SHARES_SHOWN = (0.01, 0.001)
"""The shares of holds past their lease for which the warning names a ttl."""


def expected_per_s(cell: Cell) -> float:
    """The most grants/s that the clients, the keys and the arrivals of `cell` allow."""
    # The mean of a varying load: the grants of the window are what counts.
    most, rate = most_per_s(cell, cell.mean_clients), cell.mean_rate_per_s
    return most if rate is None else min(most, rate)


def p99_forecast(cells: Sequence[Cell], matrix: Matrix) -> list[str]:
    """A sentence for the cells that will have no p99, and one for those whose p99 needs the samples of all trials."""
    pooled, without = [], []
    for cell in cells:
        needed_s, window_ns = P99_GRANTS / expected_per_s(cell), cell.window_ns(matrix.duration_ns)
        if needed_s * S > window_ns * matrix.trials:
            without.append((needed_s, cell))
        elif needed_s * S > window_ns:
            pooled.append((needed_s, cell))
    together = plural(matrix.trials, "trial")
    return [
        *_forecast(without, matrix, f"{together} of {{trial}} are too short even together"),
        *_forecast(pooled, matrix, "each trial of {trial} is too short, so samples of all trials are merged"),
    ]


def _forecast(cells: Sequence[tuple[float, Cell]], matrix: Matrix, consequence: str) -> list[str]:
    if not cells:
        return []
    needed_s, longest = max(cells, key=lambda entry: entry[0])
    others = f" (also for {plural(len(cells) - 1, 'further cell')})" if len(cells) > 1 else ""
    conditions: list[tuple[str, AxisValue]]
    conditions = [("hold", longest.hold.text), ("keys", longest.keys), ("concurrency", longest.concurrency)]
    conditions += [] if longest.rtt.is_zero else [("rtt", longest.rtt.text)]
    conditions += [("stages", longest.stages.text)] if longest.stages else []
    where, trial = say_conditions(conditions), format_duration(longest.window_ns(matrix.duration_ns))
    which = f"{longest.strategy} ({where})"
    least = f"{P99_GRANTS:,} grants, at least {format_seconds(needed_s)}"
    return [f"the p99 of {which} needs {least}: {consequence.format(trial=trial)}{others}"]


def needed_ttl_ns(hold_ns: float, call_ns: float) -> float:
    """The shortest ttl in nanoseconds, rounded up to two digits, whose lease covers a hold of `hold_ns`."""
    exact = (hold_ns + call_ns + MARGIN_NS) / (1 - MARGIN_SHARE)
    step = 10.0 ** (math.floor(math.log10(exact)) - 1)
    return float(math.ceil(round(exact / step, 9)) * step)


def shares_by_ttl(ttls: Iterable[tuple[float, float]]) -> dict[str, float]:
    """The share of holds past each ttl, by the ttl in words; `ttls` in nanoseconds, the largest share first.

    Where two ttls read alike, the smaller share holds for both.
    """
    return {format_us(ns / 1e3): share for ns, share in ttls}


def hold_tails(cells: Sequence[Cell]) -> list[str]:
    """A sentence for each hold and lease where more than 1 in 1,000 holds outlasts the lease.

    A last sentence follows where every cell has one client, so that no overlap can occur.
    """
    warnings: dict[str, None] = {}
    for cell in cells:
        strategy = CATALOGUE[cell.strategy]
        lease_ms = strategy.longest_hold_ms(cell.ttl_ms, cell.args)
        if lease_ms is None:
            continue
        margin_ns = skew_margin_ns(lease_ms, strategy.drift_factor(cell.args)) if strategy.allows_for_drift else 0
        beyond = cell.hold.share_above(lease_ms * MS - margin_ns - added_ns(cell))
        # A cell whose median hold outlasts the lease is refused, or `allow` names it.
        if LEAST_SHARE < beyond < 1 / 2:
            warnings[_tail(cell, lease_ms, beyond)] = None
    if warnings and all(cell.concurrency == 1 for cell in cells):
        warnings["a run with one client cannot show such an overlap: use more clients"] = None
    return list(warnings)


def _tail(cell: Cell, lease_ms: int, beyond: float) -> str:
    call_ns = CALL_NS + added_ns(cell)
    ttls = [(needed_ttl_ns(cell.hold.quantile(1 - share), call_ns), share) for share in SHARES_SHOWN if share < beyond]
    lengths = " and ".join(
        f"{format_percent(share)} would outlast a ttl of {ttl}" for ttl, share in shares_by_ttl(ttls).items()
    )
    return (
        f"{format_percent(beyond)} of the holds of {cell.hold.text} outlast the lease of {format_lease(lease_ms)}: two "
        f"clients may then work on one key; about {lengths}"
    )
