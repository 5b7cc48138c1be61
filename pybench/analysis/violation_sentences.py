"""Each violation in one sentence, as `violations.jsonl` keeps it and reports show it.

Does not do: deciding what counts as a violation of a lock; see `verdicts`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pybench.numbers import format_ns, plural

if TYPE_CHECKING:
    from pybench.core_results import Violation


PROCESS = "process"
"""The key under which a violation of a merged trial names the process that saw it."""


def sentence(violation: Violation) -> str:
    """One violation in one sentence, as `violations.jsonl` keeps it."""
    process = violation.get(PROCESS)
    return _sentence(violation) if process is None else f"{process}: {_sentence(violation)}"


def _sentence(violation: Violation) -> str:
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
                f"{granted} while client {first}, the old holder, did not yet know that its session had ended; "
                f"client {first} learned of the end {_learned(violation)}"
            )
        case "stale-fence":
            higher, fence = violation["first_fence"], violation["second_fence"]
            return f"{granted} with fence {fence}, not above fence {higher} that client {first} was granted at {before}"
        case "fifo-inversion":
            return f"{granted} after client {first}, which had asked later and was granted the key at {before}"
    after = ", after an earlier holder had outlived its lease"
    return (
        f"{granted} while client {first} still held the key ({_lease_left(violation)})"
        f"{after if violation['kind'] == 'double-grant-after-overrun' else ''}"
    )


def _sentence_of_one(violation: Violation) -> str:
    """A violation that has no second grant."""
    client, key = f"client {violation['first_client']}", _key_name(violation["key"])
    at, length = f"{violation['at_ns'] / 1e9:.3f} s", format_ns(violation["overlap_ns"])
    match violation["kind"]:
        case "stalled-key":
            return f"no client held or was granted {key} for {length}, until {at}, while {client} waited for the key"
        case "starved-client":
            return (
                f"{client} waited for {key} for {length} and had no grant when the window ended at {at}, while "
                "clients that had asked later were granted the key at least 20 times"
            )
        case "fifo-inversion":
            waiting = f"client {violation['second_client']} still waited for {key} at {at}"
            before = _at(violation["first_granted_ns"])
            return f"{waiting}, although {client}, which had asked later, was granted the key at {before}"
    return f"{client} released {key}, and the server replied 'not held' at {at} ({_lease_left(violation)})"


def count_sentence(kind: str, count: int) -> str:
    """The sentence for `count` violations of one of the kinds in `UNSEEN`."""
    match kind:
        case "abandoned-client":
            clients = plural(count, "client had", "clients had")
            return f"{clients} not finished by the deadline after the end of the trial"
        case "left-over-key":
            keys = plural(count, "key was", "keys were")
            return f"{keys} still on the server after the replies to all releases"
        case "missed-wake-up":
            return (
                f"no release woke a waiting client: pybench received no wake-up message in {count:,} contended grants"
            )
    raise ValueError(f"violations of the kind {kind} have sentences of their own")


def _at(point_ns: int | None) -> str:
    return "an unknown time" if point_ns is None else f"{point_ns / 1e9:.3f} s"


def _key_name(key: str) -> str:
    """The number of a key in its trial; the prefix of the key on the server only names the trial."""
    numbered = re.search(r"\{(\d+)\}$", key)
    return f"key {int(numbered[1]):,}" if numbered else f'"{key}"'


def _lease_left(violation: Violation) -> str:
    until = violation["first_until_ns"]
    return "no lease" if until is None else f"its lease ran for another {format_ns(until - violation['at_ns'])}"


def _learned(violation: Violation) -> str:
    until = violation["first_until_ns"]
    return "later" if until is None else f"{format_ns(until - violation['at_ns'])} later"


def _past_lease(violation: Violation) -> str:
    until, at = violation["first_until_ns"], violation["at_ns"]
    if until is None or until > at:
        # The client stopped believing before its lease ended: it had been notified that the lock was lost.
        return f", although client {violation['first_client']} knew that its lock was lost"
    return f", {format_ns(at - until)} past the end of its lease"


def _overlap(violation: Violation) -> str:
    if violation["overlap_ns"] == 0:
        return "both were still at work when the trial ended"
    return f"they overlapped for {format_ns(violation['overlap_ns'])}"
