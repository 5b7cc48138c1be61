"""The property table: what each lock promises, property by property, and what proves it.

Promises: computed from the catalogue alone. Each cell names a command that shows it, or the test that proves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pybench.lock_client.servers import OFFERED
from pybench.strategies import Arguments, Exclusion, Judge, Lease, Promise, Strategy

_LAB = "pybench lab "
_OVERSELL, _TTL_EDGE, _CRASH = f"{_LAB}oversell", f"{_LAB}ttl-edge", f"{_LAB}crash"
_FENCING, _DEADLOCK, _FAILOVER = f"{_LAB}fencing", f"{_LAB}deadlock", f"{_LAB}failover"
_OWNED = "tests/client/test_threads.py::test_a_release_says_that_the_lock_was_not_held_any_more"
_UNOWNED = "rust_core/locks/tests/script/naive.rs::a_release_deletes_the_key_whoever_has_it"
_MEASURED = "tests/client/test_measured_locks.py::test_a_measured_lock_keeps_others_out_and_is_free_after_its_release"
_NONE = "tests/client/test_measured_locks.py::test_none_keeps_nobody_out"
_WRITES = "tests/boundary/test_conflicts.py::test_writes_are_told_row_by_row_and_each_row_holds_what_was_written"
_PERMITS = "tests/client/test_strategies.py::test_a_semaphore_has_its_permits"
_DATABASE = "tests/servers/test_faults_of_servers.py::test_a_database_that_is_killed_ends_no_run"
_SESSION = (
    "tests/boundary/test_what_postgres_locks_survive.py::"
    "test_a_holder_whose_session_is_terminated_is_told_and_another_has_the_lock"
)
_CROSSWISE = (
    "tests/boundary/test_what_postgres_locks_survive.py::"
    "test_rows_that_are_locked_crosswise_are_a_conflict_and_tried_again"
)
_ORDER = "tests/servers/test_lua_of_locks.py::test_waiters_are_served_in_their_order_of_arrival"
_OFFER = "tests/client/test_strategies.py::test_each_strategy_is_offered_or_refused_with_a_reason"


@dataclass(frozen=True, slots=True)
class Held:
    """One cell: how far a lock has a property."""

    value: str
    """`yes`, `no`, or the condition, in a few words."""
    is_good: bool | None
    """None: neither good nor bad."""
    proof: str
    """A command of pybench, or a test as `FILE::NAME`."""


@dataclass(frozen=True, slots=True)
class Property:
    """One column."""

    key: str
    """As JSON has it."""
    title: str
    meaning: str
    """One sentence."""
    of: Callable[[Strategy, Arguments], Held]


def properties_of(entry: Strategy, arguments: Arguments = ()) -> dict[str, Held]:
    """All cells of a lock, by the key of the property."""
    return {one.key: one.of(entry, arguments) for one in PROPERTIES}


def _good(value: str, proof: str) -> Held:
    return Held(value, is_good=True, proof=proof)


def _bad(value: str, proof: str) -> Held:
    return Held(value, is_good=False, proof=proof)


def _plain(value: str, proof: str) -> Held:
    return Held(value, is_good=None, proof=proof)


def _exclusion(entry: Strategy, arguments: Arguments) -> Held:
    promised = entry.with_arguments(arguments).exclusion
    permits = entry.permits(arguments)
    if not entry.server_kinds:
        is_one_step = entry.judged_by is Judge.EFFECTS
        return _good("one atomic step", _OVERSELL) if is_one_step else _bad("no", _OVERSELL)
    if entry.judged_by is Judge.EFFECTS:
        return _plain("no, writes are refused", _WRITES)
    if entry.judged_by is Judge.GUARD:
        return _good("late writes are refused", _FENCING)
    if promised is Exclusion.NOTHING:
        return _bad("not promised", _OVERSELL)
    if permits > 1:
        return _plain(f"{permits} holders", _PERMITS)
    if promised is Exclusion.WHILE_NOBODY_OUTLIVES:
        return _plain("while nobody crashes", _CRASH)
    return _good("yes", _OVERSELL) if _is_covered(entry, arguments) else _good("within the lease", _TTL_EDGE)


def _atomic_ttl(entry: Strategy, _arguments: Arguments) -> Held:
    if entry.lease is Lease.NONE:
        return _plain("no lease", _of_no_lock(entry) if entry.holds_nothing else _CRASH)
    if any(command.startswith("EXPIRE") for command in entry.commands):
        return _bad("no", _CRASH)
    return _good("yes", _CRASH)


def _ownership(entry: Strategy, _arguments: Arguments) -> Held:
    if entry.holds_nothing:
        return _plain("no holder", _of_no_lock(entry))
    if _deletes_blindly(entry):
        return _bad("no", _UNOWNED)
    return _good("session", _SESSION) if entry.lease is Lease.NONE else _good("token", _MEASURED)


def _safe_release(entry: Strategy, _arguments: Arguments) -> Held:
    if entry.holds_nothing:
        return _plain("no holder", _of_no_lock(entry))
    if _deletes_blindly(entry):
        return _bad("no", _UNOWNED)
    return _good("yes", _SESSION if entry.lease is Lease.NONE else _OWNED)


def _crash_recovery(entry: Strategy, _arguments: Arguments) -> Held:
    if entry.holds_nothing:
        return _plain("nothing is held", _of_no_lock(entry))
    if any("stays taken" in event for event in entry.lost_by):
        return _bad("may stay for ever", _CRASH)
    if entry.lease is Lease.NONE:
        return _good("with the session", _CRASH)
    return _good("within the ttl", _CRASH)


def _failover(entry: Strategy, _arguments: Arguments) -> Held:
    """By the events after which two clients may hold the lock, as the catalogue has them."""
    if not entry.server_kinds:
        return _plain("no lock", _of_no_lock(entry))
    found = [event for event in entry.lost_by if "failover" in event]
    if found == ["a failover"]:
        return _bad("no", _FAILOVER)
    if any("server that granted" in event for event in found):
        return _plain("if a majority has it", _FAILOVER)
    if any("session" in event for event in found):
        return _bad("the session is lost", _SESSION)
    if any("lacks the grant" in event for event in found):
        return _plain("if a replica has it", _FAILOVER)
    return _plain("if no commit is lost", _DATABASE)


def _fence(entry: Strategy, _arguments: Arguments) -> Held:
    if Promise.FENCE in entry.promises:
        return _good("yes", _FENCING)
    return _plain("no", _of_no_lock(entry) if entry.judged_by is Judge.EFFECTS else _FENCING)


def _fair(entry: Strategy, _arguments: Arguments) -> Held:
    return _good("in order", _ORDER) if Promise.FIFO in entry.promises else _plain("no", _ORDER)


def _deadlock(entry: Strategy, arguments: Arguments) -> Held:
    if entry.takes_many_keys and entry.lease is Lease.NONE:
        return _good("the database ends it", _CROSSWISE)
    if entry.takes_many_keys:
        return _good("starts again" if entry.spreads_keys else "all keys or none", _DEADLOCK)
    if entry.holds_nothing:
        return _good("waits for nobody", _of_no_lock(entry))
    if _is_covered(entry, arguments):
        return _bad("only sorted keys", _DEADLOCK)
    return _plain("ends with the lease", _DEADLOCK)


def _fit(entry: Strategy, _arguments: Arguments) -> Held:
    if entry.name in OFFERED:
        return _good("yes", _OFFER)
    if entry.when_to_use.startswith(("Never", "To ")):
        return _bad("no, to learn", _OFFER)
    return _plain("with care", _OFFER)


def _of_no_lock(entry: Strategy) -> str:
    """The proof for a strategy that holds nothing."""
    if entry.judged_by is Judge.EFFECTS:
        return _WRITES if entry.server_kinds else _OVERSELL
    return _NONE


def _is_covered(entry: Strategy, arguments: Arguments) -> bool:
    """Whether the lock lasts as long as its work: it is renewed, or belongs to a session."""
    return entry.longest_hold_ms(1_000, arguments) is None


def _deletes_blindly(entry: Strategy) -> bool:
    return any(command.startswith("DEL ") for command in entry.commands)


PROPERTIES: Final = (
    Property("mutual_exclusion", "exclusion", "At most one client holds the lock, on healthy servers.", _exclusion),
    Property("atomic_ttl", "atomic ttl", "The lock and its end are set in one step.", _atomic_ttl),
    Property("ownership", "owner", "The server knows who holds the lock.", _ownership),
    Property("safe_release", "safe release", "A release frees nobody else's lock.", _safe_release),
    Property("crash_recovery", "after a crash", "When the lock of a dead holder is free again.", _crash_recovery),
    Property("survives_failover", "failover", "Whether a failover grants the lock once only.", _failover),
    Property("fence", "fence", "A grant has a number by which a resource refuses late writes.", _fence),
    Property("fair", "fair", "Whoever asked first is granted first.", _fair),
    Property("deadlock_safe", "deadlock", "What ends a circle of clients that wait for each other.", _deadlock),
    Property(
        "fit_for_production",
        "for programs",
        "Yes: LockClient offers the lock. With care: right within its promise, and not offered.",
        _fit,
    ),
)
