"""What the core returns as dictionaries, besides those in `_core.pyi`.

Violations, error replies, the votes of a server, what faults did, judged histories, and worlds on virtual time. For the
type checker; at run time they are dictionaries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pybench._core import HistogramRow


class Violation(TypedDict):
    """Two grants of one key that should not have overlapped, or not have come in this order.

    Or one client that was denied what it should have got: then the fields of the second are None, and `overlap_ns` is
    how long a key stalled or a client starved until `at_ns`. The second of an inversion may still wait: then it has
    only a client. Times count from the start of the trial. With a stale fence the first is the earlier grant with the
    highest fence; with an inversion the first came later and was granted first.
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
    """How long both worked at the same time; up to the end of the trial if neither had ended."""
    first_client: int
    first_granted_ns: int | None
    """None for a client that waits."""
    first_until_ns: int | None
    """The end of the lease; None for a lock without one. For a lost session: when its holder noticed the loss."""
    first_fence: int | None
    first_ended_ns: int | None
    """When its release was sent; None if it had not been sent when the trial ended."""
    second_client: int | None
    second_granted_ns: int | None
    second_until_ns: int | None
    second_fence: int | None
    second_ended_ns: int | None


class ErrorReply(TypedDict):
    """Error replies of one phase, code and server in the whole trial, warm-up and drain included.

    Conflicts of Postgres (SQLSTATE 40001, 40P01, 55P03) are not counted here, nor NOSCRIPT if the lock then sends the
    script again.
    """

    phase: Literal["acquire", "renew", "release", "guard", "other"]
    """What the client was doing when it sent the call.

    `guard`: its guarded work; `other`: no acquire, hold or release, such as a log-in.
    """
    code: str
    """The first word of an error reply of Redis, or the SQLSTATE of one of Postgres."""
    server: int
    """The index of the server in `servers` of the spec; the next one is the server of the guard."""
    count: int
    warmup: int
    """How many of `count` came before the window began."""
    first: str
    """The first reply's text: at most 200 characters, control characters escaped."""


class NodeVotes(TypedDict):
    """What one server of a lock whose servers vote replied to the calls of the window, whenever its replies came."""

    server: int
    """The index of the server in `servers` of the spec."""
    asked: int
    """How often it was asked to grant."""
    granted: int
    refused: int
    errors: int
    late: int
    """How many of these votes came when the attempt was decided already."""
    decided: int
    """The grants of the lock that its reply completed."""
    reply_hdr: bytes
    """From the call to the vote: HdrHistogram V2, deflated."""
    validity_hdr: bytes
    """What was left of the lease, less the clock-skew margin, at the grants that it completed."""


class PeriodFigures(TypedDict):
    """What happened before, during or after the faults of a trial, in its window: grants by when they happened.

    `during` are all times in which a fault lasted, `after` those in between and after the last. A `reset` or `crash`
    without length lasts no time.
    """

    period: Literal["before", "during", "after"]
    length_ns: int
    grants: int
    errors: int
    """Acquires that ended with an error or with unknown outcome."""
    phase: Literal["response"]
    outcome: Literal["granted"]
    count: int
    hdr: bytes
    """Response times of the grants that were due in the window: HdrHistogram V2, deflated."""


class FaultOutcome(TypedDict):
    """What the planned faults of a trial did."""

    spans: list[tuple[int | None, int | None]]
    """When each of the spec's `faults` began and ended, from the opening of the window; None: it did not."""
    crashes: int
    orphans: int
    """Locks that crashed clients held, and that nobody can release before their leases end."""
    dropped_renewals: int
    time_to_free_ns: list[int]
    """From each crash of a holder to the next grant of its key, if there was one."""
    time_to_know_ns: list[int]
    """From the end of a lease to when its holder was told of it or noticed, for grants that a fault disturbed."""


class JudgedRecordings(TypedDict):
    """The recordings of all processes of a trial, judged together."""

    totals: dict[str, int]
    """What the checker counted, by the names of a trial's totals."""
    violations: list[Violation]
    finding: str | None
    handoff: HistogramRow
    began_ns: int
    """The time from which violations count."""
    events: int
    orphans: int
    time_to_free_ns: list[int]


class BuriedThread(TypedDict):
    """What the events of a thread whose process was killed show of its window."""

    grants: NDArray[np.uint64]
    """Of each of its clients."""
    wait_sum_ns: NDArray[np.uint64]
    """From the first attempt to these grants."""
    wait_max_ns: NDArray[np.uint64]
    steps: NDArray[np.uint64]
    """Grants in each step of 100 ms, up to the last with a grant."""
    periods: list[PeriodFigures]
    """Empty without faults; in an open loop without response times."""
    nominal_hold_ns: int
    """The planned holds, as far as they lie in the window and before the death."""


class Recorded(TypedDict):
    """The files that a trial recorded, and the times for `RecordedLines`."""

    files: list[str]
    window: tuple[int | None, int | None]
    ended_ns: int


class JudgedHistory(TypedDict):
    """The history of one trial, or the merged histories of other programs, judged by the checker."""

    header: str
    """The first line of the history, with all defaults."""
    files: list[str]
    totals: dict[str, int]
    """What the checker counted, and `grants`, by the names of a trial's totals."""
    violations: list[dict[str, object]]
    """As `Violation`; clients are texts."""
    counts: dict[str, int]
    """What the last line of the history counts."""
    events: int
    clients: int
    keys: int
    torn: list[tuple[str, int]]
    """Files whose last line was torn off, with its number."""
    finding: tuple[str, int] | None
    """File and line of the first event that its client's state does not allow."""
    first_finding: str | None


class FuzzTally(TypedDict):
    """The counts of many worlds on virtual time."""

    worlds: int
    events: int
    """What happened: messages that arrived, rounds of the loops, faults."""
    grants: int
    faults: dict[str, int]
    """The faults that struck, by their kinds."""
    overruns: int
    """Worlds in which a client was granted the lock while another still worked past its lease or session."""
    outside: list[int]
    """The seeds of worlds with a violation that the lock does not promise to avoid."""
    broken: list[int]
    """The seeds of worlds in which the lock broke its promise."""


class FoundWorld(TypedDict):
    """A world that went wrong, and what is left of it: None is all."""

    broken: bool
    at_ns: int
    faults: list[int] | None
    earlier_ns: int
    clients: list[int] | None
    requests: int | None
    violation: Violation | None
    other: str | None
    """Where there is no violation: what is wrong with the writes, or with the events."""


class WorldReplay(TypedDict):
    """A part of a world, and all that happened in it. Times are of the world, in ns."""

    drawn_clients: int
    """How many clients the seed drew; they have the numbers from 0."""
    clients: list[int]
    servers: int
    ttl_ns: int | None
    hold_ns: int
    """The longest hold."""
    faults: list[tuple[int, int, str, int | None, int | None, int]]
    """Number, time, kind, client, server; and how long it lasts, how far it jumps, or how far a replica lags."""
    drawn_faults: int
    """How many faults the seed drew; they have the numbers from 0."""
    found: FoundWorld | None
    heard: list[tuple[int, str, int, int | None, int | None]]
    """What clients did: time, step, client, end of the lease, fence."""
    served: list[tuple[int, int, int, str, str]]
    """What servers did: time, client, server, command, reply."""
    ended_ns: int
