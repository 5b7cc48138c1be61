"""Which cells can be said but not measured, and why: told before a run, not at minute 40.

Each rule is one function from a cell to a reason, which ends with what to change; None where there is nothing against
the cell. Does not ask servers or the machine: what they allow comes in as `Limits`.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pybench.cells import Cell
from pybench.durations import MS, US, format_duration, format_lease
from pybench.matrix import Matrix
from pybench.strategies import CATALOGUE
from pybench.values import OpenLoop

MOST_CONNECTIONS = 10_000
OWN_FILES = 64
"""Open files that a run needs beside its connections."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the servers and this machine allow; what is not known limits nothing."""

    maxclients: Mapping[str, int] = field(default_factory=dict)
    """Backend -> the connections that its server takes."""
    open_files: int | None = None
    """Files that this process may open."""

    @classmethod
    def of_this_machine(cls, maxclients: Mapping[str, int] | None = None) -> Limits:
        """With the hard limit of open files, up to which a process may raise its own."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        return cls(maxclients or {}, None if hard == resource.RLIM_INFINITY else hard)


NO_LIMITS = Limits()

Rule = Callable[[Cell, Matrix, Limits], str | None]


def drift_ns(lease_ms: int) -> int:
    """What a holder takes off its lease for clocks that do not run alike: 1 % and 2 ms."""
    return lease_ms * MS // 100 + 2 * MS


def why_impossible(cell: Cell, matrix: Matrix, limits: Limits) -> str | None:
    """The first reason against `cell`; None when it can be measured."""
    reasons = (rule(cell, matrix, limits) for rule in _RULES)
    return next((reason for reason in reasons if reason is not None), None)


def _lease_within_drift(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    lease_ms = CATALOGUE[cell.strategy].lease_ms(cell.ttl_ms)
    if lease_ms is None or lease_ms * MS > drift_ns(lease_ms):
        return None
    drift = format_duration(drift_ns(lease_ms))
    return f"the drift allowance of {drift} takes all of the ttl of {format_lease(cell.ttl_ms)}; say a ttl from 3ms on"


def _hold_beyond_ttl(cell: Cell, matrix: Matrix, _limits: Limits) -> str | None:
    strategy = CATALOGUE[cell.strategy]
    lease_ms = strategy.lease_ms(cell.ttl_ms)
    if lease_ms is None or strategy.extends_lease or "hold-beyond-ttl" in matrix.allow:
        return None
    believed_ns = lease_ms * MS - drift_ns(lease_ms)
    if cell.hold.median() < believed_ns:
        return None
    median_us = cell.hold.median() // US
    median = "" if cell.hold.kind == "fixed" else f", {format_duration(median_us * US)} at its median,"
    return (
        f"the hold of {cell.hold.text}{median} does not fit into the lease of {format_lease(lease_ms)}, of which "
        f"{format_duration(believed_ns)} are left after the drift allowance; lengthen ttl, shorten hold, or say "
        "allow: [hold-beyond-ttl]"
    )


def _idle_threads(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    if cell.threads <= cell.concurrency:
        return None
    return f"{cell.threads} threads for a concurrency of {cell.concurrency}; say at most {cell.concurrency} threads"


def _connections(cell: Cell, _matrix: Matrix, limits: Limits) -> str | None:
    wanted = cell.connections.used_by(cell.concurrency)
    fewer = "lower concurrency or say shared(4)"
    allowed = [(MOST_CONNECTIONS, "a run opens at most", fewer)]
    if cell.backend in limits.maxclients:
        allowed.append((limits.maxclients[cell.backend], "maxclients of its server is", fewer))
    if limits.open_files is not None:
        left = max(0, limits.open_files - OWN_FILES)
        allowed.append((left, "open files on this machine leave", f"raise them (ulimit -n), {fewer}"))
    most, whose, remedy = min(allowed)
    if wanted <= most:
        return None
    return f"{cell.connections.text} opens {wanted:,} connections, {whose} {most:,}; {remedy}"


def _keys_nobody_chooses(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    match cell.key_choice.kind:
        case "zipf" if cell.keys == 1:
            return f"{cell.key_choice.text} over one key is no choice; say key_choice: uniform, or more keys"
        case "single" if cell.keys > 1:
            return f"single never takes more than the first of {cell.keys:,} keys; say keys: 1"
        case _:
            return None


def _open_loop(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    if not isinstance(cell.loop, OpenLoop):
        return None
    if cell.think.text != "0":
        return "in an open loop the arrivals say when a client starts again; drop think or rate"
    if cell.loop.max_in_flight < cell.concurrency:
        idle = cell.concurrency - cell.loop.max_in_flight
        return f"max_in_flight leaves {idle:,} of {cell.concurrency:,} clients idle; raise it or lower concurrency"
    return None


_RULES: tuple[Rule, ...] = (
    _lease_within_drift,
    _hold_beyond_ttl,
    _idle_threads,
    _connections,
    _keys_nobody_chooses,
    _open_loop,
)
