"""A cell: one combination of a matrix, with a value for every axis. Its fields define the axes, here and nowhere else.

To add an axis, add its field. A new kind of value needs a type in `pybench.matrix.values`, an axis that the core uses
needs an entry in `rust_core/python/src/spec.rs`, and an impossible combination a rule in `planning.impossible`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pybench.column import Type
from pybench.matrix.axes import REQUIRED, Axis, Column, Parsed, axes_of, axis, count, share
from pybench.matrix.durations import MS, S, format_lease, format_rate, parse_lease, parse_rate
from pybench.matrix.faults import NO_FAULTS, Faults
from pybench.matrix.guards import GUARD, GUARD_ON, NO_GUARD, Guard
from pybench.matrix.notations import (
    CONNECTIONS,
    FAULTS,
    KEY_CHOICE,
    LEASE,
    LENGTH,
    MODE,
    PLACE,
    RATE,
    RETRY,
    ROUND_TRIP,
    STAGES,
    parse_place,
    strategy_schema,
)
from pybench.matrix.round_trips import NO_ROUND_TRIP, RoundTrip, milliseconds
from pybench.matrix.search_modes import MEASURE, SearchMode
from pybench.matrix.stages import NO_STAGES, Stages
from pybench.matrix.values import Connections, Distribution, KeyChoice, Retry
from pybench.notation import format_number
from pybench.strategies import Arguments, ServerKind, arguments_text, parse_strategy, strategy_text

if TYPE_CHECKING:
    from pybench.core_specs import LoopSpec

DEFAULT_BACKEND = "redis"
MOST_PROCESSES = 64
HAS_NONE = "none"
"""The value of an axis that does not apply to the servers of a cell."""

OWN_SERVER = "lock"
"""The value of `guard_on` that stands for the lock's own backend."""

