"""`retry`: many buyers are refused at the same moment; when they come back depends on their pauses."""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from pybench.errors import InputError
from pybench.lab.experiment import Experiment, Parameter, Time
from pybench.lab.findings import Case, ClientRow, Expected, Figure
from pybench.numbers import plural
from pybench.strategies import Choice, Count

if TYPE_CHECKING:
    from pybench.lab.buyers_that_retry import Buyer
    from pybench.lab.experiment import Values
    from pybench.lab.stage import Stage

POLICIES = ("fixed", "exponential", "full", "equal", "decorrelated")
HERD = 0.5
"""When so large a share of the buyers asks within one millisecond, they come as a herd."""
A_MS_US = 1_000
JOIN_S = 10.0
LEAST_BASE_MS = 10
"""Pauses of about a millisecond spread nobody over milliseconds."""


def _require(values: Values) -> None:
    if values["base"] < LEAST_BASE_MS * 1_000_000:
        raise InputError(
            f"--base is shorter than {LEAST_BASE_MS}ms",
            hint="the pauses have to be longer than the counted millisecond",
        )
    if values["cap"] < values["base"]:
        raise InputError("--cap is shorter than --base", hint="no pause is longer than --cap: raise it")


def _run(stage: Stage) -> Iterator[Case]:
    first = stage.word("first")
    order = (first, *(other for other in POLICIES if other != first))
    rounds: dict[str, list[tuple[int, list[Buyer]]]] = {name: [] for name in order}
    for number in range(stage.count("rounds")):
        for name in order:
            stage.note(f"{name}, round {number + 1}")
            rounds[name].append(_measured(stage, name, number))
    lowest = {name: min(found, key=lambda one: one[0]) for name, found in rounds.items()}
    for name, (peak, bought) in lowest.items():
        yield _case(stage, name, peak, bought, fixed=lowest["fixed"][0], full=lowest["full"][0])


def _measured(stage: Stage, name: str, number: int) -> tuple[int, list[Buyer]]:
    """The peak of attempts in one round, and what the buyers did."""
    from pybench.lab import buyers_that_retry

    (server,) = stage.redis()
    plan = buyers_that_retry.Plan(
        url=stage.url(server),
        name=f"{stage.prefix}lock:{name}:{number}",
        pause=buyers_that_retry.POLICIES[name],
        base_s=stage.seconds("base"),
        cap_s=stage.seconds("cap"),
        work_s=stage.seconds("work"),
    )
    buyers = stage.count("concurrency")
    stage.allow_time()
    with _watched(stage, plan.name) as at_us:
        bought = stage.run_async(buyers_that_retry.buy(plan, buyers))
    return _peak(sorted(at_us)[buyers:]), bought


def _peak(at_us: Sequence[int]) -> int:
    """The most of these times that lie within one millisecond."""
    return max((bisect_left(at_us, one + A_MS_US) - place for place, one in enumerate(at_us)), default=0)


@contextmanager
def _watched(stage: Stage, name: str) -> Iterator[list[int]]:
    """When the server carried out each attempt of the block, in microseconds; complete after the block.

    Raises RedisError, also where the server does not allow MONITOR.
    """
    from redis import Redis, RedisError

    (server,) = stage.redis()
    at_us: list[int] = []
    failed: list[RedisError] = []
    begun, over = threading.Event(), f"{name}:over"
    redis = Redis.from_url(stage.url(server))

    def watch() -> None:
        try:
            with redis.monitor() as monitor:  # type: ignore[no-untyped-call]
                begun.set()
                for told in monitor.listen():
                    words = told["command"].split(" ")
                    if over in words:
                        return
                    if words[:2] == ["SET", name]:
                        at_us.append(round(told["time"] * 1e6))
        except RedisError as error:
            failed.append(error)
            begun.set()

    watcher = threading.Thread(target=watch, name="pybench-monitor", daemon=True)
    watcher.start()
    begun.wait(stage.left_s)
    try:
        if not failed:
            yield at_us
    finally:
        # It ends the watcher; where the server is gone, that has ended it already.
        with suppress(RedisError):
            redis.get(over)
        watcher.join(JOIN_S)
        redis.close()
    if failed:
        raise failed[0]


def _case(stage: Stage, name: str, peak: int, bought: Sequence[Buyer], *, fixed: int, full: int) -> Case:
    buyers, stock = len(bought), stage.count("stock")
    in_order = sorted(bought, key=lambda one: one.granted)
    waits = [one.granted - one.asked for one in bought]
    attempts = sum(one.attempts for one in bought)
    # A buyer with a short pause may ask more than once.
    sentence = f"{plural(peak, 'attempt')} of {buyers} buyers came within one millisecond"
    if name == "full":
        sentence += f", {fixed} with fixed pauses"
    # A policy is no lock, and promises nothing: where full jitter spread nobody, nothing was shown.
    is_shown = full < fixed
    if name == "fixed" and not is_shown:
        sentence += f", {full} with full jitter"
    expected = {"fixed": Expected.WRONG, "full": Expected.RIGHT if is_shown else Expected.EITHER}
    return Case(
        label=name,
        expected=expected.get(name, Expected.EITHER),
        went_wrong=not is_shown if name == "full" else peak >= HERD * buyers and (is_shown or name != "fixed"),
        sentence=sentence,
        figures=(
            Figure("peak", "peak attempts in 1 ms", peak),
            Figure("attempts", "attempts", attempts),
            Figure("retries", "retries", attempts - buyers),
            Figure("successful", "successful", min(buyers, stock)),
            Figure("fairness", "fairness of waits (Jain)", _jain(waits)),
            Figure("duration_ms", "until the last had it", round((in_order[-1].granted - bought[0].asked) * 1e3, 3)),
        ),
        clients=tuple(
            ClientRow(
                process_id=os.getpid(),
                lock_acquired=True,
                success=place < stock,
                duration_ms=round((one.granted - one.asked) * 1e3, 3),
                error=None if place < stock else "Insufficient stock",
            )
            for place, one in enumerate(in_order)
        ),
    )


def _jain(waits: Sequence[float]) -> float | None:
    """1 where all waited alike; near 0 where one waited for all the others."""
    squares = sum(wait * wait for wait in waits)
    return round(sum(waits) ** 2 / (len(waits) * squares), 3) if squares else None


RETRY = Experiment(
    name="retry",
    summary="When refused buyers come back: fixed pauses, jitter",
    steps=(
        "{concurrency} connections of a small program ask for one lock (SET NX) at once, as the locks of pybench draw "
        "their first pause at random. Each works for {work}; the stock is {stock}.",
        "A client that is refused asks again after {base}, or after the pause that its policy draws, at most {cap}.",
        "The server tells when it carried out each attempt (MONITOR), without the first ones of all buyers.",
        "A stall of the machine brings any clients together: of {rounds:round} the one with the lowest peak is shown.",
    ),
    learn="Equal pauses bring the refused clients back at one moment, again and again; full jitter spreads them.",
    run=_run,
    require=_require,
    parameters=(
        Parameter("concurrency", Count(4, 1_000), "20", "Buyers, all at once."),
        Parameter("stock", Count(0, 1_000), "10", "Pieces at the beginning."),
        Parameter("first", Choice(POLICIES), "fixed", "The policy that is measured first."),
        Parameter("base", Time(), "20ms", "The first pause."),
        Parameter("cap", Time(), "80ms", "The longest pause."),
        Parameter("rounds", Count(1, 20), "3", "Rounds of each policy."),
        Parameter("work", Time(), "5ms", "Work of a buyer who holds the lock."),
    ),
)
