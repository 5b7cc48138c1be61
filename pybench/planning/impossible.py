"""Which valid cells cannot be measured, and why. The plan refuses them before the run starts.

Each rule is a function from a cell to a reason against the cell, or None. A reason ends with what to change.
Does not do: asking servers or the machine for their limits; these are passed in as `Limits`.
"""

from __future__ import annotations

from collections.abc import Callable

from pybench.matrix import Matrix
from pybench.matrix.cells import Cell
from pybench.matrix.durations import MS, US, format_duration, format_lease
from pybench.matrix.places import parts_of_place
from pybench.matrix.values import Distribution
from pybench.numbers import plural
from pybench.planning import network, searches
from pybench.planning.fault_rules import why_no_faults
from pybench.planning.guard_rules import why_no_guard
from pybench.planning.limits import Limits
from pybench.planning.needs import (
    MONITORING_SESSIONS,
    all_parts_of,
    further_connections,
    guard_connections,
    own_connections,
    parts_of,
    servers_of,
    sessions_of,
    shared_connections,
)
from pybench.planning.process_rules import why_no_processes
from pybench.planning.trial_spec import REPLY_TIMEOUT_NS, session_arguments
from pybench.strategies import CATALOGUE, ServerKind, strategy_text

MOST_CONNECTIONS = 10_000
MAXCLIENTS = "maxclients of the server"
OWN_FILES = 64
"""How many open files a run needs besides its connections."""

MOST_SESSIONS = 1_000
"""The most sessions of a Postgres that pybench starts; each session is a process of the server."""


Rule = Callable[[Cell, Matrix, Limits], str | None]


def skew_margin_ns(lease_ms: int, factor: float = 0.01) -> int:
    """The clock-skew margin that a holder subtracts from its lease: the share `factor` of the lease, and 2 ms."""
    return lease_ms * round(factor * MS) + 2 * MS


def why_impossible(cell: Cell, matrix: Matrix, limits: Limits) -> str | None:
    """The first reason against `cell`; None when it can be measured."""
    reasons = (rule(cell, matrix, limits) for rule in _RULES)
    return next((reason for reason in reasons if reason is not None), None)


