"""What a lock still promises under the faults of its cell: a table over what a fault does and what carries the lock.

    what happens to a server                             exclusion  fences, order, writes  progress
    it forgets its scripts                                  yes              yes              yes
    connections end, or it does not reply for a while       yes              yes              no
    a client crashes, stands still, or loses a lease        yes              yes              no
    it ends, and keeps its data                             yes              yes              no
    it ends, and stays down to the end of the trial         yes              yes              no
    it ends, and comes back empty, later than one lease     yes              no               no
    it ends, and comes back empty, within one lease         no               no               no
    a replica that lacks the latest writes takes its place  no               no               no
    its clock jumps ahead, or back from a jump behind       no               no               no
    its clock stays behind                                  yes              no               no

A lock of several servers is no exception in the last row: with one forgetful server a second client can get a majority.
For a lock that a guard protects, only the data of the guard count. A session lock is promised for the life of the
session; `verdicts` has that rule.

Promises: pure functions. A cell without faults keeps every promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pybench.analysis.assumptions import entry_of
from pybench.matrix.durations import MS
from pybench.matrix.fault_kinds import Does, Target
from pybench.matrix.faults import Fault, Faults, recorded_faults
from pybench.numbers import missing
from pybench.strategies import Arguments, Exclusion, Judge, Strategy

if TYPE_CHECKING:
    from pybench.matrix.cells import Cell

COLUMNS = ("faults", "strategy", "args", "appendfsync", "ttl_ms")
"""The columns of a trial from which its promises under faults follow."""


@dataclass(frozen=True, slots=True)
class Under:
    """What is promised in spite of the faults of a cell."""

    text: str = ""
    """The faults by name: `under kill redis[0]`; empty without faults."""
    exclusion: bool = True
    data: bool = True
    """Fences, the order of service, wake-ups, and what the work has written."""
    progress: bool = True
    excuse: str = ""
    """What took away the data or the time on which the promise rests, as a clause; empty without such a fault."""


HEALTHY = Under()


def promises_under(faults: Faults, strategy: Strategy, arguments: Arguments, *, appendfsync: str, ttl_ms: int) -> Under:
    """What `strategy` promises under `faults`."""
    if not faults:
        return HEALTHY
    lease_ms = strategy.lease_ms(ttl_ms)
    counted = [fault for fault in faults.faults if strategy.judged_by is not Judge.GUARD or fault.on is Target.POSTGRES]
    forgetting = [
        fault
        for fault in counted
        if fault.until_ns is not None and _forgets(fault, strategy, arguments, appendfsync=appendfsync)
    ]
    jumping = [fault for fault in counted if fault.kind.does is Does.JUMPS]
    early = [fault for fault in forgetting if lease_ms is None or _away_ns(fault) < lease_ms * MS]
    early += [fault for fault in jumping if _is_ahead(fault)]
    excusing = early or forgetting
    return Under(
        faults.under,
        exclusion=not early,
        data=not forgetting and not jumping,
        progress=all(fault.kind.does is Does.NOTHING for fault in faults.faults),
        excuse=_excuse(excusing[0]) if excusing else "",
    )


def _away_ns(fault: Fault) -> int:
    """The least time from the last grant that the server forgets until it serves again."""
    lag_ns = int(fault.argument("lag") or 0) if fault.do == "failover" else 0
    return (fault.for_ns or 0) - lag_ns


def _is_ahead(fault: Fault) -> bool:
    """Whether the jump of a clock ends a lease too early. A clock that comes back from behind jumps ahead, too."""
    return int(fault.argument("by") or 0) > 0 or fault.until_ns is not None


def _excuse(fault: Fault) -> str:
    match fault.do:
        case "clock":
            return f"the clock of {fault.target} jumped"
        case "failover":
            return f"{fault.target} failed over to a replica without its latest writes"
        case _:
            return f"{fault.target} came back without its data"


def _forgets(fault: Fault, strategy: Strategy, arguments: Arguments, *, appendfsync: str) -> bool:
    """Whether the server may lack data afterwards that it had acknowledged."""
    if fault.kind.does is not Does.ENDS or (fault.do == "restart" and not fault.loses_data):
        return False
    if fault.do == "failover":
        return True
    if fault.on is Target.POSTGRES:
        return fault.do == "kill" and strategy.argument("synchronous_commit", arguments) == "off"
    # With `everysec` a write may be acknowledged before it is in the file.
    return fault.loses_data or appendfsync != "always"


def of_cell(cell: Cell, strategy: Strategy) -> Under:
    """What is promised in `cell`, whose lock is `strategy`."""
    return promises_under(cell.faults, strategy, cell.args, appendfsync=cell.appendfsync, ttl_ms=cell.ttl_ms)


def recorded(row: Mapping[str, Any]) -> Under:
    """What is promised in the trial or cell of `row`, by its columns `COLUMNS`."""
    faults = recorded_faults(row.get("faults"))
    known = entry_of(row) if faults else None
    if known is None:
        return Under(faults.under, progress=False) if faults else HEALTHY
    appendfsync, ttl_ms = row.get("appendfsync"), row.get("ttl_ms")
    return promises_under(
        faults,
        *known,
        appendfsync="off" if missing(appendfsync) else str(appendfsync),
        ttl_ms=0 if ttl_ms is None or missing(ttl_ms) else int(ttl_ms),
    )


def unpromised(row: Mapping[str, Any]) -> str:
    """Why the lock of `row` need not have been safe under its faults, as a clause; empty where it promises to be."""
    known = entry_of(row)
    if known is None or known[0].with_arguments(known[1]).exclusion is Exclusion.NOTHING:
        return ""
    under = recorded(row)
    return "" if under.exclusion else f"the lock does not promise to survive this: {under.excuse}"
