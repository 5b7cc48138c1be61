"""Locks at native speed: each user stands for 16 native clients, which acquire, hold and release without a pause.

    locust -f locustfiles/native_locks.py

docs/locust.md explains the options, and how to use many machines.
"""

from __future__ import annotations

from pybench.swarm import NativeLocks


class Lock(NativeLocks):
    """The clients of a lock. Options say which lock, which keys, and which server."""
