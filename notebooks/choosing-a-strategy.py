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
# # Choosing a strategy
#
# Which lock should you take? Ask in this order: is it safe, how fast is it, how long do clients wait, what does a grant
# cost, and which failures does the lock not survive.

# %% tags=["parameters"]
RUN = "results/reference"  # the path of a run folder: set it to your own

# %%
from IPython.display import Markdown

from pybench import plots

run = plots.open_run(RUN, varies=["strategy"])
crowd = f"concurrency == {run.summary['concurrency'].max()}"
Markdown(plots.about(run))

# %% [markdown]
# ## 1. Is it safe?
#
# An `UNSAFE` lock is out, however fast it is. `SAFE` means that no violation was found. The rate below it is the
# highest rate of violations that is still possible, with 95 % confidence: more contended grants make it smaller.

# %%
plots.verdicts(run)

# %%
unsafe = sorted(set(run.summary.query("verdict == 'UNSAFE'")["strategy"]))
note = " `none` takes no lock: its violations show that the checker detects overlaps." if "none" in unsafe else ""
told = f"Unsafe at some load: {', '.join(f'`{name}`' for name in unsafe)}." if unsafe else "No lock was unsafe."
Markdown(f"**{told}**{note}")

# %% [markdown]
# ## 2. How many grants per second?
#
# Only safe grants count, so that an unsafe lock is at zero. A bar is the interval of the median over the trials.

# %%
plots.against_load(run, "safe_grants_per_s")

# %% [markdown]
# ## 3. Which lock is ahead?
#
# Two medians may differ by chance. Locks with the same rank and `=` are statistically tied.

# %%
plots.standings(run)

# %% [markdown]
# ## 4. How long do clients wait?
#
# The p99 is the time within which 99 of 100 clients get the lock. A triangle is a lower limit: more than one client in
# a hundred still waited when the trial ended.

# %%
plots.against_load(run, "acquire_p99_us")

# %% [markdown]
# ## 5. What does a grant cost the server?
#
# CPU time of all processes of the servers, at the highest concurrency. The cost of an unsafe lock says nothing.

# %%
plots.dots(run, "server_cpu_us_per_grant", crowd)

# %% [markdown]
# ## 6. Which failures does it not survive?
#
# The run had healthy servers. These events may give the lock to two clients, or leave it taken.

# %%
Markdown("\n".join(f"- **{lock}** {text}." for lock, text in plots.caveats(run).items()))

# %% [markdown]
# ## The answer

# %%
answer = run.answer
Markdown("\n".join([f"**{answer.headline}.**", "", *(f"- {clause}." for clause in answer.further)]))
