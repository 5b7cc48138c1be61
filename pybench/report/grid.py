"""Grids of panels: one measure or several, over all conditions of a run, with the table of the figures behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pybench.conditions import say_condition, say_conditions
from pybench.report.axes import Axis
from pybench.report.curves import Measure, drawn_values, load_panel, y_axis
from pybench.report.dots import dot_panel
from pybench.report.html import fill
from pybench.report.section import Column, DataTable, Figure, Section
from pybench.report.view import CellView, View

# Panels that stand open; the rest of a large run is folded up.
SHOWN_PANELS = 6
# Panels beside each other share their linear scale unless one would be squeezed below this share of another.
SHARED_SCALE_RATIO = 3.0


@dataclass(frozen=True, slots=True)
class Charts:
    """The body of a section that is charts: a sentence, the panels, the table behind them."""

    id: str
    title: str
    lede: str
    figures: Sequence[Figure]
    tables: Sequence[DataTable]
    nav: str = ""
    note: str = ""
    columns: int = 0
    """Panels that belong side by side where there is room; 0 as many as fit."""


def charts_section(view: View, charts: Charts) -> Section:
    """`charts` as a section of the page, with the legend that shows and hides strategies."""
    html = fill(
        "charts.html",
        charts=charts,
        series=view.series,
        shown=charts.figures[:SHOWN_PANELS],
        folded=charts.figures[SHOWN_PANELS:],
    )
    return Section(charts.id, charts.title, Markup(html), list(charts.figures), nav=charts.nav)


def measure_figures(view: View, measures: Sequence[Measure], id_: str) -> list[Figure]:
    """A panel for each of `measures` and each condition apart from the load."""
    load = view.load_axis
    facets = view.facets(load) if load else view.facets()
    figures = []
    for place, (conditions, cells) in enumerate(facets):
        for measure in measures:
            # What no cell of the run has is left out; what only these lack keeps its place, so that rows stay rows.
            if not drawn_values(view.cells, measure):
                continue
            axis = _scale(view, [cells for _, cells in facets], place, measure)
            words = [measure.title] if len(measures) > 1 else []
            title = " · ".join(words + [say_condition(*pair) for pair in conditions])
            name = f"{id_}-{measure.key}-{place}"
            if load:
                figures.append(load_panel(view, cells, measure, axis, id_=name, title=title))
            else:
                figures.append(dot_panel(cells, measure, axis, id_=name, title=title))
    return figures


def measure_table(view: View, measures: Sequence[Measure], caption: str) -> DataTable:
    """The figures of `measures`, a row a cell."""
    columns = [Column("strategy", numeric=False)]
    columns += [Column("load", numeric=False)] if view.axes else []
    columns += [Column(measure.title) for measure in measures] + [Column("verdict", numeric=False)]
    rows = []
    for conditions, cells in view.facets():
        for cell in cells:
            figures = []
            for measure in measures:
                value = cell.number(measure.column)
                figures.append("n/a" if value is None else measure.text(value))
            where = [say_conditions(conditions)] if view.axes else []
            rows.append([cell.series.label, *where, *figures, cell.verdict])
    return DataTable(caption, columns, rows)


def _scale(view: View, facets: Sequence[Sequence[CellView]], place: int, measure: Measure) -> Axis:
    """One scale for all panels of a measure, or each its own where a shared one would hide the lower ones."""
    everything = [cell for cells in facets for cell in cells]
    if measure.scale == "log" or measure.top is not None:
        return y_axis(view, everything, measure)
    tops = [y_axis(view, cells, measure).high for cells in facets if drawn_values(cells, measure)]
    shared = max(tops) <= SHARED_SCALE_RATIO * min(tops)
    return y_axis(view, everything if shared else facets[place], measure)
