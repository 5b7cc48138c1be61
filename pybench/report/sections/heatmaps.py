"""Heat maps: every lock over the values of an axis, so that a large matrix is seen at a glance."""

from __future__ import annotations

from dataclasses import dataclass

from pybench.matrix.conditions import say_conditions
from pybench.report.charts.grid import SHOWN_PANELS
from pybench.report.heat import AXES, STEPS, HeatMap, column_title, first_measure, heat_maps, scales_of
from pybench.report.html import fill
from pybench.report.section import Section
from pybench.report.view import View


@dataclass(frozen=True, slots=True)
class Group:
    """The maps over one axis, and what their columns are."""

    columns: str
    maps: list[tuple[str, HeatMap]]
    """Each map with its conditions in words."""


def render(view: View) -> Section | None:
    """A map for each load without the axis of the map; None where no axis has two values and two locks."""
    if not view.measured:
        return None
    scales = scales_of(view)
    groups = [
        Group(column_title(axis), [(say_conditions(one.conditions), one) for one in found])
        for axis in AXES
        if scales and (found := heat_maps(view, axis, scales))
    ]
    if not groups:
        return None
    maps = [one for group in groups for _, one in group.maps]
    html = fill(
        "heatmaps.html",
        groups=groups,
        scales=scales,
        steps=range(STEPS),
        first=first_measure(view, scales).key,
        shown=SHOWN_PANELS,
        rows="lock" if view.line_axis is None else column_title(view.line_axis),
        has_bold=any(one.is_bold for heat in maps for _, row in heat.rows for box in row if box for one in box.figures),
        leaves_out=len(view.lines) > max(len(one.rows) for one in maps),
    )
    return Section("heatmaps", "Heat maps", html)
