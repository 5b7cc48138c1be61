# ---
# jupyter:
#   jupytext:
#     formats: py:percent,ipynb
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Reading histograms
#
# A mean hides the clients that wait long. pybench keeps every latency in a histogram, without loss. This is how to read
# it, and how far to trust it.

# %% tags=["parameters"]
RUN = "results/reference"  # the path of a run folder: set it to your own

# %%
import numpy as np
from IPython.display import Markdown

from pybench import plots
from pybench.numbers import format_us

NEEDS = "verdict == 'SAFE' and acquire_p50_us > 0 and grants >= 1000"
run = plots.open_run(RUN, needs=NEEDS)
cells = run.summary.query(NEEDS).set_index("cell")
names = plots.names(run)
Markdown(plots.about(run))

# %% [markdown]
# ## 1. Quantiles of every cell
#
# `Run.quantiles` merges the histograms of all trials. A quantile is n/a where fewer than ten samples lie beyond it, or
# where its rank falls among clients that still waited at the end.

# %%
quantiles = run.quantiles().loc[cells.index]
quantiles.map(format_us).rename(index=names, columns=lambda name: name.removesuffix("_us"))

# %% [markdown]
# ## 2. The bulk and the tail
#
# The cell whose p99 is the furthest from its p50. A linear axis of times would show its bulk or its tail, never both.

# %%
cell = (quantiles["p99_us"] / quantiles["p50_us"]).fillna(0).idxmax()
plots.histogram(run, cell)

# %%
values_ns, counts = run.histogram(cell, "response")
mean_us = np.average(values_ns, weights=counts) / 1e3
faster = counts[values_ns / 1e3 < mean_us].sum() / counts.sum()
Markdown(
    f"The mean of these {counts.sum():,} grants is **{format_us(mean_us)}**, and their p50 "
    f"{format_us(quantiles['p50_us'][cell])}: **{faster:.1%}** of the grants were faster than the mean."
)

# %% [markdown]
# ## 3. The curve over percentiles
#
# All locks at the load of that cell. Each gridline keeps only the slowest tenth of the previous one, so that the tail
# gets as much room as the bulk.

# %%
rivals = [one.cell for one in run.comparison.load_of(cell).standings if one.cell in cells.index]
plots.percentiles(run, f"cell in {rivals}")

# %% [markdown]
# ## 4. The clients that still waited
#
# A wait that is not over when the trial ends has no length yet. Leaving it out would make the slowest lock look fast.
# pybench counts it as "at least so long".

# %%
grants_only_us = values_ns[np.searchsorted(counts.cumsum(), 0.99 * counts.sum())] / 1e3
_, waiting = run.histogram(cell, "response", "waiting")
Markdown(
    f"{names[cell]}: {waiting.sum():,} clients still waited when a trial ended. The p99 of the grants alone is "
    f"{format_us(grants_only_us)}; with those clients it is **{format_us(quantiles['p99_us'][cell])}**."
)

# %% [markdown]
# ## 5. How far to trust a quantile
#
# Every trial is a measurement of its own. Where the trials agree, the quantile can be trusted. This is the cell with
# the most grants.

# %%
busy = cells["grants"].idxmax()
plots.quantiles_by_trial(run, busy)

# %% [markdown]
# ## 6. Where the time goes
#
# The response is the time from the wish to the grant. It consists of the queue, before the first command is sent, and
# the service; in a closed loop the queue is empty. After the grant come the hold and the release. The handoff is the
# time from a release to the next grant.

# %%
plots.phases(run, busy)

# %% [markdown]
# ## 7. How exact is a histogram?

# %%
values_ns, counts = run.histogram(busy, "response")
size = run.latency.query("cell == @busy and phase == 'response' and outcome == 'granted'")["hdr"].map(len).sum()
Markdown(
    f"{counts.sum():,} responses of {names[busy]} are kept in {len(counts):,} buckets, {size:,} bytes in all. A bucket "
    "is at most 0.1 % wide, from 1 ns to 1 h."
)
