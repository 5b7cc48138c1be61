"""The limit of each lock: the highest rate that it sustains, and its latency over the load below it.

With `mode: curve` the points of a line are the loads that were measured at shares of the limit; with `mode: saturate`
they are the probes of the search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pybench.analysis.limits import NO_P99, LoadPoint, curve_of, interval_text, knee_of, lacks_p99
from pybench.formats import Format
from pybench.matrix.conditions import Conditions, say_conditions
from pybench.matrix.search_modes import recorded_mode
from pybench.numbers import NOT_AVAILABLE, format_count, format_percent, format_us
from pybench.planning.limit_search import Phase, Shown
from pybench.report.charts.axes import Axis, linear_axis, log_axis
from pybench.report.charts.curves import HEIGHT, MARGIN, Point, cell_trace, end_labels, symbol
from pybench.report.charts.grid import Charts, cell_row, charts_section, datum
from pybench.report.section import DataRow, DataTable, Datum, Figure, Section
from pybench.report.view import CellView, View

WIDE = 20.0
"""Rates that differ by more than this factor are drawn on a logarithmic axis."""
_RATE = Format.RATE.text
LEDE = (
    "The limit is the highest rate of arrivals that a lock sustained in three confirmations: at least 98\u00a0% were "
    "granted, waits did not grow, every threshold held, no grant was unsafe, and the load generator kept its schedule."
)
KNEE = (
    "A ring marks the knee, the load with the most grants per second for each second that an arrival spends in the "
    "system, its hold included. Beyond the knee, load costs more in waiting than it brings in grants."
)
SEARCH = "A point is a probe of the search, hollow where the rate did not hold."
LINE = "A dotted line is the limit."


@dataclass(frozen=True, slots=True)
class _Measure:
    """A latency of the loads and of the probes."""

    key: str
    title: str
    of_point: Callable[[LoadPoint], float | None]
    column: str


MEASURES = (
    _Measure("p50", "p50 response", lambda point: point.p50_us, "acquire_p50_us"),
    _Measure("p99", "p99 response", lambda point: point.p99_us, "acquire_p99_us"),
)


@dataclass(frozen=True, slots=True)
class _Searched:
    """A cell with a search, its curve with the knee, and the probes of its search."""

    cell: CellView
    points: list[LoadPoint]
    knee: LoadPoint | None
    probes: pd.DataFrame

    @property
    def limit(self) -> float | None:
        return self.cell.number("limit_per_s")

    def drawn(self, measure: _Measure) -> list[tuple[float, float, bool, str]]:
        """Rate, latency, whether the rate held, and the text of each point that has the latency."""
        if self.points:
            found = [(one.rate_per_s, measure.of_point(one), True, _told(one)) for one in self.points]
        else:
            found = [
                (row["rate_per_s"], row[measure.column], row["shown"] == Shown.HELD, _told_of_probe(row))
                for row in self.probes.to_dict("records")
            ]
        return [(x, float(y), held, text) for x, y, held, text in found if y is not None and y > 0]


def render(view: View) -> Section | None:
    """A panel of p50 and p99 over the load for each set of conditions; None for a run without a search."""
    facets = _facets(view)
    if not facets:
        return None
    figures = [
        _panel(view, found, measure, f"limit-{measure.key}-{place}", _title(measure, say_conditions(conditions)))
        for place, (conditions, found) in enumerate(facets)
        for measure in MEASURES
        if any(one.drawn(measure) for one in found)
    ]
    everything = [one for _, found in facets for one in found]
    notes = [
        *([KNEE] if any(one.knee for one in everything) else []),
        *([SEARCH] if any(not one.points and len(one.probes) for one in everything) else []),
        *([LINE] if any(one.limit is not None for one in everything) else []),
        *([f"{NO_P99}."] if lacks_p99([point for one in everything for point in one.points]) else []),
    ]
    charts = Charts(
        id="limit",
        title="The limit",
        nav="Limit",
        lede=LEDE,
        figures=figures,
        columns=2,
        note=" ".join(notes),
        tables=_tables(everything),
    )
    return charts_section(charts)


def limit_tables(view: View) -> list[DataTable]:
    """The limit of each cell with a search, and the latency over load of those with a curve."""
    return _tables([one for _, found in _facets(view) for one in found])


def _tables(everything: Sequence[_Searched]) -> list[DataTable]:
    tables = [DataTable("The limit", _LIMIT_TITLES, [_limit_row(one) for one in everything])] if everything else []
    rows = [row for one in everything for row in _curve_rows(one)]
    return [*tables, *([DataTable("Latency over load", _CURVE_TITLES, rows)] if rows else [])]


def _facets(view: View) -> list[tuple[Conditions, list[_Searched]]]:
    return [(conditions, found) for conditions, cells in view.panels() if (found := _searched(view, cells))]


def _title(measure: _Measure, told: str) -> str:
    return " · ".join(filter(None, [measure.title, told]))


def _searched(view: View, cells: Sequence[CellView]) -> list[_Searched]:
    run, found = view.run, []
    for cell in cells:
        if recorded_mode(cell.row.get("mode")).is_search:
            points = curve_of(run.probes, run.trials, cell.id)
            own = run.probes[run.probes["cell"] == cell.id] if len(run.probes) else run.probes
            found.append(_Searched(cell, points, knee_of(points), own))
    return found


def _panel(view: View, found: Sequence[_Searched], measure: _Measure, id_: str, title: str) -> Figure:
    drawn = [(one, points) for one in found if (points := one.drawn(measure))]
    x, y = _axes(drawn, measure)
    data: list[dict[str, Any]] = []
    ends = []
    for one, points in drawn:
        data += _traces(one, points, measure, y)
        last = max(points)
        ends.append((one.cell.line, Point(one.cell, last[0], last[1])))
    labels, right = end_labels(view, ends, y)
    layout = {"xaxis": x.layout(), "yaxis": y.layout(), "annotations": labels, "margin": MARGIN | {"r": right}}
    missing = [one.cell.line.label for one in found if not one.drawn(measure)]
    return Figure(id_, title, _alt(drawn, measure, title), data, layout, HEIGHT, missing=missing)


def _axes(drawn: Sequence[tuple[_Searched, list[Any]]], measure: _Measure) -> tuple[Axis, Axis]:
    rates = [x for _, points in drawn for x, *_ in points] + [one.limit for one, _ in drawn if one.limit]
    latencies = [y for _, points in drawn for _, y, *_ in points]
    limits = [one.limit for one, _ in drawn if one.limit]
    is_wide = bool(limits) and max(limits) > WIDE * min(limits)
    title = "arrivals/s"
    x = log_axis(rates, title, format_count) if is_wide else linear_axis(rates, title, format_count)
    return x, log_axis(latencies, measure.title.split()[-1], format_us)


def _traces(one: _Searched, points: Sequence[Any], measure: _Measure, y: Axis) -> Iterator[dict[str, Any]]:
    line = one.cell.line
    base = cell_trace(one.cell)
    ordered = sorted(points)
    yield base | {
        "x": [_short(x) for x, *_ in ordered],
        "y": [_short(latency) for _, latency, *_ in ordered],
        "mode": "lines+markers" if one.points else "markers",
        "cliponaxis": False,
        "line": {"color": line.colour, "width": 2, "dash": line.dash},
        "customdata": [f"{measure.title} {format_us(latency)} at {text}" for _, latency, _, text in ordered],
        "hovertemplate": "%{fullData.name}: %{customdata}<extra></extra>",
        "marker": {
            "color": line.colour,
            "size": 8,
            "symbol": [symbol(one.cell) if held else f"{line.shape}-open" for _, _, held, _ in ordered],
            "line": {"width": 1.5, "color": "var(--paper)" if one.points else line.colour},
        },
    }
    knee = None if one.knee is None else measure.of_point(one.knee)
    if one.knee is not None and knee:
        yield base | {
            "x": [_short(one.knee.rate_per_s)],
            "y": [_short(knee)],
            "mode": "markers",
            "cliponaxis": False,
            "marker": {"color": line.colour, "size": 17, "symbol": "circle-open", "line": {"width": 2}},
            "hoverinfo": "skip",
        }
    if one.limit is not None:
        yield base | {
            "x": [_short(one.limit)] * 2,
            "y": [_short(y.low), _short(y.high)],
            "mode": "lines",
            "line": {"color": line.colour, "width": 1, "dash": "dot"},
            "hoverinfo": "skip",
        }


def _told(point: LoadPoint) -> str:
    return f"{format_percent(point.share)} of the limit, {_RATE(point.rate_per_s)}/s"


def _told_of_probe(row: Any) -> str:  # noqa: ANN401 - a row of probes
    reason = f": {row['reason']}" if isinstance(row["reason"], str) else ""
    return f"{_RATE(row['rate_per_s'])}/s, {row['shown']}{reason}"


_LIMIT_TITLES = ["limit, 1/s", "interval", "limited by", "knee, 1/s", "searches", "probes"]


def _limit_row(one: _Searched) -> DataRow:
    row, cell = one.cell.row, one.cell
    limited = row.get("limited_by")
    searching = one.probes[one.probes["phase"] != Phase.CURVE] if len(one.probes) else one.probes
    figures = [
        datum(one.limit, _RATE),
        Datum(interval_text(row), cell.number("limit_low_per_s")),
        Datum(limited if isinstance(limited, str) else NOT_AVAILABLE, None),
        datum(None if one.knee is None else one.knee.rate_per_s, _RATE),
        datum(cell.number("trials"), format_count),
        datum(float(len(searching)), format_count),
    ]
    return cell_row(cell, say_conditions(cell.conditions), figures)


_CURVE_TITLES = ["arrivals/s", "grants/s", "p50", "p99", "mean time in the system"]


def _curve_rows(one: _Searched) -> Iterator[DataRow]:
    cell = one.cell
    for point in one.points:
        is_knee = one.knee is not None and point.share == one.knee.share
        share = f"{format_percent(point.share)} of the limit{' (knee)' if is_knee else ''}"
        where = " · ".join(filter(None, [say_conditions(cell.conditions), share]))
        figures = [
            datum(point.rate_per_s, _RATE),
            datum(point.grants_per_s, _RATE),
            *(datum(value, Format.TIME_US.text) for value in (point.p50_us, point.p99_us, point.system_us)),
        ]
        yield cell_row(cell, where, figures)


def _alt(drawn: Sequence[tuple[_Searched, list[Any]]], measure: _Measure, title: str) -> str:
    parts = []
    for one, points in drawn:
        limit = f"limit {_RATE(one.limit)}/s" if one.limit is not None else "no limit"
        knee = f", knee at {_RATE(one.knee.rate_per_s)}/s" if one.knee is not None else ""
        values = ", ".join(f"{format_us(y)} at {_RATE(x)}/s" for x, y, *_ in sorted(points))
        parts.append(f"{one.cell.line.label}: {limit}{knee}; {values}")
    return f"Chart of {title} over the rate of arrivals. {'. '.join(parts)}."


def _short(value: float) -> float:
    return float(f"{value:.5g}")
