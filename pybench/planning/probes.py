"""Probes: a short contended trial of each lock on each backend, before the trials of a run.

With a hold of 0 a lock that excludes nobody goes unnoticed: a hold lasts a microsecond, and another grant rarely falls
into this time. The probe therefore runs each lock with 8 clients that hold one key for 1 ms.

Does not do: running probes, see `running.controls`; judging them, see `analysis.probe_verdicts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pybench.matrix.durations import MS
from pybench.matrix.values import Distribution
from pybench.planning import control
from pybench.strategies import CATALOGUE, Judge, arguments_text

if TYPE_CHECKING:
    from pybench.matrix.cells import Cell

PROBE_NS = control.CONTROL_NS
LONGER_NS = 4_000 * MS
"""The length of the second try for a lock that had too few grants within `PROBE_NS`."""

LATE_NS = 2 * PROBE_NS
"""The length of the second part of a probe, in which each hold takes `LATE_HOLD_NS`."""
LATE_TTL_MS = 50
LATE_HOLD_NS = 80 * MS

LEAST_TTL_MS = 5_000
"""With this ttl a hold of 1 ms ends inside its lease even if the machine pauses for a while."""

MOST_READERS = 0.5
"""Readers do not exclude each other, so with more readers a broken lock would show few overlaps."""

Lock = tuple[str, str, str]
"""The strategy, its arguments as text, and the backend."""


def lock_of(cell: Mapping[str, Any]) -> Lock:
    """The lock of `cell`, which is a row or an entry of the manifest."""
    return cell["strategy"], cell["args"], cell["backend"]


def probe_cells(cells: Iterable[Cell]) -> list[Cell]:
    """The probe of each lock that `cells` measure, in their order. The control is the probe of `none`.

    `atomic` has none: it is judged by its guarded resource, and takes no lock.
    """
    return [_probe_cell(members) for members in locks_of(cell for cell in cells if takes_a_lock(cell)).values()]


def takes_a_lock(cell: Cell) -> bool:
    """Whether the strategy of `cell` asks a server at all: `none` and `atomic` do not."""
    return bool(CATALOGUE[cell.strategy].server_kinds)


def locks_of(cells: Iterable[Cell]) -> dict[Lock, list[Cell]]:
    """The cells of each lock."""
    alike: dict[Lock, list[Cell]] = {}
    for cell in cells:
        alike.setdefault((cell.strategy, arguments_text(cell.args), cell.backend), []).append(cell)
    return alike


def _probe_cell(cells: Sequence[Cell]) -> Cell:
    """The probe of the lock of all `cells`: the load of the heaviest, the most keys per grant and nesting of any."""
    first, most = cells[0], control.heaviest(cells)
    taken = max(cell.keys_per_grant for cell in cells)
    permits = CATALOGUE[first.strategy].permits(first.args)
    return replace(
        control.undisturbed(first),
        id=f"probe of {first.strategy}"
        + (f"({arguments_text(first.args)})" if first.args else "")
        + f" on {first.backend}",
        concurrency=max(control.CLIENTS_AT_LEAST, 2 * most.all_threads, 2 * permits),
        threads=most.threads,
        processes=most.processes,
        # With one key more than a grant takes, any two different sets overlap. Only different sets reveal a lock that
        # takes just a part of its set: where all sets are the same, the part excludes as well as the whole.
        keys=1 if taken == 1 else taken + 1,
        keys_per_grant=taken,
        read_share=min(max(cell.read_share for cell in cells), MOST_READERS),
        nesting=max(cell.nesting for cell in cells),
        hold=Distribution("fixed", (control.HOLD_NS,)),
        ttl_ms=max(LEAST_TTL_MS, *(cell.ttl_ms for cell in cells)),
    )


def late_cell(probe: Cell) -> Cell | None:
    """The second part of `probe`, whose holders outlive their leases and then release; None without such a lease.

    This part reveals a lock whose late release deletes the lock of the next holder, and a guard that accepts late
    writes.
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
