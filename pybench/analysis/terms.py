"""The terms of a verdict: what a lock promises, and what judges it. The record of each trial keeps its terms.

Promises: terms read from a record equal the terms written. Records of older versions, which lack promises and judges,
are read, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pybench.analysis import fault_promises
from pybench.analysis.fault_promises import HEALTHY, Under
from pybench.matrix.guards import NO_GUARD, Guard, recorded_guard
from pybench.strategies import Exclusion, Judge, Promise, Strategy

if TYPE_CHECKING:
    from pybench.matrix.cells import Cell

COLUMNS = ("exclusion", "promises", "judged_by")
"""The columns of `trials.parquet` that keep the terms."""
READ = (*COLUMNS, "guard", *fault_promises.COLUMNS)
"""Those columns, and the further ones from which follow the effects and what is promised under the faults of a cell."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a lock promises, and what judges it."""

    exclusion: Exclusion
    promises: frozenset[Promise] = frozenset()
    judged_by: Judge = Judge.BELIEF
    under: Under = HEALTHY
    """What of it is promised under the faults of the cell."""
    guard: Guard = NO_GUARD
    """The resource whose values show the effects of the works."""

    @classmethod
    def of(cls, strategy: Strategy, cell: Cell | None = None) -> Terms:
        """The terms of a strategy to which its arguments have been applied, under the faults of `cell`."""
        under = HEALTHY if cell is None else fault_promises.of_cell(cell, strategy)
        guard = NO_GUARD if cell is None else cell.guard
        judged_by = Judge.GUARD if guard.decides else strategy.judged_by
        return cls(strategy.exclusion, strategy.promises, judged_by, under, guard)

    @classmethod
    def recorded(cls, row: Mapping[str, Any]) -> Terms:
        """The terms that the `row` of a trial keeps under `READ`."""
        promises, judged_by = row["promises"], row["judged_by"]
        return cls(
            Exclusion(row["exclusion"]),
            frozenset(map(Promise, promises.split(", "))) if isinstance(promises, str) and promises else frozenset(),
            Judge(judged_by) if isinstance(judged_by, str) else Judge.BELIEF,
            fault_promises.recorded(row),
            recorded_guard(row.get("guard")),
        )

    def columns(self) -> dict[str, str]:
        """The terms as a record keeps them: promises separated by commas."""
        texts = (self.exclusion.value, ", ".join(sorted(self.promises)), self.judged_by.value)
        return dict(zip(COLUMNS, texts, strict=True))

    @property
    def by_effects(self) -> bool:
        """Whether the writes of the holders judge the lock, and not their beliefs to hold it."""
        return self.judged_by in (Judge.EFFECTS, Judge.GUARD)

    def count(self, *, effects: bool) -> bool:
        """Whether violations count that are effects, or else those of beliefs."""
        return (self.by_effects or bool(self.guard)) if effects else not self.by_effects

    @property
    def leave_something_to_decide(self) -> bool:
        """Whether a run without a violation can prove anything."""
        return self.by_effects or self.exclusion is not Exclusion.NOTHING
