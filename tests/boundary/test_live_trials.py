"""A trial that is asked and changed while it runs."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from pybench import _core
from tests.boundary.conftest import MakeSpec
from tests.core_trials import MS, fixed
from tests.redis_client import connect
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pybench._core import Drained
    from pybench.core_specs import TrialSpec

WITHOUT_END = {"duration_ns": None, "warmup_ns": 0}
# The checker's own thread is counted at the end, and so is what holds leave beyond the window.
ONLY_AT_THE_END = {"client_cpu_ns", "nominal_hold_ns"}


@contextmanager
def started(spec: TrialSpec) -> Iterator[_core.Trial]:
    trial = _core.Trial(spec)
    trial.start()
    try:
        yield trial
    finally:
        trial.stop()
        trial.wait()


def drained_until(trial: _core.Trial, holds: Any, what: str) -> list[Drained]:  # noqa: ANN401
    """What each call brought, until `holds` of their sum."""
    parts: list[Drained] = []

    def reached() -> bool:
        parts.append(trial.drain())
        return bool(holds(total(parts)))

    wait_until(reached, what)
    return parts


def total(parts: list[Drained]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for part in parts:
        sums.update(part.counters)
    return sums


def grants_of_next(trial: _core.Trial) -> int:
    return trial.drain().counters["grants"]


def buckets(parts: list[bytes]) -> list[list[int]]:
    return [column.tolist() for column in _core.histogram_buckets(_core.merge_histograms(parts))]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("strategy", ["mutex", "none"])
def test_what_is_drained_adds_up_to_the_result(make_spec: MakeSpec, strategy: str, threads: int) -> None:
    spec = make_spec(**WITHOUT_END, strategy=strategy, threads=threads, keys=2, hold=fixed(0.3))
    with started(spec) as trial:
        parts = drained_until(trial, lambda sums: sums["grants"] > 2_000, "locks are granted")
    parts.append(trial.drain())
    result = trial.result
    assert result is not None
    assert result.stopped
    assert len([part for part in parts if part.counters["grants"]]) > 2, "it was counted piece by piece"
    sums = total(parts)
    assert {name: sums[name] for name in sums.keys() - ONLY_AT_THE_END} == {
        name: result.totals[name] for name in sums.keys() - ONLY_AT_THE_END
    }
    assert 0 < sums["client_cpu_ns"] <= result.totals["client_cpu_ns"]
    by_step = defaultdict(list)
    for row in (row for part in parts for row in part.histograms):
        by_step[row.phase, row.outcome].append(row.hdr)
    whole = {(row.phase, row.outcome): row.hdr for row in result.histograms if row.phase != "handoff"}
    assert by_step.keys() == whole.keys()
    for step, rows in by_step.items():
        assert buckets(rows) == buckets([whole[step]])
    found = [violation for part in parts for violation in part.violations]
    told = ("kind", "key", "at_ns", "first_client", "second_client")
    assert [[one[name] for name in told] for one in found] == [
        [one[name] for name in told] for one in result.violations
    ]
    assert bool(found) == (strategy == "none")
    assert not trial.drain().counters["grants"], "nothing comes twice"


def test_before_its_window_and_before_its_start_a_trial_has_counted_no_grant(make_spec: MakeSpec) -> None:
    spec = make_spec(duration_ns=None, warmup_ns=60_000 * MS)
    assert not total([_core.Trial(spec).drain()])["grants"]
    with started(spec) as trial:
        parts = drained_until(trial, lambda sums: sums["all_grants"] > 20, "locks are granted in the warm-up")
    assert total(parts)["grants"] == 0
    assert not [row for part in parts for row in part.histograms]


def test_the_number_of_clients_can_be_changed_while_they_work(make_spec: MakeSpec) -> None:
    trial = _core.Trial(make_spec(**WITHOUT_END, keys=8, threads=2))
    trial.set(concurrency=0)
    trial.start()
    wait_until(lambda: trial.progress().phase == "measuring", "the window opens")
    assert [grants_of_next(trial) for _ in range(5)] == [0] * 5
    trial.set(concurrency=2)
    drained_until(trial, lambda sums: sums["grants"] > 100, "two clients work")
    trial.set(concurrency=0)
    wait_until(lambda: not any(grants_of_next(trial) for _ in range(3)), "no client works")
    trial.stop()
    assert trial.wait()
    assert trial.result is not None
    grants = trial.result.clients["grants"]
    assert [index for index, count in enumerate(grants) if count] == [0, 4], "the first of each thread"
    again = _core.Trial(make_spec(**WITHOUT_END, keys=8))
    again.set(concurrency=3)
    again.start()
    drained_until(again, lambda sums: sums["grants"] > 100, "three clients work")
    again.set(concurrency=8)
    drained_until(again, lambda sums: sums["grants"] > 2_000, "all clients work")
    again.stop()
    again.wait()
    assert again.result is not None
    assert all(again.result.clients["grants"])


def test_a_client_that_holds_when_it_is_too_many_ends_its_hold(make_spec: MakeSpec) -> None:
    with started(make_spec(**WITHOUT_END, concurrency=1, hold=fixed(200))) as trial:
        drained_until(trial, lambda sums: sums["grants"] == 1, "it holds")
        trial.set(concurrency=0)
        wait_until(lambda: [row for row in trial.drain().histograms if row.phase == "release"], "it has released")
    assert trial.result is not None
    (hold,) = [row for row in trial.result.histograms if row.phase == "hold"]
    assert _core.histogram_buckets(hold.hdr)[0][-1] >= 200 * MS, "it was not cut short"


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_the_rate_of_arrivals_can_be_changed(make_spec: MakeSpec, arrivals: str) -> None:
    loop = {"kind": "open", "arrivals": arrivals, "rate_per_s": 1.0, "max_in_flight": 100}
    trial = _core.Trial(make_spec(**WITHOUT_END, loop=loop, keys=8, threads=2))
    trial.set(rate=0)
    trial.start()
    wait_until(lambda: trial.progress().phase == "measuring", "the window opens")
    assert [trial.drain().counters["arrivals"] for _ in range(5)] == [0] * 5
    trial.set(rate=5_000)
    drained_until(trial, lambda sums: sums["arrivals"] > 50, "clients arrive")
    trial.set(rate=0)
    wait_until(lambda: not any(trial.drain().counters["arrivals"] for _ in range(3)), "nobody arrives")
    trial.stop()
    trial.wait()


def test_a_load_that_the_trial_cannot_have_is_refused(make_spec: MakeSpec) -> None:
    closed = _core.Trial(make_spec())
    loop = {"kind": "open", "arrivals": "constant", "rate_per_s": 1.0, "max_in_flight": 1}
    opened = _core.Trial(make_spec(loop=loop))
    for trial, field, load in [
        (closed, "concurrency", {"concurrency": 9}),
        (closed, "rate", {"rate": 5.0}),
        (opened, "concurrency", {"concurrency": 1}),
        (opened, "rate", {"rate": -1.0}),
        (opened, "rate", {"rate": float("nan")}),
    ]:
        with pytest.raises(ValueError, match=field):
            trial.set(**load)


def test_nothing_that_is_asked_waits_for_a_silent_server(make_spec: MakeSpec, server) -> None:
    """A call that waited for the server would never return, because only this thread lets it go on."""
    with started(make_spec(**WITHOUT_END, servers=[server.core_spec()])) as trial:
        drained_until(trial, lambda sums: sums["grants"] > 100, "locks are granted")
        os.kill(server.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: not any(grants_of_next(trial) for _ in range(3)), "the server is silent")
            trial.set(concurrency=1)
            trial.stop()
            wait_until(lambda: trial.result is not None, "the trial ends")
        finally:
            os.kill(server.pid, signal.SIGCONT)


def test_a_trial_that_nobody_refers_to_ends(make_spec: MakeSpec, server) -> None:
    with connect(server.endpoint) as redis:

        def connections() -> int:
            return sum(client["name"] == "forgotten" for client in redis.client_list())

        trial = _core.Trial(make_spec(**WITHOUT_END, client_name="forgotten"))
        trial.start()
        wait_until(lambda: connections() == 2, "it has connected")
        del trial
        gc.collect()
        wait_until(lambda: connections() == 0, "it has left the server")


def test_signals_are_heard_while_a_trial_is_waited_for_and_it_goes_on(make_spec: MakeSpec) -> None:
    def interrupt(*_: object) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with started(make_spec(**WITHOUT_END)) as trial:
            wait_until(lambda: grants_of_next(trial) > 0, "locks are granted")
            threading.Timer(0.1, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1)).start()
            with pytest.raises(InterruptedError):
                trial.wait()
            assert not trial.wait(0)
            assert trial.result is None
            wait_until(lambda: grants_of_next(trial) > 0, "it goes on")
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_the_error_of_a_trial_is_raised_to_whoever_waits(make_spec: MakeSpec) -> None:
    nowhere = {**make_spec()["servers"][0], "unix": "/nowhere/at.sock"}
    trial = _core.Trial(make_spec(**WITHOUT_END, servers=[nowhere]))
    trial.start()
    with pytest.raises(_core.ConnectError):
        trial.wait()
    assert trial.wait()
    assert trial.result is None
    assert not trial.drain().counters["grants"]


def test_a_trial_is_started_once_and_not_in_another_process(make_spec: MakeSpec) -> None:
    trial = _core.Trial(make_spec())
    with pytest.raises(RuntimeError, match="not started"):
        trial.wait()
    trial.start()
    for again in (trial.start, trial.run):
        with pytest.raises(RuntimeError, match="once"):
            again()
    assert trial.wait()
    context = multiprocessing.get_context("fork")
    outcome = context.SimpleQueue()

    def in_child() -> None:
        for call in (trial.drain, lambda: trial.set(concurrency=1), trial.wait):
            try:
                call()
            except RuntimeError as error:
                outcome.put("fork" in str(error))

    child = context.Process(target=in_child)
    child.start()
    child.join()
    assert [outcome.get() for _ in range(3)] == [True] * 3
    with pytest.raises(ValueError, match="without an end"):
        _core.Trial(make_spec(**WITHOUT_END)).run()


def staged(*stages: tuple[float, float, int]) -> dict[str, Any]:
    """Stages as `from`, `to` and a length in ms, which are the window."""
    described = [{"from": begin, "to": end, "length_ns": ms * MS} for begin, end, ms in stages]
    return {"stages": described, "duration_ns": sum(ms for *_, ms in stages) * MS, "warmup_ns": 0}


@pytest.mark.parametrize("threads", [1, 2])
def test_clients_work_as_the_stages_say(make_spec: MakeSpec, threads: int) -> None:
    stages = staged((0, 0, 300), (0, 8, 400), (8, 8, 300), (2, 2, 400), (0, 0, 300))
    # Each client is granted its own lock for 1 ms and asks again: the grants say how many work.
    result = _core.Trial(make_spec(**stages, keys=1_000, threads=threads, hold=fixed(1))).run()
    offered = result.timeline["offered"].tolist()
    expected = [0] * 3 + [1, 3, 5, 7] + [8] * 3 + [2] * 4 + [0] * 3
    assert offered == pytest.approx(expected)
    grants = result.timeline["grants"].tolist()
    # Until a hold has ended, a client that is too many goes on.
    assert sum(grants[:3]) == 0
    assert sum(grants[15:]) == 0
    for count, load in zip(grants, offered, strict=True):
        assert count <= (load + 2) * 100, "no client is granted more than a lock a ms"
    assert result.clients["grants"].min() > 0, "every client has worked"


def test_arrivals_come_as_the_stages_say(make_spec: MakeSpec) -> None:
    loop = {"kind": "open", "arrivals": "constant", "rate_per_s": 2_000.0, "max_in_flight": 1_000}
    stages = staged((0, 0, 200), (0, 2_000, 400), (2_000, 2_000, 200), (0, 0, 200))
    result = _core.Trial(make_spec(**stages, loop=loop, keys=1_000)).run()
    assert result.totals["arrivals"] == pytest.approx(2_000 * 0.2 + 2_000 * 0.2, abs=1)
    assert result.timeline["offered"].tolist() == pytest.approx([0, 0, 250, 750, 1250, 1750, 2000, 2000, 0, 0])


def test_the_stages_begin_with_the_window(make_spec: MakeSpec) -> None:
    spec = make_spec(**staged((2, 2, 100), (2, 4, 100)) | {"warmup_ns": 100 * MS}, keys=1_000)
    result = _core.Trial(spec).run()
    assert result.totals["all_grants"] > result.totals["grants"] > 0
    assert result.timeline["offered"].tolist() == pytest.approx([2, 3])
    assert [index for index, count in enumerate(result.clients["grants"]) if count] == [0, 1, 2, 3]


def test_what_is_asked_for_takes_the_place_of_the_stages(make_spec: MakeSpec) -> None:
    with started(make_spec(**staged((1, 1, 60_000)), keys=1_000)) as trial:
        drained_until(trial, lambda sums: sums["grants"] > 100, "one client works")
        trial.set(concurrency=8)
        drained_until(trial, lambda sums: sums["grants"] > 2_000, "all clients work")
    assert trial.result is not None
    assert all(trial.result.clients["grants"])


@pytest.mark.parametrize(
    "stages",
    [
        staged((0, 9, 100)),
        staged((-1, 0, 100)),
        staged((float("nan"), 0, 100)),
        staged((0, 1, 0), (0, 1, 100)),
        staged((0, 1, 100)) | {"duration_ns": 101 * MS},
    ],
)
def test_stages_that_the_trial_cannot_have_are_refused(make_spec: MakeSpec, stages: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="stages"):
        _core.Trial(make_spec(**stages))


def test_a_result_can_be_asked_for_while_another_thread_waits_for_it(make_spec: MakeSpec) -> None:
    for _ in range(10):
        trial = _core.Trial(make_spec(duration_ns=10 * MS, warmup_ns=0))
        results: list[_core.TrialResult] = []
        thread = threading.Thread(target=lambda trial=trial, results=results: results.append(trial.run()))
        thread.start()
        # `is`: the same object for everybody.
        wait_until(lambda trial=trial: trial.result is not None, "the trial ends")
        thread.join()
        assert results == [trial.result]
