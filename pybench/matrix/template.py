"""The matrix that `pybench init` writes."""

from __future__ import annotations

SCHEMA_FILE = "pybench.schema.json"

INIT_TEXT = f"""\
# yaml-language-server: $schema=./{SCHEMA_FILE}
#
# What to measure. Editors complete and check this file by the schema: pybench schema > {SCHEMA_FILE}
#
#   pybench plan FILE           the cells, the time and the servers that they need; runs nothing
#   pybench run FILE --quick    a first look
#   pybench run FILE            the real thing

schema: 1
name: my-locks # names the folder of the run
seed: 1 # the same seed gives the same keys, holds, backoffs and order of cells
trials: 5 # how often each cell is measured; intervals are drawn over trials
duration: 2s # how long one trial measures ...
warmup: 500ms # ... after this

# Every combination of these values is a cell.
axes:
  strategy: [none, naive, mutex] # `pybench strategies` lists them, those of Postgres, too
  concurrency: [1, 16, 64] # clients at a time
  keys: [1, 1000] # one hot lock, or many cold ones

# The same names with one value, for all cells. What is not named has its default, shown here.
fixed:
  hold: 1ms # also: exp(2ms), lognormal(2ms, 0.8), uniform(1ms, 3ms), quantiles(p50=50ms, p99=2s)
  # ttl: 10s
  # think: 0
  # retry: full-jitter # also: none, fixed(base=1ms, max_wait=5s), {{kind: exponential, base: 1ms, cap: 50ms}}
  # key_choice: uniform # also: zipf(1.1), single
  # connections: shared(4) # also: per-client
  # threads: 1
  # poll: block # also: spin
  # rate: 5000/s # makes the loop open: arrivals at this rate, latency from the due time
  # arrivals: constant # also: poisson
  # after_lease: continue # also: stop
  # appendfsync: off # also: everysec, always

# Leave out the cells that match every axis of an entry.
exclude:
  - {{strategy: none, keys: 1000}}

# Add single cells; what they do not name is as fixed, or the default.
include:
  - {{strategy: mutex, concurrency: 64, retry: none}}

# Without this block pybench starts what the strategies need (Redis, Postgres, or both), and ends it after the run.
# backends:
#   mine: {{url: "redis://:${{REDIS_PASSWORD}}@localhost:6379/0"}}
#   own: {{source: path}}
#   theirs: {{url: "postgresql://me:${{PGPASSWORD}}@localhost:5432/shop"}}
#   postgres: {{}}

# Missed: exit code 10.
thresholds:
  - where: {{strategy: mutex}}
    check: violations == 0
  # - acquire.p99 < 50ms

# allow: [hold-beyond-ttl] # measure also what happens when work outlives its lease
"""
