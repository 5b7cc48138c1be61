"""Texts of numbers for people: pure functions from a number to text.

A figure shows three significant digits and its unit; None and NaN are "n/a". Spaces are plain; the HTML report makes
them non-breaking.
"""

from __future__ import annotations

import math

NOT_AVAILABLE = "n/a"
SHOWN_DIGITS = 3

_COUNT_UNITS = ((1e9, " G"), (1e6, " M"), (1e3, " k"))
_TIME_UNITS = ((3.6e9, " h"), (6e7, " min"), (1e6, " s"), (1e3, " ms"), (1.0, " µs"))


def missing(value: object) -> bool:
    """Whether `value` is n/a: None, NaN or pandas' NA."""
    if value is None:
        return True
    try:
        return math.isnan(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return not isinstance(value, str)


def significant(value: float, digits: int = SHOWN_DIGITS) -> str:
    """`value` to `digits` significant digits, without an exponent and trailing zeros: 12.3, 0.0457, 120, 2,030."""
    places = _places(value, digits)
    text = f"{round(value, places):,.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _rounded(value: float) -> float:
    """`value` rounded to the shown digits, by which the unit is chosen: 999,950 is 1 M and not 1,000 k."""
    return round(value, _places(value, SHOWN_DIGITS))


def _places(value: float, digits: int) -> int:
    return digits - 1 - math.floor(math.log10(abs(value))) if value else 0


def format_count(value: float | None) -> str:
    """A plain number: 7, 0.42, 12.3 k, 4.1 M."""
    if value is None or missing(value):
        return NOT_AVAILABLE
    rounded = _rounded(value)
    for size, unit in _COUNT_UNITS:
        if abs(rounded) >= size:
            return significant(value / size) + unit
    return significant(value)


def format_exact(value: float | None) -> str:
    """A whole number in full: 12,345."""
    return NOT_AVAILABLE if value is None or missing(value) else f"{round(value):,}"


def format_plain(value: float | None) -> str:
    """A figure without a unit: whole numbers in full, others to three digits: 12,345, 0.997."""
    if value is None or missing(value):
        return NOT_AVAILABLE
    return f"{value:,.0f}" if float(value).is_integer() else significant(value)


def format_rate(value: float | None) -> str:
    """Grants a second: 12.3 k/s."""
    return NOT_AVAILABLE if value is None or missing(value) else f"{format_count(value)}/s"


def format_us(value: float | None) -> str:
    """Microseconds in a suitable unit: 850 ns, 85 µs, 1.2 ms, 2.5 s, 3.1 min."""
    if value is None or missing(value):
        return NOT_AVAILABLE
    rounded = _rounded(value)
    for size, unit in _TIME_UNITS:
        # Minutes are used from two minutes on, and hours from two hours on.
        if abs(rounded) >= size * (2 if size > 1e6 else 1):
            return significant(value / size) + unit
    return "0" if value == 0 else significant(value * 1e3) + " ns"


def format_ns(value: float | None) -> str:
    """Nanoseconds in a suitable unit."""
    return NOT_AVAILABLE if value is None or missing(value) else format_us(value / 1e3)


def format_ratio(value: float | None) -> str:
    """A ratio or an index: 0.997, 1.53, 12.4, 1.2 k."""
    if value is None or missing(value):
        return NOT_AVAILABLE
    if value == 0:
        return "0"
    if abs(value) < 0.9995:
        return f"{value:.3f}"
    return f"{value:.2f}" if abs(value) < 9.995 else format_count(value)


def format_percent(share: float | None) -> str:
    """A share as per cent: 3.1 %. A share below 1 is never shown as 100 %: 99.99 %, >99.99 %."""
    if share is None or missing(share):
        return NOT_AVAILABLE
    text = significant(share * 100) if share else "0"
    if text == "100" and share < 1:
        exact = f"{share * 100:.2f}"
        text = ">99.99" if exact == "100.00" else exact
    return f"{text} %"


def format_points(points: float) -> str:
    """Percentage points with one decimal, and a zero without a sign: 9.8, 0."""
    text = f"{points:.1f}"
    return "0" if text in ("0.0", "-0.0") else text


def format_bytes(count: float | None) -> str:
    """Bytes in a suitable unit: 412 B, 1.5 KiB, 128 MiB; less than one byte is `<1 B`."""
    if count is None or missing(count):
        return NOT_AVAILABLE
    if 0 < abs(count) < 1:
        return "<1 B"
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{significant(count)} {unit}"
        count /= 1024
    return f"{significant(count)} GiB"


def format_seconds(value: float | None) -> str:
    """Seconds in a suitable unit."""
    return NOT_AVAILABLE if value is None or missing(value) else format_us(value * 1e6)


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """A whole number with its noun: 1 client, 1,000 keys."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"
