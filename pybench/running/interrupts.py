"""What asks a run to end: the first ends the running trial and keeps it, the second leaves at once.

Ctrl-C, SIGTERM, and a terminal that is closed.

Promises: no signal tears apart the saving of a trial; the handlers of before are back afterwards.
Does nothing outside of the main thread, where Python delivers no signals, nor about a signal that whoever started the
process had ignored, as nohup does.
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
        self._asked = 0
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
        """Whether the run was asked to end."""
        return self._asked > 0

    @property
    def insisted(self) -> bool:
        """Whether it was asked again, and has to leave at once."""
        return self._asked > 1

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Inside, the first signal raises KeyboardInterrupt; one that came just before raises it on entry."""
        self._stoppable = True
        try:
            if self._asked:
                raise KeyboardInterrupt
            yield
        finally:
            self._stoppable = False

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Inside, no signal raises; leaving it raises KeyboardInterrupt when the user insisted meanwhile."""
        asked = self._asked
        self._shielded = True
        try:
            yield
        finally:
            self._shielded = False
        if self.insisted and self._asked > asked:
            raise KeyboardInterrupt

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._asked += 1
        if not self._shielded and (self._stoppable or self.insisted):
            raise KeyboardInterrupt
