"""The errors for users, as one tree. Each error has a hint with the next step.

PybenchError                 exit code
├── InputError               40  a matrix, option or folder that cannot be used
├── ServerError              41  a server that is not reachable, or not as required
│   └── LocksGone            41  a server that may have lost held locks
├── OutOfTime                41  a case of the lab that takes longer than `--time-limit`
├── RecordError              40  a run folder that cannot be read or written
├── CoreBuildError           40  the core is a debug build, or is used after a fork
└── LockError                    a lock of a program: see `pybench.lock_client.errors`
"""

from __future__ import annotations

from typing import Self

from pybench.exits import Exit


class PybenchError(Exception):
    """An error: the problem in one sentence, and the `hint` with what to type or change next."""

    exit = Exit.BAD_INPUT

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class InputError(PybenchError):
    """An invalid matrix, option or argument."""


class ServerError(PybenchError):
    """A server that does not reply, refuses access, or is not of the expected kind."""

    exit = Exit.SERVER_UNREACHABLE


class LocksGone(ServerError):
    """An event on a server, such as a restart, that may have removed held locks.

    `cuts_connections` says that the event closes all connections, so that all locks existed until the first closed
    connection. Otherwise locks may have been lost at any time since the trial began.
    """

    def __init__(self, message: str, *, hint: str | None, cuts_connections: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.cuts_connections = cuts_connections

    @classmethod
    def unread(cls, error: ServerError) -> Self:
        """The error for a reading that failed with `error`: the server may have been restarted without its locks."""
        return cls(error.message, hint=error.hint, cuts_connections=True)


class OutOfTime(PybenchError):
    """A case of the lab that takes longer than its time limit; no server need be the reason."""

    exit = Exit.SERVER_UNREACHABLE


class RecordError(PybenchError):
    """A run folder that cannot be read or written."""


class CoreBuildError(PybenchError):
    """The Rust core must not measure, since it is a debug build or was loaded before a fork."""
