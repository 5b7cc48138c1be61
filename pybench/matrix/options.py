"""The options of `pybench.run` as types, for editors and type checkers.

The axes are repeated here, since a type cannot be made from `Cell`; a test compares both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

Values = str | float | Sequence[str | float]
"""A text that may hold several values separated by commas, a number, or a list of these."""


class Options(TypedDict, total=False):
    """The options of `matrix_from_options`, and of `load_matrix` besides the file."""

    strategy: Values
    backend: Values
    concurrency: Values
    keys: Values
    key_choice: Values
    keys_per_grant: Values
    key_order: Values
    read_share: Values
    nesting: Values
    hold: Values
    think: Values
    ttl: Values
    retry: Values
    connections: Values
    rtt: Values
    threads: Values
    processes: Values
    poll: Values
    rate: Values
    arrivals: Values
    max_in_flight: Values
    stages: Values
    mode: Values
    faults: Values
    after_lease: Values
    guard: Values
    guard_on: Values
    appendfsync: Values
    name: str
    seed: int | str
    trials: int | str
    duration: str
    warmup: str | int
    threshold: str | Sequence[str]
    allow: str | Sequence[str]
    redis: str | Sequence[str] | None
    postgres: str | Sequence[str] | None
    servers: str
    break_my_servers: bool
