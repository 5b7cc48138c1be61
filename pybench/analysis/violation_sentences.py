"""Each violation in one sentence, as `violations.jsonl` keeps it and reports show it.

Does not do: saying what is a violation of which lock; see `verdicts`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pybench.numbers import format_ns, plural

if TYPE_CHECKING:
    from pybench._core import Violation


def sentence(violation: Violation) -> str:
    """One violation in one sentence, as `violations.jsonl` keeps it."""
    if violation["second_granted_ns"] is None:
        return _sentence_of_one(violation)
    first, second, key = violation["first_client"], violation["second_client"], _key_name(violation["key"])
    granted = f"client {second} was granted {key} at {violation['at_ns'] / 1e9:.3f} s"
    before = _at(violation["first_granted_ns"])
    match violation["kind"]:
        case "lease-overrun":
            return f"{granted} while client {first} was still at work{_past_lease(violation)}; {_overlap(violation)}"
        case "session-lost":
            return (
                f"{granted} while client {first} still held it, whose session was gone, as it found {_found(violation)}"
            )
        case "stale-fence":
            higher, fence = violation["first_fence"], violation["second_fence"]
            return f"{granted} with fence {fence}, not above the {higher} that client {first} was granted at {before}"
        case "fifo-inversion":
            return f"{granted} after client {first}, which had come later and was granted it at {before}"
    after = ", after an earlier holder had outlived its lease"
    return (
        f"{granted} while client {first} still held it ({_lease_left(violation)})"
        f"{after if violation['kind'] == 'double-grant-after-overrun' else ''}"
    )


def _sentence_of_one(violation: Violation) -> str:
    """Of a violation to which no second grant belongs."""
    client, key = f"client {violation['first_client']}", _key_name(violation["key"])
    at, length = f"{violation['at_ns'] / 1e9:.3f} s", format_ns(violation["overlap_ns"])
    match violation["kind"]:
        case "stalled-key":
            return f"nobody held {key} or was granted it for {length}, until {at}, while {client} waited for it"
        case "starved-client":
            return (
                f"{client} waited for {key} for {length} and was not granted it before the window ended at {at}, while "
                "clients that had asked later were granted it at least 20 times"
            )
        case "fifo-inversion":
            waiting = f"client {violation['second_client']} still waited for {key} at {at}"
            before = _at(violation["first_granted_ns"])
            return f"{waiting}, and {client}, which had come later, had been granted it at {before}"
    return f"{client} released {key} and was told at {at} that it did not hold it ({_lease_left(violation)})"


def count_sentence(kind: str, count: int) -> str:
    """The sentence for `count` violations of one of the kinds in `UNSEEN`."""
    match kind:
        case "abandoned-client":
            clients = plural(count, "client had", "clients had")
            return f"{clients} not come to rest when the time for that was over, after the end of the trial"
        case "left-over-key":
            keys = plural(count, "key was", "keys were")
            return f"{keys} still on the server when all releases had been answered"
        case "missed-wake-up":
            return f"no release woke a client that waited: pybench received no message in {count:,} contended grants"
    raise ValueError(f"{kind} is no kind that is only counted")


def _at(point_ns: int | None) -> str:
    return "an unknown time" if point_ns is None else f"{point_ns / 1e9:.3f} s"


def _key_name(key: str) -> str:
    """The key's number in its trial: what stands before it on the server says only which trial that was."""
    numbered = re.search(r"\{(\d+)\}$", key)
    return f"key {int(numbered[1]):,}" if numbered else f'"{key}"'


def _lease_left(violation: Violation) -> str:
    until = violation["first_until_ns"]
    return "no lease" if until is None else f"lease good for another {format_ns(until - violation['at_ns'])}"


def _found(violation: Violation) -> str:
    until = violation["first_until_ns"]
    return "too late" if until is None else f"{format_ns(until - violation['at_ns'])} later"


def _past_lease(violation: Violation) -> str:
    until, at = violation["first_until_ns"], violation["at_ns"]
    if until is None or until > at:
        # Its belief ended before its lease did: it was told that the lock was lost.
        return ", though it knew that its lock was lost"
    return f", {format_ns(at - until)} past the end of its lease"


def _overlap(violation: Violation) -> str:
    if violation["overlap_ns"] == 0:
        return "both were still at work when the trial ended"
    return f"they overlapped for {format_ns(violation['overlap_ns'])}"
