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
# # Retry and fairness
#
# Many clients want one lock, and wait for it by retrying or in a queue. What does the way they wait change: how many
# grants there are, who gets them, how long the unlucky wait, or what the waiting costs?

# %% tags=["parameters"]
RUN = "results/waiting"  # the path of a run folder: set it to your own

# %%
from IPython.display import Markdown

from pybench import plots

run = plots.open_run(RUN, varies=["retry"])
crowd = f"concurrency == {run.summary['concurrency'].max()}"
safe = run.summary.query(f"{crowd} and verdict == 'SAFE'").set_index("cell")
names = plots.names(run, crowd)
Markdown(plots.about(run))

# %% [markdown]
# ## 1. How many grants?
#
# A point is the median of the trials, and its bar the interval of that median. In the other pictures a bar reaches from
# the lowest to the highest trial.

# %%
plots.dots(run, "safe_grants_per_s", crowd)

# %%
rates = safe["safe_grants_per_s"]
Markdown(
    f"The fastest of {len(rates)} safe ways to wait gives **{rates.max() / rates.min():.2f} times** the grants of the "
    "slowest."
)

# %% [markdown]
# ## 2. How long do the unlucky wait?
#
# The longest wait of any client in any trial. A wait that was not over when the trial ended counts with its length so
# far: the true one is longer.

# %%
plots.dots(run, "longest_wait_us", crowd)

# %%
waits = safe["longest_wait_us"].sort_values()
Markdown(
    f"The longest wait of **{names[waits.index[0]]}** is {plots.say(run, 'longest_wait_us', waits.index[0])}; that of "
    f"{names[waits.index[-1]]} is at least **{int(waits.iloc[-1] / waits.iloc[0]):,} times** as long."
)

# %% [markdown]
# ## 3. Who gets the grants?
#
# Jain's index is 1 when all clients get equally many grants, and 1/n when one of n clients gets them all.

# %%
plots.dots(run, "jain", crowd)

# %% [markdown]
# A starved client had no grant in a whole trial.

# %%
plots.dots(run, "starved_clients", crowd)

# %% [markdown]
# ## 4. What does waiting cost?
#
# Every retry sends at least one command. A queue needs commands, too: to join it and to leave it.

# %%
plots.dots(run, "commands_per_grant", crowd)

# %% [markdown]
# ## 5. The trade
#
# Down is a shorter longest wait, left is fewer commands. The best place is the lower left corner.

# %%
plots.scatter(run, "commands_per_grant", "longest_wait_us", crowd)

# %%
pairs = safe[["commands_per_grant", "longest_wait_us"]]
best = [cell for cell, pair in pairs.iterrows() if not ((pairs <= pair).all(axis=1) & (pairs < pair).any(axis=1)).any()]
Markdown(
    "No other way to wait is better in both than: "
    + "; ".join(
        f"**{names[cell]}** ({plots.say(run, 'commands_per_grant', cell)} commands, longest wait "
        f"{plots.say(run, 'longest_wait_us', cell)})"
        for cell in pairs.loc[best].sort_values("commands_per_grant").index
    )
    + "."
)

# %% [markdown]
# ## 6. How soon does the next client have the lock?
#
# The handoff is the time from a release to the next grant, while another client waits.

# %%
plots.dots(run, "handoff_p50_us", crowd)

# %% [markdown]
# ## 7. Does it matter with few clients?

# %%
few = f"concurrency == {run.summary['concurrency'].min()}"
plots.dots(run, "longest_wait_us", few)
