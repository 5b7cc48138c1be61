"""The servers of quorum locks: how fast each votes, and how often too late to count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from pybench.analysis.stats import median, number
from pybench.formats import Format
from pybench.matrix.conditions import say_conditions
from pybench.numbers import format_percent, format_us, plural
from pybench.report import details
from pybench.report.charts.grid import datum
from pybench.report.html import fill
from pybench.report.section import Datum, Section
from pybench.report.view import CellView, View

TITLES = (
    "asked",
    "granted",
    "refused",
    "errors",
    "no reply",
    "late",
    "decided",
    "reply p50",
    "reply p99",
    "least left",
)
COUNTS = ("asked", "granted", "refused", "errors", "unanswered", "late", "decided")
MOST_ROWS = 20
"""A table of more rows is folded up."""
SLOW = 1.5
"""A server is called out whose votes take so many times as long as those of the median server."""
OFTEN_LATE = 0.2
"""By how much the share of its late votes has to exceed that of the median server."""
SILENT = 0.01
"""The share of calls without a reply that is called out."""


@dataclass(frozen=True, slots=True)
class Server:
    """One server over the complete trials of a cell: sums, and medians of quantiles."""

    number: int
    counts: Mapping[str, int]
    reply_p50_us: float | None
    reply_p99_us: float | None
    least_validity_ms: float | None

    def share(self, name: str) -> float:
        """The share of the calls that ended so."""
        return self.counts[name] / max(self.counts["asked"], 1)

    @property
    def late(self) -> float:
        """The share of its votes that came after the decision."""
        votes = self.counts["granted"] + self.counts["refused"] + self.counts["errors"]
        return self.counts["late"] / max(votes, 1)


@dataclass(frozen=True, slots=True)
class Row:
    """One server of one cell."""

    cell: CellView
    where: str
    server: int
    stands_out: bool
    """Whether it votes late or not at all."""
    figures: list[Datum]


def render(view: View) -> Section | None:
    """A row for each server of each quorum lock; None in a run without any."""
    found = _found(view)
    rows = [row for cell, servers in found for row in _rows(cell, servers)]
    if not rows:
        return None
    lede = " ".join(_remarks(found)) or "No server stands out."
    summary = f"Servers of {plural(len(found), 'cell')}" if len(rows) > MOST_ROWS else None
    html = fill(
        "nodes.html",
        rows=rows,
        titles=TITLES,
        has_where=bool(view.axes),
        lede=lede + details.only_some(view),
        summary=summary,
    )
    return Section("nodes", "Servers of quorum locks", html, nav="Servers")


def remarks(view: View) -> list[str]:
    """A sentence for each lock with a server that votes late or not at all, about its worst cell."""
    return _remarks(_found(view))


def _remarks(found: Sequence[tuple[CellView, list[Server]]]) -> list[str]:
    worst: dict[str, tuple[float, str]] = {}
    for cell, servers in found:
        for one in _standing_out(servers):
            weight = 10 * one.share("unanswered") + one.late
            told = (weight, f"{cell.name}: {_remark(one, servers)}.")
            worst[cell.series.label] = max(worst.get(cell.series.label, told), told)
    return [sentence for _, sentence in worst.values()]


def _remark(one: Server, servers: Sequence[Server]) -> str:
    silent = one.share("unanswered")
    # The word goes to what is worse for the lock: no vote before a late one.
    if silent >= SILENT:
        return f"server {one.number} did not reply to {format_percent(silent)} of its calls"
    others = median(other.reply_p50_us for other in servers if other is not one)
    return (
        f"server {one.number} voted after the decision in {format_percent(one.late)} of its votes, with a p50 of "
        f"{format_us(one.reply_p50_us)} where the others have {format_us(others)}"
    )


def _found(view: View) -> list[tuple[CellView, list[Server]]]:
    """The servers of each detailed cell; none for a lock of one server."""
    of_cells = dict(iter(details.of_complete_trials(view, view.run.nodes).groupby("cell", sort=False)))
    return [(cell, _servers(of_cells[cell.id])) for cell in details.detailed(view) if cell.id in of_cells]


def _servers(rows: pd.DataFrame) -> list[Server]:
    return [
        Server(
            number=int(of_server["server"].iloc[0]),
            counts={name: int(of_server[name].sum()) for name in COUNTS},
            reply_p50_us=median(map(number, of_server["reply_p50_us"])),
            reply_p99_us=median(map(number, of_server["reply_p99_us"])),
            least_validity_ms=number(of_server["least_validity_ms"].min()),
        )
        for _, of_server in rows.groupby("server", sort=True)
    ]


def _rows(cell: CellView, servers: Sequence[Server]) -> list[Row]:
    out = _standing_out(servers)
    where = say_conditions(cell.conditions)
    return [Row(cell, where, one.number, one in out, _figures(one)) for one in servers]


def _standing_out(servers: Sequence[Server]) -> list[Server]:
    """The servers that are slow and vote late much more often than the median server, or do not reply."""
    usual_late = median(one.late for one in servers) or 0.0
    usual_us = median(one.reply_p50_us for one in servers) or 0.0

    def stands_out(one: Server) -> bool:
        is_slow = (one.reply_p50_us or 0.0) > SLOW * usual_us
        return (is_slow and one.late > usual_late + OFTEN_LATE) or one.share("unanswered") >= SILENT

    return [one for one in servers if stands_out(one)] if len(servers) > 1 else []


def _figures(one: Server) -> list[Datum]:
    least_us = None if one.least_validity_ms is None else one.least_validity_ms * 1e3
    return [
        datum(one.counts["asked"], Format.COUNT.text),
        *(datum(one.share(name), format_percent) for name in ("granted", "refused", "errors", "unanswered")),
        datum(one.late, format_percent),
        datum(one.counts["decided"], Format.COUNT.text),
        *(datum(figure_us, format_us) for figure_us in (one.reply_p50_us, one.reply_p99_us, least_us)),
    ]
