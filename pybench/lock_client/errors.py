"""The errors of locks of a program. Each says what is known about the lock.

LockError
├── NotAcquired       nothing is held: another client has the lock
│   └── NoQuorum      nothing is held: too few servers replied
├── LockLost          the lock was granted, and ended before its release
├── Unknown           a reply was lost: the server has done what was asked for, or has not
├── ServerRefused     a server replied with an error
├── Unreachable       nothing was sent: there is no connection to a server
└── ClientUnusable    the client was closed, or made before a fork
"""

from __future__ import annotations

from pybench.errors import PybenchError


class LockError(PybenchError):
    """Any error of a lock. Bad arguments raise ValueError or TypeError instead."""


class NotAcquired(LockError):
    """The lock was not acquired within the wait, and nothing is held."""

    def __init__(self, message: str, *, hint: str | None = None, time_left: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.time_left = time_left
        """Seconds until the holder's lease ends, unless it is renewed; None where the server did not tell."""


class NoQuorum(NotAcquired):
    """Too few of several servers replied. Nothing is held; what they granted is released, or ends with its lease."""


class LockLost(LockError):
    """The lock was granted, but ended before its release: another client may have held it meanwhile."""


class Unknown(LockError):
    """A reply was lost. What may have been taken is released as soon as possible, at the latest with its lease."""


class ServerRefused(LockError):
    """A server replied with an error that another attempt would meet again."""


class Unreachable(LockError):
    """No connection to a server was open in time. Nothing was sent, so nothing is held."""


class ClientUnusable(LockError):
    """The client was closed, or is used in a process forked after its first lock."""
