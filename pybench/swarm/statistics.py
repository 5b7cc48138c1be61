"""Drained counts as entries of Locust's statistics, the way in which its master merges those of its workers.

An acquire is a request of the type `lock` with the name of the strategy; its response time is that of grants and of
acquires that failed. Acquires that were refused, timed out or failed, and locks that were lost, are failures.

Promises: the number of requests less the failed acquires is the number of grants, to the grant.
Does not do: keeping all digits; Locust's own keys of response times are rounded to two digits, and these, too.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from locust.stats import StatsEntry, StatsError

from pybench.numbers import plural

if TYPE_CHECKING:
    from locust.stats import RequestStats
    from numpy.typing import NDArray

    from pybench.swarm.tally import Tally

TYPE = "lock"
ACQUIRE = "acquire"
OUTCOMES = ("granted", "refused", "timeout", "error", "unknown")

SENTENCES = {
    "refused": "the lock was busy until the client gave up",
    "timeouts": "no reply came within the reply timeout",
    "errors": "the server replied with an error",
    "unknown": "the reply was lost: the lock may have been taken",
    "lost": "the lease ended, or the lock was lost, before the release",
}


def merge(stats: RequestStats, tally: Tally) -> None:
    """Add `tally`, the counts of about the last second, to `stats`."""
    failed = {name: tally[name] for name in SENTENCES if tally[name]}
    requests = tally["grants"] + sum(tally.failures.values())
    if not requests and not failed:
        return
    data = _entry(tally, requests, sum(failed.values()))
    for entry in (stats.entries[ACQUIRE, TYPE], stats.total):
        entry.extend(StatsEntry.unserialize(data, stats))
    now = time.time()
    for name, count in failed.items():
        sentence = SENTENCES[name]
        key = StatsError.create_key(TYPE, ACQUIRE, sentence)
        error = stats.errors.setdefault(key, StatsError(TYPE, ACQUIRE, sentence, first_seen=now))
        error.occurrences += count
        error.last_seen = now


def _entry(tally: Tally, requests: int, failures: int) -> Any:  # noqa: ANN401 - a typed dictionary of Locust
    values_ns, counts = tally.buckets("response", *OUTCOMES)
    times = rounded_ms(values_ns, counts)
    timed = sum(times.values())
    now = time.time()
    # The drain comes just after the second that it counts has ended.
    second = int(now - 0.5)
    return {
        "name": ACQUIRE,
        "method": TYPE,
        "last_request_timestamp": now,
        "start_time": now,
        "num_requests": requests,
        "num_none_requests": max(requests - timed, 0),
        "num_failures": failures,
        "total_response_time": float(np.dot(values_ns / 1e6, counts)),
        "max_response_time": float(values_ns[-1]) / 1e6 if timed else 0,
        "min_response_time": float(values_ns[0]) / 1e6 if timed else None,
        "total_content_length": 0,
        "response_times": times,
        "num_reqs_per_sec": {second: requests},
        "num_fail_per_sec": {second: failures},
    }


def rounded_ms(values_ns: NDArray[np.uint64], counts: NDArray[np.uint64]) -> dict[float, int]:
    """The counts by milliseconds with two significant digits, so that all seconds together have few keys."""
    if not len(values_ns):
        return {}
    exponents = np.floor(np.log10(np.maximum(values_ns, 1))).astype(np.int64)
    mantissas = np.rint(values_ns / 10.0 ** (exponents - 1)).astype(np.int64)
    keys, places = np.unique(exponents * 1_000 + mantissas, return_inverse=True)
    sums = np.bincount(places, weights=counts)
    summed: dict[float, int] = {}
    for key, count in zip(keys.tolist(), sums.tolist(), strict=True):
        exponent, mantissa = divmod(key, 1_000)
        # Rounded again, as 3 * 0.1 is not 0.3. A mantissa of 100 is the 10 of the next exponent.
        ms = round(mantissa * 10.0 ** (exponent - 7), 7)
        summed[ms] = summed.get(ms, 0) + int(count)
    return summed


def failure_clauses(tally: Tally) -> list[str]:
    """Each kind of failure with its number, for the user."""
    return [f"{plural(tally[name], 'time')}: {text}" for name, text in SENTENCES.items() if tally[name]]
