"""A trial, as the core wants it: every value of a cell as numbers, its servers, its seed and its keys' prefix."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from pybench.matrix.durations import MS
from pybench.strategies import CATALOGUE

if TYPE_CHECKING:
    from pybench._core import PostgresServerSpec, RedisServerSpec, TrialSpec
    from pybench.matrix.cells import Cell
    from pybench.strategies import Arguments, Strategy

PATIENCE_NS = 1_000_000_000
"""How long a client waits for the answer to one command before it counts the command as lost."""

REST_NS = 2_000_000_000
"""What clients may take to come to rest: an answer that is lost, and the release after it. Holds are cut off."""


CONNECTION_CHECK_MS = 100
"""How often a database looks whether a client that waits there is still there: one that hangs up frees its place."""

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
    duration_ns: int,
    least_belief_ns: int = 0,
) -> TrialSpec:
    """Everything that one trial of `cell` needs. `cores` are those that its threads keep to, if any.

    `least_belief_ns` is how long a grant has to be believed in to count as contended: the time of an idle call, for a
    shorter belief leaves no room for a rival's grant, however broken the lock.
    """
    values = {
        **cell.to_core(),
        "args": dict(CATALOGUE[cell.strategy].arguments_of_lock(cell.args)),
        "servers": list(servers),
        "client_name": client_name,
        "key_prefix": key_prefix,
        "patience_ns": PATIENCE_NS,
        "warmup_ns": warmup_ns,
        "duration_ns": duration_ns,
        "drain_ns": REST_NS,
        "dies": False,
        "seed": seed,
        "cores": list(cores[: cell.threads]),
        "least_belief_ns": least_belief_ns,
    }
    # The core refuses a value that it does not know, and one that is missing.
    return cast("TrialSpec", values)


def session_arguments(strategy: Strategy, arguments: Arguments) -> dict[str, str]:
    """Those of `arguments` that are settings of sessions and off their defaults, as names of the database's own."""
    own = dict(strategy.arguments_of_lock(arguments))
    return {name.removesuffix("_ms"): str(value) for name, value in arguments if name not in own}


def session_settings(cell: Cell, *, client_name: str, pooled: bool, checks_connections: bool) -> dict[str, str]:
    """What every session of a trial of `cell` begins with; times in milliseconds.

    Behind a pooler that is the name alone: its sessions come and go with transactions, and it takes no settings for
    them. `checks_connections` says whether the server can look for clients that have gone (Postgres 14 and later).
    """
    if pooled:
        return {"application_name": client_name}
    # A time of less than a millisecond must not become 0, which stands for no end at all.
    longest_ms = min(max(1, -(-cell.retry.max_wait_ns // MS)), MOST_LOCK_TIMEOUT_MS)
    return {
        "application_name": client_name,
        "lock_timeout": str(longest_ms),
        **({"client_connection_check_interval": str(CONNECTION_CHECK_MS)} if checks_connections else {}),
        **session_arguments(CATALOGUE[cell.strategy], cell.args),
    }


def trial_seed(seed: int, trial: int) -> int:
    """The seed of trial number `trial`, the same for each cell: all of a block meet the same keys and holds."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{trial}".encode()).digest()[:8], "big")
