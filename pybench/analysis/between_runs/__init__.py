"""Two runs compared, cell by cell: verdicts first, then figures. A pure function of their records.

`matching` finds the cells of both runs that measured the same, `figures` tests their figures, `settings` lists what
else differs, and `changes` puts the answer together.
"""

from __future__ import annotations

from pybench.analysis.between_runs.changes import CellChange, RunChanges, Turn, compare_runs
from pybench.analysis.between_runs.figures import Effect, FigureChange
from pybench.analysis.between_runs.settings import Difference

__all__ = ["CellChange", "Difference", "Effect", "FigureChange", "RunChanges", "Turn", "compare_runs"]
