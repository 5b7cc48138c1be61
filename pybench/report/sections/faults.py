"""The faults of a run: what was done, and the figures before, during and after."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pybench.columns import COLUMNS
from pybench.formats import Format
from pybench.matrix.durations import format_duration
from pybench.matrix.faults import recorded_faults
from pybench.numbers import plural
from pybench.records.fault_rows import PERIODS, QUANTILES, RATES
from pybench.records.parts import STEP_NS
from pybench.report.charts.grid import cell_table, datum
from pybench.report.html import fill
from pybench.report.section import DataTable, Datum, Section
from pybench.report.view import CellView, View

TITLES = {
    "unavailable_ms": "longest time without a grant",
    **{name: f"grants/s {period}" for name, period in zip(RATES, PERIODS, strict=True)},
    **{name: f"{name.split('_')[1]} {period}" for name, (period, _) in QUANTILES.items()},
    "time_to_free_ms": "time to free",
    "time_to_know_ms": "time to know",
}
SHOWN_ROWS = 40
"""A table with more rows is folded up."""
COLOUR = "var(--unsafe)"
OPACITY = 0.14
NOTE = (
    "During: while a fault was planned to last. After: later, while none lasts. Figures are medians over trials; the "
    "longest time without a grant, in steps of 100 ms from the first fault on, and the times to free and to know are "
    "the longest of all trials. Clients reconnect after pauses of 10 ms to 0.5 s, which are a part of that "
    "time. Time to free: from the crash or death of a holder to the next grant of its key, where "
    "a key has one holder at a time. Time to know: from the end of a lease until its holder noticed. Over time shows "
    "the faults as they were carried out."
)


def render(view: View) -> Section | None:
    """A row for each cell with faults; None in a run on healthy servers."""
    table = figures_table(view)
    if table is None:
        return None
    plans = dict.fromkeys(str(cell.row["faults"]) for cell in view.cells if has_faults(cell))
    planned = f"these faults were caused on purpose: {next(iter(plans))}"
    shown = planned if len(plans) == 1 else f"faults were caused on purpose, by {plural(len(plans), 'plan')}"
    lede = f"While the window was open, {shown}."
    html = fill("faults.html", lede=lede, table=table, shown=SHOWN_ROWS, note=NOTE)
    return Section("faults", "Faults", html)


def has_faults(cell: CellView) -> bool:
    """Whether faults were planned for `cell`."""
    return bool(recorded_faults(cell.row.get("faults")))


def figures_table(view: View) -> DataTable | None:
    """The figures of the cells with faults; None without any."""
    if not any(has_faults(cell) for cell in view.cells):
        return None
    done = _carried_out(view)
    # Short trials have no p99, and only crashes and lost leases have times to free and to know.
    names = [name for name in TITLES if any(cell.number(name) is not None for cell in view.cells)]

    def figures(cell: CellView) -> list[Datum] | None:
        if not has_faults(cell):
            return None
        shown = [datum(cell.number(name), COLUMNS[name].format.text) for name in names]
        carried, planned = done.get(cell.id, (0, 0))
        return [*shown, Datum(f"{carried} of {planned}", float(carried))]

    return cell_table(
        view, "Figures before, during and after the faults", [*(TITLES[name] for name in names), "carried out"], figures
    )


def _carried_out(view: View) -> dict[str, tuple[int, int]]:
    """For each cell how many faults of its trials were carried out without an error, and how many there are."""
    faults = view.run.faults
    done: dict[str, tuple[int, int]] = {}
    for cell, rows in faults.groupby("cell", sort=False):
        done[str(cell)] = int((rows["error"].isna() & rows["from_ns"].notna()).sum()), len(rows)
    return done


def failed(view: View) -> list[str]:
    """The errors of faults that could not be carried out, each once."""
    return list(dict.fromkeys(view.run.faults["error"].dropna()))


def overdue(view: View) -> list[str]:
    """The faults that lasted longer than planned, by a step of a chart or more, each with its longest time."""
    rows = view.run.faults
    if rows.empty or "planned_until_ns" not in rows.columns:
        return []
    rows = rows.dropna(subset=["from_ns", "until_ns", "planned_until_ns"])
    planned_ns, lasted_ns = rows["planned_until_ns"] - rows["planned_from_ns"], rows["until_ns"] - rows["from_ns"]
    # A fault of a moment has no planned length.
    late = rows.assign(planned_ns=planned_ns, lasted_ns=lasted_ns)[
        (planned_ns > 0) & (lasted_ns > planned_ns + STEP_NS)
    ]
    longest = late.groupby(["name", "planned_ns"], sort=False)["lasted_ns"].max().reset_index()
    return [
        f"{name} {Format.TIME_MS.text(lasted / 1e6)} instead of {format_duration(int(planned))}"
        for name, planned, lasted in longest.itertuples(index=False)
    ]


def spans(view: View, cells: Iterable[CellView]) -> list[tuple[float, float, str]]:
    """When each fault of `cells` was there over all trials: begin and end in seconds of the window, and its name."""
    faults = view.run.faults
    carried = faults[faults["cell"].isin({cell.id for cell in cells})].dropna(subset=["from_ns", "until_ns"])
    widest = carried.groupby(["name", "fault"]).agg({"from_ns": "min", "until_ns": "max"})
    return sorted((begin / 1e9, end / 1e9, name) for (name, _), begin, end in widest.itertuples())


def told(found: Iterable[tuple[float, float, str]]) -> str:
    """The shaded times of a chart for its text alternative."""
    return "".join(f" Shaded: {name} from {begin:.2f} s to {end:.2f} s." for begin, end, name in found)


def shading(found: Iterable[tuple[float, float, str]]) -> list[dict[str, Any]]:
    """Rectangles over the whole height of a chart over time."""
    return [
        {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "x0": round(begin, 3),
            "x1": round(end, 3),
            "y0": 0,
            "y1": 1,
            "layer": "below",
            "fillcolor": COLOUR,
            "opacity": OPACITY,
            # A fault of a moment has no width of its own.
            "line": {"width": 1, "color": COLOUR},
        }
        for begin, end, _ in found
    ]
