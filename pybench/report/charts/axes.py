"""Axes with round ticks and units: pure functions from the values of a chart to a plotly axis.

Ranges and ticks are chosen here and not by plotly, so that neighbouring panels agree and ticks are written like all
other figures of the report.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pybench.numbers import format_count

Text = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Axis:
    """`low` and `high` in data units, also where the scale is logarithmic."""

    scale: str
    low: float
    high: float
    ticks: Sequence[float]
    title: str
    text: Text

    def place(self, value: float) -> float:
        """The position of `value` between the ends: 0 at the low one, 1 at the high one."""
        if self.scale == "log":
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def layout(self) -> dict[str, Any]:
        """The axis in the form that plotly takes."""
        logarithmic = self.scale == "log"
        return {
            "type": self.scale,
            "range": [round(math.log10(end) if logarithmic else end, 5) for end in (self.low, self.high)],
            "tickvals": [float(f"{tick:.6g}") for tick in self.ticks],
            "ticktext": [self.text(tick) for tick in self.ticks],
            "title": {"text": self.title},
        }


def linear_axis(values: Iterable[float], title: str, text: Text = format_count) -> Axis:
    """From zero to a little above the highest of `values`."""
    top = max([value for value in values if value > 0], default=1.0)
    step = _round_step(top / 4)
    count = math.ceil(top / step)
    ticks = [index * step for index in range(count + 1)]
    return Axis("linear", 0.0, max(top * 1.08, ticks[-1]), ticks, title, text)


def whole_axis(end: float, title: str, text: Text) -> Axis:
    """From zero to exactly `end`, for what fills the width of a chart."""
    return replace(linear_axis([end], title, text), high=end)


def log_axis(values: Iterable[float], title: str, text: Text) -> Axis:
    """Around the positive `values`, with ticks at powers of ten; a short axis has ticks at 2 and 5 too."""
    positive = [value for value in values if value > 0] or [1.0, 10.0]
    low, high = min(positive) / 1.25, max(positive) * 1.25
    if high / low < 4:
        low, high = low / 1.5, high * 1.5
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < 150 else (1,)
    every = 1 if high / low < 1e7 else 2
    ticks = [step * 10.0**decade for decade in decades if decade % every == 0 for step in steps]
    return Axis("log", low, high, [tick for tick in ticks if low <= tick <= high], title, text)


def load_axis(values: Iterable[float], title: str) -> Axis:
    """Logarithmic over the measured loads, with a tick for each of up to seven; linear if one of them is zero."""
    loads = sorted(set(values)) or [1.0]
    if loads[0] <= 0:
        return linear_axis(loads, title, _plainly)
    low, high = loads[0], loads[-1]
    room = max((high / low) ** 0.06, 1.12)
    ticks: Sequence[float] = loads
    while len(ticks) > 7:
        ticks = ticks[::2]
    return Axis("log", low / room, high * room, ticks, title, _plainly)


def _plainly(value: float) -> str:
    return f"{value:,.6g}"


def _round_step(rough: float) -> float:
    """The least of 1, 2, 2.5 and 5 times a power of ten that is not below `rough`."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * step for step in (1, 2, 2.5, 5, 10) if power * step >= rough * 0.999)
