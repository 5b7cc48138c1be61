"""How many trials a gate takes, how long, and what it finds: without measuring."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pybench.analysis.between_runs.figures import RESPONSE, THROUGHPUT, by_block
from pybench.analysis.gating import BY_COLUMN, ENOUGH_BLOCKS, forecast
from pybench.gate.order import SIDES
from pybench.gate.sides import pair_cells
from pybench.planning.limits import Limits
from pybench.planning.plan import TRIAL_OVERHEAD_NS, before_trials_ns, make_plan

if TYPE_CHECKING:
    from pybench.gate.sides import Sides
    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell

SPREADS = (0.01, 0.03, 0.1)
"""By how much trials vary on a quiet machine, on one of a CI service, and on a busy one."""
PROCESS_S = 0.6
"""The start of a trial's own process."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The plan of a gate."""

    matrix: Matrix
    cells: list[Cell]
    """Of the head."""
    blocks: int
    trials: int
    """Of the first round; the confirming round has at most as many."""
    seconds: float
    """Of the first round, with everything around it."""
    confirming_seconds: float
    """Of the confirming round at most."""
    measured: float | None
    """By how much the trials of a run folder vary; None without one."""
    least: list[tuple[float, str, float]]
    """A spread, the title of the figure, and the least slowdown that is found with it; none with too few blocks."""


def forecast_of(sides: Sides, band: float | None, folder: Path | None) -> Forecast:
    """The forecast; of a `folder` with the spread of its trials. Raises InputError, RecordError."""
    from pybench.gate.job import blocks_of

    plans = [make_plan(matrix, Limits.of_this_machine()) for matrix in (sides.base, sides.head)]
    for plan in plans:
        plan.require_cells()
    pairs = pair_cells(plans[0].cells, plans[1].cells, (sides.base, sides.head))
    blocks, heads = blocks_of(sides, len(pairs.cells)), [head for _, head in pairs.cells]
    seconds = [make_plan(sides.head.model_copy(update={"trials": trials})).seconds for trials in (1, 2)]
    share = len(heads) / len(plans[1].cells)
    process_s = 0.0 if sides.environment is None else PROCESS_S
    each = seconds[1] - seconds[0] + process_s * len(plans[1].cells)
    round_s = each * share * blocks * len(SIDES)
    # The plan of a run counts the checks of one side, in this process; a gate checks both.
    checks_ns = before_trials_ns(heads, overhead_ns=TRIAL_OVERHEAD_NS + round(process_s * 1e9))
    around_s = seconds[0] - (seconds[1] - seconds[0]) + (2 * checks_ns - before_trials_ns(heads)) / 1e9
    measured = None if folder is None else _spread(folder)
    columns = dict.fromkeys(_column(cell) for cell in heads)
    return Forecast(
        matrix=sides.head,
        cells=heads,
        blocks=blocks,
        trials=blocks * len(SIDES) * len(heads),
        seconds=around_s + round_s,
        confirming_seconds=round_s,
        measured=measured,
        least=[
            (spread, BY_COLUMN[column].title, forecast(column, spread, blocks=blocks, cells=len(heads), band=band))
            for column in columns
            for spread in ([measured] if measured is not None else SPREADS)
            if blocks >= ENOUGH_BLOCKS
        ],
    )


def _column(cell: Cell) -> str:
    return THROUGHPUT if cell.rate_per_s is None else RESPONSE


def _spread(folder: Path) -> float | None:
    """The median over the cells of a run of how its trials vary in grants/s; None with fewer than three trials."""
    from pybench.records import load

    trials = load(folder).trials
    logs = [[math.log(value) for value in by_block(rows, THROUGHPUT).values()] for _, rows in trials.groupby("cell")]
    spreads = [float(np.std(one, ddof=1)) for one in logs if len(one) >= 3]
    return float(np.median(spreads)) if spreads else None
