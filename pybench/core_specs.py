"""What the core is given: a trial, a lock client, or worlds on virtual time.

Durations are in ns unless a name says something else. For the type checker; at run time they are dictionaries.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class RedisServerSpec(TypedDict):
    """One server. Either `unix` (a socket's path) or `host` (a numeric address) and `port`."""

    kind: Literal["redis"]
    unix: str | None
    host: str | None
    port: int
    username: str | None
    password: str | None
    db: int
    protocol: Literal[2, 3]
    compare_and_delete: Literal["script", "delifeq", "delex"]
    rtt: NotRequired[DistributionSpec]
    """A round-trip time that the driver adds, half of it in each direction; without it nothing is added."""


class PostgresServerSpec(TypedDict):
    """One server. Either `unix` (the path of the socket itself) or `host` (a numeric address) and `port`."""

    kind: Literal["postgres"]
    unix: str | None
    host: str | None
    port: int
    user: str
    password: str | None
    database: str
    table: str
    """The table of locks, its name quoted and qualified as in SQL."""
    settings: dict[str, str]
    """Settings of each session, such as `lock_timeout`. Without an `application_name`, `client_name` is used."""
    prepare: Literal["named", "unnamed"]
    """`named`: each statement is prepared once per session. `unnamed`: with every call, for poolers."""
    rtt: NotRequired[DistributionSpec]
    """As with Redis."""


class DistributionSpec(TypedDict):
    """`fixed` value_ns; `exp` mean_ns; `lognormal` median_ns, sigma; `uniform` low_ns, high_ns; `quantiles` points.

    A point is a standard normal deviate and the duration there in ns; both ascend from point to point.
    """

    kind: Literal["fixed", "exp", "lognormal", "uniform", "quantiles"]
    value_ns: NotRequired[int]
    mean_ns: NotRequired[int]
    median_ns: NotRequired[int]
    sigma: NotRequired[float]
    low_ns: NotRequired[int]
    high_ns: NotRequired[int]
    points: NotRequired[list[tuple[float, int]]]


class KeyChoiceSpec(TypedDict):
    """`uniform` over all keys, `zipf` with exponent `s` > 0, or always the `single` first key."""

    kind: Literal["uniform", "zipf", "single"]
    s: NotRequired[float]


class RetrySpec(TypedDict):
    """The retry policy. `max_attempts` None: as many attempts as `max_wait_ns` allows."""

    kind: Literal["none", "fixed", "exponential", "full-jitter", "equal-jitter", "decorrelated-jitter"]
    base_ns: int
    factor: float
    cap_ns: int
    max_attempts: int | None
    max_wait_ns: int


class LoopSpec(TypedDict):
    """`closed`, or `open` with `arrivals` at `rate_per_s`; at most `max_in_flight` arrivals wait or run at a time."""

    kind: Literal["closed", "open"]
    arrivals: NotRequired[Literal["constant", "poisson"]]
    rate_per_s: NotRequired[float]
    max_in_flight: NotRequired[int]


class ConnectionsSpec(TypedDict):
    """`shared`: all clients share `count` connections to each server. `per-client`: each client has its own."""

    kind: Literal["shared", "per-client"]
    count: NotRequired[int]


class TrialSpec(TypedDict):
    """The description of one trial. The same spec gives the same keys, holds, pauses and arrivals."""

    strategy: str
    args: dict[str, int | float | str | bool]
    servers: list[RedisServerSpec | PostgresServerSpec]
    connections: ConnectionsSpec
    client_name: str
    key_prefix: str
    keys: int
    key_choice: KeyChoiceSpec
    keys_per_grant: int
    key_order: Literal["random", "sorted"]
    """The order in which a client names the keys of one grant."""
    read_share: float
    """The share of acquires that ask for shared mode, from 0 to 1."""
    nesting: int
    """How often a holder enters, including the first time."""
    hold: DistributionSpec
    think: DistributionSpec
    after_lease: Literal["continue", "stop"]
    loop: LoopSpec
    concurrency: int
    retry: RetrySpec
    ttl_ms: int
    reply_timeout_ns: int
    warmup_ns: int
    until_steady: NotRequired[bool]
    """Whether the window opens as soon as the figures are steady, at the latest after `warmup_ns`; not with stages."""
    duration_ns: int | None
    """The length of the window. None: it has no end, and the time line coarsens as it grows."""
    stages: NotRequired[list[dict[str, float]]]
    """How the load changes within the window, which they fill: `from`, `to` and `length_ns` (an int) of each.

    The load goes linearly from one value to the other: clients of a closed loop, or arrivals a second of an open one.
    The warm-up has the load of their begin.
    """
    drain_ns: int
    dies: bool
    """At the end of the window all clients die: nothing is released."""
    seed: int
    threads: int
    process: NotRequired[ProcessSpec]
    """Without it this process runs the whole trial, and judges it."""
    cores: list[int]
    """The core that each thread is bound to; empty: any."""
    poll: Literal["block", "spin"]
    least_belief_ns: int
    """A grant counts as contended only if its holder believed in it for at least this long."""
    faults: NotRequired[list[FaultSpec]]
    fault_periods: NotRequired[list[tuple[int, int]]]
    """Further times in which the trial is disturbed, such as by faults of servers: from the opening of the window."""
    guard: NotRequired[GuardSpec]
    """Without it a hold is only time."""
    recording: NotRequired[RecordingSpec]
    """Without it no events are recorded."""


class ProcessSpec(TypedDict):
    """One of the processes that run a trial together, each with `threads` threads.

    Its clients are a share of the `concurrency` of the whole trial. The trial begins at the time that `Trial.begin_at`
    is given. It needs a `recording`, because its events are judged afterwards, with those of the other processes.
    """

    index: int
    of: int


class GuardSpec(TypedDict):
    """The resource of each key that the work reads and writes between grant and release.

    It is on a server of its own, which has the number after those of `servers`; this may be one of them once more.
    """

    kind: Literal["counter", "stock", "transfer", "fenced-write"]
    server: RedisServerSpec | PostgresServerSpec


class FaultSpec(TypedDict):
    """A planned fault of connections or of a client. Faults end with the window at the latest.

    `server` and `client` say which connections: those to one server or, None, to all; those of one client or of all. A
    connection that clients share is one of each of them. A fault of a client needs a `client`.

    `delay`: `by_ns`, a number or a distribution, is added to each round trip, half of it in each direction; `jitter`: a
    uniform time up to `by_ns`. `throttle`: each direction of a connection carries `bytes_per_s`. `cut`: closed, and new
    connections refused. `blackhole`: bytes of both sides are lost, and connections that lost any are closed at the end;
    `half-open`: those of the server only. `reset`: closed once. `lose-reply`: replies are lost when they arrive, and
    their connection is closed: each time, or only the `nth` time over each connection.

    `crash`: the client forgets its lock and begins anew after `for_ns`. `pause`: it acts on nothing. `drop-renewals`:
    what it sends as a holder is lost.
    """

    at_ns: int
    """From the opening of the window."""
    for_ns: int
    """0 for `reset`, any length for `crash`, and more than 0 for all others."""
    do: Literal[
        "delay",
        "jitter",
        "throttle",
        "cut",
        "blackhole",
        "half-open",
        "reset",
        "lose-reply",
        "crash",
        "pause",
        "drop-renewals",
    ]
    server: NotRequired[int | None]
    client: NotRequired[int | None]
    by_ns: NotRequired[int | DistributionSpec]
    bytes_per_s: NotRequired[int]
    nth: NotRequired[int | None]


class RecordingSpec(TypedDict):
    """Where the threads of a trial record their events, and what the header of its history says."""

    files: list[str]
    """One for each thread of the process."""
    lock: str
    cell: str
    trial: int
    exclusion: str
    wake_ups: bool
    judged_by: str


class LockClientSpec(TypedDict):
    """The locks of a program: `strategy` and `args` as in a trial."""

    strategy: str
    args: dict[str, int | float | str | bool]
    servers: list[RedisServerSpec | PostgresServerSpec]
    client_name: str
    reply_timeout_ns: int
    own_connections: int


class FuzzSpec(TypedDict):
    """Worlds on virtual time: `strategy` and `args` as in a trial. The seed of a world draws what is None."""

    strategy: str
    args: dict[str, int | float | str | bool]
    exclusion: str
    faults: list[str]
    """The kinds of faults that a world may have."""
    clients: int | None
    ttl_ms: int | None
    hold_ns: int | None
    """The longest hold."""
    until_ns: int | None
    """When the world ends."""


class PartSpec(TypedDict):
    """What is left of a world; None leaves all."""

    clients: list[int] | None
    faults: list[int] | None
    requests: int | None
    earlier_ns: int
