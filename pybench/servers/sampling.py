"""Samples of what a server or a machine does, taken ten times a second on a thread of their own.

Promises: the thread ends or delays nobody, even when a server dies or hangs. It takes at most `MOST_SHARE` of a core,
for a sample that costs more is taken less often. It keeps a bounded number of samples.
Does not do: placing samples in a trial; see `records.telemetry`.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from pybench.errors import ServerError

EVERY_S = 0.1
STOP_S = 0.5
"""Time for the last sample to end; after that its connection is cut."""
MOST_SHARE = 0.02
"""The share of a core that the samples of one thread take at most."""
MOST_SAMPLES = 6_000
"""Ten minutes of samples. When there are more, every second one is dropped, and they are taken half as often."""

NAME = "pybench-sampler"


@dataclass(frozen=True, slots=True)
class Sample:
    """What was seen at one moment. A figure that cannot be read is missing."""

    at_ns: int
    """By the monotonic clock, which the core uses too."""
    counters: Mapping[str, float]
    """Counts since any earlier moment, which only grow."""
    levels: Mapping[str, float] = field(default_factory=dict)
    """Numbers of the moment, such as those who wait."""
    waits: Mapping[str, int] | None = None
    """Sessions by what they wait for; None where the server has no sessions."""


class Sampler(ABC):
    """A context manager around a trial. Subclasses know how a sample is taken. Raises nothing."""

    def __init__(self, *, every_s: float = EVERY_S) -> None:
        self.series: list[Sample] = []
        """The samples so far, in the order of time."""
        self.error: str | None = None
        """What ended the sampling early."""
        self._every_s = every_s
        self._cpu_us = 0.0
        self._is_cut = False
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self) -> None:  # noqa: B027 - a subclass may have nothing to do
        """Prepare to take samples. Raises ServerError."""

    @abstractmethod
    def sample(self) -> Sample:
        """Take one. Raises ServerError, or another of `expected`."""

    def cut(self) -> None:  # noqa: B027 - a subclass may have nothing to do
        """End a `sample` that waits on another thread."""

    def close(self) -> None:  # noqa: B027 - a subclass may have nothing to do
        """Release what `open` has made; called after the last sample, and before another `open`."""

    expected: tuple[type[Exception], ...] = (ServerError,)
    """The errors that end the sampling."""

    opens_again = False
    """Whether such an error only ends the connection, because faults cut it or end the server."""

    def __enter__(self) -> Self:
        """Prepare, before the trial begins, and start the thread."""
        try:
            self.open()
        except ServerError as error:
            self.error = error.message
            return self
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the sampling. May be called more than once."""
        self._over.set()
        thread, self._thread = self._thread, None
        if thread is None:
            return
        thread.join(STOP_S)
        if thread.is_alive():
            # The server hangs. After the cut the thread ends at once.
            self.cut()
            thread.join(STOP_S)
        self.close()

    def _run(self) -> None:
        due = time.monotonic()
        try:
            while not self._over.is_set():
                before_ns = time.thread_time_ns()
                self._take()
                spent_us = (time.thread_time_ns() - before_ns) / 1e3
                self._cpu_us += spent_us
                due = max(due + max(self._every_s, spent_us / 1e6 / MOST_SHARE), time.monotonic())
                self._over.wait(due - time.monotonic())
            # The end of the trial lies between two samples.
            self._take()
        except self.expected as error:
            if not self._over.is_set():
                self.error = " ".join(str(error).split())

    def _take(self) -> None:
        """Take a sample. One that fails is left out where the server may be gone for a while."""
        try:
            if self._is_cut:
                self.open()
                self._is_cut = False
            self._keep(self.sample())
        except self.expected:
            if not self.opens_again:
                raise
            if not self._is_cut:
                self.close()
            self._is_cut = True

    def _keep(self, sample: Sample) -> None:
        counters = {**sample.counters, "sampling_us": self._cpu_us}
        self.series.append(Sample(sample.at_ns, counters, sample.levels, sample.waits))
        if len(self.series) > MOST_SAMPLES:
            del self.series[1::2]
            self._every_s *= 2
