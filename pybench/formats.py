"""How the figures of a column are written: one unit rule and one precision for all cells of the column.

`Column.format` names the format, and the terminal's table, the report's tables and `report.md` all write with it.
Trailing zeros stay, so that every figure of a column shows the same precision.
"""

from __future__ import annotations

import math
from enum import Enum, auto

from pybench.numbers import NOT_AVAILABLE, missing

_TIME_UNITS = ((3.6e9, "h"), (6e7, "min"), (1e6, "s"), (1e3, "ms"), (1.0, "µs"), (1e-3, "ns"))
_BYTE_UNITS = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))


class Format(Enum):
    """The precision and the unit of a column's figures."""

    TEXT = auto()
    """No number: words, JSON, yes or no."""
    COUNT = auto()
    """A whole number: 12,345."""
    RATE = auto()
    """Three significant digits, written in full: 153,000, 21.4, 0.333."""
    TIME_US = auto()
    """Microseconds, to three significant digits in the unit that suits: 48.0 µs, 1.20 ms, 650 ms."""
    TIME_MS = auto()
    """Milliseconds, written like `TIME_US`."""
    TIME_S = auto()
    """Seconds, written like `TIME_US`."""
    BYTES = auto()
    """Three significant digits in the unit that suits: 412 B, 1.50 KiB."""
    RATIO = auto()
    """Two decimals: 1.00, 12.40."""
    INDEX = auto()
    """Three decimals: 0.125, 1.000. Only what is exactly 1 is written as 1.000."""
    SHARE = auto()
    """A share of one as per cent, with one decimal: 3.1 %. Only all of it is 100 %, and only nothing is 0 %."""
    PER_MILLION = auto()
    """A rate per million as per cent, to two significant digits: 0.20 %, 0.0015 %."""

    def text(self, value: float | None) -> str:
        """`value` in this format; n/a for None and NaN."""
        if value is None or missing(value):
            return NOT_AVAILABLE
        match self:
            case Format.TIME_US | Format.TIME_MS | Format.TIME_S:
                return _in_units(value * _MICROSECONDS[self], _TIME_UNITS, "0")
            case Format.BYTES:
                return _in_units(value, _BYTE_UNITS, "0 B")
            case Format.RATE:
                return digits(value, 3)
            case Format.RATIO:
                return f"{value:,.2f}"
            case Format.INDEX:
                return _unrounded(value, 3)
            case Format.SHARE:
                return f"{_unrounded(value * 100, 1, whole=100.0)} %"
            case Format.PER_MILLION:
                return f"{digits(value / 1e4, 2)} %"
            case Format.TEXT | Format.COUNT:
                return f"{round(value):,}"


_MICROSECONDS = {Format.TIME_US: 1.0, Format.TIME_MS: 1e3, Format.TIME_S: 1e6}


def digits(value: float, count: int) -> str:
    """`value` to `count` significant digits, trailing zeros kept: 48.0, 1.20, 153,000."""
    if not value:
        return "0"
    places = count - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    # 99.96 becomes 100.0, which has a digit too many.
    places = count - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(places, 0)}f}"


def _in_units(value: float, units: tuple[tuple[float, str], ...], zero: str) -> str:
    if not value:
        return zero
    shown = float(digits(value, 3).replace(",", ""))
    # Up to two minutes seconds are easier to read, and up to two hours minutes.
    fits = (pair for pair in units if abs(shown) >= pair[0] * (2 if pair[1] in ("min", "h") else 1))
    size, unit = next(fits, units[-1])
    return f"{digits(value / size, 3)} {unit}"


def _unrounded(value: float, places: int, *, whole: float = 1.0) -> str:
    """`value` with `places` decimals; what only rounds to `whole`, or to 0, is marked with `<` or `>`."""
    step = 10.0**-places
    if 0 < value < step / 2:
        return f"<{step:.{places}f}"
    if whole - step / 2 <= value < whole:
        return f">{whole - step:.{places}f}"
    return f"{value:.{places}f}"
