"""Pictures of a run for notebooks and scripts: `pip install pybench[notebooks]`.

    import pybench
    from pybench import plots

    plots.against_load(pybench.load("results/mine"), "acquire_p99_us")

Every function returns a `Picture`, a figure of matplotlib. Colours, markers and words are those of the report.

Promises: a cell that is not SAFE is hollow, and its verdict stands beside it; where locks are ordered, it comes last.
The text of a picture, `repr(picture)`, has the same figures.
"""

from __future__ import annotations

from pybench.plots.between_runs import ratios, trials
from pybench.plots.distributions import histogram, percentiles, quantiles_by_trial
from pybench.plots.dots import dots, phases, scatter
from pybench.plots.grids import standings, verdicts
from pybench.plots.lines import against_load
from pybench.plots.opening import open_run
from pybench.plots.picture import Picture
from pybench.plots.sessions import sessions
from pybench.plots.tables import about, caveats, names, say, table

__all__ = [
    "Picture",
    "about",
    "against_load",
    "caveats",
    "dots",
    "histogram",
    "names",
    "open_run",
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
