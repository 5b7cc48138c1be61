"""A cell: one point of the matrix, every axis resolved. What is measured, recorded, compared and shown is a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pybench.matrix.values import ClosedLoop, Connections, Distribution, KeyChoice, OpenLoop, Retry
from pybench.strategies import Arguments, arguments_text


@dataclass(frozen=True, slots=True)
class Cell:
    """Durations in nanoseconds, except the lease, which travels in milliseconds."""

    id: str
    """Stable over matrices and runs: the strategy with its arguments, then each axis off its default, by name."""
    strategy: str
    args: Arguments
    backend: str
    """The name of one of the matrix's backends, or of a Redis and a Postgres one: `redis+postgres`."""
    concurrency: int
    keys: int
    key_choice: KeyChoice
    keys_per_grant: int
    key_order: Literal["random", "sorted"]
    read_share: float
    nesting: int
    hold: Distribution
    think: Distribution
    ttl_ms: int
    retry: Retry
    connections: Connections
    threads: int
    poll: Literal["block", "spin"]
    loop: ClosedLoop | OpenLoop
    after_lease: Literal["continue", "stop"]
    appendfsync: Literal["off", "everysec", "always", "none"]
    """`none` where no server is one of Redis."""
    axes: tuple[tuple[str, str], ...]
    """The further axes that the matrix names (neither concurrency, keys, hold nor retry), as canonical text."""

    def columns(self) -> dict[str, Any]:
        """The cell's columns in every table, but for its id and its server."""
        return {
            "strategy": self.strategy,
            "args": arguments_text(self.args),
            "backend": self.backend,
            "concurrency": self.concurrency,
            "keys": self.keys,
            "hold": self.hold.text,
            "retry": self.retry.text,
            **dict(self.axes),
        }
