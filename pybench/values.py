"""The values that a matrix speaks of, parsed once: durations, distributions, retry policies, loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Distribution:
    """`fixed(value_ns)`, `exp(mean_ns)`, `lognormal(median_ns, sigma)` or `uniform(low_ns, high_ns)`."""

    kind: Literal["fixed", "exp", "lognormal", "uniform"]
    parameters: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class KeyChoice:
    """`s` is the exponent of `zipf`, None otherwise."""

    kind: Literal["uniform", "zipf", "single"]
    s: float | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """`max_attempts` None: as many as `max_wait_ns` allows."""

    kind: Literal["none", "fixed", "exponential", "full-jitter", "equal-jitter", "decorrelated-jitter"]
    base_ns: int
    factor: float
    cap_ns: int
    max_attempts: int | None
    max_wait_ns: int


@dataclass(frozen=True, slots=True)
class Connections:
    """`count` is per server and only of `shared`."""

    kind: Literal["shared", "per-client"]
    count: int | None = None


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """Each client starts again when it is done."""


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """Arrivals at a rate; `max_in_flight` bounds those that wait or run, further ones are dropped and counted."""

    arrivals: Literal["constant", "poisson"]
    rate_per_s: float
    max_in_flight: int
