"""The matrix that `pybench init` writes."""

from __future__ import annotations

SCHEMA_FILE = "pybench.schema.json"

INIT_TEXT = f"""\
# yaml-language-server: $schema=./{SCHEMA_FILE}
#
# A matrix: the cells to measure. Editors complete and check this file by the schema: pybench schema > {SCHEMA_FILE}
#
#   pybench plan FILE           lists the cells, the time and the servers needed, without measuring
#   pybench run FILE --quick    a short run for a first look
#   pybench run FILE            the full run

schema: 1
name: my-locks # names the folder of the run
seed: 1 # the same seed gives the same keys, holds, backoffs and order of cells
trials: 5 # how often each cell is measured; confidence intervals are computed over trials
duration: 2s # the measured window of one trial
warmup: 500ms # the warm-up before the window

# Every combination of these values is a cell.
axes:
  strategy: [none, naive, mutex] # `pybench strategies` lists all locks, including those of Postgres
  concurrency: [1, 16, 64] # concurrent clients
  keys: [1, 1000] # one hot lock, or many cold ones

# One value for all cells. An axis that is not given has its default, shown here.
fixed:
  hold: 1ms # also: exp(2ms), lognormal(2ms, 0.8), uniform(1ms, 3ms), quantiles(p50=50ms, p99=2s)
  # ttl: 10s
  # think: 0
  # retry: full-jitter # also: none, fixed(base=1ms, max_wait=5s), {{kind: exponential, base: 1ms, cap: 50ms}}
  # key_choice: uniform # also: zipf(1.1), single
  # connections: shared(4) # also: per-client
  # rtt: 0 # a round-trip time that pybench adds: 1ms, lognormal(20ms, 0.3), per-server(0.5ms, 1ms, 20ms)
  # threads: 1
  # processes: 0 # 2: the clients are spread over two worker processes
  # poll: block # also: spin
  # rate: 5000/s # makes the loop open: arrivals at this rate, and latency counts from their due time
  # arrivals: constant # also: poisson
  # stages: 0 -> 256 over 5s, 256 for 10s, 0 over 1s # a changing number of clients (or 0 -> 5000/s over 5s)
  # after_lease: continue # also: stop
  # appendfsync: off # also: everysec, always

# Leave out the cells that match every axis of an entry.
exclude:
  - {{strategy: none, keys: 1000}}

# Add single cells. Other axes take their fixed or default values.
include:
  - {{strategy: mutex, concurrency: 64, retry: none}}

# Without this block pybench starts the servers that the strategies need, and stops them after the run.
# backends:
#   mine: {{url: "redis://:${{REDIS_PASSWORD}}@localhost:6379/0"}}
#   own: {{source: path}}
#   theirs: {{url: "postgresql://me:${{PGPASSWORD}}@localhost:5432/shop"}}
#   postgres: {{}}

# Conditions on cells; where one fails, the exit code is 10.
thresholds:
  - where: {{strategy: mutex}}
    check: violations == 0
  # - acquire.p99 < 50ms

# allow: [hold-beyond-ttl] # also measure cells whose work outlives its lease
"""
