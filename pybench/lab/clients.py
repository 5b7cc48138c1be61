"""The row of a client that ran in this process."""

from __future__ import annotations

import os
import time
from dataclasses import replace

from pybench.lab.findings import ClientRow


def client_row(
    began: float,
    *,
    locked: bool,
    before: int | None = None,
    after: int | None = None,
    error: str | None = None,
) -> ClientRow:
    """What a client did since `began`, a reading of `time.monotonic`; without an error it succeeded."""
    return ClientRow(
        process_id=os.getpid(),
        lock_acquired=locked,
        success=error is None,
        duration_ms=round((time.monotonic() - began) * 1e3, 3),
        stock_before=before,
        stock_after=after,
        error=error,
    )


def killed_row(pid: int, began: float, *, locked: bool, error: str) -> ClientRow:
    """What a process did from `began` until now, when it was killed."""
    return replace(client_row(began, locked=locked, error=error), process_id=pid)
