"""A distribution of lengths with given quantiles, such as `quantiles(p50=50ms, p99=2s)`.

The logarithm of the length is piecewise linear in the standard normal deviate of the quantile. Below the first and
above the last given quantile the line continues with the same slope, so two quantiles give a log-normal distribution.
Promises: the distribution has exactly the given lengths at the given quantiles. Does not do: drawing; the core does.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from statistics import NormalDist

from pybench.matrix.durations import LONGEST_DURATION_NS, format_duration, parse_duration
from pybench.notation import BadValue, format_number, shown

MOST_POINTS = 8
EXAMPLE = "quantiles(p50=50ms, p99=2s)"
_STANDARD = NormalDist()
_NAME = re.compile(r"p(?P<whole>\d{1,2})(?:\.(?P<decimals>\d{1,4}))?|p(?P<nines>9\d{2,5})")

Points = Sequence[tuple[float, float]]
"""Pairs of percent and nanoseconds, both ascending."""


def parse_points(named: Mapping[str, object]) -> list[tuple[float, float]]:
    """Read `p50=50ms`, `p99=2s`, `p999=5s`. Raises BadValue."""
    if not 2 <= len(named) <= MOST_POINTS:
        raise BadValue(f"quantiles takes 2 to {MOST_POINTS} quantiles", hint=f"use {EXAMPLE}")
    points = sorted((_percent(name), _length(name, value)) for name, value in named.items())
    for (low, shorter), (high, longer) in itertools.pairwise(points):
        if low == high:
            raise BadValue(f"{_name(low)} is given twice", hint=f"use {EXAMPLE}")
        if shorter >= longer:
            raise BadValue(
                f"the length at {_name(high)}, {format_duration(int(longer))}, is not above that at {_name(low)}, "
                f"{format_duration(int(shorter))}",
                hint=f"a higher quantile needs a longer length: {EXAMPLE}",
            )
    return points


def text_of(points: Points) -> str:
    """The canonical text of the distribution."""
    return f"quantiles({', '.join(f'{_name(percent)}={format_duration(int(ns))}' for percent, ns in points)})"


def deviates(points: Points) -> list[tuple[float, int]]:
    """The standard normal deviate and the length of each quantile, in the form of the core."""
    return [(_STANDARD.inv_cdf(percent / 100), int(ns)) for percent, ns in points]


def length_at(points: Points, q: float) -> float:
    """The length in nanoseconds below which the share `q` of all lengths lies, 0 < q < 1."""
    z = _STANDARD.inv_cdf(q)
    known = deviates(points)
    (z0, low), (z1, high) = next((pair for pair in itertools.pairwise(known) if z <= pair[1][0]), known[-2:])
    exponent = math.log(low) + (z - z0) * math.log(high / low) / (z1 - z0)
    return min(math.exp(min(exponent, 700.0)), float(2**63))


def share_above(points: Points, ns: float) -> float:
    """The share of the lengths that are longer than `ns`."""
    if ns <= 0:
        return 1.0
    known = deviates(points)
    (z0, low), (z1, high) = next((pair for pair in itertools.pairwise(known) if ns <= pair[1][1]), known[-2:])
    return 1 - _STANDARD.cdf(z0 + math.log(ns / low) * (z1 - z0) / math.log(high / low))


def _percent(name: str) -> float:
    match = _NAME.fullmatch(name)
    percent = 0.0
    if match and match["nines"]:
        percent = float(f"{match['nines'][:2]}.{match['nines'][2:]}")
    elif match:
        percent = float(f"{match['whole']}.{match['decimals'] or 0}")
    if not percent:
        raise BadValue(
            f"{shown(name)} is not a quantile between 0 and 100 percent", hint="name it as p50, p99, p99.9 or p999"
        )
    return percent


def _name(percent: float) -> str:
    text = format_number(percent)
    return f"p{text.replace('.', '')}" if percent >= 90 else f"p{text}"


def _length(name: str, value: object) -> float:
    ns = parse_duration(value)
    if not 0 < ns <= LONGEST_DURATION_NS:
        raise BadValue(f"{name}={shown(value)} is out of range", hint="use a length above 0")
    return float(ns)
