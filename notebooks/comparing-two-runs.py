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
# # Comparing two runs
#
# Did a change make a lock slower, or was it the machine? Between the runs in `results/persistence`, Redis was told to
# write every change to the disk (`appendfsync always`). Postgres stayed as it was, so its locks show the machine.

# %% tags=["parameters"]
OLD = "results/persistence/before"  # the paths of two run folders: set them to your own
NEW = "results/persistence/after"
AGAIN = "results/persistence/again"  # OLD measured a second time, or None

# %%
import pandas as pd
from IPython.display import Markdown

import pybench
from pybench import plots

old, new = plots.open_run(OLD), plots.open_run(NEW)
changes = pybench.compare(old, new)
Markdown(f"Old: {plots.about(old)}\n\nNew: {plots.about(new)}")

# %% [markdown]
# ## 1. What else differs?
#
# Read this first: a setting, a version or a slower machine explains a difference as well as the change does.

# %%
pd.DataFrame(changes.differences, columns=["what", "old", "new"]).set_index("what")

# %% [markdown]
# ## 2. Verdicts
#
# A lock that became unsafe is a regression, however fast it is.

# %%
turned = [f"- **{one.name}**: {one.old_verdict} → {one.new_verdict}" for one in changes.turns]
counts = pd.Series([one.new_verdict.value for one in changes.cells]).value_counts()
Markdown("\n".join(turned) or f"No verdict changed: {', '.join(f'{n} {verdict}' for verdict, n in counts.items())}.")

# %% [markdown]
# ## 3. Grants per second
#
# The ratio of the new figure to the old one, with its interval. The grey band counts as the same. An interval that
# crosses the edge of the band decides nothing: more trials, or longer ones, may tell.

# %%
plots.ratios(changes, "grants_per_s")

# %%
Markdown(f"**{changes.headline}**")

# %% [markdown]
# ## 4. The slowest clients

# %%
plots.ratios(changes, "acquire_p99_us")

# %% [markdown]
# ## 5. Look at the trials
#
# Where the two sets of trials lie apart, the difference is clear. Where they overlap, it may be chance.

# %%
plots.trials(old, new, changes, "grants_per_s")

# %% [markdown]
# ## 6. The same run again
#
# How different are two runs when nothing was changed? What this picture shows is the machine.

# %%
if AGAIN:
    repeated = pybench.compare(old, plots.open_run(AGAIN))
    shown = plots.ratios(repeated, "grants_per_s")
else:
    shown = Markdown("Measure OLD a second time, and set AGAIN to its folder.")
shown

# %%
if AGAIN:
    differ = [one.name for one in repeated.cells if one.effect in ("faster", "slower")]
    shown = Markdown(f"Without any change, these cells differ: **{', '.join(differ) or 'none'}**.")
shown

# %% [markdown]
# ## 7. As a frame

# %%
columns = ["lock", "load", "old", "new", "ratio", "low", "high", "effect"]
changes.frame.query("figure == 'grants_per_s'")[columns].round(2)
