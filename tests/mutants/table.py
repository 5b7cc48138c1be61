"""Every known mistake, of which lock it is put in, and how it is looked for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

FAULTS = "examples/faults.yaml"
OF_POSTGRES = ("--fault", "none", "--fault", "crash client[0] at 500ms")
"""The matrix has faults of a Redis server, which a lock in Postgres has not."""


class Finder(StrEnum):
    """The command that looks for a mistake."""

    FUZZ = "fuzz"
    RUN = "run"


@dataclass(frozen=True)
class Case:
    """One mistake of one lock."""

    mutant: str
    strategy: str
    finder: Finder
    options: tuple[str, ...] = ()
    """Further options of the command."""

    @property
    def search(self) -> tuple[str, Finder, tuple[str, ...]]:
        """What is the same for the honest lock."""
        return self.strategy, self.finder, self.options


def fuzz(mutant: str, strategy: str, *options: str) -> Case:
    """A mistake that worlds on virtual time show."""
    return Case(mutant, strategy, Finder.FUZZ, options)


def run(mutant: str, strategy: str, *options: str) -> Case:
    """A mistake that a run with faults on real servers shows."""
    return Case(mutant, strategy, Finder.RUN, options)


READERS = ("--read-share", "0.5")
SETS = ("--keys-per-grant", "3")

CASES = (
    fuzz("release without owner check", "mutex"),
    fuzz("release without owner check", "redlock"),
    run("script that releases without owner check", "mutex"),
    fuzz("refusal taken for a grant", "mutex"),
    fuzz("all clients have one token", "mutex"),
    fuzz("half the ttl on the server", "mutex"),
    fuzz("ttl a thousand times too long", "mutex"),
    fuzz("lease counted from the reply", "mutex"),
    fuzz("lease without end", "mutex"),
    fuzz("refused renewal taken for success", "watchdog"),
    fuzz("renewal creates a lost key again", "watchdog"),
    fuzz("renewal after the release", "watchdog"),
    run("first leave releases all entries", "reentrant", "--nesting", "2"),
    run("reader ignores the writer", "read-write", *READERS),
    run("writer ignores the readers", "read-write", *READERS),
    fuzz("one permit more than allowed", "semaphore"),
    fuzz("half the ttl on the server", "fair"),
    run("queue served from its end", "fair-queue"),
    run("release wakes nobody", "notify"),
    fuzz("no attempt after subscribing", "notify", "--faults", "none"),
    fuzz("fence starts anew", "fenced"),
    fuzz("release without owner check", "redisson-multilock"),
    fuzz("no WAIT for replicas", "replicated"),
    fuzz("lease counted from the reply", "redlock"),
    fuzz("call ids start anew with each request", "redlock"),
    fuzz("quorum of n/2", "redlock"),
    run("no release after a minority", "redlock"),
    run("set taken but for its last key", "multilock", *SETS),
    run("set released but for its first key", "multilock", *SETS),
    fuzz("end of the session not noticed", "pg-advisory"),
    fuzz("shared in place of exclusive advisory lock", "pg-advisory"),
    fuzz("transaction ends with the grant", "pg-row"),
    fuzz("transaction ends with the grant", "pg-advisory(scope=transaction)"),
    run("no FOR UPDATE", "pg-row", *OF_POSTGRES),
    run("row lease taken before it ends", "pg-lease", *OF_POSTGRES),
    run("row lease released without owner check", "pg-lease", *OF_POSTGRES),
    run("version not compared", "pg-optimistic", *OF_POSTGRES),
    run("write without fence check", "layered"),
)
