"""Whether the contended grants of a cell are evidence enough for SAFE: few of them would not have shown a broken lock.

Promises: a cell that a probe judged stands on the probe, and is not asked for contended grants of its own; a record
from before there were probes in which nothing was contended keeps its verdict, and its words say "not contended".
Does not do: counting contended grants; the core's checker does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.numbers import missing

if TYPE_CHECKING:
    import pandas as pd

LEAST_CONTENDED = 30
"""Contended grants of a cell without a violation put its true rate below 10 % (rule of three, 95 % confidence)."""

PROBED = "judged_by_probe"
"""The column of a trial that says whether its verdict is that of the probe; no record from before the probes has it."""


def too_little(trials: pd.DataFrame) -> str | None:
    """Why the `trials` of one cell, in none of which a violation was seen, do not show SAFE; None when they do.

    Trials without a grant are not asked: they take nothing from the proof of the others.
    """
    granted = trials[trials["grants"] > 0]
    if granted.empty or _judged_by_probe(granted):
        return None
    contended = int(granted["contended_grants"].sum())
    if contended == 0:
        had_probe = PROBED in granted and not granted[PROBED].isna().all()
        alone = int(granted["concurrency"].iloc[0]) == 1
        return (
            "no grant was contended, and the probe of the lock had too few contended grants to judge it"
            if had_probe and not alone
            else None
        )
    # Without counts: cells with the same reason are named together.
    if (granted["contended_grants"] == 0).any():
        return "no violation, but some trial had no contended grant"
    if contended < LEAST_CONTENDED:
        return f"no violation, but in fewer than the {LEAST_CONTENDED} contended grants that SAFE needs"
    return None


def _judged_by_probe(granted: pd.DataFrame) -> bool:
    """Whether the probe of the cell's lock stands for any of its trials: a probe is of the lock, not of one trial."""
    return PROBED in granted and any(bool(value) for value in granted[PROBED] if not missing(value))
