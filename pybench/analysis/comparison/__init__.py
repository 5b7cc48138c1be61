"""The one comparison of the locks of a run, load by load: whatever is shown reads it and compares nothing itself.

`compare_locks(summary, trials)` gives the `Comparison`: for each load which lock is ahead, which are statistically
tied, which are behind and by how much, which are out and why; how ties are broken; and which lock to take.
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
    Ratio,
    Standing,
    Step,
    TieBreak,
)
from pybench.analysis.comparison.ranking import compare_locks

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
