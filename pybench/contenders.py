"""Safe locks at one load, and which of them is ahead: by safe grants a second, in an open loop by response.

In an open loop every lock that keeps up grants what arrives, so grants a second tell nothing: there the p99 of the
response decides, and a lock that grants less than 98 % of the rate is behind all that keep up.
A lock that lets several have a key at a time grants more because it may: it contends only with locks that let in as
many, and where others let in fewer it stands apart. What is judged by its effects keeps nobody out at all.
Promises: what lies inside of the intervals, or has none, is not told apart.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pybench.durations import parse_rate
from pybench.notation import BadValue
from pybench.numbers import missing
from pybench.stats import Interval, median_interval, number, told_apart
from pybench.strategies import CATALOGUE, Judge, parse_strategy
from pybench.verdicts import Verdict

if TYPE_CHECKING:
    import pandas as pd

KEEPS_UP = 0.98
RESPONSE = "acquire_p99_us"


@dataclass(frozen=True, slots=True)
class Response:
    """A lock in an open loop: its p99 in microseconds, None with too few grants, and whether it kept up with the rate.

    `interval` is over trials; None with one trial.
    """

    p99_us: float | None
    interval: Interval | None
    kept_up: bool


@dataclass(frozen=True, slots=True)
class Contender:
    """One safe cell."""

    cell: str
    strategy: str
    safe_grants_per_s: float
    interval: Interval | None
    """Of the median over trials; None with one trial."""
    trials: int
    response: Response | None = None
    """In an open loop only."""

    def is_told_apart_from(self, other: Contender) -> bool:
        """Whether the two differ in what decides, and not by chance."""
        mine, others = self.interval, other.interval
        if self.response and other.response and decided_by_response(self, other):
            mine, others = self.response.interval, other.response.interval
        return told_apart(mine, others, trials=min(self.trials, other.trials))


def contenders(rows: Iterable[Mapping[Hashable, Any]], trials: pd.DataFrame | None = None) -> dict[str, Contender]:
    """The safe cells among `rows` of the summary that are compared, by their id.

    Without `trials` a p99 has no interval.
    """
    safe, responses = _safe(rows), _response_intervals(trials)
    fewest = min(map(_crowd, safe), default=1)
    found = {}
    for row in safe:
        if _crowd(row) > fewest:
            continue
        cell, grants_per_s = str(row["cell"]), float(row["safe_grants_per_s"])
        low, high = number(row["grants_per_s_low"]), number(row["grants_per_s_high"])
        interval = Interval(low, high) if low is not None and high is not None else None
        offered = offered_rate(row)
        response = None
        if offered is not None:
            p99 = number(row[RESPONSE])
            response = Response(
                p99, responses.get(cell) if p99 is not None else None, grants_per_s >= KEEPS_UP * offered
            )
        found[cell] = Contender(cell, str(row["strategy"]), grants_per_s, interval, int(row["trials"]), response)
    return found


def apart(rows: Iterable[Mapping[Any, Any]]) -> dict[str, float]:
    """The safe cells that no other is compared with, by their id: how many may have one of their keys at a time.

    `math.inf` where nobody is kept out.
    """
    crowds = {str(row["cell"]): _crowd(row) for row in _safe(rows)}
    fewest = min(crowds.values(), default=1)
    return {cell: most for cell, most in crowds.items() if most > fewest}


def why_apart(crowd: float) -> str:
    """Why a lock that so many may have at a time is compared with none that admits fewer, as a clause."""
    return "nobody is kept out" if math.isinf(crowd) else "more may hold a key at a time"


def decided_by_response(*both: Contender) -> bool:
    """Whether all of them keep up with the rate of an open loop."""
    return all(one.response is not None and one.response.kept_up for one in both)


def in_order(of_one_load: Iterable[Contender]) -> list[Contender]:
    """The one that is ahead first."""
    return sorted(of_one_load, key=_standing)


def first_ones(ordered: Sequence[Contender]) -> list[Contender]:
    """The first, and those that it cannot be told apart from."""
    if not ordered:
        return []
    first, *others = ordered
    return [first, *(other for other in others if not first.is_told_apart_from(other))]


def offered_rate(row: Mapping[Any, Any]) -> float | None:
    """The arrivals a second of a row of the summary; None in a closed loop."""
    rate = row.get("rate")
    # A closed loop beside open ones has no rate, in words.
    return parse_rate(rate) if isinstance(rate, str) and "/" in rate else None


def _standing(contender: Contender) -> tuple[bool, float]:
    response = contender.response
    if response is None or not response.kept_up:
        return response is not None, -contender.safe_grants_per_s
    # Too few grants for a p99 stand behind those that have one.
    return False, float("inf") if response.p99_us is None else response.p99_us


def _response_intervals(trials: pd.DataFrame | None) -> dict[str, Interval | None]:
    if trials is None or "rate" not in trials:
        return {}
    complete = trials[trials["status"] == "complete"]
    return {
        str(cell): median_interval(None if missing(value) else float(value) for value in rows[RESPONSE])
        for cell, rows in complete.groupby("cell", sort=False)
        if offered_rate(rows.iloc[0].to_dict()) is not None
    }


def _safe(rows: Iterable[Mapping[Any, Any]]) -> list[Mapping[Any, Any]]:
    # Without a grant a second there is nothing to be ahead of.
    return [row for row in rows if row["verdict"] == Verdict.SAFE and number(row["safe_grants_per_s"])]


def _crowd(row: Mapping[Any, Any]) -> float:
    """How many may be at work on one key at a time."""
    # A record may name a strategy, or an argument, that this version does not know: it is taken for a plain lock.
    known = CATALOGUE.get(str(row["strategy"]))
    if known is None:
        return 1
    if known.judged_by is Judge.EFFECTS:
        return math.inf
    args = "" if missing(row["args"]) else str(row["args"])
    try:
        return known.permits(parse_strategy(f"{known.name}({args})")[1] if args else ())
    except BadValue:
        return known.permits(())


def lock_name(row: Mapping[Any, Any]) -> str:
    """A strategy with its arguments, as a matrix says it; old records may lack the arguments."""
    args = row.get("args")
    return str(row["strategy"]) if missing(args) or not args else f"{row['strategy']}({args})"


def lock_labels(rows: Iterable[Mapping[Any, Any]]) -> dict[str, str]:
    """Cell -> the name of its lock, with its backend where the run has that lock on several."""
    listed = list(rows)
    backends: dict[str, set[str]] = {}
    for row in listed:
        backends.setdefault(lock_name(row), set()).add(str(row.get("backend")))
    labels: dict[str, str] = {}
    for row in listed:
        name = lock_name(row)
        labels[str(row["cell"])] = f"{name} on {row['backend']}" if len(backends[name]) > 1 else name
    return labels
