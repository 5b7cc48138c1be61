"""Figures that only the terminal shows; the others are formatted by `pybench.numbers`, as everywhere."""

from __future__ import annotations

from pybench.numbers import NOT_AVAILABLE, format_points, format_us, missing

SKEWED = 1.5
"""How many times as far one end of an interval may be as the other before both are shown."""
SHOWN_STEP = 0.1
"""Percentage points that are shown."""


def spread(middle: float | None, low: float | None, high: float | None) -> str:
    """The ends of an interval as shares of its middle: `±2.1 %`, or `-1.2/+9.8 %` where it lies askew.

    One figure is the further end of the two.
    """
    if middle is None or low is None or high is None or missing(middle) or missing(low) or missing(high) or not middle:
        return NOT_AVAILABLE
    below, above = 100 * (middle - low) / middle, 100 * (high - middle) / middle
    near, far = sorted((below, above))
    if far > SKEWED * near and far - near > SKEWED * SHOWN_STEP:
        return f"{_signed('-', below)}/{_signed('+', above)} %"
    return f"{_signed('±', far)} %"


def _signed(sign: str, points: float) -> str:
    shown = format_points(points)
    return shown if shown == "0" else f"{sign}{shown}"


def latency(us: float | None) -> str:
    """A time that was waited for an answer; a dash where nobody was asked, which alone takes no time at all."""
    return "-" if us == 0 else format_us(us)


def wall_time(seconds: float) -> str:
    """A time people wait for: `8 s`, `1 min 05 s`, `2 h 10 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02} min"
