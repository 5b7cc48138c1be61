"""The pytest plugin: `lock_benchmark` measures a lock in a test and enters it into pytest-benchmark.

    def test_mutex(lock_benchmark):
        lock_benchmark("mutex", concurrency=64, keys=8, hold="1ms")

One number a trial is entered, the time per grant in seconds: window / grants. pytest-benchmark's own options then work
as ever: `--benchmark-autosave`, `--benchmark-compare`, `--benchmark-compare-fail=mean:10%`, histograms, groups.

Promises: importing it imports nothing else of pybench, because pytest imports it for every project that has pybench.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pybench.pytest_plugin.measuring import LockBenchmark
    from pybench.pytest_plugin.session_servers import SessionServers


@pytest.fixture(scope="session")
def pybench_servers() -> Iterator[SessionServers]:
    """The servers of the session's benchmarks: started when a benchmark first needs them, stopped at the end.

    A project that measures its own servers sets PYBENCH_REDIS_URL or PYBENCH_POSTGRES_URL, or overrides this fixture.
    """
    from pybench.pytest_plugin.session_servers import SessionServers

    servers = SessionServers()
    yield servers
    servers.stop()


@pytest.fixture
def lock_benchmark(request: pytest.FixtureRequest, pybench_servers: SessionServers, tmp_path: Path) -> LockBenchmark:
    """Call it once in a test, with a strategy and the axes of a matrix. Returns the `pybench.Run`.

    The test fails when the lock is UNSAFE, or when the checker missed the control.
    """
    from pybench.pytest_plugin.measuring import LockBenchmark

    return LockBenchmark(request, pybench_servers, tmp_path / "pybench-run")
