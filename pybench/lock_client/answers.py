"""What the core's answers mean to a program: the numbers that need no error, and the errors of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pybench import _core
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
from pybench.notation import shown

if TYPE_CHECKING:
    from pybench._core import LockTicket

HELD: Final = _core.lock_answers.index("held")
RELEASED: Final = _core.lock_answers.index("released")
EXTENDED: Final = _core.lock_answers.index("extended")

_FORKED = "this process was forked from the one that uses the lock client"
_FREES_ITSELF = "the server frees the lock when its ttl, or the session, ends"


def acquire_error(name: str | bytes, answer: int, ticket: LockTicket) -> LockError:
    """The error for an acquire that was not granted."""
    lock = _lock(name)
    match _core.lock_answers[answer]:
        case "busy":
            left = ticket.holder_left
            until = "" if left is None else f", whose lease has {left:.3g} s left"
            hint = "try again later, or wait longer: wait='5s'"
            return NotAcquired(f"{lock} is held by another client{until}", hint=hint, time_left=left)
        case "no quorum":
            hint = "look for servers that are down; what others granted is released, or ends with its ttl"
            return NoQuorum(f"too few servers replied to grant {lock}", hint=hint)
        case "too late":
            hint = "give a longer ttl, or look for a slow server or network"
            return NotAcquired(f"{lock} was granted when its ttl had practically passed, and was released", hint=hint)
        case "unknown":
            return Unknown(f"{_no_reply('about', lock, ticket)}: it may have been taken", hint=_FREES_ITSELF)
        case "no room":
            hint = "release locks first; a strategy with a connection for each lock takes connections=N"
            return LockError(f"this client holds as many locks as it has room for, and cannot take {lock}", hint=hint)
        case other:
            return _other_error(lock, other, ticket)


def release_error(name: str | bytes, answer: int, ticket: LockTicket) -> LockError:
    """The error for a release that did not find the lock held, or got no reply."""
    lock = _lock(name)
    match _core.lock_answers[answer]:
        case "expired":
            hint = "give a ttl that outlasts the work, renew it (watchdog, extend), or check held.lost"
            return LockLost(f"{lock} was no longer held when it was released", hint=hint)
        case "closed":
            return LockLost(f"{lock} was released early: its client was closed")
        case "unknown":
            return Unknown(_no_reply("to the release of", lock, ticket), hint=_FREES_ITSELF)
        case other:
            return _other_error(lock, other, ticket)


def extend_error(name: str | bytes, answer: int, ticket: LockTicket) -> LockError:
    """The error for an extension that did not succeed."""
    lock = _lock(name)
    match _core.lock_answers[answer]:
        case "lost" | "closed":
            return LockLost(f"{lock} is not held any more, so it cannot be extended")
        case "unknown":
            return Unknown(_no_reply("to the extension of", lock, ticket), hint="held.time_left counts without it")
        case other:
            return _other_error(lock, other, ticket)


def _other_error(lock: str, answer: str, ticket: LockTicket) -> LockError:
    text = f": {ticket.text}" if ticket.text else ""
    match answer:
        case "failed":
            return ServerRefused(f"a server refused a command for {lock}{text}")
        case "unreachable":
            return Unreachable(f"there is no connection for {lock}{text}", hint="nothing was sent, nothing is held")
        case "forked":
            return ClientUnusable(f"{_FORKED}, and cannot use {lock}", hint="make a LockClient in each process")
        case _:
            return ClientUnusable(f"the client of {lock} was closed")


def _no_reply(to: str, lock: str, ticket: LockTicket) -> str:
    """What was lost, and the last error of a server or connection if there was one."""
    return f"no usable reply {to} {lock} ({ticket.text})" if ticket.text else f"no reply {to} {lock} in time"


def _lock(name: str | bytes) -> str:
    return f"the lock {shown(name)}"
