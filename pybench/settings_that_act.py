"""Settings of a server that may have acted on what was measured: time limits below a wait or a hold, eviction of keys.

Promises: pure functions of what the manifest holds. A setting that no cell of the run can meet is not named, nor is one
that pybench overrides in its sessions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pybench.durations import MS, S, format_duration
from pybench.notation import BadValue
from pybench.values import Distribution, Retry

Cells = Sequence[Mapping[str, Any]]

TOLD_SHARE = 0.0001
"""Of the draws of a hold or a pause that have to be longer than a limit for it to be named."""


def acting_settings(servers: Sequence[Mapping[str, Any]], cells: Cells) -> Iterator[str]:
    """A sentence for each setting of `servers` that may have acted on `cells`, both as the manifest has them."""
    for server in servers:
        label, settings = str(server.get("label", "server")), server.get("settings") or {}
        found = _of_postgres if server.get("product") == "postgres" else _of_redis
        for sentence in found(settings, cells):
            yield f"{label} has {sentence}"


def _of_postgres(settings: Mapping[str, Any], cells: Cells) -> Iterator[str]:
    ours = [cell for cell in cells if str(cell.get("strategy", "")).startswith("pg-")]
    waiting = [cell for cell in ours if _waits_on_server(cell)]
    statement, lock = _ms(settings, "statement_timeout_ms"), _ms(settings, "lock_timeout_ms")
    if statement and any(statement * MS < _longest_wait_ns(cell) for cell in waiting):
        yield f"statement_timeout {_text(statement)}: it ends waits for a lock, which count as refused or as errors"
    # Without a pooler each session begins with a lock_timeout of its own.
    if lock and settings.get("pooled") and any(lock * MS < _longest_wait_ns(cell) for cell in waiting):
        yield f"lock_timeout {_text(lock)}: it ends a wait for a lock before the retry policy does"
    open_ones = [cell for cell in ours if _holds_a_transaction(cell)]
    in_transaction = _ms(settings, "idle_in_transaction_session_timeout_ms")
    if in_transaction and any(_longer(cell, ("hold",), in_transaction * MS) for cell in open_ones):
        yield (
            f"idle_in_transaction_session_timeout {_text(in_transaction)}, and some holds are longer: the server ends "
            "the session of such a holder, and the lock is lost"
        )
    idle = _ms(settings, "idle_session_timeout_ms")
    if idle and any(_longer(cell, ("hold", "think"), idle * MS) for cell in ours):
        yield f"idle_session_timeout {_text(idle)}, and some holds or pauses are longer: the server ends their sessions"


def _of_redis(settings: Mapping[str, Any], cells: Cells) -> Iterator[str]:
    timeout_s, policy = settings.get("timeout_s"), str(settings.get("maxmemory_policy") or "noeviction")
    if timeout_s and any(_longer(cell, ("hold", "think"), timeout_s * S) for cell in cells):
        limit = format_duration(timeout_s * S)
        yield f"timeout {limit}, and some holds or pauses are longer: the server closes connections that idle so long"
    if settings.get("maxmemory") and policy != "noeviction":
        yield f"maxmemory-policy {policy}: a server that is short of memory may evict the key of a lock that is held"


def _waits_on_server(cell: Mapping[str, Any]) -> bool:
    args = str(cell.get("args") or "")
    blocks = cell.get("strategy") in ("pg-advisory", "pg-row")
    return blocks and not any(f"wait={way}" in args for way in ("try", "nowait", "skip-locked"))


def _holds_a_transaction(cell: Mapping[str, Any]) -> bool:
    by_advisory = cell.get("strategy") == "pg-advisory" and "scope=transaction" in str(cell.get("args") or "")
    return by_advisory or cell.get("strategy") in ("pg-row", "pg-serializable")


def _longest_wait_ns(cell: Mapping[str, Any]) -> int:
    with suppress(BadValue):
        return Retry.parse(str(cell.get("retry"))).max_wait_ns
    return 0


def _longer(cell: Mapping[str, Any], names: Sequence[str], limit_ns: int) -> bool:
    """Whether some of the lengths `names` of `cell` are longer than `limit_ns`."""
    for name in names:
        # A record may hold a form that this version does not know.
        with suppress(BadValue):
            if Distribution.parse(str(cell.get(name, "0"))).share_above(limit_ns) > TOLD_SHARE:
                return True
    return False


def _ms(settings: Mapping[str, Any], name: str) -> int:
    value = settings.get(name)
    return value if isinstance(value, int) else 0


def _text(ms: int) -> str:
    return format_duration(ms * MS)
