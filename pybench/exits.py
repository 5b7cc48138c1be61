"""The exit codes of every command. If several apply, the command exits with the first in `PRECEDENCE`."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """One code per meaning; scripts depend on the numbers."""

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


MEANINGS = {
    Exit.INTERRUPTED: "interrupted, the trials so far are kept",
    # Before 40 and 41: a server that fails later, or a report that cannot be written, must not hide a broken promise.
    Exit.PROMISE_BROKEN: "a lock broke its promise",
    Exit.BAD_INPUT: "bad input",
    Exit.SERVER_UNREACHABLE: "a server is not reachable",
    Exit.CONTROL_NOT_CAUGHT: "the checker missed a control or a planted fault, so the run proves nothing",
    # Before 30 and 21: a cell that cannot be judged must not hide a regression of another one.
    Exit.REGRESSION: "a regression",
    Exit.GENERATOR_LATE: "the load generator was late",
    Exit.UNDECIDED: "a verdict, or a gate, is undecided",
    Exit.THRESHOLD_MISSED: "a threshold was missed",
    Exit.OK: "ok",
}

PRECEDENCE = tuple(MEANINGS)


def first(codes: set[Exit]) -> Exit:
    """The exit code of a command to which all of `codes` apply."""
    return next(code for code in PRECEDENCE if code in codes or code is Exit.OK)
