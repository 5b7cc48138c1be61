"""The figures of a cell that the summary lacks: from its complete trials, for charts and the details of a cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from pybench.analysis.stats import median
from pybench.analysis.summary import quantile_medians, quantile_values
from pybench.column import Over
from pybench.columns import summed
from pybench.strategies import CATALOGUE

# Medians over trials.
TRIAL_QUANTILES = (
    ("service_p50_us", "service_p99_us"),
    ("queue_p99_us",),
    ("hold_p50_us",),
    ("release_p50_us", "release_p99_us"),
    ("send_delay_p99_us",),
)
# Charts show the lowest and the highest trial of these figures, as `NAME_lowest` and `NAME_highest`.
TRIAL_RANGES = (
    ("acquire_p50_us", "acquire_p99_us", "acquire_p999_us"),
    ("jain",),
    ("longest_wait_us",),
    ("commands_per_grant",),
    ("client_cpu_us_per_grant",),
    ("server_cpu_us_per_grant",),
)
TRIAL_MEDIANS = (*summed(Over.MEDIAN, in_summary=False), "longest_wait_us")
"""`longest_wait_us` for records that were made before the summary had it."""
INVERSIONS = "inversions_a_trial"
"""The median of `fifo_inversions`; the summary has the sum. Only for locks that acknowledge places in a queue."""
TRIAL_SUMS = (*summed(Over.SUM, in_summary=False), "conflicts", "stale_writes")
"""The last two for records that were made before the summary had them."""


def further_figures(trials: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The figures of each cell that only its trials have, by the id of the cell."""
    ranges = (name for names in (*TRIAL_QUANTILES, *TRIAL_RANGES) for name in names)
    wanted = dict.fromkeys(["cell", *ranges, *TRIAL_MEDIANS, *TRIAL_SUMS, "fifo_inversions", "strategy"])
    complete = trials.loc[trials["status"] == "complete", [name for name in wanted if name in trials]]
    medians, sums = ([name for name in names if name in complete] for names in (TRIAL_MEDIANS, TRIAL_SUMS))
    # Sums and medians of all cells at once: a thousand small frames are slow to ask.
    numbers = complete[[*medians, *sums]].astype("float64").groupby(complete["cell"], sort=False)
    at_once = numbers[medians].median().join(numbers[sums].sum())
    found = {
        str(cell): dict(zip(at_once.columns, row, strict=True))
        for cell, row in zip(at_once.index, at_once.to_numpy().tolist(), strict=True)
    }
    return {str(cell): _further(rows) | found[str(cell)] for cell, rows in complete.groupby("cell", sort=False)}


def _further(complete: pd.DataFrame) -> dict[str, Any]:
    """The ranges, quantiles and inversions of the `complete` trials of one cell; none that an older record lacks."""
    had = [[name for name in names if name in complete] for names in TRIAL_QUANTILES]
    ranged = [[name for name in names if name in complete] for names in TRIAL_RANGES]
    return {
        **{name: end for names in ranged for name, end in _ranges(complete, names).items()},
        **{name: figure for names in had for name, figure in quantile_medians(complete, names).items()},
        **_inversions(complete),
    }


def _inversions(complete: pd.DataFrame) -> dict[str, float | None]:
    """Nothing for locks that acknowledge no place: older records have a 0 there that is no figure."""
    known = CATALOGUE.get(str(complete["strategy"].iloc[0]))
    acknowledged = known is not None and known.acknowledges_places and "fifo_inversions" in complete
    return {INVERSIONS: median(complete["fifo_inversions"])} if acknowledged else {}


def _ranges(complete: pd.DataFrame, names: Sequence[str]) -> dict[str, float]:
    """The lowest and the highest trial of each of `names`; nothing for a single trial."""
    ends: dict[str, float] = {}
    for name, values in quantile_values(complete, names).items():
        if len(values) > 1:
            ends |= {f"{name}_lowest": float(values.min()), f"{name}_highest": float(values.max())}
    return ends
