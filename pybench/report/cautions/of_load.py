"""Cautions about the load: clients without grants, overload, missing commands, a stalled generator.

Promises: a figure that an older record lacks gives no caution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pybench.analysis.assumptions import entry_of
from pybench.analysis.comparison.entrants import BASE_LINE, offered_clients
from pybench.analysis.limits import GENERATOR
from pybench.analysis.overload import overload
from pybench.analysis.send_delay import late_cells
from pybench.analysis.starvation import GIVES_UP, refused_share, starving
from pybench.matrix.search_modes import recorded_mode
from pybench.numbers import format_percent, format_ratio, format_seconds, format_us, missing, plural
from pybench.report.cautions.caution import SHOWN_CELLS, Caution, listed
from pybench.report.sections.faults import has_faults
from pybench.report.view import CellView, View

SERVED_AT_LEAST = 0.5
"""A lock that serves a smaller share of its clients at a time serves few of them."""
GRANTS_A_CLIENT = 2
"""Little's law needs at least so many grants per client and trial."""
FREED = 0.01
"""A few releases are late or lost in any run: up to this share of grants, that is no caution."""
STALL_NS = 100_000_000
"""A generator that stood still for so long did not offer the load that it reports."""
EDGE = 0.02
"""Share of the commands of grants that may fall outside the window."""


def strain(view: View) -> list[Caution]:
    """All that apply."""
    kinds = (
        *(_starved, _without_grants, _few_served, _ungranted, _overloaded, _not_steady, _limited, _lease_freed),
        *(_few_commands, _stood),
    )
    return [caution for kind in kinds for caution in kind(view)]


def _starved(view: View) -> Iterator[Caution]:
    found = []
    for cell in _measured(view):
        worst = starving(view.complete_trials[cell.id], int(cell.row["concurrency"]))
        if worst is not None:
            starved, window_s = worst
            clients = plural(int(cell.row["concurrency"]), "client")
            found.append((starved, f"{starved} of {clients} in {cell.name} (window {format_seconds(window_s)})"))
    if found:
        # The caution names only the first cells: those where most clients starved.
        lines = [line for _, line in sorted(found, key=lambda one: -one[0])]
        yield Caution("STARVED", f"Clients had no grant in the whole window of a trial: {listed(lines)}")


def _without_grants(view: View) -> Iterator[Caution]:
    """Cells without any grant: they have no figures, and none of their clients starves beside others."""
    lines = [
        f"{_all_clients(cell)} waited in vain in {cell.name}"
        for cell in _measured(view)
        if cell.number("grants") == 0 and cell.number("unfinished")
    ]
    if lines:
        yield Caution("Nothing granted", listed(lines))


def _all_clients(cell: CellView) -> str:
    clients = plural(int(cell.row["concurrency"]), "client")
    varies = offered_clients(cell.row) < cell.row["concurrency"]
    return f"Up to {clients} asked at a time, and all" if varies else f"All {clients}"


def _few_served(view: View) -> Iterator[Caution]:
    lines = []
    for cell in _healthy(view):
        if cell.series.strategy == BASE_LINE:
            # Clients without a lock never wait, and without a hold are hardly ever counted, however even the service.
            continue
        served, clients = cell.number("clients_served"), offered_clients(cell.row)
        if cell.row["concurrency"] == 1:
            continue  # A single client never waits; only the end of the window cuts its last hold off.
        grants = (cell.number("grants") or 0) / (cell.number("trials") or 1)
        if served is None or served >= SERVED_AT_LEAST * clients or grants < GRANTS_A_CLIENT * clients:
            continue
        varies = clients < cell.row["concurrency"]
        asked = f"{clients:.1f} clients on average" if varies else plural(int(clients), "client")
        lines.append(f"{format_ratio(served)} of {asked} in {cell.name}")
    if lines:
        how = "By Little's law, far fewer clients were served at a time than asked for the lock"
        yield Caution("Few clients served", f"{how}. Latencies are those of the served clients: {listed(lines)}")


def _ungranted(view: View) -> Iterator[Caution]:
    """Acquires without a grant have no response, so a policy that gives up early has short latencies."""
    lines = []
    for cell in _measured(view):
        share = refused_share(view.complete_trials[cell.id])
        if share is not None and share > GIVES_UP:
            lines.append(f"{format_percent(share)} in {cell.name}")
    if lines:
        yield Caution("Acquires without a grant", f"Latencies leave them out. They are {listed(lines)}")


