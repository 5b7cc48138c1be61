"""The herd: commands in each 10 ms of at most half a second, a part for each lock, in runs that vary the retry policy.

Clients that were refused together and wait equally long ask together again: their commands come in bursts, which a
random wait spreads. Steps in which nothing was sent are left out of all figures, for there the load generator stood
still.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pybench.formats import Format
from pybench.numbers import format_count
from pybench.report import details
from pybench.report.charts.axes import Axis, whole_axis
from pybench.report.charts.curves import cell_stroke, cell_trace
from pybench.report.charts.grid import Charts, cell_table, charts_section, datum
from pybench.report.charts.stacked import stacked
from pybench.report.section import Datum, Figure, Section
from pybench.report.sections.timeline import middles
from pybench.report.view import CellView, View

STEP_NS = 10_000_000
PIECE = 50
"""The steps of the piece that is drawn: half a second, or a whole shorter trial."""
SHOWN_LINES = 8
"""Parts of a panel; a run with more locks has the others in its table."""
PART_HEIGHT = 56
SPREAD = 3.0
"""How many standard deviations above their mean the busiest of some hundred independent steps is."""
HERD = 1.5
"""Bursts so many times as high as those of independent clients are called a herd."""


@dataclass(frozen=True, slots=True)
class Bursts:
    """The commands of a cell in the steps in which any were sent: medians over its trials."""

    mean: float
    ratio: float
    """How many times the mean the busiest step of a trial is."""
    piece: list[int]
    """Half a second of the trial with the median mean, or all of a shorter one."""

    @property
    def independent(self) -> float:
        """The ratio of clients that ask independently of each other: that of a Poisson distribution."""
        return 1 + SPREAD / math.sqrt(self.mean)

    @property
    def is_herd(self) -> bool:
        """Whether the clients ask together."""
        return self.ratio > HERD * self.independent


def render(view: View) -> Section | None:
    """A panel for each load; None unless the run varies the retry policy."""
    if "retry" not in view.axes or view.run.commands.empty:
        return None
    found = {cell.id: bursts for cell in details.detailed(view) if (bursts := bursts_of(view, cell)) is not None}
    figures = [
        _panel(title, cells[:SHOWN_LINES], found, f"herd-{place}")
        for place, (title, cells) in enumerate(details.panels(view, found))
    ]
    if not figures:
        return None

    def row(cell: CellView) -> list[Datum] | None:
        one = found.get(cell.id)
        if one is None:
            return None
        return [
            datum(one.mean, format_count),
            datum(one.ratio, Format.RATIO.text),
            datum(one.independent, Format.RATIO.text),
        ]

    columns = ["mean", "busiest / mean", "if clients were independent"]
    charts = Charts(
        id="herd",
        title="Herd",
        lede=_lede(view, found) + details.only_some(view),
        figures=figures,
        note="Figures are medians over trials. Steps without a command are left out of them. Each part has its own "
        "scale.",
        tables=[cell_table(view, "Commands per 10 ms", columns, row)],
    )
    return charts_section(charts)


def bursts_of(view: View, cell: CellView) -> Bursts | None:
    """The bursts of `cell`; None where no trial sent a command, or where its steps are longer than 10 ms."""
    commands = view.run.commands
    rows = details.of_complete_trials(view, commands[commands["cell"] == cell.id])
    trials = [np.asarray(steps, dtype=np.int64) for steps in rows.loc[rows["step_ns"] == STEP_NS, "commands"]]
    sent = [steps[steps > 0] for steps in trials if steps.any()]
    if not sent:
        return None
    means = [float(steps.mean()) for steps in sent]
    ratios = [float(steps.max()) / mean for steps, mean in zip(sent, means, strict=True)]
    return Bursts(float(np.median(means)), float(np.median(ratios)), _typical(trials))


def _typical(trials: Sequence[NDArray[np.int64]]) -> list[int]:
    """The piece with the median number of commands, among those with the fewest empty steps, of the median trial."""
    trial = sorted(trials, key=lambda steps: float(steps.mean()))[len(trials) // 2]
    pieces = [trial[start : start + PIECE] for start in range(0, max(len(trial) - PIECE, 0) + 1, 10)]
    least = min(int((piece == 0).sum()) for piece in pieces)
    full = sorted((piece for piece in pieces if (piece == 0).sum() == least), key=lambda piece: int(piece.sum()))
    return [int(count) for count in full[len(full) // 2]]


def _panel(title: str, cells: Sequence[CellView], found: dict[str, Bursts], id_: str) -> Figure:
    parts = [(_y_axis(cell, found[cell.id]), PART_HEIGHT) for cell in cells]
    length = max(len(found[cell.id].piece) for cell in cells)
    stack = stacked(whole_axis(length * STEP_NS / 1e6, "ms", format_count), parts)
    data = []
    for cell, suffix in zip(cells, stack.suffixes, strict=True):
        piece = found[cell.id].piece
        data.append(
            cell_trace(cell)
            | {
                "mode": "lines",
                "x": [round(at * 1e3) for at in middles([n * STEP_NS for n in range(len(piece))], STEP_NS)],
                "y": piece,
                "yaxis": f"y{suffix}",
                "line": {**cell_stroke(cell, 1.5), "shape": "hvh"},
                "fill": "tozeroy",
                "hovertemplate": "%{fullData.name}: %{y} commands<extra></extra>",
            }
        )
    told = "; ".join(f"{cell.line.label}: {_told(found[cell.id])}" for cell in cells)
    alt = f"Commands per 10 ms in {length * STEP_NS / 1e6:.0f} ms{', ' + title if title else ''}. {told}."
    return Figure(id_, title, alt, data, stack.layout, stack.height)


def _y_axis(cell: CellView, bursts: Bursts) -> Axis:
    top = max(bursts.piece)
    title = f"{cell.line.label}, {_told(bursts)}"
    return Axis("linear", 0.0, max(top * 1.1, 1.0), [0, top], title, format_count)


def _told(bursts: Bursts) -> str:
    return f"mean {format_count(bursts.mean)}, busiest {Format.RATIO.text(bursts.ratio)} times that"


def _lede(view: View, found: dict[str, Bursts]) -> str:
    lede = (
        "Commands that all clients together send per 10 ms, in up to half a second of a typical trial. Clients that "
        "are refused together and wait equally long ask together again: a herd."
    )
    herds = [cell for cell in view.cells if cell.id in found and found[cell.id].is_herd]
    if not herds:
        return f"{lede} Here none does: no busiest step is {HERD:g} times as high as that of independent clients."
    first = max(herds, key=lambda cell: found[cell.id].ratio)
    worst = found[first.id]
    return (
        f"{lede} The largest is that of {first.name}: in its busiest 10 ms it sends {Format.RATIO.text(worst.ratio)} "
        f"times its mean; independent clients would send about {Format.RATIO.text(worst.independent)} times."
    )
