"""Figures that only the terminal shows. `Column.format` writes the figures of columns, as everywhere."""

from __future__ import annotations

import math

from pybench.formats import Format
from pybench.numbers import NOT_AVAILABLE, format_points, missing

SKEWED = 1.5
"""Both ends of an interval are shown where one is farther from the middle than this many times the other."""
SHOWN_STEP = 0.1
"""The smallest difference in percentage points that can be seen."""


def spread(middle: float | None, low: float | None, high: float | None) -> str:
    """The ends of an interval as shares of its middle: `±2.1 %`, or `-1.2/+9.8 %` where it is not symmetric.

    A single figure is that of the farther end.
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
    """A latency; a dash where the lock sends nothing, which is the only way to take no time."""
    return "-" if us == 0 else Format.TIME_US.text(us)


def wall_time(seconds: float) -> str:
    """A duration for people to wait: `8 s`, `1 min 05 s`, `2 h 10 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02} min"


def wall_times(low: float, high: float) -> str:
    """A range of durations for people to wait, rounded to the outside: `70 to 95 s`, `4 to 6 min`."""
    if high < 120:
        return f"{max(0, int(low // 5 * 5))} to {math.ceil(high / 5) * 5} s"
    if high < 7200:
        return f"{max(0, int(low // 60))} to {math.ceil(high / 60)} min"
    return f"{wall_time(low)} to {wall_time(high)}"
