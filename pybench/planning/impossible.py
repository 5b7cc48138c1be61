"""Which cells can be said but not measured, and why: told before a run, not at minute 40.

Each rule is one function from a cell to a reason, which ends with what to change; None where there is nothing against
the cell. Does not ask servers or the machine: what they allow comes in as `Limits`.
"""

from __future__ import annotations

from collections.abc import Callable

from pybench.matrix import Matrix
from pybench.matrix.cells import Cell
from pybench.matrix.durations import MS, US, format_duration, format_lease
from pybench.matrix.places import parts_of_place
from pybench.numbers import plural
from pybench.planning.limits import Limits
from pybench.planning.needs import (
    WATCHING_SESSIONS,
    further_connections,
    own_connections,
    parts_of,
    servers_of,
    sessions_of,
    shared_connections,
)
from pybench.planning.trial_spec import PATIENCE_NS, session_arguments
from pybench.strategies import CATALOGUE, ServerKind, strategy_text

MOST_CONNECTIONS = 10_000
OWN_FILES = 64
"""Open files that a run needs beside its connections."""

MOST_SESSIONS = 1_000
"""Of a Postgres that pybench starts: each is a process there."""


Rule = Callable[[Cell, Matrix, Limits], str | None]


def drift_ns(lease_ms: int, factor: float = 0.01) -> int:
    """What a holder takes off its lease for clocks that do not run alike: a part of it, 1 %, and 2 ms."""
    return lease_ms * round(factor * MS) + 2 * MS


def why_impossible(cell: Cell, matrix: Matrix, limits: Limits) -> str | None:
    """The first reason against `cell`; None when it can be measured."""
    reasons = (rule(cell, matrix, limits) for rule in _RULES)
    return next((reason for reason in reasons if reason is not None), None)


