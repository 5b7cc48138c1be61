"""Whether a cell has enough contended grants for SAFE: a broken lock may show no violation in few of them.

Promises: a cell that is judged by a probe needs no contended grants of its own. A record without probes and without
contended grants keeps its verdict, and reports mark it "not contended".
Does not do: counting contended grants; the core's checker does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.analysis.rows import rows_where
from pybench.numbers import missing

if TYPE_CHECKING:
    import pandas as pd

LEAST_CONTENDED = 30
"""So many contended grants without a violation put the true rate below 10 % (rule of three, 95 % confidence)."""

PROBED = "judged_by_probe"
"""The column that says whether the probe decided a trial's verdict; older records lack the column."""


def too_little(trials: pd.DataFrame) -> str | None:
    """Why the `trials` of one cell, none of which has a violation, do not prove SAFE; None when they do.

    Trials without a grant are left out: they do not weaken the evidence of the others.
    """
    granted = rows_where(trials, trials["grants"] > 0)
    if granted.empty or _judged_by_probe(granted):
        return None
    contended = int(granted["contended_grants"].sum())
    if contended == 0:
        had_probe = PROBED in granted and not granted[PROBED].isna().all()
        alone = int(granted["concurrency"].iloc[0]) == 1
        return (
            "no grant was contended, and the probe of the lock had too few contended grants to judge it: lengthen "
            "duration, or add clients"
            if had_probe and not alone
            else None
        )
    # The text has no counts, so that reports can name all cells with this reason together.
    if (granted["contended_grants"] == 0).any():
        return "no violation, but at least one trial had no contended grant: lengthen duration, or add clients"
    if contended < LEAST_CONTENDED:
        few = f"no violation, but fewer than {LEAST_CONTENDED} contended grants, and SAFE needs {LEAST_CONTENDED}"
        return f"{few}: add trials, or lengthen duration"
    return None


def _judged_by_probe(granted: pd.DataFrame) -> bool:
    """Whether the probe decided any of the trials: a probe judges the lock, and so all trials of the cell."""
    return PROBED in granted and any(bool(value) for value in granted[PROBED] if not missing(value))
