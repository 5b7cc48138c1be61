"""How long the end of a run takes, from its last trial until its report is written.

The end grows with the run: the files of all trials are gathered, each cell is summed up, and the report has a row and a
point for each cell. Measured on two busy cores with runs of 10 to 1,000 cells.
"""

from __future__ import annotations

from pybench.matrix.durations import MS, S

FIXED_NS = 3 * S
"""Loading what draws the report, and a report of few cells."""
GATHERING_CELL_NS, GATHERING_TRIAL_NS = 10 * MS, 3 * MS
REPORT_CELL_NS = 30 * MS
"""The row of the table, and the cell in both forms of the report."""


def gathering_s(cells: int, trials: int) -> float:
    """The seconds for gathering or reading a folder with so many cells, and so many trials of all cells together."""
    return (cells * GATHERING_CELL_NS + trials * GATHERING_TRIAL_NS) / S


def reporting_s(cells: int) -> float:
    """The seconds for the table and the report of so many cells."""
    return (FIXED_NS + cells * REPORT_CELL_NS) / S


def ending_s(cells: int, trials: int) -> float:
    """The seconds for the whole end of a run."""
    return gathering_s(cells, trials) + reporting_s(cells)
