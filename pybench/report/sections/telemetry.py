"""Telemetry in parts below a time line: CPU time of the servers, commands, and time that a host took away.

Each line is the median over the trials of a lock, all its servers together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from pybench.numbers import format_count
from pybench.report import details
from pybench.report.charts.axes import Axis, linear_axis
from pybench.report.view import CellView, View

PART_HEIGHT = 60
LEAST_STEAL = 0.05
"""Where less than so much of a core was taken away in every step, there is nothing to show."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a panel: a column of the telemetry."""

    column: str
    title: str


PARTS = (
    Part("cpu_share", "CPU of the servers, in cores"),
    Part("commands", "commands that the servers carried out per 100 ms"),
    Part("steal_share", "stolen by the host of this machine, in cores"),
)


def medians(view: View) -> dict[str, pd.DataFrame]:
    """The medians over the complete trials of each detailed cell, by the beginning of each step."""
    rows = view.run.telemetry
    wanted = [cell.id for cell in details.detailed(view)]
    rows = details.of_complete_trials(view, rows[rows["cell"].isin(wanted)])
    if rows.empty:
        return {}
    step, is_server = ["cell", "trial", "start_ns"], rows["server"].notna()
    by_step = rows[is_server].groupby(step, sort=False)[["cpu_share", "commands"]]
    # With one server unknown, the sum of the others would be too low.
    servers = by_step.sum().where(by_step.count().eq(by_step.size(), axis=0))
    machine = rows[~is_server].set_index(step)[["steal_share"]]
    joined = servers.join(machine, how="outer").reset_index()
    names = [part.column for part in PARTS]
    return {str(cell): of_cell.groupby("start_ns")[names].median() for cell, of_cell in joined.groupby("cell")}


def parts_of(cells: Sequence[CellView], found: Mapping[str, pd.DataFrame]) -> list[Part]:
    """The parts with something to show for any of `cells`."""
    known = [found[cell.id] for cell in cells if cell.id in found]

    def has(part: Part) -> bool:
        values = [one[part.column].dropna() for one in known]
        least = LEAST_STEAL if part.column == "steal_share" else 0.0
        return any(len(one) > 1 and float(one.max()) >= least for one in values)

    return [part for part in PARTS if has(part)]


def axis_of(part: Part, cells: Sequence[CellView], found: Mapping[str, pd.DataFrame]) -> Axis:
    """As high as the highest of `cells` needs, with a tick at its top."""
    top = max(float(found[cell.id][part.column].max()) for cell in cells if cell.id in found)
    axis = linear_axis([top], part.title, format_count)
    return Axis("linear", 0.0, axis.high, [0.0, axis.ticks[-1]], part.title, axis.text)
