"""Measures a lock and enters its trials into pytest-benchmark, by its public interface.

pytest-benchmark reads its timer before and after a function that it calls once a round. Here the timer is a clock that
moves only when that function says so: by the time per grant of one trial. So each trial is one round, and no time of
Python is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Unpack

import pytest

from pybench.analysis.verdicts import Verdict
from pybench.errors import InputError, PybenchError
from pybench.numbers import missing

if TYPE_CHECKING:
    from pathlib import Path

    from pybench import Run
    from pybench.matrix.options import Options
    from pybench.pytest_plugin.session_servers import SessionServers

TIMER = "time per grant: window / grants of one trial"
SCHEDULE: Options = {"trials": 5, "duration": "500ms", "warmup": "100ms"}
"""Unless a test gives its own."""


class LockBenchmark:
    """What the fixture `lock_benchmark` is."""

    def __init__(self, request: pytest.FixtureRequest, servers: SessionServers, folder: Path) -> None:
        self._request = request
        self._servers = servers
        self._folder = folder
        self._is_used = False

    def __call__(self, strategy: str, /, **axes: Unpack[Options]) -> Run:
        """Measure `strategy` with one value for each of `axes`, the options of `pybench.run`.

        The run folder is kept with the temporary files of the test; `pybench report` writes its report.
        Where pytest-benchmark is disabled (`--benchmark-disable`, or under xdist), one trial is measured and judged.
        Fails the test for an unsafe lock, for a void run, for what cannot be measured, and if it is called twice.
        """
        if self._is_used:
            pytest.fail("lock_benchmark measures one lock in a test: use pytest.mark.parametrize", pytrace=False)
        self._is_used = True
        clock = _Clock()
        benchmark = self._benchmark(clock)
        options = SCHEDULE | axes | {"strategy": strategy}
        if not benchmark.enabled:
            options["trials"] = 1
        # The frames of pybench would hide the one line that says what to change.
        try:
            if not {"redis", "postgres", "servers"} & options.keys():
                options |= self._servers.of(strategy)
            run = _measured(self._folder, options)
        except PybenchError as error:
            pytest.fail(str(error), pytrace=False)
        self._judge(run)
        (row,) = run.summary.to_dict("records")
        benchmark.extra_info |= {"timer": TIMER, "unit": "s", "folder": str(run.path)}
        benchmark.extra_info |= {str(name): value for name, value in row.items() if not missing(value)}
        rates = [rate for rate in run.trials["grants_per_s"] if rate > 0]
        if not rates:
            pytest.fail(f"{strategy} was granted nothing", pytrace=False)
        rounds: Iterator[float] = iter([1 / rate for rate in rates])
        benchmark.pedantic(lambda: clock.advance(next(rounds)), rounds=len(rates), iterations=1)
        return run

    def _benchmark(self, clock: _Clock) -> Any:  # noqa: ANN401 - a fixture of a package that need not be installed
        node = self._request.node
        marker = node.get_closest_marker("benchmark")
        given = dict(marker.kwargs) if marker is not None else {}
        node.add_marker(pytest.mark.benchmark(**{**given, "timer": clock.timer}), append=False)
        try:
            return self._request.getfixturevalue("benchmark")
        except pytest.FixtureLookupError:
            pytest.fail("lock_benchmark needs pytest-benchmark: pip install 'pybench[pytest]'", pytrace=False)

    def _judge(self, run: Run) -> None:
        from pybench.report.verdict_reasons import reasons
        from pybench.report.view import make_view

        view = make_view(run)
        (cell,) = view.cells
        if cell.verdict in (Verdict.UNSAFE, Verdict.VOID):
            pytest.fail(f"{cell.series.label} is {cell.verdict}: {reasons(view)[cell.id]}", pytrace=False)


def _measured(folder: Path, options: Options) -> Run:
    """The run, without a report, which takes longer than some tests."""
    from pybench.matrix import expand
    from pybench.running.job import Job, carry_out, read_matrix

    try:
        matrix = read_matrix(None, None, **options)
    except TypeError as error:  # An unknown option.
        raise InputError(str(error)) from None
    if len(expand(matrix)) != 1:
        raise InputError("lock_benchmark measures one lock at one load", hint="give one value for each axis")
    outcome = carry_out(Job(matrix, command=[], out=folder))
    if outcome.error is not None:
        raise outcome.error
    return outcome.run


class _Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

        def time_per_grant() -> float:
            return self.now

        # pytest-benchmark records the name of its timer.
        self.timer: Callable[[], float] = time_per_grant

    def advance(self, seconds: float) -> None:
        """Let so much time pass."""
        self.now += seconds
