"""The exit codes of every command. Where several apply, the first in `PRECEDENCE` is taken."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """One code a meaning; scripts depend on the numbers."""

    OK = 0
    THRESHOLD_MISSED = 10
    REGRESSION = 11
    PROMISE_BROKEN = 20
    UNDECIDED = 21
    CONTROL_NOT_CAUGHT = 22
    GENERATOR_LATE = 30
    BAD_INPUT = 40
    SERVER_UNREACHABLE = 41
    INTERRUPTED = 130


PRECEDENCE = (
    Exit.INTERRUPTED,
    Exit.BAD_INPUT,
    Exit.SERVER_UNREACHABLE,
    Exit.PROMISE_BROKEN,
    Exit.CONTROL_NOT_CAUGHT,
    Exit.GENERATOR_LATE,
    Exit.UNDECIDED,
    Exit.REGRESSION,
    Exit.THRESHOLD_MISSED,
    Exit.OK,
)


def first(codes: set[Exit]) -> Exit:
    """The code that stands for all of `codes`."""
    return next(code for code in PRECEDENCE if code in codes or code is Exit.OK)
