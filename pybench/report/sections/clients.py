"""Fairness client by client: how many grants each client got, and how long it waited, from the least to the most.

Promises: a curve has at most `POINTS` points, however many clients there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pybench.formats import Format
from pybench.numbers import format_count, format_us
from pybench.report import details
from pybench.report.charts.axes import Axis, linear_axis, log_axis, whole_axis
from pybench.report.charts.curves import MARGIN, cell_stroke, cell_trace, symbol
from pybench.report.charts.grid import Charts, cell_table, charts_section, datum
from pybench.report.section import Datum, Figure, Section
from pybench.report.view import CellView, View

POINTS = 41
LEAST_CLIENTS = 4
"""Fewer clients are no distribution."""
UNEVEN = 2.0
"""A client is called out that got so many times less than its fair share."""


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients of a cell, those of all trials together, ascending."""

    shares: NDArray[np.float64]
    """Grants of each client as a multiple of the fair share of its trial."""
    waits_us: NDArray[np.float64]
    """The mean wait of each client that was granted anything."""


@dataclass(frozen=True, slots=True)
class _Curve:
    """One of the two charts of a load."""

    key: str
    title: str
    values: Callable[[Clients], NDArray[np.float64]]
    axis: Callable[[Sequence[float]], Axis]
    text: Callable[[float | None], str]


SHARE = _Curve(
    "share",
    "grants per client",
    lambda clients: clients.shares,
    lambda values: linear_axis([*values, 1.0], "grants / fair share", format_count),
    Format.RATIO.text,
)
WAIT = _Curve(
    "wait",
    "mean wait per client",
    lambda clients: clients.waits_us,
    lambda values: log_axis(values, "mean wait", format_us),
    format_us,
)


def render(view: View) -> Section | None:
    """Two panels for each load; None for a run without several clients, or of a schema without them."""
    found = clients_of(view)
    figures = [
        figure
        for place, (title, cells) in enumerate(details.panels(view, found))
        for curve in (SHARE, WAIT)
        if (figure := _panel(curve, title, cells, found, f"clients-{curve.key}-{place}")) is not None
    ]
    if not figures:
        return None

    def row(cell: CellView) -> list[Datum] | None:
        one = found.get(cell.id)
        if one is None:
            return None
        shares, waits_us = one.shares, one.waits_us
        ends = [float(shares[0]), float(np.median(shares)), float(shares[-1])]
        waits = [float(waits_us[0]), float(waits_us[-1])] if len(waits_us) else [None, None]
        return [*(datum(end, Format.RATIO.text) for end in ends), *(datum(wait, format_us) for wait in waits)]

    columns = ["fewest grants / fair share", "median client", "most grants", "shortest mean wait", "longest mean wait"]
    charts = Charts(
        id="clients",
        title="Client by client",
        lede=_lede(view, found) + details.only_some(view),
        figures=figures,
        columns=2,
        tables=[cell_table(view, "Clients", columns, row)],
        nav="Clients",
    )
    return charts_section(charts)


def clients_of(view: View) -> dict[str, Clients]:
    """The clients of each detailed cell with several of them, by the id of the cell."""
    rows = view.run.clients
    wanted = {cell.id for cell in details.detailed(view) if (cell.number("concurrency") or 0) >= LEAST_CLIENTS}
    # The row of all clients beyond the first thousand is no client.
    single = rows[rows["cell"].isin(wanted) & (rows["clients"] == 1)]
    found = {}
    for cell, of_cell in details.of_complete_trials(view, single).groupby("cell", sort=False):
        fair = of_cell.groupby("trial")["grants"].transform("mean")
        served = of_cell[fair > 0]
        if len(served):
            shares = np.sort((served["grants"] / fair[fair > 0]).to_numpy(dtype=np.float64))
            found[str(cell)] = Clients(shares, _waits_us(served))
    return found


def _waits_us(rows: pd.DataFrame) -> NDArray[np.float64]:
    waits: NDArray[np.float64] = np.sort(rows["wait_mean_us"].dropna().to_numpy(dtype=np.float64))
    return waits


def _panel(
    curve: _Curve, title: str, cells: Sequence[CellView], found: Mapping[str, Clients], id_: str
) -> Figure | None:
    values = {cell.id: curve.values(found[cell.id]) for cell in cells}
    drawn = [cell for cell in cells if len(values[cell.id])]
    if not drawn:
        return None
    y = curve.axis([float(value) for cell in drawn for value in values[cell.id]])
    x = whole_axis(100.0, "% of clients, from the least to the most", format_count)
    data = []
    for cell in drawn:
        at, points = _quantised(values[cell.id])
        line = cell_trace(cell) | {
            "mode": "lines+markers",
            "x": at,
            "y": points,
            "cliponaxis": False,
            "line": cell_stroke(cell),
            "marker": {
                "color": cell.line.colour,
                "size": [7 if place == len(at) - 1 else 0 for place in range(len(at))],
                "symbol": symbol(cell),
                "line": {"width": 0},
            },
            "customdata": [curve.text(value) for value in points],
            "hovertemplate": "%{fullData.name}: %{customdata}<extra></extra>",
        }
        data.append(line)
    told = "; ".join(
        f"{cell.line.label}: {curve.text(float(values[cell.id][0]))} to {curve.text(float(values[cell.id][-1]))}"
        for cell in drawn
    )
    heading = " · ".join(filter(None, [curve.title, title]))
    layout = {"xaxis": x.layout(), "yaxis": y.layout(), "margin": MARGIN}
    missing = [cell.line.label for cell in cells if cell not in drawn]
    return Figure(id_, heading, f"{curve.title}{', ' + title if title else ''}. {told}.", data, layout, missing=missing)


def _quantised(values: NDArray[np.float64]) -> tuple[list[float], list[float]]:
    """At most `POINTS` points of the ascending `values`, the first and the last among them, by the share below."""
    places = np.unique(np.linspace(0, len(values) - 1, min(POINTS, len(values))).round().astype(int))
    at = 100 * places / max(len(values) - 1, 1)
    return [round(float(one), 1) for one in at], [float(f"{value:.3g}") for value in values[places]]


def _lede(view: View, found: Mapping[str, Clients]) -> str:
    lede = (
        "The clients of each lock in order, those of all trials together. A lock that serves all alike is level at 1."
    )
    served = [(found[cell.id], cell) for cell in view.cells if cell.id in found and not cell.unsafe]
    least = min(served, key=lambda one: float(one[0].shares[0]), default=None)
    if least is None:
        return lede
    clients, cell = least
    share = float(clients.shares[0])
    if share * UNEVEN > 1:
        return f"{lede} Every client of every safe lock got at least {Format.RATIO.text(share)} of its fair share."
    part = "no grant at all" if share == 0 else f"{Format.RATIO.text(share)} of its fair share"
    return f"{lede} The client that fared worst got {part}: one of {cell.name}."
