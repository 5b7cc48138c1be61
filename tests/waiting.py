"""Waiting for what comes about by itself."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(holds: Callable[[], object], what: str, *, seconds: float = 20.0) -> None:
    """Until it holds; a slow machine makes it take longer, and no test red."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)
