"""Durations, leases and rates: parsed from text with a unit, and written in one canonical form.

Promises: `parse_*` reads the text of `format_*` back to the same value. A number without a unit is an error.
"""

from __future__ import annotations

import re
from fractions import Fraction

from pybench.notation import BadValue, format_number, nearest, parse_number, shown

US, MS, S, MINUTE, HOUR = 1_000, 1_000_000, 1_000_000_000, 60_000_000_000, 3_600_000_000_000
"""The units in nanoseconds."""
LONGEST_DURATION_NS = 24 * HOUR
LONGEST_LEASE_MS = 2**53
LOWEST_RATE_PER_S, HIGHEST_RATE_PER_S = 0.001, 10_000_000.0

_UNITS = {"ns": 1, "us": US, "µs": US, "μs": US, "ms": MS, "s": S, "m": MINUTE, "h": HOUR}
_SPELLED = {"sec": "s", "secs": "s", "second": "s", "seconds": "s", "min": "m", "mins": "m", "minute": "m"}
_SPELLED |= {"minutes": "m", "hour": "h", "hours": "h", "hr": "h", "msec": "ms", "millis": "ms", "usec": "us"}
_DURATION = re.compile(r"(?P<number>\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})\s*(?P<unit>[^\W\d]*)")


def parse_duration(value: object, *, longest_ns: int = LONGEST_DURATION_NS) -> int:
    """Nanoseconds of `0`, `250us`, `2ms`, `1.5s`, `2m`.

    Raises BadValue with a correction as the hint: for a number without a unit, and for a value that is negative, not
    finite, finer than a nanosecond, or longer than `longest_ns`.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadValue(f"{shown(value)} is not a duration", hint="use for example 2s or 2ms")
    text = value.strip() if isinstance(value, str) else str(value)
    if re.fullmatch(r"-\s*[\d.].*", text):
        raise BadValue(f"{shown(value)} is negative", hint="a duration is 0 or longer")
    match = _DURATION.fullmatch(text)
    if match is None:
        raise BadValue(f"{shown(value)} is not a duration", hint="use for example 2s or 2ms")
    amount = Fraction(match["number"])
    if not match["unit"] and amount != 0:
        raise BadValue(f"{shown(value)} has no unit", hint=f"use {text}s or {text}ms")
    length = amount * _unit(match["unit"] or "s", match["number"], value)
    if length > longest_ns:
        raise BadValue(f"{shown(value)} is too long", hint=f"at most {format_duration(longest_ns)}")
    if length.denominator != 1:
        raise BadValue(f"{shown(value)} is finer than a nanosecond", hint="use whole nanoseconds")
    return int(length)


def format_duration(ns: int) -> str:
    """The canonical text in the largest fitting unit, minutes and hours only for whole numbers: `1ms`, `2.5s`, `2m`."""
    assert ns >= 0, "a duration is not negative"
    if ns == 0:
        return "0"
    for unit, name in ((HOUR, "h"), (MINUTE, "m")):
        if ns % unit == 0:
            return f"{ns // unit}{name}"
    for unit, name in ((S, "s"), (MS, "ms"), (US, "us")):
        if ns >= unit:
            whole, remainder = divmod(ns, unit)
            fraction = f"{remainder:0{len(str(unit)) - 1}d}".rstrip("0")
            return f"{whole}.{fraction}{name}" if fraction else f"{whole}{name}"
    return f"{ns}ns"


def parse_lease(value: object) -> int:
    """Milliseconds of a lease: whole, from 1 ms to 2^53 ms. Raises BadValue as `parse_duration`."""
    ns = parse_duration(value, longest_ns=LONGEST_LEASE_MS * MS)
    if ns == 0:
        raise BadValue(f"{shown(value)} is not a lease", hint="at least 1ms")
    if ns % MS:
        raise BadValue(f"{shown(value)} is not in whole milliseconds", hint=f"use {max(1, round(ns / MS))}ms")
    return ns // MS


def format_lease(ms: int) -> str:
    """The canonical text of a lease, as `format_duration`."""
    return format_duration(ms * MS)


def parse_rate(value: object) -> float:
    """Operations a second of `5000/s`. Raises BadValue without `/s`, and outside of 0.001 .. 10,000,000."""
    text = value.strip() if isinstance(value, str) else shown(value)
    number, slash, unit = text.partition("/")
    if not slash:
        raise BadValue(f"{shown(value)} is not a rate", hint=_rate_meant(text))
    if unit.strip() != "s":
        a_second = _a_second(number, unit)
        hint = f"use for example {_EXAMPLE}" if a_second is None else _hint_of("rates are per second: ", a_second)
        raise BadValue(f"{shown(value)} is not a rate", hint=hint)
    if (rate := _scaled(number)) is not None and _plain(number) is None:
        raise BadValue(f"{shown(value)} is not a usable rate", hint=_hint_of("use ", rate))
    try:
        return parse_number(number.strip(), lowest=LOWEST_RATE_PER_S, highest=HIGHEST_RATE_PER_S)
    except BadValue as problem:
        raise BadValue(
            f"{shown(value)} is not a usable rate",
            hint=(problem.hint or "use for example 5000") + "/s",
        ) from None


_UNIT_S = {"ms": 0.001, "min": 60, "minute": 60, "m": 60, "h": 3600, "hour": 3600, "d": 86_400, "day": 86_400}
_UNIT_S |= {"": 1, "s": 1, "sec": 1, "second": 1}
_EXAMPLE = "5000/s"
_SCALES = {"": 1, "k": 1_000, "M": 1_000_000}
_WRITTEN_OUT = re.compile(
    r"(?P<number>[\d.,_ ]+[kKM]?) ?(?:(?:r|q|t|req|requests?|op|ops|locks?|acquires?|grants?)? ?(?:per|p|a) ?"
    r"(?P<unit>s|sec|second|m|min|minute|h|hour|d|day)|hz|ops?|req|requests?)?",
    re.IGNORECASE,
)
"""`1k`, `100rps`, `60 rpm`, `30 per minute`."""


def _rate_meant(text: str) -> str:
    """The hint for a rate without a slash."""
    match = _WRITTEN_OUT.fullmatch(text)
    rate = None if match is None else _a_second(match["number"], match["unit"] or "s")
    return f"use for example {_EXAMPLE}" if rate is None else _hint_of("use ", rate)


def _a_second(number: str, unit: str) -> float | None:
    """`number` per `unit` as a rate per second; None where one of them is unknown."""
    count, unit_s = _scaled(number), _UNIT_S.get(unit.strip().lower())
    return None if count is None or unit_s is None else count / unit_s


def _scaled(number: str) -> float | None:
    """The number in `1k`, `2.5M` or `1,000`; None where `number` is not a number."""
    match = re.fullmatch(r"(\d+(?:[,_ ]\d{3})*(?:\.\d+)?) ?([kM]?)", number.strip().replace("K", "k"))
    return None if match is None else float(re.sub("[,_ ]", "", match[1])) * _SCALES[match[2]]


def _hint_of(words: str, rate: float) -> str:
    """`words` and the rate, or the nearest bound where the rate is out of range."""
    if rate > HIGHEST_RATE_PER_S:
        return f"at most {format_rate(HIGHEST_RATE_PER_S)}"
    if rate < LOWEST_RATE_PER_S:
        return f"at least {format_rate(LOWEST_RATE_PER_S)}"
    return words + format_rate(rate if rate.is_integer() else float(f"{rate:.4g}"))


def format_rate(rate_per_s: float) -> str:
    """The canonical text: `5000/s`, `0.5/s`."""
    return f"{format_number(rate_per_s)}/s"


def _unit(name: str, number: str, value: object) -> int:
    if name in _UNITS:
        return _UNITS[name]
    meant = _SPELLED.get(name.lower()) or nearest(name, _UNITS)
    hint = f"did you mean {number}{meant}?" if meant else "units are ns, us, ms, s, m, h"
    raise BadValue(f"{shown(value)} has the unknown unit {shown(name)}", hint=hint)


def _plain(text: str) -> str | None:
    return text.strip() if re.fullmatch(r"\s*\d+(\.\d+)?\s*", text) else None