def _lease_within_margin(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    strategy = CATALOGUE[cell.strategy]
    lease_ms = strategy.lease_ms(cell.ttl_ms)
    if lease_ms is None:
        return None
    margin_ns = _margin_ns(cell, lease_ms)
    if lease_ms * MS > margin_ns:
        return None
    ttl, margin = format_lease(cell.ttl_ms), format_duration(margin_ns)
    return f"the ttl of {ttl} is shorter than its clock-skew margin of {margin}; use a ttl of at least 3ms"


def _margin_ns(cell: Cell, lease_ms: int) -> int:
    strategy = CATALOGUE[cell.strategy]
    return skew_margin_ns(lease_ms, strategy.drift_factor(cell.args)) if strategy.allows_for_drift else 0


def _round_trips(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    return network.why_not(cell)


def _grant_beyond_ttl(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    lease_ms = CATALOGUE[cell.strategy].lease_ms(cell.ttl_ms)
    added_ns = network.added_ns(cell, Distribution.median)
    if lease_ms is None or not added_ns or added_ns < lease_ms * MS - _margin_ns(cell, lease_ms):
        return None
    return (
        f"with an rtt of {cell.rtt.text} a grant comes after its lease of {format_lease(lease_ms)}, which counts from "
        "the send of the request, less the clock-skew margin; lengthen ttl, or shorten rtt"
    )


def _hold_beyond_ttl(cell: Cell, matrix: Matrix, _limits: Limits) -> str | None:
    strategy = CATALOGUE[cell.strategy]
    lease_ms = strategy.longest_hold_ms(cell.ttl_ms, cell.args)
    if lease_ms is None or "hold-beyond-ttl" in matrix.allow:
        return None
    added_ns = round(network.added_ns(cell, Distribution.median))
    believed_ns = lease_ms * MS - _margin_ns(cell, lease_ms) - added_ns
    if cell.hold.median() < believed_ns:
        return None
    median_us = cell.hold.median() // US
    median = "" if cell.hold.kind == "fixed" else f", {format_duration(median_us * US)} at its median,"
    before = f" and a round trip of {format_duration(added_ns)}" if added_ns else ""
    return (
        f"the hold of {cell.hold.text}{median} does not fit into the lease of {format_lease(lease_ms)}, which "
        f"leaves {format_duration(max(0, believed_ns))} after the clock-skew margin{before}; lengthen ttl, shorten "
        "hold, or set allow: [hold-beyond-ttl]"
    )


def _idle_threads(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    if cell.all_threads <= cell.concurrency:
        return None
    if cell.processes:
        threads = f"{plural(cell.processes, 'process', 'processes')} with {plural(cell.threads, 'thread')} each"
        return f"{threads} for a concurrency of {cell.concurrency}; use at least one client for each thread"
    most = plural(cell.concurrency, "thread")
    return f"{cell.threads} threads for a concurrency of {cell.concurrency}; use at most {most}"


def _connections(cell: Cell, _matrix: Matrix, limits: Limits) -> str | None:
    shared, further, servers = shared_connections(cell), further_connections(cell), servers_of(cell)
    guarded = guard_connections(cell)
    to_one, to_all = shared + further, shared * servers + further + guarded
    fewer = _fewer(cell)
    allowed = [(MOST_CONNECTIONS, to_all, "the limit of a run", fewer)]
    allowed += [
        (limits.maxclients[backend], to_one + (guarded if backend == cell.guard_on else 0), MAXCLIENTS, fewer)
        for backend in parts_of_place(cell.backend)
        if backend in limits.maxclients
    ]
    if cell.guard_on in limits.maxclients and cell.guard_on not in parts_of_place(cell.backend):
        allowed.append((limits.maxclients[cell.guard_on], guarded, MAXCLIENTS, "lower concurrency"))
    if limits.open_files is not None:
        left = max(0, limits.open_files - OWN_FILES)
        allowed.append((left, to_all, "the open files of this machine", f"raise the limit (ulimit -n), {fewer}"))
    beyond = [entry for entry in allowed if entry[1] > entry[0]]
    if not beyond:
        return None
    most, wanted, limit, remedy = min(beyond)
    where = f" to {servers} servers" if servers > 1 and wanted == to_all else ""
    return f"{_how_connected(cell)}: {wanted:,} connections wanted{where}, {most:,} available ({limit}); {remedy}"


def _how_connected(cell: Cell) -> str:
    return _how_the_lock_connects(cell) + (" and one per client for the guarded resource" if cell.guard else "")


def _how_the_lock_connects(cell: Cell) -> str:
    if not further_connections(cell):
        return f"connections {cell.connections.text}"
    if not shared_connections(cell):
        return f"one connection per client of {cell.strategy}"
    more = "one per client of {}" if own_connections(cell) else "as many again for the subscriptions of {}"
    return f"connections {cell.connections.text}, plus {more.format(cell.strategy)}"


def _fewer(cell: Cell) -> str:
    return "lower concurrency" if own_connections(cell) else "lower concurrency, or use shared(4)"


def _sessions(cell: Cell, matrix: Matrix, limits: Limits) -> str | None:
    for name in dict.fromkeys(part.group.backend for part in all_parts_of(cell)):
        backend = matrix.backends[name]
        if backend.kind is not ServerKind.POSTGRES:
            continue
        wanted = sessions_of(cell, name)
        wants = f"{_how_connected(cell)}: {plural(wanted, 'session')}"
        if not backend.is_given and wanted > MOST_SESSIONS:
            limit = "the limit of a Postgres that pybench starts"
            return f"{wants} wanted, {MOST_SESSIONS:,} available ({limit}); {_fewer(cell)}"
        room = limits.sessions.get(name)
        if room is not None and wanted + MONITORING_SESSIONS > room.free:
            free = f"{room.free:,} of {room.most:,} are free on the server of {name}"
            remedy = f"raise {room.limit}, or {_fewer(cell)}"
            return f"{wants} and {MONITORING_SESSIONS} for monitoring wanted, {free}; {remedy}"
    return None


def _rows_without_a_table(cell: Cell, _matrix: Matrix, limits: Limits) -> str | None:
    by_guard = cell.guard_kind is ServerKind.POSTGRES
    if not (CATALOGUE[cell.strategy].uses_rows or by_guard):
        return None
    names = [cell.guard_on] if by_guard else parts_of_place(cell.backend)
    lacking = [limits.grants[name] for name in names if name in limits.grants]
    if not lacking:
        return None
    who = "the guarded resource" if by_guard else cell.strategy
    return f"{who} needs a table in a new schema, and this user may not create a schema; {lacking[0]}"


def _pointless_key_choice(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    match cell.key_choice.kind:
        case "zipf" if cell.keys == 1:
            return f"{cell.key_choice.text} over one key always takes that key; use key_choice: uniform, or more keys"
        case "single" if cell.keys > 1:
            return f"key_choice single takes only the first of {cell.keys:,} keys; use keys: 1"
        case _:
            return None


def _open_loop(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    if not cell.is_open:
        return None
    if cell.think.text != "0":
        opened_by = "mode" if cell.mode.is_search else "stages" if cell.stages else "rate"
        return f"think has no effect in an open loop, where arrivals start the clients; drop think or {opened_by}"
    if cell.max_in_flight < cell.concurrency:
        idle = cell.concurrency - cell.max_in_flight
        idlers = f"{idle:,} of {cell.concurrency:,} clients idle"
        return f"max_in_flight leaves {idlers}; raise max_in_flight, or lower concurrency"
    return None


def _search(cell: Cell, matrix: Matrix, _limits: Limits) -> str | None:
    return searches.why_no_search(cell, matrix)


def _faults(cell: Cell, matrix: Matrix, _limits: Limits) -> str | None:
    return why_no_faults(cell, matrix)


def _processes(cell: Cell, matrix: Matrix, _limits: Limits) -> str | None:
    return why_no_processes(cell, matrix)


def _steady_stages(cell: Cell, matrix: Matrix, _limits: Limits) -> str | None:
    if not (cell.stages and matrix.warmup.until_steady):
        return None
    return "a warm-up until steady delays stages by an unknown time; use a fixed warm-up, or drop stages"


def _readers_of_an_exclusive_lock(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    if cell.read_share == 0 or CATALOGUE[cell.strategy].shares:
        return None
    return f"{cell.strategy} has no shared mode for readers; use read_share: 0, or {_those('shares')}"


def _nesting_of_a_plain_lock(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    if cell.nesting == 1 or CATALOGUE[cell.strategy].nests:
        return None
    reason = f"{cell.strategy} is not reentrant, so a nested acquire would wait for its own client"
    return f"{reason}; use nesting: 1, or {_those('nests')}"


def _sets_of_keys(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    if cell.keys_per_grant > 1 and not CATALOGUE[cell.strategy].takes_many_keys:
        return f"{cell.strategy} takes one key per grant; use keys_per_grant: 1, or {_those('takes_many_keys')}"
    if cell.keys_per_grant > cell.keys:
        keys = plural(cell.keys, "key")
        return f"a grant takes {cell.keys_per_grant} keys, and the cell has {keys}; use more keys, or fewer per grant"
    if cell.keys_per_grant == 1 and cell.key_order != "random":
        return "key_order has no effect with one key per grant; use key_order: random, or keys_per_grant: 2"
    return None


def _too_few_servers(cell: Cell, matrix: Matrix, _limits: Limits) -> str | None:
    for part in parts_of(cell):
        name, wanted = part.group.backend, part.servers
        given = matrix.backends[name].urls
        if given and len(given) < wanted:
            return (
                f"{strategy_text(cell.strategy, cell.args)} needs {wanted} servers, and {name} names {len(given)}; "
                f"list {wanted} addresses under urls (or repeat --redis), or use nodes={len(given)}"
            )
    return None


def _too_few_replicas(cell: Cell, _matrix: Matrix, limits: Limits) -> str | None:
    wanted, there = CATALOGUE[cell.strategy].replicas(cell.args), limits.replicas.get(cell.backend)
    if there is None or there >= wanted:
        return None
    needs = f"{strategy_text(cell.strategy, cell.args)} needs {plural(wanted, 'replica')}"
    return (
        f"{needs}, and the server of {cell.backend} has {there}; attach more replicas, or let pybench start the servers"
    )


def _wait_for_replicas(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    wait_ms = CATALOGUE[cell.strategy].argument("timeout_ms", cell.args)
    most_ms = min(cell.ttl_ms, REPLY_TIMEOUT_NS // MS)
    if wait_ms is None or int(wait_ms) < most_ms:
        return None
    limit = f"the ttl of {format_lease(cell.ttl_ms)}" if most_ms == cell.ttl_ms else "the reply timeout of 1s"
    return f"timeout_ms={wait_ms}, the wait for replicas, is not shorter than {limit}; use less than {most_ms}"


def _one_session_of_several(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    argument = CATALOGUE[cell.strategy].argument
    if argument("session", cell.args) != "shared":
        return None
    if argument("wait", cell.args) == "block":
        return "in a shared session one waiting client blocks all clients; use wait=try, or session=own"
    if argument("scope", cell.args) == "transaction":
        return "clients that share a session cannot have transactions of their own; use scope=session, or session=own"
    return None


def _lock_timeout(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    strategy = CATALOGUE[cell.strategy]
    timeout_ms = strategy.argument("lock_timeout_ms", cell.args)
    if not timeout_ms:
        return None
    if strategy.argument("wait", cell.args) != "block":
        return (
            f"{strategy_text(cell.strategy, cell.args)} never waits for a lock; use wait=block, or drop lock_timeout_ms"
        )
    if int(timeout_ms) * MS > cell.retry.max_wait_ns:
        wait = format_duration(cell.retry.max_wait_ns)
        return f"max_wait of {wait} is shorter than lock_timeout_ms={timeout_ms}; lengthen max_wait"
    return None


def _settings_behind_a_pooler(cell: Cell, matrix: Matrix, limits: Limits) -> str | None:
    asked = session_arguments(CATALOGUE[cell.strategy], cell.args)
    for name in parts_of_place(cell.backend):
        if asked and (name in limits.pooled or matrix.backends[name].prepare == "unnamed"):
            return (
                f"{name} is behind a pooler, which refuses {' and '.join(asked)} for its sessions; drop it, or "
                "give the address of the database server"
            )
    return None


def _guard(cell: Cell, _matrix: Matrix, _limits: Limits) -> str | None:
    return why_no_guard(cell)


def _those(fact: str) -> str:
    """The strategies of which `fact` is true, for a hint."""
    return " or ".join(strategy.name for strategy in CATALOGUE.values() if getattr(strategy, fact))


_RULES: tuple[Rule, ...] = (
    _guard,
    _readers_of_an_exclusive_lock,
    _nesting_of_a_plain_lock,
    _sets_of_keys,
    _too_few_servers,
    _too_few_replicas,
    _wait_for_replicas,
    _one_session_of_several,
    _lock_timeout,
    _settings_behind_a_pooler,
    _lease_within_margin,
    _round_trips,
    _grant_beyond_ttl,
    _hold_beyond_ttl,
    _idle_threads,
    _connections,
    _sessions,
    _rows_without_a_table,
    _pointless_key_choice,
    _open_loop,
    _search,
    _steady_stages,
    _processes,
    _faults,
)
