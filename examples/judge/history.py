"""Writes a history of lock events, as docs/judge.md describes it: one file for each worker."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


class History:
    """The history of one worker that takes one key; an event is in the file before `write` returns."""

    def __init__(self, path: Path, *, lock: str, key: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        self._client, self._key = path.stem, key
        self._line({"pybench_history": 1, "clock": "monotonic", "boot_id": BOOT_ID, "lock": lock})

    def write(self, event: str, **fields: int | None) -> None:
        """Append `event`, which happens now."""
        self._line({"t": time.monotonic_ns(), "client": self._client, "event": event, "key": self._key, **fields})

    def _line(self, values: dict[str, object]) -> None:
        os.write(self._file, (json.dumps(values) + "\n").encode())


def contend(
    history: History,
    *,
    seconds: float,
    lease_ns: int,
    hold_s: float,
    take: Callable[[], bool],
    give: Callable[[], bool],
) -> None:
    """Take and release the lock until `seconds` are over. `take` tries once, and `give` says whether it was held."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        history.write("acquire")
        until = None
        while until is None and time.monotonic() < end:
            # The lease counts from before the attempt is sent: the server may set it as soon as that.
            sent = time.monotonic_ns()
            until = sent + lease_ns if take() else None
            if until is None:
                time.sleep(random.uniform(0, 0.002))
        if until is None:
            history.write("gave-up")
            return
        history.write("granted", until=until)
        time.sleep(hold_s * random.uniform(0.5, 1.5))
        history.write("released")  # Before the release is sent: from now on another worker may be granted the key.
        if not give() and time.monotonic_ns() < until:
            history.write("denied")
