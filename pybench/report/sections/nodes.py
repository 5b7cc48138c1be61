"""The servers of quorum locks: how fast each votes, and how often too late to count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from pybench.formats import Format
from pybench.matrix.conditions import say_conditions
from pybench.numbers import format_percent, format_us
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
SLOW = 1.5
"""A server is called out whose votes take so many times as long as those of the median server."""
OFTEN_LATE = 0.2
"""By how much the share of its late votes has to exceed that of the median server."""
SILENT = 0.01
"""The share of calls without a reply that is called out."""


@dataclass(frozen=True, slots=True)
class Row:
    """One server of one cell."""

    cell: CellView
    where: str
    server: int
    is_slow: bool
    """Whether it stands out by late votes or missing replies."""
    figures: list[Datum]


def render(view: View) -> Section | None:
    """A row for each server of each quorum lock; None in a run without any."""
    rows = [row for cell in details.detailed(view) for row in _rows(view, cell)]
    if not rows:
        return None
    lede = " ".join(remarks(view)) or "No server stands out."
    html = fill("nodes.html", rows=rows, titles=TITLES, has_where=bool(view.axes), lede=lede + details.only_some(view))
    return Section("nodes", "Servers of quorum locks", html, nav="Servers")


def remarks(view: View) -> list[str]:
    """A sentence for each lock with a server that votes late or not at all, about its worst cell."""
    worst: dict[str, tuple[float, str]] = {}
    for cell in details.detailed(view):
        nodes = of_cell(view, cell)
        for server in _standing_out(nodes):
            one = nodes.loc[server]
            silent, late, slow = _share(one, "unanswered"), _share_late(one), one["reply_p50_us"]
            # The word goes to what is worst for the lock: no vote before a late one.
            if silent >= SILENT:
                told = f"did not reply to {format_percent(silent)} of its calls"
            else:
                told = f"voted after the decision in {format_percent(late)} of its votes"
            usual = float(nodes["reply_p50_us"].drop(server).median())
            told += f" (p50 {format_us(slow)}, the others {format_us(usual)})" if pd.notna(slow) else ""
            weight = silent * 10 + late
            sentence = f"{cell.name}: server {server} {told}."
            worst[cell.series.label] = max(worst.get(cell.series.label, (0.0, "")), (weight, sentence))
    return [sentence for _, sentence in worst.values()]


def of_cell(view: View, cell: CellView) -> pd.DataFrame:
    """The figures of each server over the complete trials of `cell`, by its number: sums, and medians of quantiles."""
    rows, trials = view.run.nodes, view.run.trials
    complete = trials.loc[(trials["status"] == "complete") & (trials["cell"] == cell.id), "trial"]
    rows = rows[(rows["cell"] == cell.id) & rows["trial"].isin(complete)]
    medians = ("reply_p50_us", "reply_p99_us")
    kinds = {**dict.fromkeys(COUNTS, "sum"), **dict.fromkeys(medians, "median"), "least_validity_ms": "min"}
    summed: pd.DataFrame = rows.groupby("server", sort=True).agg(kinds)
    return summed


def _rows(view: View, cell: CellView) -> list[Row]:
    nodes = of_cell(view, cell)
    out = _standing_out(nodes)
    return [
        Row(cell, say_conditions(cell.conditions), int(server), server in out, _figures(one))
        for server, one in nodes.iterrows()
    ]


def _standing_out(nodes: pd.DataFrame) -> list[int]:
    """The servers that vote late much more often than the median server, slowly, or without a reply to many calls."""
    if len(nodes) < 2:
        return []
    late = nodes.apply(_share_late, axis=1)
    silent = nodes["unanswered"] / nodes["asked"].clip(lower=1)
    slow = nodes["reply_p50_us"] > SLOW * nodes["reply_p50_us"].median()
    out = ((late > late.median() + OFTEN_LATE) & slow) | (silent >= SILENT)
    return [int(server) for server in nodes.index[out]]


def _votes(one: pd.Series) -> float:
    return float(one["granted"] + one["refused"] + one["errors"])


def _share_late(one: pd.Series) -> float:
    votes = _votes(one)
    return float(one["late"]) / votes if votes else 0.0


def _share(one: pd.Series, column: str) -> float:
    return float(one[column]) / float(one["asked"]) if one["asked"] else 0.0


def _figures(one: pd.Series) -> list[Datum]:
    grants = Format.COUNT.text
    shares: Sequence[float] = [_share(one, name) for name in ("granted", "refused", "errors", "unanswered")]
    return [
        datum(float(one["asked"]), grants),
        *(datum(share, format_percent) for share in shares),
        datum(_share_late(one), format_percent),
        datum(float(one["decided"]), grants),
        *(
            datum(None if pd.isna(one[name]) else float(one[name]), format_us)
            for name in ("reply_p50_us", "reply_p99_us")
        ),
        datum(None if pd.isna(one["least_validity_ms"]) else float(one["least_validity_ms"]) * 1e3, format_us),
    ]
