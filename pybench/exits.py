"""The exit codes of all commands. Where several codes apply, the first in `PRECEDENCE` is used."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """One code for each meaning. Scripts depend on the numbers."""

    OK = 0
    THRESHOLD_MISSED = 10
    PROMISE_BROKEN = 20
    UNDECIDED = 21
    CONTROL_NOT_CAUGHT = 22
    GENERATOR_LATE = 30
    BAD_INPUT = 40
    SERVER_UNREACHABLE = 41
    INTERRUPTED = 130


MEANINGS = {
    Exit.INTERRUPTED: "interrupted, partial results kept",
    # Before 40 and 41: a later failure of a server or of the report does not undo a broken promise.
    Exit.PROMISE_BROKEN: "a strategy broke what it promises",
    Exit.BAD_INPUT: "bad input",
    Exit.SERVER_UNREACHABLE: "a server is not reachable",
    Exit.CONTROL_NOT_CAUGHT: "a control was not caught, so the run proves nothing",
    Exit.GENERATOR_LATE: "the generator could not keep its schedule",
    Exit.UNDECIDED: "undecided",
    Exit.THRESHOLD_MISSED: "a threshold missed",
    Exit.OK: "ok",
}

PRECEDENCE = tuple(MEANINGS)


def first(codes: set[Exit]) -> Exit:
    """The code with the highest precedence among `codes`."""
    return next(code for code in PRECEDENCE if code in codes or code is Exit.OK)
