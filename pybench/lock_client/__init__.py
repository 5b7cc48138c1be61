"""The lock machines that pybench measures, as locks for a program: `LockClient`, for threads and for asyncio."""

from __future__ import annotations

from pybench.lock_client.client import LockClient, MeasuredLockClient
from pybench.lock_client.errors import (
    ClientUnusable,
    LockError,
    LockLost,
    NoQuorum,
    NotAcquired,
    ServerRefused,
    Unknown,
    Unreachable,
)
from pybench.lock_client.held import AsyncHeld, AsyncLoss, Held, Loss
from pybench.lock_client.lock import Lock

__all__ = [
    "AsyncHeld",
    "AsyncLoss",
    "ClientUnusable",
    "Held",
    "Lock",
    "LockClient",
    "LockError",
    "LockLost",
    "Loss",
    "MeasuredLockClient",
    "NoQuorum",
    "NotAcquired",
    "ServerRefused",
    "Unknown",
    "Unreachable",
]
