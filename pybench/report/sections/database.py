"""The database: what its sessions waited for, and what a grant cost it."""

from __future__ import annotations

from dataclasses import dataclass

from pybench.formats import Format
from pybench.matrix.conditions import say_conditions
from pybench.numbers import format_percent
from pybench.report.charts.grid import datum
from pybench.report.database_use import ORDER, DatabaseUse, database_use
from pybench.report.html import fill
from pybench.report.section import Datum, Section
from pybench.report.view import CellView, View

# Waits that are named below a bar; the record of the cell has all of them.
SHOWN_EVENTS = 3
LEAST_SHARE = 0.02
TITLES = ("WAL per grant", "commits per grant", "rollbacks", "deadlocks", "sessions", "CPU per grant")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar: which of `ORDER`, and its share of the whole in per cent."""

    place: int
    kind: str
    percent: float


@dataclass(frozen=True, slots=True)
class Row:
    """One cell."""

    cell: CellView
    where: str
    bar: list[Part]
    bar_text: str
    """The bar in words."""
    events: str
    figures: list[Datum]


def render(view: View) -> Section | None:
    """A row for each cell that used a database; None in a run without any."""
    used = database_use(view.run.trials)
    rows = [
        _row(cell, say_conditions(conditions), used[cell.id])
        for conditions, cells in view.facets()
        for cell in cells
        if cell.id in used
    ]
    if not rows:
        return None
    seen = {part.kind for row in rows for part in row.bar}
    kinds = [(place, kind) for place, kind in enumerate(ORDER) if kind in seen]
    html = fill("database.html", rows=rows, kinds=kinds, titles=TITLES, has_where=bool(view.axes))
    return Section("database", "The database", html, nav="Database")


def _row(cell: CellView, where: str, use: DatabaseUse) -> Row:
    bar = [Part(ORDER.index(kind), kind, round(100 * share, 2)) for kind, share in use.waits.items()]
    named = [event for event in list(use.events.items())[:SHOWN_EVENTS] if event[1] >= LEAST_SHARE]
    return Row(
        cell,
        where,
        bar,
        ", ".join(f"{kind} {format_percent(share)}" for kind, share in use.waits.items()) or "no session was sampled",
        ", ".join(f"{event} {format_percent(round(share, 2))}" for event, share in named),
        [
            datum(use.wal_bytes, Format.BYTES.text),
            datum(use.commits, Format.RATIO.text),
            datum(use.rollbacks, Format.COUNT.text),
            datum(use.deadlocks, Format.COUNT.text),
            datum(use.sessions, Format.COUNT.text),
            datum(use.cpu_us, Format.TIME_US.text),
        ],
    )
