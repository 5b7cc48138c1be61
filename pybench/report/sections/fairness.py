"""How evenly clients were served: Jain's index, and the longest wait of any."""

from __future__ import annotations

from pybench.matrix.conditions import say_conditions
from pybench.numbers import format_count, format_ratio, format_us
from pybench.report.charts.curves import Measure, over_trials
from pybench.report.charts.grid import Charts, bars, charts_section, measure_figures, measure_table
from pybench.report.section import Section
from pybench.report.view import INVERSIONS, View

JAIN = over_trials(Measure("jain", "jain", "Jain's index", "index, 0 to 1", format_ratio, top=1.0))
LONGEST_WAIT = over_trials(Measure("wait", "longest_wait_us", "longest wait", "wait", format_us, scale="log"))
TABLE_ONLY = [
    Measure("spread", "wait_std_us", "wait, standard deviation", "wait", format_us),
    Measure("streak", "longest_streak", "longest streak of one client", "grants", format_count),
    Measure("overtakes", "overtakes", "overtakes", "overtakes", format_count),
]
QUEUES_ONLY = Measure("inversions", INVERSIONS, "FIFO inversions, warm-up too", "inversions", format_count)


def render(view: View) -> Section:
    """Jain's index and the longest wait of every cell."""
    shared = [cell for cell in view.cells if not cell.unsafe and cell.number("jain") is not None]
    least = min(shared, key=lambda cell: cell.number("jain") or 0.0, default=None)
    lede = "Jain's index over clients: 1 when all had the same number of grants, 1/n when one of n had them all."
    if least is not None and (least.number("jain") or 0) < 0.95:
        where = say_conditions(least.conditions)
        lede += f" The least even was {least.series.label}{f' with {where}' if where else ''}: "
        lede += f"{format_ratio(least.number('jain'))}."
    lede += bars(view)
    lede += " Of the longest wait the point is that of all trials." if bars(view) else ""
    lede += _order(view)
    measures = [JAIN, LONGEST_WAIT]
    # Most runs have no lock with a queue.
    behind = TABLE_ONLY + [QUEUES_ONLY] * any(cell.number(INVERSIONS) is not None for cell in view.cells)
    charts = Charts(
        id="fairness",
        title="Fairness",
        lede=lede,
        figures=measure_figures(view, measures, "fairness"),
        columns=2,
        tables=[measure_table(view, measures + behind, "Fairness")],
    )
    return charts_section(view, charts)


def _order(view: View) -> str:
    """How often each lock with a queue served out of its order, where it did so most, as a sentence to append."""
    most: dict[str, float] = {}
    for cell in view.cells:
        inversions = cell.number(INVERSIONS)
        if inversions is not None:
            most[cell.series.label] = max(inversions, most.get(cell.series.label, 0.0))
    if not most:
        return ""
    told = ", ".join(f"{label} {format_count(inversions)}" for label, inversions in most.items())
    return (
        " A FIFO inversion is a grant to a client that had a place in the queue and was passed by one that came later. "
        f"A trial of the cell with the most had: {told}."
    )
