"""Server settings that may have changed the figures of a run: time limits below a wait or a hold, eviction of keys.

Promises: pure functions of the manifest. A setting that can affect no cell of the run is not named, and neither is a
setting that pybench overrides in its sessions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pybench.matrix.durations import MS, S, format_duration
from pybench.matrix.stages import recorded_stages
from pybench.matrix.values import Connections, Distribution, Retry
from pybench.notation import BadValue
from pybench.strategies import CATALOGUE, ServerKind

Cells = Sequence[Mapping[str, Any]]


def acting_settings(servers: Sequence[Mapping[str, Any]], cells: Cells) -> Iterator[str]:
    """A sentence for each setting of `servers` that may have affected `cells`; both are as in the manifest."""
    for server in servers:
        label, settings = str(server.get("label", "server")), server.get("settings") or {}
        found = _of_postgres if server.get("product") == "postgres" else _of_redis
        for sentence in found(settings, cells):
            yield f"{label} has {sentence}"


def _of_postgres(settings: Mapping[str, Any], cells: Cells) -> Iterator[str]:
    ours = [cell for cell in cells if _is_on(cell, ServerKind.POSTGRES)]
    waiting = [cell for cell in ours if _waits_on_server(cell)]
    statement, lock = _ms(settings, "statement_timeout_ms"), _ms(settings, "lock_timeout_ms")
    if statement and any(statement * MS < _longest_wait_ns(cell) for cell in waiting):
        yield f"statement_timeout {_text(statement)}: such a wait ends early, as refused or as an error"
    # Without a pooler pybench sets the lock_timeout of each session.
    if lock and settings.get("pooled") and any(lock * MS < _longest_wait_ns(cell) for cell in waiting):
        yield f"lock_timeout {_text(lock)}: the server ends a wait for a lock before the retry policy does"
    open_ones = [cell for cell in ours if _holds_a_transaction(cell)]
    in_transaction = _ms(settings, "idle_in_transaction_session_timeout_ms")
    if in_transaction and any(_longer(cell, ("hold",), in_transaction * MS) for cell in open_ones):
        yield (
            f"idle_in_transaction_session_timeout {_text(in_transaction)}, and some holds are longer: the server ends "
            "the session of such a holder, and the lock is lost"
        )
    transaction = _ms(settings, "transaction_timeout_ms")
    if transaction and (
        any(_longer(cell, ("hold",), transaction * MS) for cell in open_ones)
        or any(transaction * MS < _longest_wait_ns(cell) for cell in waiting)
    ):
        yield (
            f"transaction_timeout {_text(transaction)}, and some holds or waits for a lock are longer: the server ends "
            "the session of such a client, and a holder loses its lock"
        )
    idle = _ms(settings, "idle_session_timeout_ms")
    if idle and (silent := _silent(ours, idle * MS, in_transaction=False)):
        yield f"idle_session_timeout {_text(idle)}, and some {silent} are longer: the server ends their sessions"
    isolation = str(settings.get("default_transaction_isolation") or "")
    if isolation in _STRICTER and any(_begins_at_default(cell) for cell in ours):
        yield (
            f"default_transaction_isolation {isolation}: the server refuses one of two clients that write one row, "
            "which causes conflicts and retries; read committed causes none"
        )


_STRICTER = ("repeatable read", "serializable")


def _begins_at_default(cell: Mapping[str, Any]) -> bool:
    """Whether the transactions of `cell` use rows at the default isolation level."""
    strategy = CATALOGUE.get(str(cell.get("strategy")))
    return strategy is not None and strategy.uses_rows and strategy.name != "pg-serializable"


def _of_redis(settings: Mapping[str, Any], cells: Cells) -> Iterator[str]:
    timeout_s, policy = settings.get("timeout_s"), str(settings.get("maxmemory_policy") or "noeviction")
    ours = [cell for cell in cells if _is_on(cell, ServerKind.REDIS)]
    if timeout_s and (silent := _silent(ours, timeout_s * S, in_transaction=True)):
        limit = format_duration(timeout_s * S)
        yield f"timeout {limit}, and some {silent} are longer: the server closes connections that idle longer"
    if settings.get("maxmemory") and policy != "noeviction":
        yield f"maxmemory-policy {policy}: when memory is short, the server may evict the key of a held lock"


def _is_on(cell: Mapping[str, Any], kind: ServerKind) -> bool:
    strategy = CATALOGUE.get(str(cell.get("strategy")))
    return strategy is not None and kind in strategy.server_kinds


def _silent(cells: Cells, limit_ns: int, *, in_transaction: bool) -> str:
    """The times of `cells` in which a connection may be idle for longer than `limit_ns`, such as `holds and back-offs`.

    Without `in_transaction` a hold inside an open transaction does not count. Empty where no time is longer.
    """
    counted = [cell for cell in cells if in_transaction or not _holds_a_transaction(cell)]
    times = {
        "holds": any(_longer(cell, ("hold",), limit_ns) for cell in counted),
        "think times": any(_longer(cell, ("think",), limit_ns) for cell in cells),
        # A client that waits on the server does not pause: for it the retry policy only limits the wait.
        "back-offs": any(longest_pause_ns(cell) > limit_ns for cell in cells if not _waits_on_server(cell)),
        "gaps between arrivals": any(gaps_are_longer(cell, limit_ns) for cell in cells),
        "stages with fewer clients": any(_has_idle_clients(cell, limit_ns) for cell in cells),
    }
    *first, last = [name for name, longer in times.items() if longer] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _has_idle_clients(cell: Mapping[str, Any], limit_ns: int) -> bool:
    """Whether the stages of a closed loop may leave a client without work for longer than `limit_ns`."""
    stages = recorded_stages(cell.get("stages"))
    values = {value for stage in stages.stages for value in (stage.begin, stage.end)}
    return not stages.is_open and len(values) > 1 and stages.length_ns > limit_ns


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
    """Whether some draws of the distributions `names` of `cell` are longer than `limit_ns`."""
    for name in names:
        # A record of another version may hold an unknown form.
        with suppress(BadValue):
            if Distribution.parse(str(cell.get(name, "0"))).share_above(limit_ns) > LEAST_SHARE:
                return True
    return False


def _ms(settings: Mapping[str, Any], name: str) -> int:
    value = settings.get(name)
    return value if isinstance(value, int) else 0


def _text(ms: int) -> str:
    return format_duration(ms * MS)


LEAST_SHARE = 0.0001
"""A limit is named when at least this share of the draws of a time is longer."""


def longest_pause_ns(cell: Mapping[str, Any]) -> int:
    """The longest pause between two attempts of the retry policy, in nanoseconds; 0 where there is only one attempt."""
    with suppress(BadValue):
        retry = Retry.parse(str(cell.get("retry")))
        pauses = None if retry.max_attempts is None else retry.max_attempts - 1
        if retry.kind == "none" or pauses == 0:
            return 0
        longest = retry.base_ns if retry.kind == "fixed" else _grown_ns(retry, pauses)
        return min(longest, retry.max_wait_ns)  # No attempt begins after the longest wait.
    return 0


def _grown_ns(retry: Retry, pauses: int | None) -> int:
    """The longest possible last of `pauses` growing pauses; None for an unlimited number of pauses."""
    jumps = retry.kind == "decorrelated-jitter"
    factor = 3.0 if jumps else retry.factor
    if factor <= 1:
        return retry.base_ns
    # With decorrelated jitter already the first pause may be three times the base.
    steps = None if pauses is None else pauses - (0 if jumps else 1)
    if steps is None or steps >= math.log(retry.cap_ns / retry.base_ns) / math.log(factor):
        return retry.cap_ns
    return round(retry.base_ns * factor**steps)


def gaps_are_longer(cell: Mapping[str, Any], limit_ns: int) -> bool:
    """Whether in an open loop a connection may be idle for longer than `limit_ns` between two of its arrivals.

    Each arrival goes to the client that has been idle longest, so all connections take turns. With stages the lowest
    rate counts.
    """
    rate_per_s, stages = cell.get("rate_per_s"), recorded_stages(cell.get("stages"))
    if stages.is_open:
        rate_per_s = min(min(stage.begin, stage.end) for stage in stages.stages)
        if not rate_per_s:
            return stages.length_ns > limit_ns
    if not rate_per_s:
        return False
    with suppress(BadValue, KeyError):
        clients = int(cell.get("concurrency", 1))
        turns = Connections.parse(str(cell.get("connections", "shared(1)"))).used_by(clients)
        expected = rate_per_s * limit_ns / S  # Expected arrivals of all clients within the limit.
        if cell.get("arrival_process") == "constant" or turns > expected:
            return bool(turns > expected)
        # The Poisson probability that fewer than `turns` arrivals come within the limit.
        chances = (math.exp(k * math.log(expected) - expected - math.lgamma(k + 1)) for k in range(turns))
        return bool(sum(chances) > LEAST_SHARE)
    return False
