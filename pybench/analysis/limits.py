"""The limit of a lock over the searches of its cell, and the knee of its latency below the limit.

The limit is the median of the searches, one a trial. Its interval begins at the lower end of the interval of the median
of the confirmed rates, and ends at the upper end of that of the rates that failed above them. So it covers the width of
each search and the spread between searches.

The knee is the load at which the power of Kleinrock is highest ("Power and deterministic rules of thumb for
probabilistic problems in computer communications", ICC 1979): the throughput divided by the mean time in the system,
here from the due time of an arrival to the end of its release. Beyond the knee, more load costs more in waiting than it
brings in grants.

Does not do: searching; see `planning.limit_search`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pybench.analysis import stats
from pybench.analysis.verdicts import Verdict
from pybench.formats import Format
from pybench.matrix.search_modes import recorded_mode
from pybench.numbers import NOT_AVAILABLE, missing
from pybench.planning.limit_search import Phase, Shown

if TYPE_CHECKING:
    import pandas as pd

GENERATOR = "load generator"
"""As `limited_by`: the limit is that of this machine, and says nothing of the lock beyond it."""
LIMIT_COLUMNS = ("limit_per_s", "limit_low_per_s", "limit_high_per_s", "limited_by")
_RATE = Format.RATE.text
PROVEN = (Verdict.SAFE, Verdict.UNDECIDED)
"""An unsafe lock has no limit: its rate says nothing about a lock that works."""


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """One load of the curve of a cell; each figure is the median over its probes, and None where most have none."""

    share: float
    """The load as a share of the limit of its trial; 1 for the confirmations."""
    rate_per_s: float
    grants_per_s: float | None
    p50_us: float | None
    p99_us: float | None
    system_us: float | None
    """The mean time from the due time of an arrival to the end of its release."""
    probes: int

    @property
    def power(self) -> float | None:
        """Grants per second for each second that an arrival spends in the system."""
        return self.grants_per_s / (self.system_us / 1e6) if self.grants_per_s and self.system_us else None


def limit_columns(complete: pd.DataFrame, verdict: Verdict) -> dict[str, Any]:
    """`LIMIT_COLUMNS` of a cell by its `complete` trials; n/a without a search, or where the cell is unsafe or void."""
    limit = stats.median(complete["limit_per_s"]) if verdict in PROVEN else None
    # The limit of a cell is that of most of its searches.
    if limit is None or 2 * complete["limit_per_s"].notna().sum() <= len(complete):
        return dict.fromkeys(LIMIT_COLUMNS)
    found = complete[complete["limit_per_s"].notna()]
    lows, highs = found["limit_per_s"], found["limit_high_per_s"]
    reasons = found["limited_by"].dropna()
    return {
        "limit_per_s": limit,
        "limit_low_per_s": _interval(lows).low,
        # A search that no rate stopped has no upper end.
        "limit_high_per_s": _interval(highs).high if highs.notna().all() else None,
        "limited_by": str(reasons.mode().iloc[0]) if len(reasons) else None,
    }


def _interval(rates: pd.Series[Any]) -> stats.Interval:
    """The interval of the median of `rates`; that of one search is its rate."""
    return stats.median_interval(rates) or stats.Interval(rates.iloc[0], rates.iloc[0])


def interval_text(row: Mapping[Any, Any]) -> str:
    """The interval of the limit of a row of the summary: `80.0 to 84.0`, or `at least 80.0` where no rate failed."""
    low, high = row.get("limit_low_per_s"), row.get("limit_high_per_s")
    if missing(low):
        return NOT_AVAILABLE
    return f"at least {_RATE(low)}" if missing(high) else f"{_RATE(low)} to {_RATE(high)}"


NO_P99 = "p99: no load has one, because it needs 1,000 grants in a probe; a longer duration gives more"
"""A note on a curve whose probes are all too short."""


def lacks_p99(points: Collection[LoadPoint]) -> bool:
    """Whether `NO_P99` is true of the loads of all curves together."""
    return bool(points) and all(point.p99_us is None for point in points)


def curve_of(probes: pd.DataFrame, trials: pd.DataFrame, cell: str) -> list[LoadPoint]:
    """The loads of the curve of `cell`, the lowest first, with the confirmations of the limit as the last."""
    if probes.empty:
        return []
    limits = trials[(trials["cell"] == cell) & trials["limit_per_s"].notna()].set_index("trial")["limit_per_s"]
    own = probes[(probes["cell"] == cell) & probes["trial"].isin(limits.index) & (probes["shown"] != Shown.UNSAFE)]
    shares = own["rate_per_s"] / own["trial"].map(limits)
    curve = own[own["phase"] == Phase.CURVE]
    # The shares of the curve are exact but for rounding, and the confirmations of a limit have its very rate.
    at_limit = own[(own["phase"] == Phase.CONFIRM) & (shares.sub(1).abs() < 1e-6) & (own["shown"] == Shown.HELD)]
    points = [_point(share, rows) for share, rows in curve.groupby(shares.round(3))]
    return [*points, *([_point(1.0, at_limit)] if points and len(at_limit) else [])]


def knee_of(points: list[LoadPoint]) -> LoadPoint | None:
    """The load of the highest power; None where a load has no power, or where the knee is not below the limit."""
    powers = [point.power for point in points]
    known = [power for power in powers if power is not None]
    if len(known) < len(points) or len(points) < 3:
        return None
    knee = points[known.index(max(known))]
    return knee if knee.share < 1 else None


def limits_json(summary: pd.DataFrame, trials: pd.DataFrame, probes: pd.DataFrame) -> list[dict[str, Any]]:
    """Each cell with a search as `--json` prints it, in the order of `summary`; n/a as None."""
    found = []
    for row in summary.to_dict("records"):
        if recorded_mode(row.get("mode")).is_search:
            points = curve_of(probes, trials, str(row["cell"]))
            knee = knee_of(points)
            limit = {name: None if missing(row[name]) else row[name] for name in LIMIT_COLUMNS}
            rest = {"knee_per_s": None if knee is None else knee.rate_per_s, "curve": [asdict(one) for one in points]}
            found.append({"cell": row["cell"], **limit, **rest})
    return found


def _point(share: Any, rows: pd.DataFrame) -> LoadPoint:  # noqa: ANN401 - a key of a group
    def median(column: str) -> float | None:
        # A figure that most probes lack would be the median of the odd ones.
        return stats.median(rows[column]) if 2 * rows[column].notna().sum() > len(rows) else None

    return LoadPoint(
        share=float(share),
        rate_per_s=float(rows["rate_per_s"].median()),
        grants_per_s=median("grants_per_s"),
        p50_us=median("acquire_p50_us"),
        p99_us=median("acquire_p99_us"),
        system_us=median("mean_in_system_us"),
        probes=len(rows),
    )
