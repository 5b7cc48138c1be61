"""The run over time: grants in each step of the window, one thin line for each trial."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

import pandas as pd

from pybench.formats import Format
from pybench.matrix.conditions import Conditions, say_conditions
from pybench.matrix.durations import format_duration
from pybench.numbers import format_count
from pybench.report.charts.axes import Axis, linear_axis, whole_axis
from pybench.report.charts.curves import MARGIN, cell_stroke, cell_trace, symbol, top_of
from pybench.report.charts.grid import Charts, cell_table, charts_section, datum
from pybench.report.charts.stacked import stacked
from pybench.report.section import DataTable, Datum, Figure, Section
from pybench.report.sections import faults, telemetry
from pybench.report.view import CellView, View

# The step of a window of up to five minutes, and the time for which grants are given.
STEP_NS = 100_000_000
# Points of the whole section. With more, steps are averaged, so that the report of any run stays small.
POINTS = 40_000
# The opacity of the lines of trials beside the line of their median.
FAINT = 0.25
GRANTS_HEIGHT = 180
BELOW = " Below, over the same time, what servers and machine did, sampled ten times a second: medians over trials."
SHADED = " Shaded: faults that were caused on purpose."
MEDIANS = (
    "A thick line is the median over the trials of a lock. Point at a line, or at a name in the legend, to highlight "
    "the trials of that lock."
)


def render(view: View) -> Section | None:
    """Grants per step of every trial, a panel for each load; None where no window had a whole step."""
    steps = per_100_ms(view)
    if steps.empty:
        return None
    medians = steps.drop_duplicates(["cell", "start_ns"])
    width = -(-(len(steps) + len(medians)) // POINTS)
    by_cell = {str(cell): rows for cell, rows in _coarser(steps, width).groupby("cell", sort=False)}
    watched = telemetry.medians(view)
    figures = [
        _panel(view, conditions, cells, (by_cell, watched), f"timeline-{place}")
        for place, (conditions, cells) in enumerate(view.panels())
        if any(cell.id in by_cell for cell in cells)
    ]
    averaged = f" Here {width} steps are averaged into one point." if width > 1 else ""
    longest = steps["step_ns"].max()
    if longest > STEP_NS:
        averaged = f" Steps of a long window take up to {format_duration(int(longest))}.{averaged}"
    charts = Charts(
        id="timeline",
        title="Over time",
        lede="Grants per 100 ms in each whole step of the measured window, one thin line for each trial. A steady lock "
        f"is flat; a stall drops to zero.{SHADED if len(view.run.faults) else ''}{averaged}{BELOW if watched else ''}",
        figures=figures,
        note=MEDIANS if view.run.trials["trial"].nunique() > 1 else "",
        tables=[_table(view, by_cell)],
    )
    return charts_section(charts)


def per_100_ms(view: View) -> pd.DataFrame:
    """`whole_steps`, with the mean `grants` of each 100 ms where a step of a long window is longer."""
    steps = whole_steps(view)
    steps["grants"] = steps["grants"] * (STEP_NS / steps["step_ns"])
    return steps


def whole_steps(view: View) -> pd.DataFrame:
    """The time line without steps that the end of a window cut off: half a step would look like a stall.

    Each step has its length as `step_ns`, which is longer than 100 ms in a long window.
    """
    windows = view.run.trials.set_index(["cell", "trial"])["window_s"].rename("window")
    # Where no step is joined, pandas keeps the keys as the index.
    steps = view.run.timeline.join(windows, on=["cell", "trial"], how="inner").reset_index(drop=True)
    steps["step_ns"] = step_lengths_ns(steps)
    # A float holds the length of a window less precisely than the nanoseconds it was measured in.
    whole = steps["start_ns"] + steps["step_ns"] <= steps["window"] * 1e9 + 1_000
    return steps[whole].drop(columns="window").reset_index(drop=True).sort_values(["cell", "trial", "start_ns"])


def step_lengths_ns(steps: pd.DataFrame) -> pd.Series:
    """The length of each of `steps`: the smallest distance of two within its trial, 100 ms where it has one step."""
    ordered, trial = steps.sort_values("start_ns"), ["cell", "trial"]
    ordered["step_ns"] = ordered.groupby(trial, sort=False)["start_ns"].diff()
    smallest = ordered.groupby(trial, sort=False)["step_ns"].transform("min")
    return smallest.reindex(steps.index).fillna(STEP_NS).astype("int64")


def _coarser(steps: pd.DataFrame, width: int) -> pd.DataFrame:
    """`steps`, `width` of them averaged into one within each trial."""
    if width == 1:
        return steps
    block = (steps["start_ns"] // (steps["step_ns"] * width)).rename("block")
    means = steps.groupby([steps["cell"], steps["trial"], block], sort=True).agg(
        start_ns=("start_ns", "first"), grants=("grants", "mean"), step_ns=("step_ns", "first")
    )
    return means.reset_index()


def _panel(
    view: View,
    conditions: Conditions,
    cells: Sequence[CellView],
    frames: tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame]],
    id_: str,
) -> Figure:
    by_cell, watched = frames
    drawn = [cell for cell in cells if cell.id in by_cell]
    traces = [_traces(cell, by_cell[cell.id]) for cell in drawn]
    # All thin lines are drawn first, so that they lie below the medians.
    data = [trace for layer in zip_longest(*traces) for trace in layer if trace is not None]
    shown = [by_cell[cell.id] for cell in drawn]
    x = time_axis(max(float((rows["start_ns"] + rows["step_ns"]).max()) for rows in shown) / 1e9)
    title = say_conditions(conditions)
    ranges = "; ".join(f"{cell.line.label}: {_spread(cell, by_cell[cell.id])}" for cell in drawn)
    alt = f"Grants per 100 ms over time{', ' + title if title else ''}. {ranges}."
    y, parts = _y_axis(view, drawn, by_cell), telemetry.parts_of(drawn, watched)
    missing = [one.line.label for one in cells if one.id not in by_cell]
    harmed = faults.spans(view, drawn)
    shapes = {"shapes": faults.shading(harmed)} if harmed else {}
    alt += faults.told(harmed)
    if not parts:
        layout = {"xaxis": x.layout(), "yaxis": y.layout(), "margin": MARGIN, **shapes}
        return Figure(id_, title, alt, data, layout, missing=missing)
    below = [(telemetry.axis_of(part, drawn, watched), telemetry.PART_HEIGHT) for part in parts]
    stack = stacked(x, [(y, GRANTS_HEIGHT), *below])
    data = [trace | {"yaxis": f"y{stack.suffixes[0]}"} for trace in data]
    for part, suffix in zip(parts, stack.suffixes[1:], strict=True):
        data += [_watched(cell, watched[cell.id], part, suffix) for cell in drawn if cell.id in watched]
    alt += f" Below: {', '.join(part.title for part in parts)}."
    return Figure(id_, title, alt, data, stack.layout | shapes, stack.height, missing=missing)


def _watched(cell: CellView, rows: pd.DataFrame, part: telemetry.Part, suffix: str) -> dict[str, Any]:
    """A line below the grants; a step without a figure is a gap."""
    steps = pd.DataFrame({"cell": cell.id, "trial": 0, "start_ns": rows.index})
    values = [None if pd.isna(value) else float(f"{value:.3g}") for value in rows[part.column]]
    return cell_trace(cell) | {
        "mode": "lines",
        "x": middles(rows.index, float(step_lengths_ns(steps).iloc[0])),
        "y": values,
        "yaxis": f"y{suffix}",
        "line": cell_stroke(cell, 1.5),
        "hovertemplate": "%{fullData.name}: %{y}<extra></extra>",
    }


def time_axis(end_s: float) -> Axis:
    """The seconds of a window that ends at `end_s`."""
    return whole_axis(end_s, "seconds into the window", lambda value: f"{value:g}")


def _y_axis(view: View, cells: Sequence[CellView], by_cell: dict[str, pd.DataFrame]) -> Axis:
    """As high as the locks that may be used need."""
    tops = {cell: float(by_cell[cell.id]["grants"].max()) for cell in cells}
    return linear_axis([top_of(view, tops)], "grants per 100 ms", format_count)


def _traces(cell: CellView, rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Thin lines, one for each trial; the line of their median; a marker at its end, alone where there is one step.

    Nobody can follow twenty thin lines, so the lines of several trials are faint behind their median.
    """
    xs: list[float | None] = []
    ys: list[float | None] = []
    step_ns = float(rows["step_ns"].iloc[0])
    by_trial: dict[int, list[tuple[float, float]]] = {}
    grants_at: dict[float, list[float]] = {}
    for trial, start, grants in zip(*(rows[name].tolist() for name in ("trial", "start_ns", "grants")), strict=True):
        by_trial.setdefault(trial, []).append((start, grants))
        grants_at.setdefault(start, []).append(grants)
    for _, steps in sorted(by_trial.items()):
        xs += [*middles((start for start, _ in steps), step_ns), None]
        ys += [*_short(grants for _, grants in steps), None]
    starts = sorted(grants_at)
    x, y = middles(starts, step_ns), _short(statistics.median(grants_at[start]) for start in starts)
    several = len(by_trial) > 1
    trace = cell_trace(cell)
    hover = {
        "customdata": [format_count(count) for count in y],
        "hovertemplate": f"%{{fullData.name}}{', median' if several else ''}: %{{customdata}}<extra></extra>",
    }
    thin = cell_stroke(cell, 1) | ({"dash": "solid"} if several else {})
    trials = trace | {"mode": "lines", "x": xs, "y": ys, "line": thin, "opacity": FAINT if several else 0.85}
    trials |= {"hoverinfo": "skip"} if several else hover
    median = trace | {"mode": "lines", "x": x, "y": y, "line": cell_stroke(cell), **hover}
    mark = {"color": cell.line.colour, "size": 7, "symbol": symbol(cell)}
    end = trace | {"mode": "markers", "x": x[-1:], "y": y[-1:], "marker": mark, **hover}
    end["customdata"] = hover["customdata"][-1:]
    return ([trials] + [median] * several if len(x) > 1 else []) + [end]


def middles(starts: Iterable[float], step_ns: float) -> list[float]:
    """The middles in seconds of steps that begin at `starts` in nanoseconds: a step is drawn at its middle."""
    return [round((start + step_ns / 2) / 1e9, 3) for start in starts]


def _short(counts: Iterable[float]) -> list[float]:
    return [float(f"{count:.4g}") for count in counts]


def _spread(cell: CellView, rows: pd.DataFrame) -> str:
    grants = rows["grants"]
    spread = f"{format_count(float(grants.min()))} to {format_count(float(grants.max()))}"
    return spread if cell.verdict == "SAFE" else f"{spread} {cell.verdict}"


def _table(view: View, by_cell: dict[str, pd.DataFrame]) -> DataTable:
    def figures(cell: CellView) -> list[Datum] | None:
        if cell.id not in by_cell:
            return None
        grants = by_cell[cell.id]["grants"]
        counts = (grants.min(), grants.median(), grants.max(), (grants == 0).sum())
        return [datum(float(count), Format.COUNT.text) for count in counts]

    columns = ["fewest", "median", "most", "steps without a grant"]
    return cell_table(view, "Grants per 100 ms", columns, figures)
