"""`pybench.compare`: two run folders, or two runs, compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.analysis.between_runs import RunChanges, compare_runs
from pybench.records.run import Run, load

if TYPE_CHECKING:
    from pathlib import Path


def compare(old: Run | str | Path, new: Run | str | Path, *, band: float | None = None) -> RunChanges:
    """What changed from one run to another, as `pybench compare` says it: verdicts, then figures.

    A `band` widens narrower equivalence bands to this share: 0.1 is 10 %. Raises RecordError for a folder that is no
    run.
    """
    before, after = (one if isinstance(one, Run) else load(one) for one in (old, new))
    return compare_runs(before, after, band)
