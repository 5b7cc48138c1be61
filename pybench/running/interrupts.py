"""Signals that end a run: Ctrl-C, SIGTERM, and a closed terminal.

The first signal ends the running trial and keeps it; the second ends the run at once.

Promises: no signal interrupts the saving of a trial; the earlier handlers are restored afterwards.
Does not do: anything outside the main thread, where Python delivers no signals; changing a signal that the parent
process ignored, as nohup does.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """A context manager around a run."""

    def __init__(self) -> None:
        self._count = 0
        self._stoppable = False
        self._shielded = False
        self._before: dict[int, signal.Handlers] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._on_signal)  # type: ignore[assignment]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def asked(self) -> bool:
        """Whether the user asked the run to end."""
        return self._count > 0

    @property
    def insisted(self) -> bool:
        """Whether the user asked again, so that the run ends at once."""
        return self._count > 1

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Inside, the first signal raises KeyboardInterrupt; an earlier signal raises it on entry."""
        self._stoppable = True
        try:
            if self._count:
                raise KeyboardInterrupt
            yield
        finally:
            self._stoppable = False

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Inside, no signal raises. The exit raises KeyboardInterrupt when the user insisted in the meantime."""
        before = self._count
        self._shielded = True
        try:
            yield
        finally:
            self._shielded = False
        if self.insisted and self._count > before:
            raise KeyboardInterrupt

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if not self._shielded and (self._stoppable or self.insisted):
            raise KeyboardInterrupt
