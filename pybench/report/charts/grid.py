"""Grids of panels: one measure or several at all loads of a run, with a table of the same figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pybench.analysis.quantile_text import least_wait
from pybench.matrix.conditions import condition_texts, say_conditions
from pybench.report.charts.axes import Axis
from pybench.report.charts.curves import Measure, drawn_values, figure_text, is_quantile, load_panel, y_axis
from pybench.report.charts.dots import dot_panel
from pybench.report.contests import by_wins
from pybench.report.html import fill
from pybench.report.section import DataRow, DataTable, Datum, Figure, Section
from pybench.report.view import CellView, View

# Panels that are unfolded; a large run has more, which are folded up.
SHOWN_PANELS = 6
# Longer tables are packed by the page; a reader without scripts has the other ones.
PLAIN_ROWS = 300
# With more locks than these, charts start with the leading ones; the legend adds the others.
MANY_SERIES = 8
LEADING_SERIES = 6
# Panels share a linear scale unless the highest figure of one is more than this many times that of another.
SHARED_SCALE_RATIO = 3.0


Text = Callable[[float | None], str]


@dataclass(frozen=True, slots=True)
class Charts:
    """The body of a section with charts: a sentence, the panels, and a table of their figures."""

    id: str
    title: str
    lede: str
    figures: Sequence[Figure]
    tables: Sequence[DataTable]
    nav: str = ""
    note: str = ""
    columns: int = 0
    """How many panels belong side by side where there is room; 0 is as many as fit."""


def charts_section(charts: Charts) -> Section:
    """`charts` as a section of the page."""
    tables = [
        (f"{charts.id}-table-{place}" if len(table.rows) > PLAIN_ROWS else "", table)
        for place, table in enumerate(charts.tables)
    ]
    folded = {id_: fill("data_table.html", table=table) for id_, table in tables if id_}
    html = fill(
        "charts.html",
        charts=charts,
        tables=tables,
        shown=charts.figures[:SHOWN_PANELS],
        folded=charts.figures[SHOWN_PANELS:],
    )
    return Section(charts.id, charts.title, Markup(html), list(charts.figures), nav=charts.nav, folded=folded)


def bars(view: View) -> str:
    """What the bars of measures over trials show, as a sentence to append; empty where nothing was repeated."""
    repeated = any((cell.number("trials") or 0) > 1 for cell in view.cells)
    return " A bar reaches from the lowest trial to the highest." if repeated else ""


def leading(view: View) -> frozenset[str]:
    """The labels of the lines that charts start with: all, or of many locks those that lead at most loads."""
    if len(view.lines) <= MANY_SERIES or view.line_axis:
        return frozenset(line.label for line in view.lines)
    return frozenset(series.label for series in by_wins(view)[:LEADING_SERIES])


def measure_figures(view: View, measures: Sequence[Measure], id_: str) -> list[Figure]:
    """A panel for each of `measures` and each load, the load axis left out."""
    load = view.load_axis
    facets = view.panels(load) if load else view.panels()
    figures = []
    # A measure that no cell of the run has gets no panel. One that only the cells of a load lack keeps its panel, so
    # that the panels of a row belong together.
    scales = {
        measure: _scales(view, [cells for _, cells in facets], measure)
        for measure in measures
        if drawn_values(view.cells, measure)
    }
    for place, (conditions, cells) in enumerate(facets):
        for measure, axes in scales.items():
            axis = axes[place]
            words = [measure.title] if len(measures) > 1 else []
            title = " · ".join(words + condition_texts(conditions))
            name = f"{id_}-{measure.key}-{place}"
            if load:
                figures.append(load_panel(view, cells, measure, axis, id_=name, title=title))
            else:
                figures.append(dot_panel(cells, measure, axis, id_=name, title=title))
    return figures


def measure_table(view: View, measures: Sequence[Measure], caption: str) -> DataTable:
    """The figures of `measures`, a row for each cell."""

    def figures(cell: CellView) -> list[Datum]:
        return [_shown(cell, measure) for measure in measures]

    return cell_table(view, caption, [measure.title for measure in measures], figures)


def cell_table(
    view: View, caption: str, columns: Sequence[str], figures: Callable[[CellView], list[Datum] | None]
) -> DataTable:
    """A row for each cell, in the order of the loads; none for a cell without `figures`."""
    rows = [
        cell_row(cell, say_conditions(conditions), found)
        for conditions, cells in view.facets()
        for cell in cells
        if (found := figures(cell)) is not None
    ]
    return DataTable(caption, list(columns), rows)


def cell_row(cell: CellView, where: str, figures: list[Datum]) -> DataRow:
    """A row about `cell`, which the page's filter hides with it."""
    return DataRow(cell.series.label, where, figures, cell.verdict, cell.breaks_exclusion, cell.index)


def _shown(cell: CellView, measure: Measure) -> Datum:
    if is_quantile(cell, measure):
        return Datum(figure_text(cell, measure), least_wait(cell.row, measure.column))
    return datum(cell.number(measure.column), measure.text)


def datum(value: float | None, text: Text) -> Datum:
    """A figure written by `text`, which writes n/a for None."""
    return Datum(text(value), None if value is None else float(f"{value:.6g}"))


def _scales(view: View, facets: Sequence[Sequence[CellView]], measure: Measure) -> list[Axis]:
    """One scale for all panels of a measure, or one for each where a shared scale would flatten the lower panels."""
    own = [y_axis(view, cells, measure) for cells in facets]
    tops = [axis.high for axis, cells in zip(own, facets, strict=True) if drawn_values(cells, measure)]
    is_shared = measure.scale == "log" or measure.top is not None or not tops
    if is_shared or max(tops) <= SHARED_SCALE_RATIO * min(tops):
        return [y_axis(view, [cell for cells in facets for cell in cells], measure)] * len(facets)
    return own
