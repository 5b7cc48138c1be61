"""What somebody does to a server in the middle of a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pybench.running.watch import Finished, Running, Silent, Slot


class Meddler(Silent):
    """Does `act` once, when trial `number` of the run is measuring, and lets no later trial begin before it is done."""

    def __init__(self, act: Callable[[], object], *, number: int = 2) -> None:
        self.notes: list[str] = []
        self._act = act
        self._number = number
        self._thread: threading.Thread | None = None
        self._is_done = False

    def trial_begins(self, slot: Slot, trial: Running) -> None:
        if slot.number == self._number:
            self._thread = threading.Thread(target=self._meddle, args=(trial,))
            self._thread.start()

    def trial_ends(self, slot: Slot, finished: Finished) -> None:
        self._join()

    def note(self, text: str) -> None:
        self.notes.append(text)

    def run_ends(self) -> None:
        self._join()

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()
            assert self._is_done, "what was to be done failed"

    def _meddle(self, trial: Running) -> None:
        while trial.progress().phase in ("connecting", "warmup"):
            time.sleep(0.001)
        self._act()
        self._is_done = True
