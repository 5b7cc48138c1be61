"""The comparison of the locks of a run, load by load. Reports and tables read its result and compare nothing.

`compare_locks(summary, trials)` returns the `Comparison`. For each load it has the lock that is ahead, the locks that
are statistically tied, the locks that are behind and by how much, and the locks that are not ranked and why. It also
has the tie breaks and the lock to take.
"""

from __future__ import annotations

from pybench.analysis.comparison.claims import (
    Basis,
    Choice,
    Claim,
    Comparison,
    Figure,
    LoadComparison,
    LongerWait,
    Out,
    Place,
    Standing,
    Step,
    TieBreak,
)
from pybench.analysis.comparison.ranking import compare_locks
from pybench.analysis.significance import Ratio

__all__ = [
    "Basis",
    "Choice",
    "Claim",
    "Comparison",
    "Figure",
    "LoadComparison",
    "LongerWait",
    "Out",
    "Place",
    "Ratio",
    "Standing",
    "Step",
    "TieBreak",
    "compare_locks",
]
