"""The Rust core: one call a trial, never one an operation. Times are nanoseconds, points are CLOCK_MONOTONIC.

The typed dictionaries are shapes for the type checker alone: import them under `TYPE_CHECKING`.
"""

from typing import Literal, NotRequired, Self, TypedDict, final, type_check_only

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ConnectError",
    "HistogramRow",
    "Progress",
    "Trial",
    "TrialResult",
    "build_profile",
    "histogram_buckets",
    "judge_rows",
    "merge_histograms",
    "version",
]

version: str
build_profile: Literal["release", "debug"]

@type_check_only
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

@type_check_only
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
    """The table of locks, its name quoted and qualified as SQL has it."""
    settings: dict[str, str]
    """What is set for each session, such as `lock_timeout`; `application_name` is `client_name` otherwise."""
    prepare: Literal["named", "unnamed"]
    """Each statement once in each session; or with every call, for a pooler that lends sessions."""

@type_check_only
class DistributionSpec(TypedDict):
    """`fixed` value_ns; `exp` mean_ns; `lognormal` median_ns, sigma; `uniform` low_ns, high_ns; `quantiles` points.

    A point is a standard normal deviate and the length in ns there; both ascend from point to point.
    """

    kind: Literal["fixed", "exp", "lognormal", "uniform", "quantiles"]
    value_ns: NotRequired[int]
    mean_ns: NotRequired[int]
    median_ns: NotRequired[int]
    sigma: NotRequired[float]
    low_ns: NotRequired[int]
    high_ns: NotRequired[int]
    points: NotRequired[list[tuple[float, int]]]

@type_check_only
class KeyChoiceSpec(TypedDict):
    """`uniform` over all keys, `zipf` with exponent `s` > 0, or always the `single` first key."""

    kind: Literal["uniform", "zipf", "single"]
    s: NotRequired[float]

@type_check_only
class RetrySpec(TypedDict):
    """When to try again. `max_attempts` None: as often as `max_wait_ns` allows."""

    kind: Literal["none", "fixed", "exponential", "full-jitter", "equal-jitter", "decorrelated-jitter"]
    base_ns: int
    factor: float
    cap_ns: int
    max_attempts: int | None
    max_wait_ns: int

@type_check_only
class LoopSpec(TypedDict):
    """`closed`, or `open` with `arrivals` at `rate_per_s`; at most `max_in_flight` arrivals wait or run at a time."""

    kind: Literal["closed", "open"]
    arrivals: NotRequired[Literal["constant", "poisson"]]
    rate_per_s: NotRequired[float]
    max_in_flight: NotRequired[int]

@type_check_only
class ConnectionsSpec(TypedDict):
    """`shared` by all clients, `count` to each server; or `per-client`."""

    kind: Literal["shared", "per-client"]
    count: NotRequired[int]

@type_check_only
class TrialSpec(TypedDict):
    """Everything one trial needs. The same spec gives the same keys, holds, backoffs and arrivals."""

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
    """The part of the grants that are asked for as a reader."""
    nesting: int
    """How often a holder enters, the first time included."""
    hold: DistributionSpec
    think: DistributionSpec
    after_lease: Literal["continue", "stop"]
    loop: LoopSpec
    concurrency: int
    retry: RetrySpec
    ttl_ms: int
    patience_ns: int
    warmup_ns: int
    duration_ns: int
    drain_ns: int
    dies: bool
    """At the end of the window all clients die: nothing is given back."""
    seed: int
    threads: int
    cores: list[int]
    """The core that each thread keeps to; empty: any."""
    poll: Literal["block", "spin"]
    least_belief_ns: int
    """A grant counts as contended only if it was believed in for at least this long."""

@type_check_only
class Violation(TypedDict):
    """Two grants of one key that should not have stood beside each other, or not in this order.

    Or one client that was denied what it should have had: the fields of the second are None then, and `overlap_ns` is
    how long a key stalled or a client starved until `at_ns`. Of an inversion the second may still wait: then it has a
    client alone.
    Points count from the start of the trial. With a stale fence the first is the grant with the highest fence before;
    with an inversion it is the one that came later and was granted first.
    """

    kind: Literal[
        "double-grant",
        "double-grant-after-overrun",
        "session-lost",
        "lease-overrun",
        "stale-fence",
        "fifo-inversion",
        "stalled-key",
        "starved-client",
        "denied-release",
    ]
    key: str
    at_ns: int
    overlap_ns: int
    """How long both went on; up to the end of the trial when it ended before either did."""
    first_client: int
    first_granted_ns: int | None
    """None of a client that waits."""
    first_until_ns: int | None
    """The end of the lease; None for a lock without one. Of a lost session: when its holder had found that out."""
    first_fence: int | None
    first_ended_ns: int | None
    """When its release was sent; None when it had not been when the trial ended."""
    second_client: int | None
    second_granted_ns: int | None
    second_until_ns: int | None
    second_fence: int | None
    second_ended_ns: int | None

