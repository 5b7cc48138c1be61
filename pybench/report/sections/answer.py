"""The answer: which strategy wins, which are unsafe, and the figures that say so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pybench.report import facts
from pybench.report.findings import Contest, best_cell, contests
from pybench.report.format import format_count, format_exact, format_us, plural
from pybench.report.html import fill
from pybench.report.section import Section
from pybench.report.view import CellView, View, say_condition, say_conditions

# Rows of the overview that stand open: with more the ranking is the better table.
OVERVIEW_ROWS = 12


@dataclass(frozen=True, slots=True)
class Tile:
    """One key figure: what it is, the figure, and where or why."""

    name: str
    figure: str
    remark: str
    tone: str = ""


def render(view: View) -> Section:
    """The first screen."""
    held = contests(view)
    html = fill(
        "answer.html",
        headline=headline(view, held),
        unsafe=unsafe_sentences(view),
        tiles=_tiles(view) if view.cells else [],
        axes=view.axes,
        series=view.series,
        contests=held[:OVERVIEW_ROWS],
        left_out=len(held) - OVERVIEW_ROWS,
        by_series={contest: {cell.series.label: cell for cell in contest.cells} for contest in held[:OVERVIEW_ROWS]},
        say=say_condition,
        unsafe_series=view.unsafe_series,
    )
    return Section("answer", "Answer", html)


def headline(view: View, held: Sequence[Contest]) -> str:
    """Who wins, in one sentence."""
    if not view.cells or not any(cell.number("trials") for cell in view.cells):
        return "No trial was completed, so there is no answer yet."
    if all(cell.verdict == "VOID" for cell in view.cells):
        return "This run proves nothing: its control was not caught."
    decided = [contest for contest in held if contest.winners]
    if not decided:
        return "No strategy of this run can be called safe."
    wins = Counter(contest.winners[0].series.label for contest in decided)
    (leader, count), *others = wins.most_common()
    where = "" if len(held) == 1 else f" under {_share(count, len(held))}"
    tied = [contest for contest in decided if contest.winners[0].series.label == leader and len(contest.winners) > 1]
    rivals = {cell.series.label for cell in view.cells} - view.unsafe_series - {leader}
    if not rivals:
        return f"{leader} is the only strategy here that stayed safe."
    rest = f"; {_list([f'{label} under {n}' for label, n in others])}" if others else ""
    tie = f", tied in {len(tied)}" if tied and len(held) > 1 else " (tied)" if tied else ""
    return f"{leader} is the fastest safe strategy{where}{tie}{rest}."


def unsafe_sentences(view: View) -> list[tuple[str, str]]:
    """Each strategy that was unsafe, and how much so."""
    sentences = []
    for series in view.series:
        cells = [cell for cell in view.cells if cell.series == series]
        unsafe = [cell for cell in cells if cell.unsafe]
        if unsafe:
            found = sum(int(cell.number("violations") or 0) for cell in unsafe)
            where = f"under {_share(len(unsafe), len(cells))}" if len(cells) > 1 else ""
            sentences.append((series.label, f"{plural(found, 'violation')} {where}".strip()))
    return sentences


def _tiles(view: View) -> list[Tile]:
    tiles = []
    best = best_cell(view)
    if best is not None:
        at = say_conditions(best.conditions)
        who = f"{best.series.label}{', ' + at if at else ''}"
        tiles.append(Tile("Most safe grants", f"{format_count(best.number('safe_grants_per_s'))}/s", who))
        median = format_us(best.number("acquire_p50_us"))
        tiles.append(Tile("p99 response there", format_us(best.number("acquire_p99_us")), f"median {median}"))
    unsafe = [cell for cell in view.cells if cell.unsafe]
    found = sum(int(cell.number("violations") or 0) for cell in view.cells)
    share = f"in {len(unsafe)} of {plural(len(view.cells), 'cell')}" if found else "in any cell"
    tiles.append(Tile("Violations", format_exact(found) if found < 1e5 else format_count(found), share,
                      "bad" if found else ""))
    tiles.append(_proof(view))
    return tiles


def _proof(view: View) -> Tile:
    controls = facts.control_rows(view.run.manifest)
    if controls and all(caught for _, caught, _ in controls):
        return Tile("Control", "caught", controls[0][2])
    return Tile("Control", "not caught", "so nothing is proved", "bad")


def _share(count: int, of: int) -> str:
    if count == of:
        return "both conditions" if of == 2 else f"all {of} conditions"
    return f"{count} of {of} conditions"


def _list(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def verdict_note(cell: CellView) -> str:
    """A word on a verdict that is weaker than it looks."""
    return "uncontended" if cell.verdict == "SAFE" and cell.uncontended else ""
