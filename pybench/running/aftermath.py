"""What befell the servers in a trial, asked when it is over.

Promises: raises nothing for it, so that what the trial proved is saved first; see `disturbed`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pybench.analysis.disturbances import Trouble
from pybench.errors import ServerError
from pybench.masking import without
from pybench.matrix.durations import MS
from pybench.numbers import plural
from pybench.planning.trial_spec import REPLY_TIMEOUT_NS
from pybench.running.stage import UNREAD
from pybench.strategies import CATALOGUE

if TYPE_CHECKING:
    from pybench._core import ConnectError, ErrorReply, TrialResult
    from pybench.matrix.cells import Cell
    from pybench.running.stage import Side, Spent

CLOCK_STEP_S = 0.1
"""The least step of the wall clock that is not taken for a pause between two readings of clocks."""


def ended(sides: Sequence[Side], result: TrialResult) -> tuple[list[Spent], list[Trouble]]:
    """What each of `sides` has spent, and what befell those that cannot say."""
    spent: list[Spent] = []
    troubles: list[Trouble] = []
    for side in sides:
        try:
            spent.append(side.end())
        except ServerError as error:
            spent.append(UNREAD)
            troubles.append(Trouble.of(error, first_cut_ns=result.totals.get("first_cut_ns")))
    return spent, troubles


def refusals(result: TrialResult, sides: Sequence[Side], strategy: str) -> list[Trouble]:
    """A server refused calls by which locks are acquired: the figures of such a trial say nothing of a lock."""
    if not result.totals["errors"] or result.stopped:
        return []
    error = refusal_of(result.errors, sides, strategy)
    return [] if error is None else [Trouble(error)]


def refusal_of(rows: Sequence[ErrorReply], sides: Sequence[Side], strategy: str) -> ServerError | None:
    """What the most frequent of the error replies `rows` means, by the server that sent it; None without any."""
    if not rows:
        return None
    # What an acquire met comes first: the other phases follow from it.
    worst = max(rows, key=lambda row: (row["phase"] == "acquire", row["count"]))
    calls = plural(worst["count"], PHASES[worst["phase"]])
    return sides[worst["server"]].refused(calls, worst["code"], worst["first"], strategy=strategy)


def not_connected(error: ConnectError, sides: Sequence[Side], strategy: str, *, secrets: Iterable[str]) -> ServerError:
    """What it means that the connections of a trial of `strategy` did not come to stand."""
    known = frozenset(secrets)
    if error.refusal is None:
        told = without(f"a server did not take the connections of a trial: {error}", known)
        return ServerError(told, hint="does the server still run, and is it reachable? its log may say")
    server, call, code, text = error.refusal
    return sides[server].refused(call, without(code, known), without(text, known), strategy=strategy)


PHASES = {"acquire": "acquire call", "renew": "renewal call", "release": "release call", "other": "call"}


def step_of_clock(jumped_s: float, ttl_ms: int) -> Trouble | None:
    """What it means that the wall clock moved against the monotonic one by `jumped_s` in a trial.

    Servers end leases by the wall clock, holders believe by the monotonic one: after a step, or a laptop's sleep, a
    lock would be blamed for what the clock did.
    """
    if abs(jumped_s) <= max(CLOCK_STEP_S, ttl_ms / 1e3 / 100):
        return None
    return Trouble(
        ServerError(
            f"the clock of this machine was set by {jumped_s:+.2f} s during a trial: leases ended at another time "
            "than their holders believed",
            hint="wait until the clock is steady: is it being set by NTP, or was the machine asleep?",
        ),
        intact_ns=-math.inf,
    )


def cleared(sides: Sequence[Side]) -> tuple[int, Trouble | None]:
    """Remove what the trial left; how many locks one server had at most, and what went wrong, if anything did."""
    try:
        return max(side.clear() or 0 for side in sides), None
    except ServerError as error:
        return 0, Trouble(error)


def all_is_released(cell: Cell, result: TrialResult) -> bool:
    """Whether a lock that is still on a server after this trial of `cell` can only be the fault of the lock.

    Every acquire and release was answered, none with an error or "not held", no answer came too late for the lease,
    and nobody gave up waiting for an answer: what a client took, it has given back.
    """
    strategy = CATALOGUE[cell.strategy]
    lease_ms = strategy.lease_ms(cell.ttl_ms)
    # A shorter lease may be over when its grant is answered, and then nobody gives it back: it ends by itself.
    if not strategy.deletes_on_release or lease_ms is None or lease_ms * MS < REPLY_TIMEOUT_NS:
        return False
    return not (result.stopped or result.errors or any(result.totals[name] for name in UNSETTLED))


UNSETTLED = (
    *("unsettled", "abandoned", "reconnects", "lost_calls", "errors", "unknown", "lost"),
    *("lapsed", "outlived", "lease_overruns", "denied_releases", "findings"),
)
"""Counts of a trial after which a key may be left although its lock did what it had to."""
