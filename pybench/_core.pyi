"""The Rust core: one call per trial, two per lock of a program. Durations are in ns, times CLOCK_MONOTONIC in ns.

The typed dictionaries exist for the type checker only: import them under `TYPE_CHECKING`. What the core is given is in
`core_specs`; of what it returns, some is in `core_results`.
"""

from asyncio import Future
from typing import Literal, Self, final

import numpy as np
from numpy.typing import NDArray

from pybench.core_results import (
    BuriedThread,
    ErrorReply,
    FaultOutcome,
    FoundWorld,
    FuzzTally,
    JudgedHistory,
    JudgedRecordings,
    NodeVotes,
    PeriodFigures,
    Recorded,
    Violation,
    WorldReplay,
)
from pybench.core_specs import FuzzSpec, LockClientSpec, PartSpec, RetrySpec, TrialSpec

__all__ = [
    "ConnectError",
    "Drained",
    "FormatError",
    "Fuzz",
    "HistogramRow",
    "HistoryReader",
    "LockClient",
    "LockPort",
    "LockRetry",
    "LockTicket",
    "Progress",
    "RecordedLines",
    "Trial",
    "TrialResult",
    "build_profile",
    "bury",
    "histogram_buckets",
    "judge_recordings",
    "judge_rows",
    "lock_answers",
    "lock_rows",
    "merge_histograms",
    "version",
]

version: str
build_profile: Literal["release", "debug"]
lock_answers: tuple[str, ...]
"""The meanings of the numbers with which requests for a lock are answered."""
lock_rows: int
"""Rows of the table of locks whose names a program gives."""

@final
class HistogramRow:
    """One HDR histogram (1 ns to 1 h, 3 significant digits) of a phase and an outcome."""

    phase: Literal["queue", "service", "response", "hold", "release", "handoff", "send_delay"]
    outcome: Literal["granted", "refused", "timeout", "error", "lost", "unknown", "waiting"]
    count: int
    hdr: bytes
    """HdrHistogram V2, deflated: lossless."""

@final
class TrialResult:
    stopped: bool
    """True when `stop` or Ctrl-C ended the trial early."""
    totals: dict[str, int]
    """The counters that `results/README.md` lists under "totals", and when trial and window began, in ns."""
    jain: float | None
    """Jain's index over the clients' grants in the window; None without a grant."""
    histograms: list[HistogramRow]
    timeline: dict[str, NDArray[np.uint64 | np.float64]]
    """One element per step of the window: start_ns, grants, refused, errors, p50_ns, p99_ns.

    A step takes 100 ms. Of a window of more than 3,000 steps each two become one, again and again. With stages also
    `offered`, as floats: the mean load of the step, clients or arrivals a second.
    """
    clients: dict[str, NDArray[np.uint64]]
    """One element per client: `records.parts.OF_CLIENTS`. Of a client whose waits were not kept, `waits` is 0."""
    commands: dict[str, NDArray[np.uint64]]
    """One element per step of 10 ms, folded as those of `timeline`: start_ns, commands."""
    nodes: list[NodeVotes]
    periods: list[PeriodFigures]
    """Before, during and after the faults; empty without `faults` and `fault_periods`."""
    faults: FaultOutcome | None
    """None without `faults` and `fault_periods`."""
    violations: list[Violation]
    """The first 100 violations; `totals` counts all, also the inversions of a lock that promises no order."""
    finding: str | None
    """The text of the first of `findings`: an order of events that the checker considers impossible."""
    errors: list[ErrorReply]
    writes: dict[str, NDArray[np.uint64]]
    """One element per key, for the whole trial: acknowledged, unknown. Empty if the lock writes nothing."""
    recorded: Recorded | None
    """The recording of the trial, if its spec asked for one."""

@final
class Progress:
    phase: Literal["connecting", "ready", "warmup", "measuring", "draining", "done"]
    elapsed_ns: int
    """The time since the phase began."""
    grants: int
    """The grants since the window began."""
    grants_per_s: float
    """The rate over the last step of the time line."""
    p99_ns: int
    """The p99 response time over the last step of the time line."""
    errors: int
    reconnects: int

class ConnectError(Exception):
    """Before the trial began a server could not be reached, or refused the handshake of a connection."""

    refusal: tuple[int, str, str, str] | None
    """The server's index, what it refused, the code and the text of its error; None if it sent no error."""

