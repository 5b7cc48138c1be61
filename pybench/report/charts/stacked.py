"""Panels of several parts one above the other over one horizontal axis, each with a vertical axis of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pybench.report.charts.axes import Axis
from pybench.report.charts.curves import MARGIN

# The title of a part stands above it.
BETWEEN = 40


@dataclass(frozen=True, slots=True)
class Stack:
    """`suffixes` are what the parts' axes are called, from the top: a trace of a part has `yaxis: "y" + suffix`."""

    layout: dict[str, Any]
    suffixes: list[str]
    height: int


def stacked(x: Axis, parts: Sequence[tuple[Axis, int]]) -> Stack:
    """The layout of `parts`, from the top: the vertical axis of each, and its height in CSS pixels."""
    room = sum(height for _, height in parts) + BETWEEN * (len(parts) - 1)
    # Plotly numbers its axes from 1, which it does not write: here from the lowest part.
    suffixes = [str(number) if number > 1 else "" for number in range(len(parts), 0, -1)]
    layout: dict[str, Any] = {"xaxis": x.layout() | {"anchor": "y"}, "margin": MARGIN}
    top = room
    for (axis, height), suffix in zip(parts, suffixes, strict=True):
        domain = [round((top - height) / room, 4), round(top / room, 4)]
        layout[f"yaxis{suffix}"] = axis.layout() | {"domain": domain, "anchor": "x"}
        top -= height + BETWEEN
    return Stack(layout, suffixes, MARGIN["t"] + room + MARGIN["b"])
