"""The terms of a verdict: what a lock promises, and what it is judged by. Each trial keeps those that it was judged on.

Promises: read back from a record they are the same, also from one of before there were promises or other judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pybench.strategies import Exclusion, Judge, Promise, Strategy

COLUMNS = ("exclusion", "promises", "judged_by")
"""Of `trials.parquet`."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a lock promises, and what judges it."""

    exclusion: Exclusion
    promises: frozenset[Promise] = frozenset()
    judged_by: Judge = Judge.BELIEF

    @classmethod
    def of(cls, strategy: Strategy) -> Terms:
        """Those of a strategy, as it is with its arguments."""
        return cls(strategy.exclusion, strategy.promises, strategy.judged_by)

    @classmethod
    def recorded(cls, row: Mapping[str, Any]) -> Terms:
        """Those that the `row` of a trial keeps under `COLUMNS`."""
        promises, judged_by = row["promises"], row["judged_by"]
        return cls(
            Exclusion(row["exclusion"]),
            frozenset(map(Promise, promises.split(", "))) if isinstance(promises, str) and promises else frozenset(),
            Judge(judged_by) if isinstance(judged_by, str) else Judge.BELIEF,
        )

    def columns(self) -> dict[str, str]:
        """As a record keeps them; the promises with commas between them."""
        texts = (self.exclusion.value, ", ".join(sorted(self.promises)), self.judged_by.value)
        return dict(zip(COLUMNS, texts, strict=True))

    @property
    def by_effects(self) -> bool:
        """Whether what was written counts, and not who believed to hold the lock."""
        return self.judged_by is not Judge.BELIEF

    @property
    def leave_something_to_decide(self) -> bool:
        """Whether a run without a violation can prove anything."""
        return self.by_effects or self.exclusion is not Exclusion.NOTHING
