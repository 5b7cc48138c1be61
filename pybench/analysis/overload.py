"""Overload of an open loop: arrivals come faster than grants, so waits grow until the load ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybench.analysis.comparison.entrants import KEEPS_UP, offered_rate
from pybench.formats import Format
from pybench.numbers import missing


def overload(row: Mapping[Any, Any]) -> str | None:
    """The overload of a `row` of the summary in words; None in a closed loop, and where the lock keeps up.

    Such as `400/s offered, 350/s granted: waits grow without bound`.
    """
    offered, granted = offered_rate(row), row.get("grants_per_s")
    if offered is None or granted is None or missing(granted) or granted >= KEEPS_UP * offered:
        return None
    drops = row.get("drops")
    # The number of waiting arrivals is limited: further arrivals are dropped, and the waits stop growing.
    dropped = not missing(drops) and bool(drops)
    grow = f"waits grew until {drops:,.0f} arrivals were dropped" if dropped else "waits grow without bound"
    return f"{Format.RATE.text(offered)}/s offered, {Format.RATE.text(granted)}/s granted: {grow}"