def _lease_within_drift(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    strategy = CATALOGUE[cell.strategy]
    lease_ms = strategy.lease_ms(cell.ttl_ms)
    if lease_ms is None:
        return None
    allowance_ns = _allowance_ns(cell, lease_ms)
    if lease_ms * MS > allowance_ns:
        return None
    drift = format_duration(allowance_ns)
    return f"the drift allowance of {drift} takes all of the ttl of {format_lease(cell.ttl_ms)}; say a ttl from 3ms on"


def _allowance_ns(cell: Cell, lease_ms: int) -> int:
    strategy = CATALOGUE[cell.strategy]
    return drift_ns(lease_ms, strategy.drift_factor(cell.args)) if strategy.allows_for_drift else 0


def _hold_beyond_ttl(cell: Cell, matrix: Matrix, _limits: Limits) -> str | None:
    strategy = CATALOGUE[cell.strategy]
    lease_ms = strategy.longest_hold_ms(cell.ttl_ms, cell.args)
    if lease_ms is None or "hold-beyond-ttl" in matrix.allow:
        return None
    believed_ns = lease_ms * MS - _allowance_ns(cell, lease_ms)
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
    shared, further, servers = shared_connections(cell), further_connections(cell), servers_of(cell)
    to_one, to_all = shared + further, shared * servers + further
    fewer = _fewer(cell)
    allowed = [(MOST_CONNECTIONS, to_all, "a run opens at most", fewer)]
    allowed += [
        (limits.maxclients[backend], to_one, "maxclients of its server leaves", fewer)
        for backend in parts_of_place(cell.backend)
        if backend in limits.maxclients
    ]
    if limits.open_files is not None:
        left = max(0, limits.open_files - OWN_FILES)
        allowed.append((left, to_all, "open files on this machine leave", f"raise them (ulimit -n), {fewer}"))
    beyond = [entry for entry in allowed if entry[1] > entry[0]]
    if not beyond:
        return None
    most, wanted, whose, remedy = min(beyond)
    where = f" to {servers} servers" if servers > 1 and wanted == to_all else ""
    return f"{_how_connected(cell)} opens {wanted:,} connections{where}, {whose} {most:,}; {remedy}"


def _how_connected(cell: Cell) -> str:
    if not further_connections(cell):
        return cell.connections.text
    if not shared_connections(cell):
        return f"one for each client of {cell.strategy}"
    more = "one more for each client of {}" if own_connections(cell) else "as many again for {} to subscribe over"
    return f"{cell.connections.text} with {more.format(cell.strategy)}"


def _fewer(cell: Cell) -> str:
    return "lower concurrency" if own_connections(cell) else "lower concurrency or say shared(4)"


def _sessions(cell: Cell, matrix: Matrix, limits: Limits) -> str | None:
    for name in parts_of_place(cell.backend):
        backend = matrix.backends[name]
        if backend.kind is not ServerKind.POSTGRES:
            continue
        wanted = sessions_of(cell, name)
        opens = f"{_how_connected(cell)} opens {plural(wanted, 'session')}"
        if not backend.is_given and wanted > MOST_SESSIONS:
            most = f"a Postgres that pybench starts takes {MOST_SESSIONS:,}"
            return f"{opens}, {most}; {_fewer(cell)}"
        room = limits.sessions.get(name)
        if room is not None and wanted + WATCHING_SESSIONS > room.free:
            has = f"the server of {name} has {room.free:,} left of its max_connections of {room.most:,}"
            return f"{opens}, with {WATCHING_SESSIONS} that watch, {has}; raise its {room.limit}, or {_fewer(cell)}"
    return None


def _rows_without_a_table(cell: Cell, _matrix: Matrix, limits: Limits) -> str | None:
    if not CATALOGUE[cell.strategy].uses_rows:
        return None
    lacking = [limits.grants[name] for name in parts_of_place(cell.backend) if name in limits.grants]
    if not lacking:
        return None
    return f"its rows are those of a table in a schema of its own, which this user may not create; {lacking[0]}"


def _keys_nobody_chooses(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    match cell.key_choice.kind:
        case "zipf" if cell.keys == 1:
            return f"{cell.key_choice.text} over one key is no choice; say key_choice: uniform, or more keys"
        case "single" if cell.keys > 1:
            return f"single never takes more than the first of {cell.keys:,} keys; say keys: 1"
        case _:
            return None


def _open_loop(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    if cell.rate_per_s is None:
        return None
    if cell.think.text != "0":
        return "in an open loop the arrivals say when a client starts again; drop think or rate"
    if cell.max_in_flight < cell.concurrency:
        idle = cell.concurrency - cell.max_in_flight
        return f"max_in_flight leaves {idle:,} of {cell.concurrency:,} clients idle; raise it or lower concurrency"
    return None


def _readers_of_what_none_share(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    if cell.read_share == 0 or CATALOGUE[cell.strategy].shares:
        return None
    return f"{cell.strategy} knows no readers; say read_share: 0, or {_those('shares')}"


def _entries_of_what_does_not_nest(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    if cell.nesting == 1 or CATALOGUE[cell.strategy].nests:
        return None
    return f"a holder of {cell.strategy} that enters again waits for itself; say nesting: 1, or {_those('nests')}"


def _sets_of_keys(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    if cell.keys_per_grant > 1 and not CATALOGUE[cell.strategy].takes_many_keys:
        return f"{cell.strategy} takes one key; say keys_per_grant: 1, or {_those('takes_many_keys')}"
    if cell.keys_per_grant > cell.keys:
        return f"{cell.keys_per_grant} keys a grant of {plural(cell.keys, 'key')}; say more keys, or fewer a grant"
    if cell.keys_per_grant == 1 and cell.key_order != "random":
        return "one key has no order; say key_order: random, or keys_per_grant: 2"
    return None


def _too_few_servers(cell: Cell, matrix: Matrix, _limits: Limits) -> str | None:
    for part in parts_of(cell):
        name, wanted = part.group.backend, part.servers
        given = matrix.backends[name].urls
        if given and len(given) < wanted:
            return (
                f"{strategy_text(cell.strategy, cell.args)} needs {wanted} servers, and {name} names {len(given)}; "
                f"give {wanted} addresses under urls (or --redis as often), or say nodes={len(given)}"
            )
    return None


def _too_few_replicas(cell: Cell, _matrix: Matrix, limits: Limits) -> str | None:
    wanted, there = CATALOGUE[cell.strategy].replicas(cell.args), limits.replicas.get(cell.backend)
    if there is None or there >= wanted:
        return None
    needs = f"{strategy_text(cell.strategy, cell.args)} needs {plural(wanted, 'replica')}"
    return f"{needs}, and the server of {cell.backend} has {there}; attach more, or let pybench start them"


def _wait_for_replicas(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    wait_ms = CATALOGUE[cell.strategy].argument("timeout_ms", cell.args)
    most_ms = min(cell.ttl_ms, PATIENCE_NS // MS)
    if wait_ms is None or int(wait_ms) < most_ms:
        return None
    whose = f"the ttl of {format_lease(cell.ttl_ms)}" if most_ms == cell.ttl_ms else "the patience for an answer, 1s,"
    return f"{whose} is over before replicas have had timeout_ms={wait_ms}; say less than {most_ms}"


def _one_session_of_several(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    argument = CATALOGUE[cell.strategy].argument
    if argument("session", cell.args) != "shared":
        return None
    if argument("wait", cell.args) == "block":
        return "a client that waits in a session of several makes all of them wait; say wait=try, or session=own"
    if argument("scope", cell.args) == "transaction":
        return "a session has one transaction, which cannot be of several clients; say scope=session, or session=own"
    return None


def _lock_timeout(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    strategy = CATALOGUE[cell.strategy]
    timeout_ms = strategy.argument("lock_timeout_ms", cell.args)
    if not timeout_ms:
        return None
    if strategy.argument("wait", cell.args) != "block":
        return f"{strategy_text(cell.strategy, cell.args)} waits for no lock; say wait=block, or drop lock_timeout_ms"
    if int(timeout_ms) * MS > cell.retry.max_wait_ns:
        wait = format_duration(cell.retry.max_wait_ns)
        return (
            f"a client gives up after max_wait, {wait}, before lock_timeout_ms={timeout_ms} is over; lengthen max_wait"
        )
    return None


def _settings_behind_a_pooler(cell: Cell, matrix: Matrix, limits: Limits) -> str | None:
    asked = session_arguments(CATALOGUE[cell.strategy], cell.args)
    for name in parts_of_place(cell.backend):
        if asked and (name in limits.pooled or matrix.backends[name].prepare == "unnamed"):
            return (
                f"a pooler lends the sessions of {name}, and takes no {' or '.join(asked)} for them; drop it, or give "
                "the address of the server itself"
            )
    return None


def _those(fact: str) -> str:
    """The strategies of which `fact` is true, for a hint."""
    return " or ".join(strategy.name for strategy in CATALOGUE.values() if getattr(strategy, fact))


_RULES: tuple[Rule, ...] = (
    _readers_of_what_none_share,
    _entries_of_what_does_not_nest,
    _sets_of_keys,
    _too_few_servers,
    _too_few_replicas,
    _wait_for_replicas,
    _one_session_of_several,
    _lock_timeout,
    _settings_behind_a_pooler,
    _lease_within_drift,
    _hold_beyond_ttl,
    _idle_threads,
    _connections,
    _sessions,
    _rows_without_a_table,
    _keys_nobody_chooses,
    _open_loop,
)
