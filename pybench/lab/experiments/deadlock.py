"""`deadlock`: two clients take two locks in opposite order and wait for each other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pybench.lab.clients import all_at_once, client_row
from pybench.lab.experiment import Experiment, Lease, Parameter
from pybench.lab.findings import Case, ClientRow, Expected, Figure, insisted
from pybench.lab.locks import ChosenLock, needs_client
from pybench.numbers import format_seconds, plural

if TYPE_CHECKING:
    from pybench._core import TrialResult
    from pybench.lab.stage import Stage
    from pybench.lock_client import LockClient

BUDGET_MS = 100
RESTARTING = ChosenLock("redisson-multilock", (("wait_budget_ms", BUDGET_MS),))
ALL_OR_NONE = ChosenLock("multilock")
LEASE_MS = 10_000
"""Of the measured locks: longer than the trial, so that no lease ends a standstill."""
WINDOW_S = 3.0
STUCK_S = 2.0
"""A standstill of so long, without any restart, is a deadlock. Restarts in a row may take as long: both clients keep
their order, and meet again."""
HOLD_NS = 1_000_000
RTT_NS = 20_000_000
"""Between the two locks of one grant lies a round trip, in which the other client takes its first lock."""
GAVE_UP = "Lock not acquired"
PAUSE_OF_TTL = 0.25
"""How long a client that has its first lock waits for the other one to have its first, as a part of the lease."""


@dataclass(slots=True)
class _Pair:
    """What both clients saw; times in seconds."""

    waited: dict[int, float] = field(default_factory=dict)
    """How long each waited for its second lock, until it had it or gave up."""
    granted: set[int] = field(default_factory=set)
    """Who had both locks."""
    both: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once each holds its first lock."""
    holding: int = 0
    lost: int = 0
    """Locks that were gone when they were released: the lease had ended."""
    rows: list[ClientRow] = field(default_factory=list)


def _run(stage: Stage) -> Iterator[Case]:
    for number, lock in enumerate(stage.locks):
        names = [f"{stage.prefix}{number}:{letter}" for letter in "AB"]
        client = stage.client(lock, connections=4)
        stage.note(f"{lock.text}, opposite order")
        yield _nested_case(stage, lock, client, names, is_sorted=False)
        if stage.flag("mitigate"):
            stage.note(f"{lock.text}, same order")
            yield insisted(partial(_nested_case, stage, lock, client, names, is_sorted=True))
    stage.note(RESTARTING.text)
    yield _measured_case(stage, RESTARTING, "gave its keys back and started again")
    if stage.flag("mitigate"):
        stage.note(ALL_OR_NONE.text)
        yield _measured_case(stage, ALL_OR_NONE, "was granted neither key and tried again")


async def _both(stage: Stage, client: LockClient, first: list[str], second: list[str]) -> _Pair:
    pair = _Pair()
    await all_at_once(_take(stage, client, pair, number, names) for number, names in ((1, first), (2, second)))
    return pair


async def _take(stage: Stage, client: LockClient, pair: _Pair, number: int, names: list[str]) -> None:
    """Take both locks, one after the other, and release them."""
    from pybench.lock_client import LockLost, NotAcquired

    began = time.monotonic()
    ttl, wait = stage.length("ttl"), f"{3 * stage.seconds('ttl') + 5:.3f}s"
    outer, inner = (client.lock(name, ttl=ttl, wait=wait) for name in names)
    error = None
    try:
        async with outer:
            pair.holding += 1
            if pair.holding == 2:
                pair.both.set()
            with suppress(TimeoutError):
                await asyncio.wait_for(pair.both.wait(), stage.seconds("ttl") * PAUSE_OF_TTL)
            asked = time.monotonic()
            try:
                async with inner:
                    pair.waited[number] = time.monotonic() - asked
                    pair.granted.add(number)
            finally:
                pair.waited.setdefault(number, time.monotonic() - asked)
                pair.holding -= 1
    except LockLost:
        pair.lost += 1
        error = "Lock lost before its release"
    except NotAcquired:
        error = GAVE_UP
    pair.rows.append(client_row(began, locked=number in pair.granted, error=error))


