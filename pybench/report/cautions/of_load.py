"""Cautions about the load and what came of it: clients without grants, overload, missing commands, a stalled generator.

Promises: a figure that a record lacks, as older ones do, gives no caution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from pybench.analysis.assumptions import entry_of
from pybench.analysis.lateness import late_cells
from pybench.analysis.overload import overload
from pybench.analysis.starvation import GIVES_UP, refused_share, starving
from pybench.numbers import format_percent, format_ratio, format_seconds, format_us, plural
from pybench.report.cautions.caution import SHOWN_CELLS, Caution, listed
from pybench.report.view import BASE_LINE, CellView, View

SERVED_AT_LEAST = 0.5
"""Below this share of its clients a lock served far fewer at a time than asked."""
GRANTS_A_CLIENT = 2
"""With fewer grants a trial for each client Little's law says little of them."""
FREED = 0.01
"""Up to this share of the grants a release that was late or lost frees a key no sooner than its lease."""
STALL_NS = 100_000_000
"""A generator that stood still for as long did not make the load that it says."""
EDGE = 0.02
"""Share of the commands of a grant that may lie beyond an end of the window."""


def strain(view: View) -> list[Caution]:
    """All that apply."""
    kinds = (_starved, _without_grants, _few_served, _ungranted, _overloaded, _lease_freed, _few_commands, _stood)
    return [caution for kind in kinds for caution in kind(view)]


def _starved(view: View) -> Iterator[Caution]:
    told = []
    for cell in _measured(view):
        worst = starving(_trials(view, cell), int(cell.row["concurrency"]))
        if worst is not None:
            starved, window_s = worst
            clients = int(cell.row["concurrency"])
            rest = clients - starved
            got = f"the other {rest} had all grants" if rest != 1 else "the other one had all grants"
            told.append(
                f"{starved} of {plural(clients, 'client')} had no grant in the whole window of a trial "
                f"({format_seconds(window_s)}) in {cell.id}: {got}"
            )
    if told:
        yield Caution("STARVED", listed(told))


def _without_grants(view: View) -> Iterator[Caution]:
    """A cell without a grant has no figures at all, and no client of it can be said to starve beside others."""
    told = [
        f"All {plural(int(cell.row['concurrency']), 'client')} waited in vain in {cell.id}"
        for cell in _measured(view)
        if cell.number("grants") == 0 and cell.number("unfinished")
    ]
    if told:
        yield Caution("Nothing granted", listed(told))


def _few_served(view: View) -> Iterator[Caution]:
    told = []
    for cell in _measured(view):
        if cell.series.strategy == BASE_LINE:
            # It waits for nobody: without a hold its clients are hardly ever inside, however evenly they are served.
            continue
        served, clients = cell.number("clients_served"), int(cell.row["concurrency"])
        if clients == 1:
            continue  # It waits for nobody, and its hold at the end of a window is cut off.
        grants = (cell.number("grants") or 0) / (cell.number("trials") or 1)
        if served is None or served >= SERVED_AT_LEAST * clients or grants < GRANTS_A_CLIENT * clients:
            continue
        told.append(f"{format_ratio(served)} of {plural(clients, 'client')} in {cell.id}")
    if told:
        how = "By Little's law these are the clients served at a time, far fewer than asked"
        yield Caution("Few clients served", f"{how}; the latencies are theirs alone: {listed(told)}")


def _ungranted(view: View) -> Iterator[Caution]:
    """Acquires that ended without a grant have no response: a policy that soon gives up has short latencies."""
    told = []
    for cell in _measured(view):
        share = refused_share(_trials(view, cell))
        if share is not None and share > GIVES_UP:
            told.append(f"{format_percent(share)} in {cell.id}")
    if told:
        yield Caution("Acquires without a grant", f"Latencies are of the others alone: {listed(told)}")


def _overloaded(view: View) -> Iterator[Caution]:
    late = late_cells(view.run.trials) if not view.run.trials.empty else {}
    # Where the generator was late, the lock was not offered what the rate says.
    found = [(cell, overload(cell.row)) for cell in _measured(view) if cell.id not in late]
    told = [f"{sentence} ({cell.id})" for cell, sentence in found if sentence]
    if told:
        yield Caution("Overload", listed(told))


def _lease_freed(view: View) -> Iterator[Caution]:
    told = []
    for cell in _measured(view):
        freed, grants = cell.number("lease_freed_grants"), cell.number("grants")
        if freed and grants and freed > FREED * grants:
            told.append(
                f"{plural(int(freed), 'grant')} of {int(grants):,} ({format_percent(freed / grants)}) in {cell.id}"
            )
    if told:
        why = "came only because an earlier holder's lease ended: what that holder took stayed taken"
        yield Caution("Freed by leases", f"Some grants {why}: {listed(told)}")


def _few_commands(view: View) -> Iterator[Caution]:
    told = []
    for cell in _measured(view):
        known, sent, grants = entry_of(cell.row), cell.number("commands_per_grant"), cell.number("grants")
        if known is None or sent is None or not grants:
            continue
        least = known[0].commands_of_a_grant(known[1])
        # A grant at an end of the window has commands beyond it.
        edge = max(EDGE, int(cell.row["concurrency"]) * (cell.number("trials") or 1) / grants)
        if sent < least * (1 - edge):
            told.append(f"{format_ratio(sent)} commands a grant in {cell.id}, which takes at least {least}")
    if told:
        yield Caution("Fewer commands than the lock needs", listed(told))


def _stood(view: View) -> Iterator[Caution]:
    trials = view.run.trials
    if "longest_stall_ms" not in trials or trials["longest_stall_ms"].isna().all():
        return
    longest_ms = float(trials["longest_stall_ms"].max())
    if longest_ms * 1e6 < STALL_NS:
        return
    cells = trials.loc[trials["longest_stall_ms"] * 1e6 >= STALL_NS, "cell"].unique()
    named = ", ".join(str(cell) for cell in cells[:SHOWN_CELLS])
    more = len(cells) - SHOWN_CELLS
    others = f" and {plural(more, 'further cell')}" if more > 0 else ""
    yield Caution(
        "Generator stood still",
        f"The load generator itself stood still for up to {format_us(longest_ms * 1e3)} in {named}{others}: no client "
        "asked or released meanwhile. Run on a machine with less other work.",
    )


def _measured(view: View) -> Sequence[CellView]:
    return [cell for cell in view.cells if cell.number("trials")]


def _trials(view: View, cell: CellView) -> pd.DataFrame:
    trials: pd.DataFrame = view.run.trials
    return trials[(trials["cell"] == cell.id) & (trials["status"] == "complete")]
