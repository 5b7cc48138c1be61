"""The errors a user can meet, one tree. Each ends with what to do next.

PybenchError                 exit code
├── InputError               40  a matrix, option or folder that cannot be used
├── ServerError              41  a server that is not reachable, or not what it should be
├── RecordError              40  a run folder that cannot be read or written
└── CoreBuildError           40  the core was built without optimisation, or is used after a fork
"""

from __future__ import annotations

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


class RecordError(PybenchError):
    """A run folder that cannot be read or written."""


class CoreBuildError(PybenchError):
    """The Rust core must not measure: built without optimisation, or carried over a fork."""
