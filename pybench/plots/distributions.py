"""How long grants take, over all their samples: a histogram, and the curve over percentiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pybench.analysis.histograms import Buckets, merged
from pybench.analysis.stats import quantile
from pybench.errors import InputError
from pybench.numbers import format_us
from pybench.plots import picture
from pybench.plots.selection import chosen
from pybench.report.charts.axes import Axis, log_axis
from pybench.report.sections.distribution import NINES, curve

if TYPE_CHECKING:
    from pybench.records import Run
    from pybench.report.view import CellView

BARS_PER_DECADE = 12
MARKED = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}


def histogram(run: Run, cell: str, phase: str = "response") -> picture.Picture:
    """The samples of a phase in the cell with this id: bars of equal width on a logarithmic axis, and the quantiles."""
    (view,) = chosen(run, f"cell == {cell!r}").cells
    buckets = run.histogram(cell, phase)
    us, counts = _above_zero(buckets, view)
    edges = np.logspace(
        np.floor(np.log10(us[0]) * BARS_PER_DECADE) / BARS_PER_DECADE,
        np.ceil(np.log10(us[-1]) * BARS_PER_DECADE + 1e-9) / BARS_PER_DECADE,
        2 + int(np.ceil(np.log10(us[-1] / us[0]) * BARS_PER_DECADE)),
    )
    heights, _ = np.histogram(us, edges, weights=counts)
    found = {name: quantile(*buckets, q) for name, q in MARKED.items()}
    known = {name: ns / 1e3 for name, ns in found.items() if ns}
    with picture.theme():
        figure, (axis,) = picture.panels(1, columns=1, width=8.6, height=3.4)
        picture.scale(axis, "x", log_axis([float(edges[0]), float(edges[-1])], phase, format_us))
        axis.bar(edges[:-1], heights, np.diff(edges), align="edge", color=picture.colour(view.line.colour),
                 edgecolor=picture.colour("--paper"), linewidth=0.5)  # fmt: skip
        axis.set_ylim(0, heights.max() * 1.22)
        axis.set_ylabel("grants")
        axis.yaxis.set_major_formatter(lambda tick, _: f"{tick:,.0f}")
        axis.grid(visible=False, axis="x")
        for place, (name, value) in enumerate(known.items()):
            axis.axvline(value, color=picture.colour("--ink"), linewidth=1, linestyle=(0, (3, 2)))
            # The p50 and the p90 are often close: their names stand on either side.
            side: dict[str, Any] = (
                {"xytext": (-3, -9), "ha": "right"} if not place else {"xytext": (3, -9), "ha": "left"}
            )
            axis.annotate(name, (value, 1.0), xycoords=("data", "axes fraction"), textcoords="offset points",
                          fontsize=9, **side)  # fmt: skip
        axis.set_title(f"{phase}: {view.name} {picture.verdict_text(view)}")
    texts = ", ".join(f"{name} {format_us(value)}" for name, value in known.items())
    figure.alt = f"Histogram of the {phase} of {view.name}, {view.verdict}: {int(counts.sum()):,} grants; {texts}."
    return figure


def _above_zero(buckets: Buckets, view: CellView) -> tuple[np.ndarray, np.ndarray]:
    us, counts = buckets.values_ns[buckets.values_ns > 0] / 1e3, buckets.counts[buckets.values_ns > 0]
    if not len(us):
        raise InputError(f"{view.name} has no samples of this phase above zero", hint="choose another cell or phase")
    return us, counts


def percentiles(run: Run, where: str | None = None, phase: str = "response") -> picture.Picture:
    """The quantiles of a phase, a curve for each cell: each gridline keeps only the slowest tenth of the previous one.

    A curve ends where fewer than ten grants are left.
    """
    selection = chosen(run, where)
    every = {cell.id: run.histogram(cell.id, phase) for cell in selection.cells}
    curves = {id_: curve(buckets) for id_, buckets in every.items() if len(buckets.counts) and buckets.values_ns[-1]}
    drawn = [cell for cell in selection.cells if cell.id in curves]
    if not drawn:
        raise InputError(f"these cells have no samples of the phase {phase} above zero", hint="choose other cells")
    ends = {cell.id: format_us(curves[cell.id][1][-1]) for cell in drawn}
    with picture.theme():
        figure, (axis,) = picture.panels(1, columns=1, width=8.6, height=4.0)
        picture.scale(axis, "y", log_axis([y for _, ys in curves.values() for y in ys if y > 0], phase, format_us))
        picture.scale(axis, "x", _nines(max(xs[-1] for xs, _ in curves.values())))
        for cell in drawn:
            xs, ys = (np.array(ends) for ends in curves[cell.id])
            name = f"{selection.name(cell)} {picture.verdict_text(cell)}"
            look = {"color": picture.colour(cell.line.colour), "linestyle": picture.dash(cell), "linewidth": 1.8}
            axis.plot(xs[ys > 0], ys[ys > 0], label=name, **look)
        axis.legend(loc="upper left", fontsize=9, frameon=True, framealpha=0.9, edgecolor="none")
        axis.set_title(", ".join(filter(None, [f"{phase} over percentiles", selection.fixed])))
    figure.alt = f"{phase} over percentiles. " + "; ".join(
        f"{selection.name(cell)}, {cell.verdict}, up to {ends[cell.id]}" for cell in drawn
    )
    return figure


def quantiles_by_trial(run: Run, cell: str, phase: str = "response") -> picture.Picture:
    """The quantiles of each trial of a cell: where the trials agree, the quantile can be trusted.

    A trial has no point where fewer than ten of its samples lie beyond the quantile.
    """
    (view,) = chosen(run, f"cell == {cell!r}").cells
    rows = run.latency
    mine = rows[(rows["cell"] == cell) & (rows["phase"] == phase) & (rows["outcome"] == "granted")]
    trials = [merged(list(parts)) for _, parts in mine.groupby("trial")["hdr"]]
    found = {name: [quantile(*one, q) for one in trials] for name, q in MARKED.items()}
    known = {name: [ns / 1e3 for ns in values if ns] for name, values in found.items()}
    if not any(known.values()):
        raise InputError(f"{view.name} has no trial with enough samples of {phase}", hint="choose another cell")
    with picture.theme():
        figure, (axis,) = picture.panels(1, columns=1, width=8.6, height=3.0)
        picture.scale(axis, "y", log_axis([us for values in known.values() for us in values], phase, format_us))
        axis.set_xlim(-0.5, len(MARKED) - 0.5)
        axis.set_xticks(range(len(MARKED)), [f"{name}\n{_spread(known[name], len(trials))}" for name in MARKED])
        axis.grid(visible=False, axis="x")
        for place, values in enumerate(known.values()):
            look = {**picture.marker(view), "alpha": 0.75}
            axis.plot(picture.apart(place, len(values)), values, **look)
        axis.set_title(f"{phase}, trial by trial: {view.name} {picture.verdict_text(view)}")
    figure.alt = f"{phase} of {view.name}, {view.verdict}, trial by trial. " + "; ".join(
        f"{name}: {', '.join(format_us(us) for us in known[name]) or 'too few samples'}" for name in MARKED
    )
    return figure


def _spread(values: list[float], trials: int) -> str:
    if len(values) < trials:
        return f"{len(values)} of {trials} trials"
    return f"highest / lowest = {max(values) / min(values):.3g}"


def _nines(longest: float) -> Axis:
    """An axis on which each further nine of the percentile has the same width."""
    high = max(longest, 10.0)
    ticks = [tick for tick in NINES if tick <= high * 1.05]
    return Axis("log", 1.0, high * 1.1, ticks, "percentile of grants", lambda tick: NINES[tick])
