"""Clients of an experiment: how several run at once, and the row of one that ran in this process."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from pybench.lab.findings import ClientRow

T = TypeVar("T")


async def all_at_once(clients: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What each of `clients` returned. Raises the first error of one, after the others were cancelled and have ended.

    `asyncio.gather` lets the others run on, while their caller closes the connections that they use.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(client) for client in clients]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


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
