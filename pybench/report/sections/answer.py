"""The answer: which lock to take, which locks are unsafe, and the figures that say so; all on the first screen.

Charts and tables of the run have their place in later sections. The first screen repeats none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pybench.analysis.comparison import Figure, Place
from pybench.analysis.comparison.pairs import ENOUGH_BLOCKS
from pybench.analysis.quantile_text import quantile_text
from pybench.analysis.verdicts import controls_caught
from pybench.columns import COLUMNS
from pybench.matrix.conditions import say_conditions
from pybench.numbers import NOT_AVAILABLE, format_exact, plural
from pybench.report import run_facts
from pybench.report.cautions.of_run import cautions
from pybench.report.contests import hardest_load
from pybench.report.html import fill
from pybench.report.rules import promises_nothing
from pybench.report.section import Section
from pybench.report.verdict_reasons import unsafe_and_evidence
from pybench.report.view import CellView, View

# Locks up to here are named as tied for the first place; with more, how many there are.
NAMED_TIES = 2


@dataclass(frozen=True, slots=True)
class Tile:
    """One key figure: what it is, the figure, and where or why."""

    name: str
    figure: str
    remark: str
    tone: str = ""


def render(view: View) -> Section:
    """The first screen."""
    headline, others = clauses(view)
    found = cautions(view)
    unsafe, evidence = unsafe_and_evidence(view)
    html = fill(
        "answer.html",
        headline=headline,
        others=others,
        grave=[one for one in found if one.grave],
        mild=[one for one in found if not one.grave],
        unsafe=unsafe,
        evidence=evidence,
        tiles=_tiles(view) if view.measured else [],
    )
    return Section("answer", "Answer", html)


def clauses(view: View) -> tuple[str, list[str]]:
    """The answer: its headline, and the sentences that qualify it. Unsafe locks are listed elsewhere."""
    if not view.measured:
        return "No trial was completed, so there is no answer yet.", []
    found = view.answer
    locks = view.comparison.locks
    return f"{found.headline}.", [f"{_begun(clause, locks)}." for clause in found.further]


def _begun(clause: str, locks: Sequence[str]) -> str:
    """`clause` with a capital letter, unless it begins with the name of a lock, which is written as given."""
    return clause if clause.startswith(tuple(locks)) else f"{clause[0].upper()}{clause[1:]}"


def _tiles(view: View) -> list[Tile]:
    return [*_of_hardest_load(view), _violations(view), _control(view)]


def _of_hardest_load(view: View) -> list[Tile]:
    """The figures of the lock to take at one load. Each tile names that load: nothing here compares two loads."""
    load = hardest_load(view)
    if load is None:
        return []
    chosen = view.comparison.choice.locks
    # The lock to take, though another may be first at this load; then those that share its rank here.
    first = min(load.ranked, key=lambda one: (one.lock not in chosen, one.rank or 0))
    cell = next(cell for cell in view.cells if cell.id == first.cell)
    at = say_conditions(cell.conditions)
    who = f"{first.lock}{', ' + at if at else ''}"
    others = [one.lock for one in load.ranked if one is not first and one.rank == first.rank]
    if others and first.place is not Place.ALONE and view.comparison.trials >= ENOUGH_BLOCKS:
        names = list(dict.fromkeys(others))
        tied = " and ".join(names) if len(names) <= NAMED_TIES else f"{len(names)} others"
        who += f"; statistically tied with {tied}"
    if first.figure is Figure.LIMIT:
        rate = Tile("Limit", f"{_written(cell, Figure.LIMIT.value)}/s", who)
    else:
        rate = Tile("Safe grants", f"{_written(cell, 'safe_grants_per_s')}/s", who)
    waits = f"median {quantile_text(cell.row, 'acquire_p50_us')}"
    p99, longest = quantile_text(cell.row, "acquire_p99_us"), _written(cell, "longest_wait_us")
    if p99 == NOT_AVAILABLE:
        return [rate, Tile(f"Longest wait of {first.lock}", longest, f"{waits}; too few grants for a p99")]
    if longest != NOT_AVAILABLE:
        waits += f", longest wait {longest}"
    return [rate, Tile(f"p99 response of {first.lock}", p99, waits)]


def _written(cell: CellView, column: str) -> str:
    return COLUMNS[column].format.text(cell.number(column))


def _violations(view: View) -> Tile:
    """Of the locks that promise exclusion: all others overlap as expected."""
    cells = [cell for cell in view.cells if not promises_nothing(cell.row)]
    unsafe = [cell for cell in cells if cell.unsafe]
    found = sum(int(cell.number("violations") or 0) for cell in cells)
    where = f"in {len(unsafe)} of {plural(len(cells), 'cell')}" if found else f"in {plural(len(cells), 'cell')}"
    return Tile("Violations by locks", format_exact(found), where, "bad" if found else "")


def _control(view: View) -> Tile:
    """Whether the checker caught what was planted; the Method section has the figures."""
    controls = run_facts.control_rows(view.run.manifest)
    if not controls or not all(caught for _, caught, _ in controls):
        return Tile("Checker", "not proven", "it missed the overlaps of clients without a lock", "bad")
    if not controls_caught(view.run.manifest["control"]):
        return Tile("Checker", "not proven", "it missed a planted fault", "bad")
    return Tile("Checker", "proven", "it caught the overlaps of clients without a lock")
