"""What a plan can tell before anything is measured: how long a p99 takes, and holds whose tail outlasts the lease.

Promises: a function of the cells alone. An expected rate is the most that clients, keys and arrivals allow with an
idle server: a measured one is rarely higher, so that a p99 takes at least as long as is said here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pybench.matrix.conditions import say_conditions
from pybench.matrix.durations import MS, US, S, format_duration, format_lease
from pybench.numbers import format_percent, format_seconds, format_us, plural
from pybench.planning.impossible import drift_ns
from pybench.strategies import CATALOGUE, Judge

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell

CALL_NS = 50 * US
"""One call to an idle server on the same machine."""
P99_GRANTS = 1_000
"""Ten samples beyond the p99."""

MARGIN_SHARE = 0.01
MARGIN_NS = 2 * MS
"""The clock-skew margin: by so much a holder counts its lease shorter than the ttl."""
TOLD_SHARE = 0.001
"""A smaller share of holds that outlast the lease is not warned of."""
SHARES_SHOWN = (0.01, 0.001)
"""For which a ttl is named."""


def expected_per_s(cell: Cell) -> float:
    """The most grants/s that the clients, the keys and the arrivals of `cell` allow."""
    strategy = CATALOGUE[cell.strategy]
    hold_ns = cell.hold.mean()
    by_clients = cell.concurrency * S / (hold_ns + cell.think.mean() + 2 * CALL_NS)
    most = [by_clients]
    if strategy.judged_by is not Judge.EFFECTS and strategy.commands and cell.read_share == 0:
        keys = 1 if cell.key_choice.kind == "single" else cell.keys // cell.keys_per_grant
        most.append(keys * strategy.permits(cell.args) * S / (hold_ns + CALL_NS))
    if cell.rate_per_s is not None:
        most.append(cell.rate_per_s)
    return min(most)


def p99_forecast(cells: Sequence[Cell], matrix: Matrix) -> list[str]:
    """A sentence for the cells whose trials are too short for a p99, by what they will show in place of one."""
    pooled, without = [], []
    for cell in cells:
        needed_s = P99_GRANTS / expected_per_s(cell)
        if needed_s * S > matrix.duration_ns * matrix.trials:
            without.append((needed_s, cell))
        elif needed_s * S > matrix.duration_ns:
            pooled.append((needed_s, cell))
    trial, together = format_duration(matrix.duration_ns), plural(matrix.trials, "trial")
    return [
        *_forecast(without, f"{together} of {trial} will have none"),
        *_forecast(pooled, f"trials of {trial} have one only when pooled"),
    ]


def _forecast(cells: Sequence[tuple[float, Cell]], so: str) -> list[str]:
    if not cells:
        return []
    needed_s, longest = max(cells, key=lambda entry: entry[0])
    others = f", and so for {plural(len(cells) - 1, 'further cell')}" if len(cells) > 1 else ""
    where = say_conditions([("hold", longest.hold.text), ("keys", longest.keys), ("concurrency", longest.concurrency)])
    which = f"{longest.strategy} ({where})"
    return [f"a p99 of {which} needs {P99_GRANTS:,} grants, at least {format_seconds(needed_s)}; {so}{others}"]


def needed_ttl_ns(hold_ns: float, call_ns: float) -> float:
    """The least ttl, to two digits upwards, whose lease a hold of `hold_ns` ends within."""
    exact = (hold_ns + call_ns + MARGIN_NS) / (1 - MARGIN_SHARE)
    step = 10.0 ** (math.floor(math.log10(exact)) - 1)
    return float(math.ceil(round(exact / step, 9)) * step)


def hold_tails(cells: Sequence[Cell]) -> list[str]:
    """A sentence for each hold and lease of which more than one in 1,000 holds outlasts the lease.

    And one more where no two clients can meet.
    """
    told: dict[str, None] = {}
    for cell in cells:
        strategy = CATALOGUE[cell.strategy]
        lease_ms = strategy.longest_hold_ms(cell.ttl_ms, cell.args)
        if lease_ms is None:
            continue
        drift = drift_ns(lease_ms, strategy.drift_factor(cell.args)) if strategy.allows_for_drift else 0
        beyond = cell.hold.share_above(lease_ms * MS - drift)
        # A hold that outlasts it at its median is refused, or was allowed by name.
        if TOLD_SHARE < beyond < 1 / 2:
            told[_tail(cell, lease_ms, beyond)] = None
    if told and all(cell.concurrency == 1 for cell in cells):
        told["with one client nobody is there to meet such a hold: more clients show what comes of it"] = None
    return list(told)


def _tail(cell: Cell, lease_ms: int, beyond: float) -> str:
    ttls = {share: needed_ttl_ns(cell.hold.quantile(1 - share), CALL_NS) for share in SHARES_SHOWN if share < beyond}
    lengths = " and ".join(f"{format_percent(share)} with a ttl of {format_us(ns / 1e3)}" for share, ns in ttls.items())
    return (
        f"{format_percent(beyond)} of the holds of {cell.hold.text} outlast the lease of {format_lease(lease_ms)}: two "
        f"clients may then be at work on one key; about {lengths}"
    )