KeyOrder = Literal["random", "sorted"]
Poll = Literal["block", "spin"]
Arrivals = Literal["constant", "poisson"]
AfterLease = Literal["continue", "stop"]
Persistence = Literal["off", "everysec", "always"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell. Durations are in nanoseconds, except the lease, which is in milliseconds."""

    id: str
    """The same in all matrices and runs: the strategy with its arguments, then each axis off its default, by name."""
    args: Arguments
    strategy: str = axis(
        Parsed(parse_strategy, strategy_schema()),
        REQUIRED,
        "The lock (see `pybench strategies`): a name, `name(argument=value)`, or a mapping of the name to arguments",
        metavar="NAME[(ARGS)]",
        text=lambda value: strategy_text(*value),
        short="-s",
    )
    backend: str = axis(
        Parsed(parse_place, PLACE),
        DEFAULT_BACKEND,
        "The servers of the locks: a name under `backends`, or a pair such as `redis+postgres` for locks on both. If "
        "not given, every backend that suits the lock",
        metavar="NAME,...",
        text=str,
        of_servers=True,
    )
    concurrency: int = axis(count(1_000_000), 1, "Concurrent clients", noun="client", also="--clients")
    keys: int = axis(count(10_000_000), 1, "Keys (locks) that the clients choose from", noun="key")
    key_choice: KeyChoice = axis(
        Parsed(KeyChoice.parse, KEY_CHOICE),
        KeyChoice("uniform"),
        "How a client chooses its next key: `uniform`, `zipf(S)`, or `single`, which always takes the first key",
        metavar="KIND,...",
    )
    keys_per_grant: int = axis(count(8), 1, "Keys that one grant takes")
    key_order: KeyOrder = axis(
        KeyOrder,
        "random",
        "The order in which a client requests the keys of one grant: `random` or `sorted`",
        metavar="KIND,...",
    )
    read_share: float = axis(
        share(),
        0.0,
        "The share of shared (reader) grants, 0 to 1",
        metavar="SHARE,...",
        text=format_number,
    )
    nesting: int = axis(count(16), 1, "How many times a holder acquires the lock before it releases (reentrancy)")
    hold: Distribution = axis(
        Parsed(Distribution.parse, LENGTH),
        Distribution("fixed", (0,)),
        "The time between grant and release: `2ms`, `exp(2ms)`, `lognormal(2ms, 0.8)`, `uniform(1ms, 3ms)`, "
        "`quantiles(p50=50ms, p99=2s)`",
        metavar="TIME,...",
    )
    think: Distribution = axis(
        Parsed(Distribution.parse, LENGTH),
        Distribution("fixed", (0,)),
        "Closed loop: the pause of a client after its release; same forms as `hold`",
        metavar="TIME,...",
    )
    ttl_ms: int = axis(
        Parsed(parse_lease, LEASE),
        10_000,
        "The length of the lease, in whole milliseconds",
        name="ttl",
        unit="ms",
        metavar="TIME,...",
        column_type="int64",
        text=format_lease,
    )
    retry: Retry = axis(
        Parsed(Retry.parse, RETRY),
        Retry("full-jitter", MS, 2.0, 50 * MS, None, 10 * S),
        "When a refused client tries again: `none`, `fixed`, `exponential`, `full-jitter`, `equal-jitter` or "
        "`decorrelated-jitter`; with fields, `fixed(base=1ms, max_wait=5s)`",
        metavar="POLICY,...",
    )
    connections: Connections = axis(
        Parsed(Connections.parse, CONNECTIONS),
        Connections("shared", 4),
        "Connections to each server: `shared(N)`, N for all clients (at most one per client), or `per-client`",
        metavar="KIND,...",
    )
    rtt: RoundTrip = axis(
        Parsed(RoundTrip.parse, ROUND_TRIP),
        NO_ROUND_TRIP,
        "A round-trip time that pybench adds between the clients and each server, half of it in each direction; same "
        "forms as `hold`, or `per-server(0.5ms, 1ms, 20ms)` with one for each server",
        metavar="TIME,...",
        on_chart=milliseconds,
    )
    threads: int = axis(count(64), 1, "Threads that generate the load", noun="thread")
    processes: int = axis(
        count(MOST_PROCESSES, lowest=0),
        0,
        "Worker processes that share the clients, each with `threads` threads, so that a fault can kill or stop a real "
        "holder; 0: all in the process of pybench",
    )
    poll: Poll = axis(
        Poll,
        "block",
        "How the threads wait for replies: `block` sleeps; `spin` polls without a pause and needs a core per thread",
        metavar="KIND,...",
    )
    rate_per_s: float | None = axis(
        Parsed(parse_rate, RATE),
        None,
        "Arrivals per second, `5000/s`. A rate makes the loop open: latency counts from the due time of an arrival",
        name="rate",
        unit="1/s",
        metavar="PER_S,...",
        column_type="float64",
        text=format_rate,
    )
    arrival_process: Arrivals = axis(
        Arrivals,
        "constant",
        "Open loop: how arrivals are spaced, `constant` or `poisson`",
        name="arrivals",
        metavar="KIND,...",
        only_open=True,
    )
    max_in_flight: int = axis(
        count(10_000_000), 10_000, "Open loop: the most arrivals that wait or run; more are dropped", only_open=True
    )
    stages: Stages = axis(
        Parsed(Stages.parse, STAGES),
        NO_STAGES,
        "A load that changes during the window, which is as long as its stages: "
        "`0 -> 256 over 5s, 256 for 10s, 0 over 1s`, of clients, or of arrivals per second (`0 -> 5000/s over 5s`) in "
        "an open loop. Sets `concurrency` or `rate` to the highest value",
        metavar="STAGES",
        has_commas=True,
    )
    mode: SearchMode = axis(
        Parsed(SearchMode.parse, MODE),
        MEASURE,
        "What is measured: `measure`, trials at the load of the cell; `saturate`, the highest open-loop rate that the "
        "lock sustains; `curve`, also the latency at 30, 60, 80 and 95 % of that rate",
        metavar="KIND,...",
    )
    faults: Faults = axis(
        Parsed(Faults.parse, FAULTS),
        NO_FAULTS,
        "What fails while the window is open, as in `kill redis[0] at 1s for 500ms` (see docs/faults.md). Repeated "
        "options make one plan; `none` adds cells on healthy servers",
        metavar="FAULT",
        has_commas=True,
        also="--fault",
    )
    after_lease: AfterLease = axis(
        AfterLease,
        "continue",
        "What a holder does when its lease ends before its work: `continue` or `stop`",
        metavar="KIND,...",
    )
    guard: Guard = axis(
        Parsed(Guard.parse, GUARD),
        NO_GUARD,
        "The shared resource that each work reads and writes between grant and release, with the hold in between: "
        "`none`, `counter`, `stock(N)`, `transfer(N)` or `fenced-write` (see docs/guard.md)",
        metavar="KIND,...",
    )
    guard_on: str = axis(
        Parsed(parse_place, GUARD_ON),
        OWN_SERVER,
        "The backend of the guarded resource; `lock`: the backend of the lock, or the first of them",
        metavar="NAME,...",
        text=str,
        of_servers=True,
    )
    appendfsync: Persistence | Literal["none"] = axis(
        Persistence,
        "off",
        "Persistence of the Redis servers that pybench starts: `off`, `everysec` or `always`",
        metavar="KIND,...",
        of_servers=True,
    )

    guard_kind: ServerKind | None = None
    """The kind of the server of the guarded resource; None without a guard."""

    def columns(self) -> dict[str, Any]:
        """The cell's columns in every table, except its id and server. None where an axis needs an open loop."""
        values: dict[str, Column] = {"strategy": self.strategy, "args": arguments_text(self.args)}
        for one in AXES.values():
            if one.name != "strategy":
                is_idle = one.only_open and not self.is_open
                values[one.column] = None if is_idle else one.in_table(getattr(self, one.column))
        return values

    def to_core(self) -> dict[str, Any]:
        """The axes in the form of the core, without those that describe the servers or the way to each of them."""
        values: dict[str, Any] = {
            one.column: _to_core(getattr(self, one.column))
            for one in AXES.values()
            if not (one.of_servers or one.only_open or one.name in _NOT_OF_LOAD)
        }
        return {
            **values,
            "connections": self.connections.to_core(self.concurrency),
            "loop": self._loop(),
            **({"stages": self.stages.to_core()} if self.stages else {}),
        }

    def window_ns(self, duration_ns: int) -> int:
        """The length of its window in a matrix whose windows take `duration_ns`: that of its stages, if it has any."""
        return self.stages.length_ns or duration_ns

    @property
    def all_threads(self) -> int:
        """The load threads of all its processes."""
        return self.threads * max(1, self.processes)

    @property
    def is_open(self) -> bool:
        """Whether arrivals start its clients, at a rate of its own or at those of a search."""
        return self.rate_per_s is not None or self.mode.is_search

    def at_rate(self, rate_per_s: float) -> Cell:
        """The cell with this rate, and without a search: one probe of its search."""
        return replace(self, rate_per_s=rate_per_s, mode=MEASURE)

    @property
    def mean_clients(self) -> float:
        """The mean number of clients over the window: with stages of clients fewer than `concurrency`."""
        return self.stages.mean if self.stages and not self.stages.is_open else float(self.concurrency)

    @property
    def mean_rate_per_s(self) -> float | None:
        """The mean rate of arrivals over the window; None in a closed loop."""
        return self.stages.mean if self.stages and self.stages.is_open else self.rate_per_s

    def _loop(self) -> LoopSpec:
        """The loop in the form of the core: open where the cell has a rate, else closed."""
        if self.rate_per_s is None:
            return {"kind": "closed"}
        return {
            "kind": "open",
            "arrivals": self.arrival_process,
            "rate_per_s": self.rate_per_s,
            "max_in_flight": self.max_in_flight,
        }


_NOT_OF_LOAD = ("rate", "rtt", "connections", "stages", "mode", "faults", "guard", "processes")
"""Axes that the core does not have, or has in another form."""


def _to_core(value: Any) -> Any:  # noqa: ANN401 - one parsed value of any axis
    return value.to_core() if hasattr(value, "to_core") else value


AXES: dict[str, Axis] = axes_of(Cell.__dataclass_fields__)
"""The axes by name, in the order of `Cell`."""
BY_COLUMN: dict[str, Axis] = {one.column: one for one in AXES.values()}

_LOAD = {one.column: one.column_type for one in AXES.values() if one.name not in ("strategy", "backend")}
LOAD_COLUMNS = tuple(_LOAD)
"""The columns of every table that describe the load of a cell, and not its lock."""
CELL_COLUMNS: Mapping[str, Type] = {
    "cell": "string",
    "strategy": "string",
    "args": "string",
    "backend": "string",
    "server": "string",
    **_LOAD,
}
"""The columns of every table that identify the cell of a row, with their types."""
