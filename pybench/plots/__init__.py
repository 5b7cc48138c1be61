"""Pictures of a run for notebooks and scripts: `pip install pybench[notebooks]`.

    import pybench
    from pybench import plots

    plots.against_load(pybench.load("results/mine"), "acquire_p99_us")

Functions that draw return a `Picture`, a figure of matplotlib. Colours, markers and words are those of the report.

Promises: a cell that is not SAFE is hollow, and its verdict stands beside it; where locks are ordered, it comes last.
The text of a picture, `repr(picture)`, has the same figures. matplotlib is imported when the first name is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybench.plots.beside import dots, phases
    from pybench.plots.between_runs import ratios, trials
    from pybench.plots.database import sessions
    from pybench.plots.distributions import histogram, percentiles, quantiles_by_trial
    from pybench.plots.grids import standings, verdicts
    from pybench.plots.lines import against_load
    from pybench.plots.opening import open_run
    from pybench.plots.picture import Picture
    from pybench.plots.tables import about, caveats, names, say, table
    from pybench.plots.trade import scatter
    from pybench.plots.window import over_time

__all__ = [
    "Picture",
    "about",
    "against_load",
    "caveats",
    "dots",
    "histogram",
    "names",
    "open_run",
    "over_time",
    "percentiles",
    "phases",
    "quantiles_by_trial",
    "ratios",
    "say",
    "scatter",
    "sessions",
    "standings",
    "table",
    "trials",
    "verdicts",
]

_HOME = {
    "ratios": "pybench.plots.between_runs",
    "trials": "pybench.plots.between_runs",
    "histogram": "pybench.plots.distributions",
    "percentiles": "pybench.plots.distributions",
    "quantiles_by_trial": "pybench.plots.distributions",
    "dots": "pybench.plots.beside",
    "phases": "pybench.plots.beside",
    "scatter": "pybench.plots.trade",
    "standings": "pybench.plots.grids",
    "verdicts": "pybench.plots.grids",
    "against_load": "pybench.plots.lines",
    "open_run": "pybench.plots.opening",
    "over_time": "pybench.plots.window",
    "Picture": "pybench.plots.picture",
    "sessions": "pybench.plots.database",
    "about": "pybench.plots.tables",
    "caveats": "pybench.plots.tables",
    "names": "pybench.plots.tables",
    "say": "pybench.plots.tables",
    "table": "pybench.plots.tables",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    try:
        return getattr(import_module(_HOME[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "matplotlib":
            raise
        from pybench.errors import InputError

        raise InputError(
            "pybench.plots needs matplotlib, which is not installed", hint="pip install 'pybench[notebooks]'"
        ) from error
