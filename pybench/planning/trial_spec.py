"""The specification of a trial for the core: the values of a cell as numbers, servers, seed and key prefix."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from pybench.matrix.durations import MS
from pybench.planning.fault_rules import of_core, periods_of
from pybench.planning.needs import guard_place_of
from pybench.strategies import CATALOGUE, Judge, Promise, ServerKind

if TYPE_CHECKING:
    from pathlib import Path

    from pybench.core_specs import PostgresServerSpec, RecordingSpec, RedisServerSpec, TrialSpec
    from pybench.matrix.cells import Cell
    from pybench.strategies import Arguments, Strategy

REPLY_TIMEOUT_NS = 1_000_000_000
"""How long a client waits for the reply to one command before it counts the command as lost."""

DRAIN_NS = 2_000_000_000
"""How long clients may take to finish after the trial: a lost reply, and the release after it. Holds are cut off."""
DRAIN_ROUND_TRIPS = 4
"""How many round trips of the axis `rtt` clients get in addition."""

CONNECTION_CHECK_MS = 100
"""How often a database checks the connection of a waiting client, and ends the wait of a client that has gone."""

MOST_LOCK_TIMEOUT_MS = 2**31 - 1


def trial_spec(
    cell: Cell,
    servers: Sequence[RedisServerSpec | PostgresServerSpec],
    *,
    cores: Sequence[int],
    key_prefix: str,
    client_name: str,
    seed: int,
    warmup_ns: int,
    duration_ns: int | None,
    until_steady: bool = False,
    least_belief_ns: int = 0,
    recording: RecordingSpec | None = None,
    guard: RedisServerSpec | PostgresServerSpec | None = None,
) -> TrialSpec:
    """The specification of one trial of `cell`. Its threads are bound to `cores`, if there are any.

    Without a `duration_ns` the window has no end. `until_steady` opens it when the figures are steady, at the latest
    after `warmup_ns`.

    `least_belief_ns` is the shortest belief that counts as contended, which is the time of an idle call: during a
    shorter belief even a broken lock could not grant the key to another client.

    `guard` is the server of the guarded resource, if the trial has one.
    """
    kinds = [ServerKind(server["kind"]) for server in servers]
    if guard is not None and guard_place_of(cell) is None:
        kinds.append(ServerKind(guard["kind"]))
    harmed = {}
    if cell.faults:
        assert duration_ns is not None, "the plan refuses faults without a window"
        harmed = {"faults": of_core(cell, kinds, duration_ns), "fault_periods": periods_of(cell, duration_ns)}
    values = {
        **cell.to_core(),
        **harmed,
        "args": dict(CATALOGUE[cell.strategy].arguments_of_lock(cell.args)),
        "servers": [
            {**server, "rtt": rtt.to_core()} for server, rtt in zip(servers, cell.rtt.of(len(servers)), strict=True)
        ],
        "client_name": client_name,
        "key_prefix": key_prefix,
        "reply_timeout_ns": REPLY_TIMEOUT_NS,
        "warmup_ns": warmup_ns,
        "until_steady": until_steady,
        "duration_ns": duration_ns,
        "drain_ns": DRAIN_NS + DRAIN_ROUND_TRIPS * slowest_ns(cell),
        "dies": False,
        "seed": seed,
        "cores": list(cores[: cell.all_threads]),
        "least_belief_ns": least_belief_ns,
        **({} if recording is None else {"recording": recording}),
        **({} if guard is None else {"guard": {"kind": cell.guard.kind, "server": _far(guard, cell, len(servers))}}),
    }
    # The core rejects unknown values and missing ones.
    return cast("TrialSpec", values)


def _far(guard: RedisServerSpec | PostgresServerSpec, cell: Cell, servers: int) -> RedisServerSpec | PostgresServerSpec:
    """`guard` with the round-trip time of the lock's server that it is, or else of the first one."""
    rtt = cell.rtt.of(servers)[guard_place_of(cell) or 0]
    return cast("RedisServerSpec | PostgresServerSpec", {**guard, "rtt": rtt.to_core()})


def recording_files(cell: Cell, stem: Path) -> list[str]:
    """The file of each load thread of `cell`, in all of its processes."""
    return [f"{stem}.{thread}.recording" for thread in range(cell.all_threads)]


def recording_spec(cell: Cell, *, trial: int, files: Sequence[str]) -> RecordingSpec:
    """Where the events of trial number `trial` of `cell` are recorded, and what their history says of the lock."""
    strategy = CATALOGUE[cell.strategy].with_arguments(cell.args)
    return {
        "files": list(files),
        "lock": cell.strategy,
        "cell": cell.id,
        "trial": trial,
        "exclusion": strategy.exclusion.value,
        "wake_ups": Promise.WAKE_UP in strategy.promises,
        "judged_by": (Judge.GUARD if cell.guard.decides else strategy.judged_by).value,
    }


def slowest_ns(cell: Cell) -> int:
    """The mean round-trip time that the axis `rtt` adds to the most distant server, at most the reply timeout."""
    return min(round(max(time.mean() for time in cell.rtt.times)), REPLY_TIMEOUT_NS)


def session_arguments(strategy: Strategy, arguments: Arguments) -> dict[str, str]:
    """The session settings among `arguments` that differ from their defaults, by the database's name of the setting."""
    own = dict(strategy.arguments_of_lock(arguments))
    return {name.removesuffix("_ms"): str(value) for name, value in arguments if name not in own}


def session_settings(cell: Cell, *, client_name: str, pooled: bool, checks_connections: bool) -> dict[str, str]:
    """The settings of every session of a trial of `cell`; times in milliseconds.

    Behind a pooler a session gets its name only, because a pooler accepts no session settings. `checks_connections`
    says whether the server can detect clients that have gone (Postgres 14 and later).
    """
    if pooled:
        return {"application_name": client_name}
    # A time below a millisecond must not become 0, which means no limit.
    longest_ms = min(max(1, -(-cell.retry.max_wait_ns // MS)), MOST_LOCK_TIMEOUT_MS)
    return {
        "application_name": client_name,
        "lock_timeout": str(longest_ms),
        **({"client_connection_check_interval": str(CONNECTION_CHECK_MS)} if checks_connections else {}),
        **session_arguments(CATALOGUE[cell.strategy], cell.args),
    }


def trial_seed(seed: int, trial: int, probe: int = 0) -> int:
    """The seed of trial number `trial`. All cells of a block share it, and so the same keys and holds.

    Each probe of a search has a seed of its own: one unlucky draw must not decide all confirmations.
    """
    text = f"{seed}:{trial}:{probe}" if probe else f"{seed}:{trial}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
