"""The errors a user can meet, one tree. Each ends with what to do next.

PybenchError                 exit code
├── InputError               40  a matrix, option or folder that cannot be used
├── ServerError              41  a server that is not reachable, or not what it should be
│   └── LocksGone            41  one that may have lost locks that were held there
├── RecordError              40  a run folder that cannot be read or written
└── CoreBuildError           40  the core was built without optimisation, or is used after a fork
"""

from __future__ import annotations

from typing import Self

from pybench.exits import Exit


class PybenchError(Exception):
    """What went wrong, in one sentence, with `hint`: what the user should type or change next."""

    exit = Exit.BAD_INPUT

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class InputError(PybenchError):
    """A matrix, option or argument that cannot be used as it stands."""


class ServerError(PybenchError):
    """A server that does not answer, refuses us, or is not what it was said to be."""

    exit = Exit.SERVER_UNREACHABLE


class LocksGone(ServerError):
    """What befell a server may have taken away locks that were held there.

    `cuts_connections` says that no client can have kept its connection through it: before the first closed connection
    was found, all locks were there. Otherwise locks may have been gone at any time since the trial began.
    """

    def __init__(self, message: str, *, hint: str | None, cuts_connections: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.cuts_connections = cuts_connections

    @classmethod
    def unread(cls, error: ServerError) -> Self:
        """A reading failed with `error`: whoever restarts such a server may have brought it back without its locks."""
        return cls(error.message, hint=error.hint, cuts_connections=True)


class RecordError(PybenchError):
    """A run folder that cannot be read or written."""


class CoreBuildError(PybenchError):
    """The Rust core must not measure: built without optimisation, or carried over a fork."""
