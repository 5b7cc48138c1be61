"""Disturbances of the servers in a trial, detected after its end.

Promises: a disturbance is returned and not raised, so that the trial is saved first; see `analysis.disturbances`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pybench.analysis.disturbances import Trouble
from pybench.errors import ServerError
from pybench.masking import without
from pybench.matrix.durations import MS
from pybench.numbers import plural
from pybench.planning.trial_spec import REPLY_TIMEOUT_NS
from pybench.records.parts import STEP_NS, step_ns
from pybench.running.trial_servers import UNREAD
from pybench.strategies import CATALOGUE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pybench._core import ConnectError
    from pybench.analysis.outcome import Outcome
    from pybench.core_results import ErrorReply
    from pybench.matrix.cells import Cell
    from pybench.running.guard_side import GuardSide
    from pybench.running.trial_servers import Side, Spent

RECOVERY_NS = 5_000 * MS
"""How long after a fault error replies may still come from it: a database that was killed replays its log first."""

CLOCK_STEP_S = 0.1
"""Smaller steps of the wall clock may come from a pause between two readings of clocks."""


def ended(sides: Sequence[Side], result: Outcome) -> tuple[list[Spent], list[Trouble]]:
    """The usage of each of `sides`, and the troubles of those that cannot be read."""
    spent: list[Spent] = []
    troubles: list[Trouble] = []
    for side in sides:
        try:
            spent.append(side.end())
        except ServerError as error:
            spent.append(UNREAD)
            troubles.append(Trouble.of(error, first_cut_ns=result.totals.get("first_cut_ns")))
    return spent, troubles


def values_of(guard: GuardSide, result: Outcome) -> tuple[NDArray[np.int64] | None, Trouble | None]:
    """The final values of guarded resources, and the trouble of a server that cannot be read."""
    try:
        return guard.values(), None
    except ServerError as error:
        return None, Trouble.of(error, first_cut_ns=result.totals.get("first_cut_ns"))


def refusals(result: Outcome, sides: Sequence[Side], cell: Cell) -> list[Trouble]:
    """The trouble where a server refused calls of acquires: the figures of such a trial do not describe the lock.

    What servers reply while faults harm them, or soon after, belongs to the record.
    """
    if not result.totals["errors"] or result.stopped or _errors_are_of_faults(result, cell):
        return []
    error = refusal_of(result.errors, sides, cell.strategy)
    return [] if error is None else [Trouble(error)]


def _errors_are_of_faults(result: Outcome, cell: Cell) -> bool:
    """Whether each acquire that ended with an error did so within a fault of `cell`, or soon after it."""
    if not cell.faults or any(row["warmup"] for row in result.errors):
        return False
    starts_ns, errors = (result.timeline[name].astype(np.int64) for name in ("start_ns", "errors"))
    with_errors = starts_ns[errors > 0]
    length_ns = step_ns(starts_ns, STEP_NS)
    expected = np.zeros(len(with_errors), dtype=bool)
    for fault in cell.faults.faults:
        until_ns = math.inf if fault.until_ns is None else fault.until_ns + RECOVERY_NS
        expected |= (with_errors + length_ns > fault.at_ns) & (with_errors < until_ns)
    return bool(expected.all())


def refusal_of(rows: Sequence[ErrorReply], sides: Sequence[Side], strategy: str) -> ServerError | None:
    """The error for the most frequent of the error replies `rows`; None without error replies."""
    rows = [row for row in rows if row["phase"] != "guard"]  # A guarded work that fails ends, and its lock goes on.
    if not rows:
        return None
    # Replies to acquires come first, since they may cause those of the other phases.
    worst = max(rows, key=lambda row: (row["phase"] == "acquire", row["count"]))
    calls = plural(worst["count"], PHASES[worst["phase"]])
    return sides[worst["server"]].refused(calls, worst["code"], worst["first"], strategy=strategy)


def not_connected(
    error: ConnectError, sides: Sequence[Side | GuardSide], strategy: str, *, secrets: Iterable[str]
) -> ServerError:
    """The error for a trial of `strategy` whose connections failed."""
    known = frozenset(secrets)
    if error.refusal is None:
        message = without(f"the connections of a trial to a server failed: {error}", known)
        return ServerError(message, hint="check that the server runs and is reachable, and read its log")
    server, call, code, text = error.refusal
    return sides[server].refused(call, without(code, known), without(text, known), strategy=strategy)


PHASES = {"acquire": "acquire call", "renew": "renewal call", "release": "release call", "other": "call"}


def step_of_clock(jumped_s: float, ttl_ms: int) -> Trouble | None:
    """The trouble where the wall clock moved against the monotonic clock by `jumped_s` during a trial.

    Servers end leases by the wall clock, and holders count their leases by the monotonic clock. After a step of the
    clock, or a laptop's sleep, the checker would blame the lock.
    """
    if abs(jumped_s) <= max(CLOCK_STEP_S, ttl_ms / 1e3 / 100):
        return None
    return Trouble(
        ServerError(
            f"the clock of this machine moved by {jumped_s:+.2f} s during a trial, so leases did not end when their "
            "holders expected",
            hint="run again when the clock is steady: NTP may have set the clock, or the machine slept",
        ),
        intact_ns=-math.inf,
    )


def cleared(sides: Sequence[Side], guard: GuardSide | None = None) -> tuple[int, Trouble | None]:
    """Remove the keys and tables of the trial; returns the most locks left on one server, and the trouble, if any.

    A server that fails keeps no other from being cleared; the trouble names every failure.
    """
    left, errors = 0, []
    for one in (*([] if guard is None else [guard]), *sides):
        try:
            left = max(left, one.clear() or 0)
        except ServerError as error:
            errors.append(error)
    if not errors:
        return left, None
    # A server with the lock and the guarded resource fails twice, with one message.
    messages = "; ".join(dict.fromkeys(error.message for error in errors))
    return 0, Trouble(ServerError(messages, hint=errors[0].hint))


def all_is_released(cell: Cell, result: Outcome) -> bool:
    """Whether only the lock itself can have left keys on a server after this trial of `cell`.

    This holds where every acquire and release had a reply within the reply timeout and within the lease, and none of
    the replies was an error or "not held": then every client released each lock that it acquired.
    """
    strategy = CATALOGUE[cell.strategy]
    lease_ms = strategy.lease_ms(cell.ttl_ms)
    # A shorter lease may end before its grant arrives. Nobody releases such a lock, and the lock ends by itself.
    if not strategy.deletes_on_release or lease_ms is None or lease_ms * MS < REPLY_TIMEOUT_NS:
        return False
    return not (result.stopped or result.errors or any(result.totals[name] for name in UNSETTLED))


UNSETTLED = (
    *("unsettled", "abandoned", "reconnects", "lost_calls", "errors", "unknown", "lost"),
    *("lapsed", "outlived", "lease_overruns", "denied_releases", "findings"),
)
"""Counts of a trial that may leave a key behind without a fault of the lock."""
