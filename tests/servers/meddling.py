"""What somebody does to a server in the middle of a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pybench import _core
from pybench.watch import Silent, Slot


class Meddler(Silent):
    """Does `act` once, when trial `number` of the run is measuring."""

    def __init__(self, act: Callable[[], object], *, number: int = 2) -> None:
        self.notes: list[str] = []
        self._act = act
        self._number = number
        self._thread: threading.Thread | None = None

    def trial_begins(self, slot: Slot, trial: _core.Trial) -> None:
        if slot.number == self._number:
            self._thread = threading.Thread(target=self._meddle, args=(trial,))
            self._thread.start()

    def note(self, text: str) -> None:
        self.notes.append(text)

    def run_ends(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _meddle(self, trial: _core.Trial) -> None:
        while trial.progress().phase in ("connecting", "warmup"):
            time.sleep(0.001)
        self._act()
