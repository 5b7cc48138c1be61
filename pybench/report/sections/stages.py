"""Loads in stages: offered load, grants/s, p50 and p99 above each other over the window, a panel for each load.

Each line is the median over the trials of a lock. The table has the same figures for each stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pybench.formats import Format
from pybench.matrix.conditions import Conditions, say_conditions
from pybench.matrix.stages import Stages, recorded_stages
from pybench.numbers import NOT_AVAILABLE, format_count, format_us
from pybench.report.charts.axes import Axis, linear_axis, log_axis
from pybench.report.charts.curves import cell_stroke, cell_trace, plot_text, symbol, top_of
from pybench.report.charts.grid import Charts, cell_row, charts_section, datum
from pybench.report.charts.stacked import stacked
from pybench.report.section import DataRow, DataTable, Datum, Figure, Section
from pybench.report.sections.timeline import middles, time_axis, whole_steps
from pybench.report.view import CellView, View

# Points of the whole section. With more, steps are averaged, so that the report of any run stays small.
POINTS = 20_000
# Pixels of the parts of a panel; the title of each part stands in the room above it.
OFFERED_HEIGHT, PART_HEIGHT = 80, 124
NOTE = (
    "A line is the median over the trials of a lock. A step with fewer than 20 grants has no p50, and one with fewer "
    "than 1,000 has no p99."
)


@dataclass(frozen=True, slots=True)
class _Measure:
    """A column of the medians, as a part of a panel."""

    column: str
    title: str
    text: Callable[[float | None], str]
    is_latency: bool = False


P99 = _Measure("p99_us", "p99 response", format_us, is_latency=True)
MEASURES = (
    _Measure("grants_per_s", "grants/s", Format.RATE.text),
    _Measure("p50_us", "p50 response", format_us, is_latency=True),
    P99,
)


@dataclass(frozen=True, slots=True)
class _Load:
    """The cells of one load in stages, and the medians of those that have a time line."""

    title: str
    stages: Stages
    cells: Sequence[CellView]
    medians: dict[str, pd.DataFrame]

    @property
    def drawn(self) -> list[CellView]:
        return [cell for cell in self.cells if cell.id in self.medians]

    @property
    def offered(self) -> pd.Series:
        """The offered load by the beginning of each step, which is the same for all locks."""
        offered: pd.Series = pd.concat([self.medians[cell.id]["offered"] for cell in self.drawn])
        return offered.groupby(level=0).median()

    @property
    def measures(self) -> list[_Measure]:
        """The measures that some lock has in some step."""
        return [one for one in MEASURES if any(rows[one.column].notna().any() for rows in self.medians.values())]

    @property
    def step_ns(self) -> float:
        return float(self.medians[self.drawn[0].id]["step_ns"].iloc[0])


def render(view: View) -> Section | None:
    """A panel for each load in stages; None for a run without stages, or without a whole step."""
    loads = [load for load in _loads(view) if load.drawn]
    if not loads:
        return None
    width = -(-sum(len(rows) * len(MEASURES) for load in loads for rows in load.medians.values()) // POINTS)
    loads = [_coarser(load, width) for load in loads]
    averaged = f" Here {width} steps are averaged into one point." if width > 1 else ""
    charts = Charts(
        id="stages",
        title="Load in stages",
        lede=f"The load that the generator offered, and below it what the locks granted in the same seconds.{averaged}",
        figures=[_panel(view, load, f"stages-{place}") for place, load in enumerate(loads)],
        note=NOTE if any(P99 in load.measures for load in loads) else f"{NOTE} Here no step has a p99.",
        tables=[DataTable("Figures by stage", ["offered", *_TABLE], [row for load in loads for row in _rows(load)])],
        nav="Stages",
    )
    return charts_section(charts)


def _loads(view: View) -> Iterator[_Load]:
    medians = _medians(view)
    for conditions, cells in view.panels():
        by_stages: dict[str, list[CellView]] = {}
        for cell in cells:
            by_stages.setdefault(str(cell.row.get("stages")), []).append(cell)
        for text, alike in by_stages.items():
            stages = recorded_stages(text)
            if stages:
                own = {cell.id: medians[cell.id] for cell in alike if cell.id in medians}
                yield _Load(_title(conditions, text), stages, alike, own)


def _title(conditions: Conditions, text: str) -> str:
    told = say_conditions(conditions)
    return told if any(axis == "stages" for axis, _ in conditions) else ", ".join(filter(None, [told, text]))


def _medians(view: View) -> dict[str, pd.DataFrame]:
    """For each cell with stages the medians over its trials, by the beginning of each step."""
    if "offered" not in view.run.timeline:
        return {}
    steps = whole_steps(view)
    steps = steps[steps["offered"].notna()]
    figures = ["offered", "grants", "p50_ns", "p99_ns", "step_ns"]
    found = {}
    for cell, rows in steps.groupby("cell", sort=False):
        medians = rows.astype(dict.fromkeys(figures, "float64")).groupby("start_ns", sort=True)[figures].median()
        medians["grants_per_s"] = medians["grants"] / medians["step_ns"] * 1e9
        medians["p50_us"], medians["p99_us"] = medians["p50_ns"] / 1e3, medians["p99_ns"] / 1e3
        found[str(cell)] = medians
    return found


def _coarser(load: _Load, width: int) -> _Load:
    """`load` with `width` steps averaged into one."""
    if width == 1:
        return load
    block_ns = int(load.step_ns) * width
    medians = {}
    for cell, rows in load.medians.items():
        averaged = rows.groupby((rows.index // block_ns) * block_ns).mean()
        medians[cell] = averaged.assign(step_ns=float(block_ns))
    return _Load(load.title, load.stages, load.cells, medians)


def _panel(view: View, load: _Load, id_: str) -> Figure:
    end_s = float((load.offered.index.max() + load.step_ns) / 1e9)
    unit = "arrivals/s" if load.stages.is_open else "clients"
    offered = linear_axis([load.stages.highest], f"{unit} offered", format_count)
    measures = load.measures
    axes = [offered, *(_axis(view, load, measure) for measure in measures)]
    heights = [OFFERED_HEIGHT] + [PART_HEIGHT] * len(measures)
    stack = stacked(time_axis(end_s), list(zip(axes, heights, strict=True)))
    suffixes = stack.suffixes
    data = [_area(load, unit, suffixes[0])]
    for measure, suffix in zip(measures, suffixes[1:], strict=True):
        data += [_line(cell, load.medians[cell.id], measure, suffix) for cell in load.drawn]
    missing = [cell.line.label for cell in load.cells if cell.id not in load.medians]
    return Figure(id_, load.title, _alt(load, unit), data, stack.layout, stack.height, missing=missing)


def _axis(view: View, load: _Load, measure: _Measure) -> Axis:
    """The axis of a part, as high as the locks that may be used need."""
    values = {cell: load.medians[cell.id][measure.column].dropna() for cell in load.drawn}
    if measure.is_latency:
        return log_axis([float(one) for some in values.values() for one in some], measure.title, format_us)
    tops = {cell: float(some.max()) for cell, some in values.items() if len(some)}
    return linear_axis([top_of(view, tops)], measure.title, format_count)


def _area(load: _Load, unit: str, suffix: str) -> dict[str, Any]:
    offered = load.offered
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "offered",
        "x": middles(offered.index, load.step_ns),
        "y": [_short(value) for value in offered],
        "yaxis": f"y{suffix}",
        "fill": "tozeroy",
        "fillcolor": "var(--line-strong)",
        "line": {"color": "var(--ink-soft)", "width": 1.5},
        "customdata": [f"{Format.RATE.text(value)} {unit}" for value in offered],
        "hovertemplate": "offered: %{customdata}<extra></extra>",
    }


def _line(cell: CellView, rows: pd.DataFrame, measure: _Measure, suffix: str) -> dict[str, Any]:
    """A line with gaps where a step has no figure, and the marker of the lock at its end."""
    values = [None if pd.isna(value) else float(value) for value in rows[measure.column]]
    last = max((place for place, value in enumerate(values) if value is not None), default=-1)
    return cell_trace(cell) | {
        # A figure between two gaps has no line, and is seen by its marker.
        "mode": "lines+markers",
        "x": middles(rows.index, float(rows["step_ns"].iloc[0])),
        "y": [None if value is None else _short(value) for value in values],
        "yaxis": f"y{suffix}",
        "line": cell_stroke(cell),
        "marker": {
            "color": cell.line.colour,
            "size": [7 if place == last else 2 for place in range(len(values))],
            "symbol": symbol(cell),
            "line": {"width": 0},
        },
        "customdata": [measure.text(value) for value in values],
        "hovertemplate": f"%{{fullData.name}}: {plot_text(measure.title)} %{{customdata}}<extra></extra>",
    }


def _alt(load: _Load, unit: str) -> str:
    parts = []
    for cell in load.drawn:
        spreads = (f"{measure.title} {_spread(load.medians[cell.id][measure.column], measure)}" for measure in MEASURES)
        verdict = "" if cell.verdict == "SAFE" else f" {cell.verdict}"
        parts.append(f"{cell.line.label}{verdict}: {', '.join(spreads)}")
    stages = ", ".join(load.stages.stage_texts)
    return f"Offered load in {unit}, {stages}; grants/s, p50 and p99 over the same time. {'; '.join(parts)}."


def _spread(values: pd.Series, measure: _Measure) -> str:
    known = values.dropna()
    if known.empty:
        return NOT_AVAILABLE
    return f"{measure.text(float(known.min()))} to {measure.text(float(known.max()))}"


_TABLE = ("grants/s", "p50 of the median step", "p99 of the slowest step")


def _rows(load: _Load) -> Iterator[DataRow]:
    """The figures of each stage of each cell; a step belongs to the stage in which its middle lies."""
    for cell in load.drawn:
        rows = load.medians[cell.id]
        middle_ns = rows.index + rows["step_ns"] / 2
        begin_ns = 0
        for stage, text in zip(load.stages.stages, load.stages.stage_texts, strict=True):
            end_ns = begin_ns + stage.length_ns
            within = rows[(middle_ns >= begin_ns) & (middle_ns < end_ns)]
            begin_ns = end_ns
            if not within.empty:
                where = " · ".join(filter(None, [say_conditions(_other_conditions(cell)), text]))
                yield cell_row(cell, where, _figures(within))


def _other_conditions(cell: CellView) -> Conditions:
    return cell.without("stages", "concurrency", "rate_per_s")


def _figures(steps: pd.DataFrame) -> list[Datum]:
    p50, p99 = steps["p50_us"].dropna(), steps["p99_us"].dropna()
    quantiles = ((p50, p50.median()), (p99, p99.max()))
    return [
        datum(float(steps["offered"].mean()), Format.RATE.text),
        datum(float(steps["grants_per_s"].mean()), Format.RATE.text),
        *(datum(float(one) if len(known) else None, format_us) for known, one in quantiles),
    ]


def _short(value: float) -> float:
    return float(f"{value:.4g}")
