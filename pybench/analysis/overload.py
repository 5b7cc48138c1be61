"""Overload of an open loop: arrivals come faster than grants, so waits grow until the load ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybench.analysis.comparison.entrants import KEEPS_UP, offered_rate
from pybench.formats import Format
from pybench.matrix.stages import recorded_stages
from pybench.numbers import missing


def overload(row: Mapping[Any, Any]) -> str | None:
    """The overload of a `row` of the summary in words; None in a closed loop, and where the lock keeps up.

    With stages the figures are means over the window. Such as `400/s offered, 350/s granted: waits grow without bound`.
    """
    offered, granted = offered_rate(row), row.get("grants_per_s")
    if offered is None or granted is None or missing(granted) or granted >= KEEPS_UP * offered:
        return None
    drops = row.get("drops")
    # The number of waiting arrivals is limited: further arrivals are dropped, and the waits stop growing.
    dropped = not missing(drops) and bool(drops)
    varies = bool(recorded_stages(row.get("stages")))
    grow = "waits grew while more came than was granted" if varies else "waits grow without bound"
    if dropped:
        grow = f"waits grew until {drops:,.0f} arrivals were dropped"
    mean = "on average " if varies else ""
    return f"{mean}{Format.RATE.text(offered)}/s offered, {Format.RATE.text(granted)}/s granted: {grow}"
