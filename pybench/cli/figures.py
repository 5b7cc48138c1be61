"""Figures that only the terminal shows; the others are formatted by `pybench.numbers`, as everywhere."""

from __future__ import annotations

from pybench.numbers import NOT_AVAILABLE, missing


def spread(middle: float | None, low: float | None, high: float | None) -> str:
    """The further end of an interval as a share of its middle: `±2.1%`."""
    if middle is None or low is None or high is None or missing(middle) or missing(low) or missing(high) or not middle:
        return NOT_AVAILABLE
    return f"±{100 * max(high - middle, middle - low) / middle:.1f}%"


def wall_time(seconds: float) -> str:
    """A time people wait for: `8 s`, `1 min 05 s`, `2 h 10 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02} min"
