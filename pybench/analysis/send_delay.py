"""Whether the load generator kept its schedule. Open-loop figures of a late generator do not measure the servers.

Promises: the generator is never called late when the server or the lock cannot serve the arrivals.
Does not do: closed loops, which have no schedule to keep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.analysis.stats import median
from pybench.matrix.search_modes import recorded_mode
from pybench.matrix.stages import recorded_stages
from pybench.numbers import format_us

if TYPE_CHECKING:
    import pandas as pd

STARTED_AT_LEAST = 0.98
LAG_ALLOWED_US = 200.0
LAG_ALLOWED_SHARE = 0.05
BUSY = 0.9
REMEDY = (
    "Lower the rate, raise threads or concurrency, end other work on this machine, or measure on a machine with more "
    "cores."
)
"""The hint for a run whose generator was late."""
MOSTLY_REFUSED = 0.5


def late_cells(trials: pd.DataFrame) -> dict[str, str]:
    """The cells whose generator was late, each with the reason; by the medians of their trials.

    The result has every such cell, in the order of the trials: one late cell makes the exit code 30, and tables mark
    its row.
    """
    late = {}
    measured = trials[trials["arrivals"].notna() & (trials["status"] == "complete")]
    if "mode" in measured:
        # A search goes up until something fails: a late generator ends it, and makes no figure invalid.
        measured = measured[~measured["mode"].map(lambda mode: recorded_mode(mode).is_search).astype(bool)]
    for cell, rows in measured.groupby("cell", sort=False):
        reason = late_reason(
            arrivals=int(rows["arrivals"].sum()),
            drops=int(rows["drops"].sum()),
            under_test_is_limit=under_test_is_limit(
                server_cpu_share=median(rows["server_cpu_share"]),
                utilisation=median(rows["utilisation"]),
                contention_rate=median(rows["contention_rate"]),
                rtt_ms=median(rows["rtt_ms"]) if "rtt_ms" in rows else None,
                varies="stages" in rows and bool(recorded_stages(rows["stages"].iloc[0])),
            ),
            send_delay_p99_us=median(rows["send_delay_p99_us"]),
            acquire_us=_longest_us(rows),
        )
        if reason is not None:
            late[str(cell)] = reason
    return late


def _longest_us(rows: pd.DataFrame) -> float | None:
    """The p99 of the acquires of a cell, else their p50, in microseconds; for a quantile without a value, its bound."""
    for name in ("acquire_p99", "acquire_p50"):
        for column in (f"{name}_us", f"{name}_at_least_us"):
            known = median(rows[column]) if column in rows else None
            if known:
                return known
    return None


def late_reason(
    *, arrivals: int, drops: int, under_test_is_limit: bool, send_delay_p99_us: float | None, acquire_us: float | None
) -> str | None:
    """The reason to call the generator late; None when it kept its schedule.

    The generator was late if it started less than 98 % of `arrivals` while neither the server nor the lock was the
    limit. It was also late if the p99 send delay exceeded both 200 us and 5 % of `acquire_us`, which is the p99 of the
    acquires or its bound, or their p50 where there are too few grants for a p99.
    """
    started = arrivals - drops
    if started < STARTED_AT_LEAST * arrivals and not under_test_is_limit:
        return f"started {started:,} of {arrivals:,} arrivals, although neither the server nor the lock was the limit"
    allowed = max(LAG_ALLOWED_US, LAG_ALLOWED_SHARE * (acquire_us or 0.0))
    if send_delay_p99_us is not None and send_delay_p99_us > allowed:
        return f"p99 send delay {format_us(send_delay_p99_us)} (limit {format_us(allowed)})"
    return None


def under_test_is_limit(
    *,
    server_cpu_share: float | None,
    utilisation: float | None,
    contention_rate: float | None,
    rtt_ms: float | None = None,
    varies: bool = False,
) -> bool:
    """Whether arrivals were dropped because earlier ones still waited for the server, for the lock or for the network.

    The limit is a server core that is busy 90 % of the time, keys that are held 90 % of the time, or a lock that
    refuses half of the attempts. With an added round-trip time the clients wait for it most of their time: then only
    the send delay shows that the generator was late. The same holds for a load that `varies`: all three figures are
    means over the window, and arrivals are dropped at its highest load. A figure that was not measured is no limit.
    """
    busy = (server_cpu_share or 0.0) >= BUSY or (utilisation or 0.0) >= BUSY
    return busy or (contention_rate or 0.0) >= MOSTLY_REFUSED or (rtt_ms or 0.0) > 0 or varies