def _overloaded(view: View) -> Iterator[Caution]:
    late = late_cells(view.run.trials) if not view.run.trials.empty else {}
    # Where the generator was late, it did not offer the lock the given rate.
    found = [(cell, overload(cell.row)) for cell in _measured(view) if cell.id not in late]
    lines = [f"{sentence} ({cell.name})" for cell, sentence in found if sentence]
    if lines:
        yield Caution("Overload", listed(lines))


def _not_steady(view: View) -> Iterator[Caution]:
    """Cells whose window opened at the end of the longest warm-up, and not because the figures were steady."""
    lines = []
    for cell in _measured(view):
        steady = [bool(value) for value in view.complete_trials[cell.id].get("steady", ()) if not missing(value)]
        if not all(steady):
            lines.append(f"{steady.count(False)} of {plural(len(steady), 'trial')} in {cell.name}")
    if lines:
        how = "Grants or waits still changed when the longest warm-up was over, so the window measured a transient"
        yield Caution("Not steady", f"{how}. Give the warm-up more time, or lower the load: {listed(lines)}")


def _limited(view: View) -> Iterator[Caution]:
    """Limits that say nothing of the lock: those of the load generator, and those that no rate reached."""
    own, open_ended, none = [], [], []
    for cell in _measured(view):
        if not recorded_mode(cell.row.get("mode")).is_search or cell.unsafe:
            continue
        if cell.number("limit_per_s") is None:
            none.append(cell.name)
        elif cell.row.get("limited_by") == GENERATOR:
            own.append(cell.name)
        elif cell.number("limit_high_per_s") is None:
            open_ended.append(cell.name)
    if own:
        text = "The load generator could not offer a higher rate, so the limit is its own and not that of the lock"
        yield Caution("Limit of the generator", f"{text}: {listed(own)}")
    if open_ended:
        text = "No rate up to the highest of the search failed, so the limit is a lower bound"
        yield Caution("Limit not reached", f"{text}: {listed(open_ended)}")
    if none:
        text = "In most searches no rate was confirmed: the lowest failed, or probes of a rate contradicted each other"
        yield Caution("No limit found", f"{text}: {listed(none)}")


def _lease_freed(view: View) -> Iterator[Caution]:
    lines = []
    for cell in _healthy(view):
        freed, grants = cell.number("lease_freed_grants"), cell.number("grants")
        if freed and grants and freed > FREED * grants:
            lines.append(
                f"{plural(int(freed), 'grant')} of {int(grants):,} ({format_percent(freed / grants)}) in {cell.name}"
            )
    if lines:
        why = "came only because the lease of an earlier holder ended: its release did not free the key"
        yield Caution("Freed by leases", f"Some grants {why}. They are {listed(lines)}")


def _few_commands(view: View) -> Iterator[Caution]:
    lines = []
    for cell in _healthy(view):
        known, sent, grants = entry_of(cell.row), cell.number("commands_per_grant"), cell.number("grants")
        if known is None or sent is None or not grants:
            continue
        least = known[0].commands_of_a_grant(known[1])
        # A grant near an end of the window has commands outside of it.
        edge = max(EDGE, int(cell.row["concurrency"]) * (cell.number("trials") or 1) / grants)
        if sent < least * (1 - edge):
            lines.append(f"{format_ratio(sent)} commands per grant in {cell.name}, whose lock needs at least {least}")
    if lines:
        yield Caution("Fewer commands than the lock needs", listed(lines))


def _stood(view: View) -> Iterator[Caution]:
    trials = view.run.trials
    if "longest_stall_ms" not in trials or trials["longest_stall_ms"].isna().all():
        return
    longest_ms = float(trials["longest_stall_ms"].max())
    if longest_ms * 1e6 < STALL_NS:
        return
    stalled = set(trials.loc[trials["longest_stall_ms"] * 1e6 >= STALL_NS, "cell"].astype(str))
    cells = [cell.name for cell in view.cells if cell.id in stalled]
    named = ", ".join(cells[:SHOWN_CELLS])
    more = len(cells) - SHOWN_CELLS
    others = f" and {plural(more, 'further cell')}" if more > 0 else ""
    yield Caution(
        "Generator stood still",
        f"The load generator itself stood still for up to {format_us(longest_ms * 1e3)} in {named}{others}. In that "
        "time no client acquired or released. Run on a machine with less other work.",
    )


def _measured(view: View) -> Sequence[CellView]:
    return [cell for cell in view.cells if cell.number("trials")]


def _healthy(view: View) -> Sequence[CellView]:
    """The measured cells without faults, which lose commands, clients and releases on purpose."""
    return [cell for cell in _measured(view) if not has_faults(cell)]
