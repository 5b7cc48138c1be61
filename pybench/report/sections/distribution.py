"""The whole distributions of a run: the response time, and the hand-off, over percentiles with a stretched tail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pybench.analysis.histograms import Buckets, merged
from pybench.analysis.stats import SAMPLES_BEYOND, quantile
from pybench.formats import Format
from pybench.matrix.conditions import Conditions, say_conditions
from pybench.numbers import format_us
from pybench.report.charts.axes import Axis, log_axis
from pybench.report.charts.curves import MARGIN, cell_trace, symbol
from pybench.report.charts.grid import Charts, cell_table, charts_section, datum
from pybench.report.section import DataTable, Datum, Figure, Section
from pybench.report.view import CellView, View

POINTS_PER_CURVE = 80
ZERO_NOTE = "A {} of 0, of a lock that sends nothing, has no place on a logarithmic scale."
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}
NINES = {1.0: "0", 2.0: "50", 10.0: "90", 100.0: "99", 1e3: "99.9", 1e4: "99.99", 1e5: "99.999", 1e6: "99.9999"}


@dataclass(frozen=True, slots=True)
class _Phase:
    """A phase of a grant whose times have a section. `said` is what a time is called in charts and tables."""

    phase: str
    id: str
    title: str
    nav: str
    said: str
    lede: str


RESPONSE = _Phase(
    "response",
    "distribution",
    "Distribution of the response time",
    "Distribution",
    "response",
    "How long the slowest grants took.",
)
HANDOFF = _Phase(
    "handoff",
    "handoff",
    "Distribution of the hand-off",
    "Hand-off",
    "hand-off",
    "From the release of a key to the next grant of that key, where a client was waiting for it.",
)


def render(view: View) -> Section | None:
    """The responses: a curve for each lock, a panel for each load; None when nothing was granted."""
    return _section(view, RESPONSE)


def render_handoff(view: View) -> Section | None:
    """The hand-offs in the same way; None where no client waited for a key."""
    return _section(view, HANDOFF)


def _section(view: View, what: _Phase) -> Section | None:
    buckets = _times(view, what.phase)
    if not buckets:
        return None
    curves = {id_: curve(merged) for id_, merged in buckets.items()}
    axis = log_axis([float(y) for _, ys in curves.values() for y in ys], what.said, format_us)
    figures = [
        _panel(what, conditions, cells, curves, axis, f"{what.id}-{place}")
        for place, (conditions, cells) in enumerate(view.panels())
        if any(cell.id in curves for cell in cells)
    ]
    charts = Charts(
        id=what.id,
        title=what.title,
        nav=what.nav,
        lede=f"{what.lede} Each gridline keeps only the slowest tenth of the previous one. "
        f"A curve ends where fewer than {SAMPLES_BEYOND} grants are left.{_left_out(view, what)}",
        figures=figures,
        note=ZERO_NOTE.format(what.said) if any(ys[0] == 0 for _, ys in curves.values()) else "",
        tables=[_table(view, buckets, what.title)],
    )
    return charts_section(charts)


def _left_out(view: View, what: _Phase) -> str:
    """How many waits no curve shows, as a sentence to append; empty where every wait ended inside its window."""
    latency = view.run.latency
    waiting = latency[(latency["phase"] == what.phase) & (latency["outcome"] == "waiting")]
    count = int(waiting["count"].sum())
    if not count:
        return ""
    were = "wait was" if count == 1 else "waits were"
    return (
        f" Only grants are shown: {count:,} {were} not over when a window closed; the ranking's quantiles count them."
    )


def _times(view: View, phase: str) -> dict[str, Buckets]:
    """The times of each cell that has any, by the id of the cell: one pass over the record reads them all."""
    latency = view.run.latency
    granted = latency[(latency["phase"] == phase) & (latency["outcome"] == "granted")]
    recorded = {str(cell): list(parts) for cell, parts in granted.groupby("cell")["hdr"]}
    found = {cell.id: merged(recorded[cell.id]) for cell in view.cells if cell.id in recorded}
    return {id_: buckets for id_, buckets in found.items() if len(buckets.counts)}


def curve(buckets: Buckets) -> tuple[list[float], list[float]]:
    """Microseconds over percentile: x is 1 / (1 - quantile), so that each further nine has the same width."""
    reached = np.cumsum(buckets.counts, dtype=np.float64)
    last = np.log10(max(reached[-1] / SAMPLES_BEYOND, 1.0))
    xs = np.logspace(0.0, last, POINTS_PER_CURVE if last > 0 else 1)
    ranks = np.clip(np.ceil((1.0 - 1.0 / xs) * reached[-1] - 1e-6), 1, reached[-1])
    ys = buckets.values_ns[np.searchsorted(reached, ranks)] / 1e3
    return [float(f"{x:.4g}") for x in xs], [float(f"{y:.4g}") for y in ys]


def _panel(
    what: _Phase,
    conditions: Conditions,
    cells: Sequence[CellView],
    curves: dict[str, tuple[list[float], list[float]]],
    y: Axis,
    id_: str,
) -> Figure:
    drawn = [cell for cell in cells if cell.id in curves]
    longest = max(curves[cell.id][0][-1] for cell in drawn)
    ticks = [tick for tick in NINES if tick <= longest * 1.05]
    x = Axis("log", 1.0, max(longest, 10.0), ticks, "percentile of grants", lambda tick: NINES[tick])
    data = [trace for cell in drawn for trace in _traces(cell, *curves[cell.id])]
    title = say_conditions(conditions)
    ends = "; ".join(f"{cell.line.label}{_verdict(cell)} up to {format_us(curves[cell.id][1][-1])}" for cell in drawn)
    alt = f"{what.said.capitalize()} over percentiles{', ' + title if title else ''}. {ends}."
    layout = {"xaxis": x.layout(), "yaxis": y.layout(), "margin": MARGIN}
    return Figure(id_, title, alt, data, layout, missing=[one.line.label for one in cells if one.id not in curves])


def _traces(cell: CellView, xs: Sequence[float], ys: Sequence[float]) -> list[dict[str, Any]]:
    """The curve, and the marker of its lock at p50, p90, p99 and so on."""
    named = cell_trace(cell)
    curve = named | {
        "mode": "lines",
        "x": xs,
        "y": ys,
        "line": {"color": cell.line.colour, "width": 1.75, "dash": "dot" if cell.unsafe else cell.line.dash},
        "customdata": [format_us(value) for value in ys],
        "hovertemplate": "%{fullData.name}: %{customdata}<extra></extra>",
    }
    if ys[0] == 0:
        # A logarithmic scale has no place for a marker at zero.
        return [curve]
    marked = [x for x in NINES if 1 < x <= xs[-1]]
    marks = named | {
        "mode": "markers",
        "x": marked,
        "y": [float(f"{y:.4g}") for y in np.exp(np.interp(np.log(marked), np.log(xs), np.log(ys)))],
        "marker": {"color": cell.line.colour, "size": 6, "symbol": symbol(cell)},
        "hoverinfo": "skip",
    }
    return [curve, marks]


def _verdict(cell: CellView) -> str:
    return "" if cell.verdict == "SAFE" else f" ({cell.verdict})"


def _table(view: View, buckets: dict[str, Buckets], caption: str) -> DataTable:
    def figures(cell: CellView) -> list[Datum] | None:
        if cell.id not in buckets:
            return None
        values, counts = buckets[cell.id]
        quantiles = [quantile(values, counts, q) for q in QUANTILES.values()]
        shown = [datum(None if ns is None else ns / 1e3, Format.TIME_US.text) for ns in (*quantiles, float(values[-1]))]
        return [datum(int(counts.sum()), Format.COUNT.text), *shown]

    return cell_table(view, caption, ["grants", *QUANTILES, "highest"], figures)
