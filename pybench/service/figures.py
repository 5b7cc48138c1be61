"""The figures of `/metrics`: plain numbers of each process, which a collector of prometheus-client adds up and writes.

A request counts ten figures: prometheus-client's own counters, each with a mutex and, over several processes, a mapped
file, would take a tenth of its time. Of several processes each writes its numbers to a file when they have changed, at
most every `WRITE_S`, and when it ends; whichever is asked adds up its own numbers and the files of the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from pybench.service.watching import Servers

FOLDER_VARIABLE: Final = "PYBENCH_SERVE_FIGURES"
"""The folder of the files of several processes."""
WRITE_S: Final = 0.1
_BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ENDING: Final = ".figures"
_BETWEEN: Final = "\t"
"""Between two labels."""


class Times:
    """How often times were in each bucket, and their sum."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(_BOUNDS, seconds)] += 1
        self.sum_s += seconds


class Numbers:
    """The figures of one process, or of several added up. Labels are texts with tabs between them."""

    def __init__(self) -> None:
        self.requests: dict[str, int] = defaultdict(int)
        """By route and status."""
        self.locks: dict[str, int] = defaultdict(int)
        """By strategy and outcome."""
        self.seconds: dict[str, Times] = defaultdict(Times)
        """Of requests, by route."""
        self.holds: dict[str, Times] = defaultdict(Times)
        """By strategy."""
        self.waiting = 0

    def to_json(self) -> str:
        """For a file."""
        times = {
            name: {key: [one.counts, one.sum_s] for key, one in getattr(self, name).items()}
            for name in ("seconds", "holds")
        }
        return json.dumps({"requests": self.requests, "locks": self.locks, "waiting": self.waiting, **times})

    def add(self, text: str, *, is_alive: bool) -> None:
        """Add what `to_json` wrote. A process that has ended has nobody waiting any more."""
        read: dict[str, Any] = json.loads(text)
        for name in ("requests", "locks"):
            for key, count in read[name].items():
                getattr(self, name)[key] += count
        for name in ("seconds", "holds"):
            for key, (counts, sum_s) in read[name].items():
                times: Times = getattr(self, name)[key]
                times.counts = [mine + more for mine, more in zip(times.counts, counts, strict=True)]
                times.sum_s += sum_s
        self.waiting += read["waiting"] if is_alive else 0


class Figures:
    """The figures of this process. Labels are bounded: routes and names of strategies, nothing that a client makes up.

    `write` at the end, where there are several processes.
    """

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._numbers = Numbers()
        folder = os.environ.get(FOLDER_VARIABLE)
        self._file = Path(folder) / f"{os.getpid()}{_ENDING}" if folder else None
        self._timer: asyncio.TimerHandle | None = None

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._numbers.requests[f"{route}{_BETWEEN}{status}"] += 1
        self._numbers.seconds[route].add(seconds)
        if self._file is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_S, self.write)

    def waiting(self, more: int) -> None:
        """Count a request that begins to wait for a lock, or ends to."""
        self._numbers.waiting += more

    def lock(self, strategy: str, outcome: str) -> None:
        """Count a request for a lock: `granted`, `refused` or `failed`; or a lock that was `lost`."""
        self._numbers.locks[f"{strategy}{_BETWEEN}{outcome}"] += 1

    def held(self, strategy: str, seconds: float) -> None:
        """Count a hold."""
        self._numbers.holds[strategy].add(seconds)

    def write(self) -> None:
        """Write the numbers of this process for the others."""
        self._timer = None
        if self._file is not None:
            # The folder is gone when the process that started this one was killed.
            with contextlib.suppress(OSError):
                whole = self._file.with_suffix(".part")
                whole.write_text(self._numbers.to_json(), encoding="utf-8")
                whole.replace(self._file)

    def exposition(self) -> tuple[bytes, str]:
        """The figures of all processes as text, and its content type."""
        self.write()
        registry = CollectorRegistry()
        registry.register(_Collector(self._added_up(), self._servers))
        return generate_latest(registry), CONTENT_TYPE_LATEST

    def _added_up(self) -> Numbers:
        if self._file is None:
            return self._numbers
        total = Numbers()
        for path in sorted(self._file.parent.glob(f"*{_ENDING}")):
            is_alive = Path(f"/proc/{path.stem}").exists()
            with contextlib.suppress(OSError):
                total.add(path.read_text(encoding="utf-8"), is_alive=is_alive)
        return total


class _Collector(Collector):
    """The figures and the state of the servers at the time of a scrape, as the answering process sees it."""

    def __init__(self, numbers: Numbers, servers: Servers) -> None:
        self._numbers = numbers
        self._servers = servers

    def collect(self) -> Iterable[Metric]:
        """Made anew for each scrape."""
        numbers = self._numbers
        yield _counter("pybench_requests", "Requests.", ["route", "status"], numbers.requests)
        yield _histogram("pybench_request_seconds", "Time of a request.", "route", numbers.seconds)
        about = "Requests for a lock that were granted, refused (held by another) or failed (a server); locks lost."
        yield _counter("pybench_locks", about, ["strategy", "outcome"], numbers.locks)
        about = "Time from a grant to the end of the release."
        yield _histogram("pybench_lock_hold_seconds", about, "strategy", numbers.holds)
        yield GaugeMetricFamily("pybench_waiting", "Requests that wait for a lock now.", value=numbers.waiting)
        yield from self._of_servers()

    def _of_servers(self) -> Iterator[Metric]:
        labels = ["role", "number"]
        up = GaugeMetricFamily("pybench_server_up", "Whether a server answers.", labels=labels)
        about = "Round trip of the last look at a server."
        latency = GaugeMetricFamily("pybench_server_latency_seconds", about, labels=labels)
        for role, number, link in self._servers.numbered():
            up.add_metric([role, str(number)], float(link.is_up))
            if link.latency_s is not None:
                latency.add_metric([role, str(number)], link.latency_s)
        yield up
        yield latency


def _counter(name: str, about: str, labels: list[str], counts: dict[str, int]) -> Metric:
    family = CounterMetricFamily(name, about, labels=labels)
    for key, count in counts.items():
        family.add_metric(key.split(_BETWEEN), count)
    return family


def _histogram(name: str, about: str, label: str, times: dict[str, Times]) -> Metric:
    family = HistogramMetricFamily(name, about, labels=[label])
    for key, one in times.items():
        total = 0
        buckets = []
        for bound, count in zip([*map(str, _BOUNDS), "+Inf"], one.counts, strict=True):
            total += count
            buckets.append((bound, total))
        family.add_metric([key], buckets, one.sum_s)
    return family