@final
class Drained:
    """What a running trial has counted since the last drain."""

    counters: dict[str, int]
    """The counters of `TrialResult.totals` that grow with each event, and the counts of violations.

    `nominal_hold_ns` is 0 before the end: what lies beyond the window is subtracted then.
    """
    histograms: list[HistogramRow]
    """As `TrialResult.histograms`, without hand-overs."""
    violations: list[Violation]
    """Those of the first 100 of the trial that are new. What had not ended then has no end yet."""

@final
class Fuzz:
    """Worlds on virtual time: the loop of trials over models of servers and of the network. A seed is a world."""

    def __new__(cls, spec: FuzzSpec) -> Self:
        """Parse `spec`. Raises ValueError with the name of the field, or with what the strategy needs."""

    def faults(self) -> list[tuple[str, bool]]:
        """The kinds of faults that its worlds can have, and whether the promise of a lock covers each."""

    def run(self, first: int, count: int, stops: bool) -> FuzzTally:
        """Run the worlds of `count` seeds from `first`, detached; with `stops`, only up to the first broken promise."""

    def shrink(self, seed: int) -> FoundWorld | None:
        """The shortest world found that goes wrong as the one of `seed` does; None when that does not."""

    def replay(self, seed: int, part: PartSpec) -> WorldReplay:
        """All that happens in a part of a world."""

@final
class Trial:
    """One trial of one cell."""

    def __new__(cls, spec: TrialSpec) -> Self:
        """Parse `spec`. Raises ValueError with the name of the field, RuntimeError in a debug build of the core."""

    def start(self) -> None:
        """Start the trial on native threads and return at once; `stop` ends it, or its window.

        Raises RuntimeError when started twice or after a fork. A trial that nobody refers to any more is stopped.
        """

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of a started trial, at most so many seconds: whether it has ended.

        Python handles its signals meanwhile; an exception of a handler is raised, and the trial goes on. Raises the
        error of the trial, once: ConnectError, or OSError where the recording cannot be written. Raises RuntimeError
        when the trial was not started, or after a fork.
        """

    def drain(self) -> Drained:
        """What the trial has counted since the last call, from any thread, while it runs or after its end.

        Each count comes exactly once. The call waits for no server: a thread of the trial answers between two events,
        and what is not there within 50 ms comes with the next call.
        """

    def set(self, *, concurrency: int | None = None, rate: float | None = None) -> None:
        """Change the load from now on, of all threads together. Returns at once.

        In a closed loop `concurrency` clients work, 0 to as many as the spec has; the others finish what they do. In an
        open loop `rate` arrivals come a second; 0: none. Before the start it holds from the start on. Raises ValueError
        for the other loop, or when the value is out of range.
        """

    def run(self) -> TrialResult:
        """Start the trial and wait for its end, with the interpreter detached.

        Python handles its signals at least every 20 ms. If a signal handler raises, the trial is stopped within 100 ms,
        `result` keeps what it measured, and the exception is raised. Raises ConnectError; OSError where the recording
        cannot be written; RuntimeError when run twice or after a fork; ValueError for a trial without an end.
        """

    def planted(self) -> list[tuple[str, bool]]:
        """Plant faults in a checker like this trial's: the kind of each, and whether the checker found exactly that.

        For a lock that is judged by belief, the last kind is "no fault". Contacts no server; may be called at any time.
        """

    def begin_at(self, at_ns: int) -> None:
        """Let a trial that is one `process` of several begin at this time. It waits for that in the phase `ready`."""

    def stop(self) -> None:
        """End the trial early, from any thread. Returns at once; the result has what was measured until then."""

    def progress(self) -> Progress:
        """The progress of the trial, from any thread; costs the running trial nothing."""

    @property
    def result(self) -> TrialResult | None:
        """The result; None before the end of the trial, or if it failed. Raises ConnectError as `wait` does."""

def judge_recordings(spec: TrialSpec, files: list[str], window: tuple[int, int], ended_ns: int) -> JudgedRecordings:
    """Judge what the threads of all processes of a trial have recorded, detached. Raises OSError.

    `spec` is that of the whole trial, which ended at `ended_ns`.
    """

def bury(spec: TrialSpec, thread: tuple[int, int], file: str, died_ns: int, window: tuple[int, int]) -> BuriedThread:
    """Append the deaths of its clients to the recording of a thread whose process was killed, detached. Raises OSError.

    `thread` is its number among those of all processes, and how many these are. Its clients died at `died_ns`, or with
    its last event if that is later.
    """

class FormatError(ValueError):
    """Bytes that break the format of a history. Its arguments are the file, the line from 1, and what is wrong."""

@final
class HistoryReader:
    """For each file `begin`, `feed`, `end`; then `judge`, once. Histories are merged, except those of trials."""

    def __new__(cls) -> Self: ...
    def begin(self, file: str) -> None:
        """The bytes that follow are those of `file`."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the file. Raises FormatError."""

    def end(self) -> None:
        """The file has ended. Raises FormatError."""

    def judge(self) -> list[JudgedHistory]:
        """The verdicts, and what they rest on."""

