"""Probes: a short trial of each lock on each backend, with contention, before the trials of a run.

A hold of 0 hides a lock that excludes nobody: its holders believe for a microsecond, and hardly anybody is granted the
lock meanwhile. So each lock is also tried with 8 clients on one key that hold it for 1 ms.

Does not do: running them, see `running.proving`; saying what follows from them, see `analysis.probed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pybench.matrix.durations import MS
from pybench.matrix.values import Distribution, KeyChoice
from pybench.planning import control
from pybench.strategies import CATALOGUE, Judge, arguments_text

if TYPE_CHECKING:
    from pybench.matrix.cells import Cell

PROBE_NS = control.CONTROL_NS
LONGER_NS = 4_000 * MS
"""Of a lock that is granted too seldom to show itself in `PROBE_NS`."""

LATE_NS = 2 * PROBE_NS
"""Of its second part, in which holders take turns of `LATE_HOLD_NS`."""
LATE_TTL_MS = 50
LATE_HOLD_NS = 80 * MS

LEAST_TTL_MS = 5_000
"""A hold of 1 ms must end inside its lease on a machine that stands still for a while, too."""

MOST_READERS = 0.5
"""A reader excludes no other reader: with more of them a broken lock would hardly show."""

Lock = tuple[str, str, str]
"""Strategy, arguments as text, and backend."""


def lock_of(cell: Mapping[str, Any]) -> Lock:
    """Which lock the row or the manifest's entry `cell` is of."""
    return cell["strategy"], cell["args"], cell["backend"]


def probe_cells(cells: Iterable[Cell]) -> list[Cell]:
    """The probe of each lock that `cells` measure, in their order. The control is the probe of `none`."""
    return [_probe_cell(members) for members in locks_of(cell for cell in cells if cell.strategy != "none").values()]


def locks_of(cells: Iterable[Cell]) -> dict[Lock, list[Cell]]:
    """The cells of each lock."""
    alike: dict[Lock, list[Cell]] = {}
    for cell in cells:
        alike.setdefault((cell.strategy, arguments_text(cell.args), cell.backend), []).append(cell)
    return alike


def _probe_cell(cells: Sequence[Cell]) -> Cell:
    """The probe of the lock of all `cells`: as most threads, keys a grant and entries as any of them has."""
    first = cells[0]
    threads = max(cell.threads for cell in cells)
    taken = max(cell.keys_per_grant for cell in cells)
    permits = CATALOGUE[first.strategy].permits(first.args)
    return replace(
        first,
        id=f"probe of {first.strategy}"
        + (f"({arguments_text(first.args)})" if first.args else "")
        + f" on {first.backend}",
        concurrency=max(control.CLIENTS_AT_LEAST, 2 * threads, 2 * permits),
        threads=threads,
        # With one key more than a grant takes, any two sets overlap, and differ: there a lock shows itself that takes
        # only a part of its set. Where all sets are the same, that part excludes as well as the whole.
        keys=1 if taken == 1 else taken + 1,
        keys_per_grant=taken,
        key_choice=KeyChoice("uniform"),
        read_share=min(max(cell.read_share for cell in cells), MOST_READERS),
        nesting=max(cell.nesting for cell in cells),
        hold=Distribution("fixed", (control.HOLD_NS,)),
        think=Distribution("fixed", (0,)),
        ttl_ms=max(LEAST_TTL_MS, *(cell.ttl_ms for cell in cells)),
        rate_per_s=None,
        after_lease="continue",
    )


def late_cell(probe: Cell) -> Cell | None:
    """The second part of `probe`: its holders outlive their leases, and what they release then is another's lock.

    Only there a lock shows itself that deletes without asking whose the key is, or whose guard takes late writes. None
    of a lock without such a lease.
    """
    strategy = CATALOGUE[probe.strategy]
    if strategy.lease_ms(LATE_TTL_MS) is None or strategy.judged_by is Judge.EFFECTS:
        return None
    return replace(
        probe,
        id=f"{probe.id}, with holders that outlive their leases",
        nesting=1,
        read_share=0.0,
        hold=Distribution("fixed", (LATE_HOLD_NS,)),
        ttl_ms=LATE_TTL_MS,
    )
