"""For how long a connection may be silent beside holds and think times: between two attempts, and between arrivals.

Promises: pure functions of a cell as the manifest has it; a form that this version does not know has no silence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pybench.matrix.durations import S, parse_rate
from pybench.matrix.values import Connections, Retry
from pybench.notation import BadValue, parse_call

TOLD_SHARE = 0.0001
"""Of the draws of a time that have to be longer than a limit for it to be named."""


def longest_pause_ns(cell: Mapping[str, Any]) -> int:
    """Nanoseconds between two attempts of the retry policy at most; 0: there is never a second one."""
    with suppress(BadValue):
        retry = Retry.parse(str(cell.get("retry")))
        pauses = None if retry.max_attempts is None else retry.max_attempts - 1
        if retry.kind == "none" or pauses == 0:
            return 0
        longest = retry.base_ns if retry.kind == "fixed" else _grown_ns(retry, pauses)
        return min(longest, retry.max_wait_ns)  # No attempt begins later than that.
    return 0


def _grown_ns(retry: Retry, pauses: int | None) -> int:
    """The longest that the last of so many pauses can be, of a kind that grows; None: as many as it takes."""
    jumps = retry.kind == "decorrelated-jitter"
    factor = 3.0 if jumps else retry.factor
    if factor <= 1:
        return retry.base_ns
    # The first pause of the kind that jumps is up to three times its base already.
    steps = None if pauses is None else pauses - (0 if jumps else 1)
    if steps is None or steps >= math.log(retry.cap_ns / retry.base_ns) / math.log(factor):
        return retry.cap_ns
    return round(retry.base_ns * factor**steps)


def gaps_are_longer(cell: Mapping[str, Any], limit_ns: int) -> bool:
    """Whether in an open loop a connection waits longer than `limit_ns` for the next arrival that is its own.

    Arrivals go to the client that has been idle for longest, so that all connections take turns.
    """
    with suppress(BadValue, KeyError):
        call = parse_call(str(cell.get("loop", "closed")))
        if call.name != "open":
            return False
        clients = int(cell.get("concurrency", 1))
        turns = Connections.parse(str(cell.get("connections", "shared(1)"))).used_by(clients)
        expected = parse_rate(call.named["rate"]) * limit_ns / S  # Arrivals of all within the limit.
        if call.named.get("arrivals") == "constant" or turns > expected:
            return turns > expected
        # That fewer than `turns` come in that time, by the law of Poisson.
        chances = (math.exp(k * math.log(expected) - expected - math.lgamma(k + 1)) for k in range(turns))
        return sum(chances) > TOLD_SHARE
    return False