@final
class RecordedLines:
    """The history of a recorded trial, as lines of the format. Without `ended_ns`, of a trial that was killed."""

    def __new__(
        cls,
        files: list[str],
        window: tuple[int | None, int | None] | None = None,
        ended_ns: int | None = None,
        counts: dict[str, int] | None = None,
        number: int | None = None,
    ) -> Self:
        """Open the `files` of all threads. `number` replaces the number of the trial. Raises OSError."""

    def next(self) -> bytes:
        """The next lines; empty when nothing is left. Raises OSError."""

def histogram_buckets(hdr: bytes) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The filled buckets of an encoded histogram: highest equivalent value in ns, and count, both ascending by value.

    Raises ValueError when `hdr` is not an HdrHistogram V2.
    """

def merge_histograms(parts: list[bytes]) -> bytes:
    """The sum of `parts`, encoded again. Raises ValueError as `histogram_buckets` does, or when `parts` is empty."""

def judge_rows(
    acknowledged: NDArray[np.uint64], unknown: NDArray[np.uint64], final: NDArray[np.uint64]
) -> tuple[int, int, int]:
    """Judge the final values of counters that began at 0 and to which each write added 1.

    Each row is judged by itself, so that a surplus of one does not hide a loss of another.
    Returns a lower bound of the lost acknowledged writes, a lower bound of the surplus writes, and the number of writes
    of unknown outcome in rows without a violation. Raises ValueError when the columns differ in length.
    """

@final
class LockClient:
    """The locks of one process. Its thread starts with the first ticket."""

    def __new__(cls, spec: LockClientSpec) -> Self:
        """Raises ValueError with the name of the field."""

    @property
    def extends(self) -> bool: ...
    @property
    def shares(self) -> bool: ...
    def check_lease(self, ttl_ms: int) -> None:
        """Raises ValueError for a lease that the strategy cannot have."""

    def ticket(
        self, name: bytes, ttl_ms: int, wait_ns: int, shared: bool, retry: LockRetry | None, port: LockPort | None
    ) -> LockTicket:
        """A lock that nobody has asked for yet. Raises ValueError when the client is closed, OSError by the kernel."""
    def close(self) -> None: ...

@final
class LockRetry:
    """A retry policy. Its `max_wait_ns` counts for nothing: a lock has its wait."""

    def __new__(cls, spec: RetrySpec) -> Self:
        """Raises ValueError."""

@final
class LockTicket:
    """One lock; cancelled when collected. Answers index `lock_answers`; a forked child gets "forked" at once."""

    @property
    def id(self) -> int: ...
    @property
    def fence(self) -> int | None: ...
    @property
    def time_left(self) -> float | None:
        """Seconds; 0.0 when it is lost or over, None for a lock without a lease."""

    @property
    def is_lost(self) -> bool: ...
    @property
    def is_over(self) -> bool: ...
    @property
    def text(self) -> str | None:
        """The words of the last error about it."""

    def acquire(self) -> int | None:
        """Ask for the lock. None: the answer comes through the ticket's port, after a `wake`."""

    def release(self) -> int | None: ...
    def extend(self) -> int | None: ...
    def wake(self) -> None: ...
    @property
    def holder_left(self) -> float | None: ...
    def cancel(self) -> None:
        """Free what was or will be taken. Returns at once."""

    def acquire_and_wait(self) -> int:
        """Ask for the lock, and wait detached. What a signal handler raises is raised once the lock is released."""

    def release_and_wait(self) -> int: ...
    def extend_and_wait(self) -> int: ...
    def wait_for_loss(self, timeout_s: float | None) -> bool:
        """Wait until the lock is lost or over. Whether it is lost."""

@final
class LockPort:
    """The way of answers into one event loop."""

    def __new__(cls) -> Self: ...
    def fileno(self) -> int: ...
    def settle(self, futures: dict[int, Future[int]]) -> list[int]:
        """Set the result of each answered future, and remove it. Returns the ids of tickets that were lost.

        A future stands under twice the id of its ticket, one of an extension under one more.
        """