def _nested_case(stage: Stage, lock: ChosenLock, client: LockClient, names: list[str], *, is_sorted: bool) -> Case:
    pair = stage.run_async(_both(stage, client, names, names if is_sorted else names[::-1]))
    waits = [pair.waited.get(number) for number in (1, 2)]
    shortest = min((wait for wait in waits if wait is not None), default=None)
    # Both waited while the other held: neither would have gone on but for the end of a lease.
    is_cycle = pair.both.is_set() and (shortest is None or shortest > stage.seconds("ttl") / 4)
    if is_cycle:
        if any(row.error == GAVE_UP for row in pair.rows):
            broken = "it ended only when a client gave up waiting"
        else:
            broken = f"only the end of a lease broke it, after {_s(shortest or 0)}"
        sentence = f"client 1 holds A and waits for B, client 2 holds B and waits for A: {broken}"
    elif pair.both.is_set():
        sentence = "each held its first lock, and neither had to wait for the other"
    elif is_sorted:
        sentence = "the second client waited for A with empty hands, and had both locks after the first"
    else:
        sentence = "the first client was done before the second had its first lock"
    is_control = not is_sorted and lock.keeps_out
    return Case(
        label=f"{lock.text} {'sorted' if is_sorted else 'opposite'}",
        strategy=lock.text,
        expected=Expected.WRONG if is_control else Expected.RIGHT,
        went_wrong=is_cycle,
        sentence=sentence,
        figures=(
            Figure("ttl_ms", "ttl", lock.lease_ms(stage.count("ttl"))),
            Figure("cycles", "cycles", int(is_cycle)),
            Figure("stuck_ms", "longest stuck", None if shortest is None else round(shortest * 1e3, 3)),
            Figure("lost", "locks lost", pair.lost),
        ),
        clients=tuple(pair.rows),
    )


def _measured_case(stage: Stage, lock: ChosenLock, what: str) -> Case:
    """Two clients of a lock that takes both keys at once, in random order, for a while."""
    from pybench.lab.measuring import measure, violations
    from pybench.matrix.round_trips import RoundTrip
    from pybench.matrix.values import Distribution

    measured = measure(
        stage,
        lock,
        prefix=f"{stage.prefix}{lock.name}:",
        window_s=WINDOW_S,
        concurrency=2,
        keys=2,
        keys_per_grant=2,
        hold=Distribution("fixed", (HOLD_NS,)),
        rtt=RoundTrip.parse(f"{RTT_NS // 1_000_000}ms"),
        ttl_ms=LEASE_MS,
    )
    result = measured.result
    totals = result.totals
    grants, restarts = totals["grants"], totals["refused_attempts"]
    stuck_s, overlaps = _longest_gap_s(result), violations(result, lock)
    is_wrong = bool(overlaps) or (not restarts and stuck_s >= STUCK_S)
    return Case(
        label=lock.name,
        strategy=lock.text,
        expected=Expected.RIGHT,
        went_wrong=is_wrong,
        sentence=f"{plural(restarts, 'time')} a client {what}; both keys were granted {plural(grants, 'time')}, and "
        f"at most {_s(stuck_s)} passed without a grant"
        if not is_wrong
        else f"{plural(grants, 'grant')}, {plural(overlaps, 'violation')}, and no grant for {_s(stuck_s)}",
        figures=(
            Figure("ttl_ms", "ttl", LEASE_MS),
            Figure("stuck_ms", "longest stuck", round(stuck_s * 1e3, 3)),
            Figure("restarts", "restarts", restarts),
            Figure("grants", "grants of both", grants),
        ),
    )


def _longest_gap_s(result: TrialResult) -> float:
    """The longest time without a grant, in steps of the time line."""
    line = result.timeline
    starts = line["start_ns"]
    if len(starts) < 2:
        return WINDOW_S
    longest = current = 0
    for grants in line["grants"]:
        current = 0 if grants else current + 1
        longest = max(longest, current)
    return float((longest + 1) * (starts[1] - starts[0]) / 1e9)


def _s(seconds: float) -> str:
    return format_seconds(seconds)


def _unfit(lock: ChosenLock) -> str:
    entry = lock.entry
    if not lock.keeps_out:
        return "it takes no lock"
    if entry is not None and entry.permits(lock.arguments) > 1:
        return "a client waits for nobody while there are permits"
    return needs_client(lock)


DEADLOCK = Experiment(
    name="deadlock",
    summary="Two locks taken in opposite order",
    steps=(
        "Client 1 takes A, then B; client 2 takes B, then A. Each waits with its first lock in hand.",
        f"Then two clients take both keys by redisson-multilock, in random order: a wait ends after {BUDGET_MS} ms.",
        "With --mitigate: the same locks in sorted order, and multilock, which takes all keys or none.",
    ),
    learn="Take several locks in one order everywhere, or all of them at once: then nobody waits in a circle.",
    run=_run,
    strategies=("mutex",),
    unfit=_unfit,
    parameters=(
        Parameter("ttl", Lease(), "1s", "The lease."),
        Parameter("mitigate", None, default=False, meaning="Show what avoids the deadlock, too."),
    ),
)
