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
# # Redis against Postgres
#
# The same work on locks of both kinds of servers: what a grant costs, where clients wait, and what happens when
# something fails.

# %% tags=["parameters"]
RUN = "results/redis-vs-postgres"  # the path of a run folder: set it to your own

# %%
import json

import pandas as pd
from IPython.display import Markdown

from pybench import plots
from pybench.numbers import format_us

run = plots.open_run(RUN, kinds=["redis", "postgres"])
crowd = f"concurrency == {run.summary['concurrency'].max()}"
Markdown(plots.about(run))

# %% [markdown]
# ## 1. Grants per second
#
# A point is the median of the trials, and its bar the interval of that median. A lock that keeps no client out is not
# ranked: its grants are accepted writes.

# %%
plots.dots(run, "safe_grants_per_s", crowd)

# %% [markdown]
# ## 2. Which kind is ahead?
#
# Locks that are statistically tied share the first place.

# %%
servers = run.summary.set_index("cell")["server"]
lines = [
    f"- **{load.text or 'All cells'}**: "
    + ", ".join(f"{one.lock} ({servers[one.cell]})" for one in load.first)
    + (" are tied" if len(load.first) > 1 else " is ahead")
    for load in run.comparison.loads
    if load.first
]
Markdown("\n".join(lines))

# %% [markdown]
# ## 3. How long do clients wait?
#
# Half of the clients have the lock within the p50, and 99 of 100 within the p99. Clients that poll and clients that
# wait in a queue differ most in their p99.

# %%
plots.dots(run, "acquire_p50_us", crowd)

# %%
plots.dots(run, "acquire_p99_us", crowd)

# %% [markdown]
# ## 4. The server's work
#
# CPU time of all processes of the servers, per grant.

# %%
plots.dots(run, "server_cpu_us_per_grant", crowd)

# %% [markdown]
# ## 5. What do the sessions of Postgres wait for?
#
# A lock that writes waits for the disk when it commits, unless it sets `synchronous_commit=off`. A lock that writes
# nothing produces no WAL.

# %%
plots.sessions(run, crowd)

# %% [markdown]
# ## 6. When something fails
#
# The time until another client had the lock: after the holder died, after the holder's connection ended, and after the
# server crashed and was back. A lease frees the lock after its ttl; a session frees it when its connection ends.

# %%
record = run.path / "failures.json"
failures = json.loads(record.read_text()) if record.exists() else None
if failures:
    measured = pd.DataFrame(failures["locks"]).set_index("lock").filter(regex="(died|ended|crashed)_ms")
    shown = measured.map(lambda ms: "holder kept the lock" if pd.isna(ms) else format_us(1e3 * ms))
    shown = shown.rename(columns=lambda name: name.removesuffix("_ms").replace("_", " "))
else:
    shown = Markdown("This run has no `failures.json`; `python -m tools.failures` measures one.")
shown

# %%
if failures:
    soon = measured.index[measured["holder_died_ms"] < 0.9 * failures["ttl_ms"]]
    shown = Markdown(
        f"Free before the ttl of {failures['ttl_ms']:,} ms ended, after its holder died: "
        f"**{', '.join(soon) or 'no lock'}**."
    )
shown

# %% [markdown]
# ## The answer

# %%
answer = run.answer
Markdown("\n".join([f"**{answer.headline}.**", "", *(f"- {clause}." for clause in answer.further)]))