@final
class HistogramRow:
    """One HDR histogram (1 ns to 1 h, 3 significant digits) of a phase and an outcome."""

    phase: Literal["queue", "service", "response", "hold", "release", "handoff", "lag"]
    outcome: Literal["granted", "refused", "timeout", "error", "lost", "unknown", "waiting"]
    count: int
    hdr: bytes
    """HdrHistogram V2, deflated: lossless."""

@type_check_only
class ErrorReply(TypedDict):
    """Error replies of one phase, code and server in the whole trial, warm-up and drain included.

    Conflicts of Postgres (SQLSTATE 40001, 40P01, 55P03) are not counted here, nor is NOSCRIPT where the lock sends the
    script again.
    """

    phase: Literal["acquire", "renew", "release", "other"]
    """What the client was about when it sent the call; `other`: no grant, such as a log-in."""
    code: str
    """The first word of a reply of Redis, the SQLSTATE of one of Postgres."""
    server: int
    """The number of the server in `servers` of the spec, from 0."""
    count: int
    warmup: int
    """How many of `count` came before the window began."""
    first: str
    """The first reply's text: at most 200 characters, control characters escaped."""

@final
class TrialResult:
    stopped: bool
    """True when `stop` or Ctrl-C ended it before its time."""
    totals: dict[str, int]
    """The counters that `results/README.md` lists under "totals", and `began_ns`: when the trial began.

    `first_cut_ns` after that a connection that stood was first found closed; absent where none was.
    """
    jain: float | None
    """Jain's index over the clients' grants in the window; None without a grant."""
    histograms: list[HistogramRow]
    timeline: dict[str, NDArray[np.uint64]]
    """One element a step: start_ns, grants, refused, errors, p50_ns, p99_ns. Steps of 100 ms of the window."""
    clients: dict[str, NDArray[np.uint64]]
    """One element a client: grants, attempts, wait_sum_ns, wait_max_ns."""
    violations: list[Violation]
    """The first 100; `totals` counts all, and the inversions of a lock that promises no order, too."""
    finding: str | None
    """The first of `findings` in words: an order of events that the judge holds for impossible."""
    errors: list[ErrorReply]
    writes: dict[str, NDArray[np.uint64]]
    """One element a key: acknowledged, unknown. In the whole trial; empty where the lock writes nothing."""

@final
class Progress:
    phase: Literal["connecting", "warmup", "measuring", "draining", "done"]
    elapsed_ns: int
    """Since the phase began."""
    grants: int
    """Since the window began."""
    grants_per_s: float
    """Over the last step of the time line."""
    p99_ns: int
    """Response time over the last step of the time line."""
    errors: int
    reconnects: int

class ConnectError(Exception):
    """A server could not be reached, or refused what a connection begins with, before the trial began."""

    refusal: tuple[int, str, str, str] | None
    """The server's number, what it refused, the code and the text of its error; None where it said nothing."""

@final
class Trial:
    """One trial of one cell."""

    def __new__(cls, spec: TrialSpec) -> Self:
        """Parse `spec`. Raises ValueError naming the field, RuntimeError when the core was built for debugging."""

    def run(self) -> TrialResult:
        """Run it, the interpreter detached. Signal handlers are called at least every 20 ms.

        When a handler raises, the trial is stopped within 100 ms, what it measured is kept in `result`, and the
        exception goes on. Raises ConnectError, RuntimeError when run twice or after a fork.
        """

    def planted(self) -> list[tuple[str, bool]]:
        """Plant faults in a checker like this trial's: of each its kind, and whether the checker found exactly that.

        The last kind of a lock that is judged by belief is "no fault". Asks no server; may be called at any time.
        """

    def stop(self) -> None:
        """End it early, from any thread; `run` then returns what was measured."""

    def progress(self) -> Progress:
        """Where it stands, from any thread; costs the running trial nothing."""

    @property
    def result(self) -> TrialResult | None:
        """What `run` measured; None before it ended."""

def histogram_buckets(hdr: bytes) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The recorded buckets of an encoded histogram: highest equivalent value in ns, and count, both ascending by value.

    Raises ValueError when `hdr` is not an HdrHistogram V2.
    """

def merge_histograms(parts: list[bytes]) -> bytes:
    """All of `parts` added up, encoded again. Raises ValueError as `histogram_buckets`, or when `parts` is empty."""

def judge_rows(
    acknowledged: NDArray[np.uint64], unknown: NDArray[np.uint64], final: NDArray[np.uint64]
) -> tuple[int, int, int]:
    """What the final values of counters that began at 0 prove of the writes to them, each of which added 1.

    Each row is judged by itself, so that a surplus of one hides no loss of another.
    Returns how many acknowledged writes are lost at least, how many writes there are too many at least, and how many of
    unknown end there were in rows where nothing is amiss. Raises ValueError when the columns differ in length.
    """
