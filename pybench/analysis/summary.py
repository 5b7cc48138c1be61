"""The summary: one row a cell over its trials, as `summary.csv` has it.

Promises: figures are medians over complete trials. A quantile that most complete trials lack is taken from the samples
of all complete trials together, and marked as pooled. Counts, violations and the verdict cover all trials: a violation
in an interrupted trial is a violation.
Does not do: interpreting the figures; see `pybench.analysis.answer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pybench.analysis import stats
from pybench.analysis.censored_quantiles import HANDOFF, handoff_of_cell, of_cell
from pybench.analysis.evidence import LEAST_CONTENDED
from pybench.analysis.limits import limit_columns
from pybench.analysis.rows import rows_where
from pybench.analysis.steadiness import steadiness
from pybench.analysis.verdicts import Verdict, cell_verdict, chances, safe_rate, terms_of
from pybench.column import Column, Over
from pybench.columns import COLUMNS, SUMMARY_FIGURES, summed
from pybench.matrix.cells import CELL_COLUMNS
from pybench.numbers import missing

MEDIANS = tuple(name for name in summed(Over.MEDIAN, in_summary=True) if name != "grants_per_s")
"""Figures that are medians without an interval; `grants_per_s` has an interval and is computed with it."""
MOST = summed(Over.MOST, in_summary=True)
COUNTS = tuple(name for name in summed(Over.SUM, in_summary=True) if COLUMNS[name].type == "int64")


_CELL_TYPES = {name: kind for name, kind in CELL_COLUMNS.items() if kind != "string"} | {"max_in_flight": "float64"}
"""The types of the numeric columns of a cell; `max_in_flight` is n/a in a closed loop."""


def summarise(trials: pd.DataFrame, latency: pd.DataFrame | None = None) -> pd.DataFrame:
    """One row for each cell of `trials`, in the order of their first trials; n/a is NaN.

    `latency` has the histograms of the trials, for quantiles of which a single trial has too few samples.
    """
    # Looking up a column by a name that Arrow keeps costs more than the column; a cell looks up some fifty.
    trials = trials.set_axis(trials.columns.astype("object"), axis="columns")
    none = None if latency is None else latency.iloc[:0]
    of_cells = {} if latency is None else dict(tuple(latency.groupby("cell", sort=False)))
    rows = [_figures(group, of_cells.get(cell, none)) for cell, group in trials.groupby("cell", sort=False)]
    cells = trials[[*CELL_COLUMNS]].drop_duplicates("cell", ignore_index=True)
    summary = pd.concat([cells, pd.DataFrame(rows, columns=[*SUMMARY_FIGURES])], axis="columns")
    types = {name: _CELL_TYPES.get(name, "str") for name in CELL_COLUMNS}
    return summary.astype(types | {name: _type(COLUMNS[name]) for name in SUMMARY_FIGURES})


def _type(column: Column) -> str:
    """The type of a column of the summary. It must hold n/a, except for sums of counts, which always have a value."""
    if column.name in ("judged_by_probe", "steady"):
        return "object"
    never_missing = column.name == "trials" or column.over is Over.SUM
    return {"string": "str", "bool": "bool", "int64": "int64" if never_missing else "float64"}.get(
        column.type, "float64"
    )


def quantile_medians(complete: pd.DataFrame, names: Sequence[str]) -> dict[str, float | None]:
    """The medians of the quantiles `names` of one phase, the lowest first, over a cell's `complete` trials.

    A quantile that at most half of the trials have is n/a. All other medians are over the trials that have the highest
    quantile, so that no higher quantile is below a lower one.
    """
    return {name: stats.median(values) for name, values in quantile_values(complete, names).items()}


def quantile_values(complete: pd.DataFrame, names: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """The values, one a trial, of which `quantile_medians` takes the median of each quantile; none where it is n/a."""
    figures = {name: complete[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in names}
    shown = [name for name, values in figures.items() if 2 * np.count_nonzero(~np.isnan(values)) > len(values)]
    same = ~np.isnan(figures[shown[-1]]) if shown else []
    return {name: values[same] if name in shown else values[:0] for name, values in figures.items()}


def _acquires(complete: pd.DataFrame, latency: pd.DataFrame | None) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, found in of_cell(complete, latency).items():
        columns |= found.columns(name) | {f"{name}_pooled": found.pooled}
    return columns


def _most(values: pd.Series[Any]) -> float | None:
    """The highest value over the trials; None where no trial has one."""
    return None if values.isna().all() else float(values.max())


def _figures(group: pd.DataFrame, latency: pd.DataFrame | None) -> dict[str, Any]:
    complete = rows_where(group, group["status"] == "complete")
    verdict = cell_verdict(group)
    grants_per_s = stats.median(complete["grants_per_s"])
    interval = stats.median_interval(complete["grants_per_s"])
    handoff = handoff_of_cell(complete, latency)
    sums = {name: int(group[name].sum()) for name in COUNTS}
    by_probe = _by_probe(group, verdict)
    stands_alone = verdict is Verdict.SAFE and not (by_probe and sums["contended_grants"] < LEAST_CONTENDED)
    bound = stats.bound_per_million(chances(sums, terms_of(group))) if stands_alone else None
    return {
        "trials": len(complete),
        "grants_per_s": grants_per_s,
        "grants_per_s_low": interval.low if interval else None,
        "grants_per_s_high": interval.high if interval else None,
        "safe_grants_per_s": safe_rate(verdict, grants_per_s),
        **_acquires(complete, latency),
        f"{HANDOFF}_us": handoff.value,
        f"{HANDOFF}_pooled": handoff.pooled and handoff.value is not None,
        **{name: stats.median(complete[name]) for name in MEDIANS},
        **limit_columns(complete, verdict),
        "steady": steadiness(complete),
        **{name: _most(complete[name]) for name in MOST if name in complete},
        **sums,
        "orphan_s": float(group["orphan_s"].sum()),
        "bound_per_million": bound,
        "verdict": verdict.value,
        "judged_by_probe": by_probe,
    }


def _by_probe(group: pd.DataFrame, verdict: Verdict) -> bool | None:
    """Whether the probe of the lock decided a cell's `verdict`; None where there was no probe.

    Trials that are decided by the probe one by one may be enough evidence together: then the cell needs no probe.
    """
    known = [bool(value) for value in group["judged_by_probe"] if not missing(value)]
    if not known:
        return None
    contended = group.loc[group["grants"] > 0, "contended_grants"]
    proves_itself = contended.sum() >= LEAST_CONTENDED and bool((contended > 0).all())
    return any(known) and not (proves_itself and verdict is Verdict.SAFE)
