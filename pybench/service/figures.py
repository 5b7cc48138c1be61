"""The figures of `/metrics`, through prometheus-client.

With several processes each keeps its figures in a file that all can read (prometheus-client's multiprocess mode, which
its environment variable switches on), and whichever answers adds them up.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from pybench.service.watching import Servers

FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class _ServerCollector(Collector):
    """The state of the servers, at the time of the scrape, as the answering process sees it."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    def collect(self) -> Iterable[Metric]:
        """Made anew for each scrape."""
        up = GaugeMetricFamily("pybench_server_up", "Whether a server answers.", labels=["role", "number"])
        latency = GaugeMetricFamily(
            "pybench_server_latency_seconds", "Round trip of the last look at a server.", labels=["role", "number"]
        )
        for role, number, link in self._servers.numbered():
            up.add_metric([role, str(number)], float(link.is_up))
            if link.latency_s is not None:
                latency.add_metric([role, str(number)], link.latency_s)
        return up, latency


class Figures:
    """Counters of one process. Labels are bounded: routes and strategies by name, without what a client makes up."""

    def __init__(self, servers: Servers) -> None:
        self._own = CollectorRegistry()
        registry = self._own
        self._requests = Counter(
            "pybench_requests", "Requests by route and status.", ["route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "pybench_request_seconds", "Time of a request.", ["route"], buckets=_SECONDS, registry=registry
        )
        self._locks = Counter(
            "pybench_locks",
            "Lock requests by strategy: granted, refused (held by another), failed (a server); locks lost.",
            ["strategy", "outcome"],
            registry=registry,
        )
        self._holds = Histogram(
            "pybench_lock_hold_seconds",
            "Time from grant to the end of the release.",
            ["strategy"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._waiting = Gauge(
            "pybench_waiting",
            "Requests that wait for a lock now.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._servers = _ServerCollector(servers)
        self._requests_of: dict[tuple[str, int], Counter] = {}
        self._seconds_of: dict[str, Histogram] = {}
        self._locks_of: dict[tuple[str, str], Counter] = {}
        self._holds_of: dict[str, Histogram] = {}

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        counter = self._requests_of.get((route, status))
        if counter is None:
            counter = self._requests_of[route, status] = self._requests.labels(route, str(status))
            self._seconds_of[route] = self._seconds.labels(route)
        counter.inc()
        self._seconds_of[route].observe(seconds)

    def waiting(self, more: int) -> None:
        """Count a request that begins to wait for a lock, or ends to."""
        self._waiting.inc(more)

    def granted(self, strategy: str) -> None:
        """Count a grant."""
        self._lock(strategy, "granted")

    def refused(self, strategy: str) -> None:
        """Count a lock that another client held."""
        self._lock(strategy, "refused")

    def lock_failed(self, strategy: str) -> None:
        """Count a lock whose servers failed."""
        self._lock(strategy, "failed")

    def lost(self, strategy: str) -> None:
        """Count a lock that ended before its release."""
        self._lock(strategy, "lost")

    def held(self, strategy: str, seconds: float) -> None:
        """Count a hold."""
        holds = self._holds_of.get(strategy)
        if holds is None:
            holds = self._holds_of[strategy] = self._holds.labels(strategy)
        holds.observe(seconds)

    def exposition(self) -> tuple[bytes, str]:
        """The figures of all processes as text, and its content type."""
        registry = CollectorRegistry()
        if os.environ.get(FOLDER_VARIABLE):
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        else:
            registry.register(_Same(self._own))
        registry.register(self._servers)
        return generate_latest(registry), CONTENT_TYPE_LATEST

    def _lock(self, strategy: str, outcome: str) -> None:
        counter = self._locks_of.get((strategy, outcome))
        if counter is None:
            counter = self._locks_of[strategy, outcome] = self._locks.labels(strategy, outcome)
        counter.inc()


class _Same(Collector):
    """What another registry has."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        """As it stands."""
        return iter(self._registry.collect())
