"""The database: what its sessions waited for, and what a grant cost it."""

from __future__ import annotations

from dataclasses import dataclass

from pybench.matrix.conditions import say_conditions
from pybench.numbers import format_bytes, format_exact, format_percent, format_ratio, format_us
from pybench.report.database_use import ORDER, DatabaseUse, database_use
from pybench.report.html import fill
from pybench.report.section import Datum, Section
from pybench.report.view import CellView, View

# Waits that are named below a bar; all of them are in the cell's record.
SHOWN_EVENTS = 3
LEAST_SHARE = 0.02
TITLES = ("log a grant", "commits a grant", "rollbacks", "deadlocks", "sessions", "CPU a grant")


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
    told: str
    """The bar in words."""
    events: str
    figures: list[Datum]


def render(view: View) -> Section | None:
    """A row for each cell of which a database is a part; None in a run without any."""
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
        ", ".join(f"{kind} {format_percent(share)}" for kind, share in use.waits.items()) or "no session was seen",
        ", ".join(f"{event} {format_percent(round(share, 2))}" for event, share in named),
        [
            _datum(use.wal_bytes, format_bytes(use.wal_bytes)),
            _datum(use.commits, format_ratio(use.commits)),
            _datum(use.rollbacks, format_exact(use.rollbacks)),
            _datum(use.deadlocks, format_exact(use.deadlocks)),
            _datum(use.sessions, format_exact(use.sessions)),
            _datum(use.cpu_us, format_us(use.cpu_us)),
        ],
    )


def _datum(value: float | None, text: str) -> Datum:
    return Datum(text, None if value is None else float(f"{value:.6g}"))
