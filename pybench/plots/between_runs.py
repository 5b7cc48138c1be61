"""Two runs beside each other: the ratio of a figure in each cell, and the trials that it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pybench.analysis.between_runs import CellChange, Effect, FigureChange, RunChanges
from pybench.analysis.verdicts import Verdict
from pybench.errors import InputError
from pybench.plots import measures, picture
from pybench.plots.beside import ROW, rows, told
from pybench.report.changes_words import cell_effect, ratio_text, written
from pybench.report.charts.axes import Axis
from pybench.report.charts.curves import Measure
from pybench.report.html import VERDICT_SYMBOLS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pybench.records import Run

OFFSETS = (10, 135)
_TICKS = (
    (1.3, (0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25)),
    (2.2, (0.5, 0.67, 0.8, 1, 1.25, 1.5, 2)),
    (12.0, (0.1, 0.2, 0.5, 1, 2, 5, 10)),
    (float("inf"), (0.001, 0.01, 0.1, 1, 10, 100, 1000)),
)
"""Ratios that are marked, up to this reach of the axis."""
_EFFECTS = {
    Effect.FASTER: "--safe",
    Effect.LESS: "--safe",
    Effect.SLOWER: "--unsafe",
    Effect.MORE: "--unsafe",
    Effect.SAME: "--ink-soft",
    Effect.UNKNOWN: "--undecided",
}


def ratios(changes: RunChanges, column: str = "grants_per_s") -> picture.Picture:
    """The ratio of the new figure to the old one with its interval, a row for each cell; the band counts as the same.

    Raises InputError where the runs have no cell in common, or for a figure that is not compared.
    """
    if not changes.cells:
        raise InputError(changes.headline, hint="compare runs of the same matrix")
    found = [(one, one.figure(column)) for one in changes.cells]
    figures = [change.figure for _, change in found if change is not None]
    if not figures:
        raise InputError(f"no cell of these runs is compared by {column}", hint="docs/compare.md lists the figures")
    known = [change.ratio for _, change in found if change is not None and change.ratio is not None]
    band = 1 + figures[0].test.band
    ends = [end for ratio in known for end in (ratio.low, ratio.high)]
    reach = max([*(max(end, 1 / end) for end in ends), band**2]) * 1.04
    with picture.theme():
        figure, (axis,) = picture.panels(1, columns=1, width=8.6, height=0.95 + ROW * len(found))
        _ratio_axis(axis, reach)
        axis.axvspan(1 / band, band, color=picture.colour("--line"), zorder=0)
        axis.axvline(1, color=picture.colour("--line-strong"), linewidth=1)
        rows(axis, [_name(one) for one, _ in found])
        for place, (one, change) in enumerate(found):
            _row(axis, place, one, change)
        axis.set_title(f"{figures[0].title}: new / old")
    figure.alt = f"{figures[0].title}, new / old. " + "; ".join(_said(one, change) for one, change in found)
    return figure


def _row(axis: Axes, place: int, one: CellChange, change: FigureChange | None) -> None:
    if change is None or change.ratio is None:
        told(axis, place, ["n/a", cell_effect(one)], picture.colour("--ink-soft"), OFFSETS)
        return
    ink = picture.colour(_EFFECTS[change.effect])
    axis.plot([change.ratio.low, change.ratio.high], [place] * 2, color=ink, linewidth=2.2, alpha=0.55)
    axis.plot([change.ratio.value], [place], "o", color=ink, markersize=7)
    told(axis, place, [ratio_text(change), change.effect.value], ink, OFFSETS)


def _name(one: CellChange) -> str:
    """The lock and its load, with the verdict of the new run where it is not SAFE."""
    return one.name if one.new_verdict is Verdict.SAFE else f"{one.name} {VERDICT_SYMBOLS[one.new_verdict]}"


def _said(one: CellChange, change: FigureChange | None) -> str:
    if change is None or change.ratio is None:
        return f"{one.name}: {cell_effect(one)}"
    figures = f"{written(change, change.old)} to {written(change, change.new)}"
    return f"{one.name}: {figures}, ratio {ratio_text(change)}, {change.effect.value}"


def _ratio_axis(axis: Axes, reach: float) -> None:
    """A logarithmic axis around 1, on which half and double are equally far away."""
    steps = next(ticks for most, ticks in _TICKS if reach <= most)
    inside = [step for step in steps if 1 / reach <= step <= reach]
    title = "ratio; grey: the band that counts as the same"
    picture.scale(axis, "x", Axis("log", 1 / reach, reach, inside, title, lambda step: f"{step:g}"))


def trials(old: Run, new: Run, changes: RunChanges, column: str = "grants_per_s") -> picture.Picture:
    """The trials of both runs, a panel for each cell whose figures are compared: how far the two sets lie apart."""
    measure = measures.measure_of(column)
    compared = [one for one in changes.cells if one.figures]
    if not compared:
        raise InputError("no cell of these runs is compared", hint="compare runs of the same matrix")
    with picture.theme():
        figure, axes = picture.panels(len(compared), columns=4, width=2.3, height=2.1)
        for axis, one in zip(axes, compared, strict=True):
            sets = [_values(old, one.old_cell, column), _values(new, one.new_cell, column)]
            _beside(axis, sets, measure)
            axis.set_title(f"{one.lock}\n{one.load}".strip(), fontsize=9)
    figure.alt = f"{measure.title}, trial by trial. " + "; ".join(
        f"{one.name}: old {_range(_values(old, one.old_cell, column), measure)}, "
        f"new {_range(_values(new, one.new_cell, column), measure)}"
        for one in compared
    )
    return figure


def _beside(axis: Axes, sets: Sequence[Sequence[float]], measure: Measure) -> None:
    picture.scale(axis, "y", measures.axis_of(measure, [measures.Value(one, "") for values in sets for one in values]))
    axis.set_ylabel("")
    for place, (values, ink) in enumerate(zip(sets, ("--ink-soft", "--series-0"), strict=True)):
        xs = picture.apart(place, len(values))
        axis.plot(xs, values, "o", color=picture.colour(ink), markersize=5, alpha=0.8, clip_on=False)
    axis.set_xlim(-0.5, 1.5)
    axis.set_xticks([0, 1], ["old", "new"])
    axis.grid(visible=False, axis="x")


def _values(run: Run, cell: str, column: str) -> list[float]:
    rows_ = run.trials[(run.trials["cell"] == cell) & (run.trials["status"] == "complete")]
    return [float(value) for value in rows_[column].dropna()]


def _range(values: Sequence[float], measure: Measure) -> str:
    return f"{measure.text(min(values))} to {measure.text(max(values))}" if values else measure.text(None)
