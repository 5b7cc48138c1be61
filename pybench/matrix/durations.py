"""Durations, leases and rates: parsed from text with a unit, and written in one canonical form.

Promises: what `format_*` writes, `parse_*` reads back to the same value. A number without a unit is never guessed at.
"""

from __future__ import annotations

import re
from fractions import Fraction

from pybench.notation import BadValue, format_number, nearest, parse_number, shown

US, MS, S, MINUTE, HOUR = 1_000, 1_000_000, 1_000_000_000, 60_000_000_000, 3_600_000_000_000
"""Nanoseconds."""
LONGEST_DURATION_NS = 24 * HOUR
LONGEST_LEASE_MS = 2**53
LOWEST_RATE_PER_S, HIGHEST_RATE_PER_S = 0.001, 10_000_000.0

_UNITS = {"ns": 1, "us": US, "µs": US, "μs": US, "ms": MS, "s": S, "m": MINUTE, "h": HOUR}
_SPELLED = {"sec": "s", "secs": "s", "second": "s", "seconds": "s", "min": "m", "mins": "m", "minute": "m"}
_SPELLED |= {"minutes": "m", "hour": "h", "hours": "h", "hr": "h", "msec": "ms", "millis": "ms", "usec": "us"}
_DURATION = re.compile(r"(?P<number>\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})\s*(?P<unit>[^\W\d]*)")


def parse_duration(value: object, *, longest_ns: int = LONGEST_DURATION_NS) -> int:
    """Nanoseconds of `0`, `250us`, `2ms`, `1.5s`, `2m`.

    Raises BadValue, with what to say instead, for a number without a unit, anything negative, not finite, finer than a
    nanosecond, or longer than `longest_ns`.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadValue(f"{shown(value)} is not a duration", hint="say for example 2s or 2ms")
    text = value.strip() if isinstance(value, str) else str(value)
    if re.fullmatch(r"-\s*[\d.].*", text):
        raise BadValue(f"{shown(value)} is negative", hint="a duration is 0 or longer")
    match = _DURATION.fullmatch(text)
    if match is None:
        raise BadValue(f"{shown(value)} is not a duration", hint="say for example 2s or 2ms")
    amount = Fraction(match["number"])
    if not match["unit"] and amount != 0:
        raise BadValue(f"{shown(value)} has no unit", hint=f"say {text}s or {text}ms")
    length = amount * _unit(match["unit"] or "s", match["number"], value)
    if length > longest_ns:
        raise BadValue(f"{shown(value)} is too long", hint=f"at most {format_duration(longest_ns)}")
    if length.denominator != 1:
        raise BadValue(f"{shown(value)} is finer than a nanosecond", hint="say whole nanoseconds")
    return int(length)


def format_duration(ns: int) -> str:
    """The canonical text: the largest unit that is reached, minutes and hours only when whole: `1ms`, `2.5s`, `2m`."""
    assert ns >= 0, "a duration is not negative"
    if ns == 0:
        return "0"
    for unit, name in ((HOUR, "h"), (MINUTE, "m")):
        if ns % unit == 0:
            return f"{ns // unit}{name}"
    for unit, name in ((S, "s"), (MS, "ms"), (US, "us")):
        if ns >= unit:
            whole, rest = divmod(ns, unit)
            fraction = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0")
            return f"{whole}.{fraction}{name}" if fraction else f"{whole}{name}"
    return f"{ns}ns"


def parse_lease(value: object) -> int:
    """Milliseconds of a lease: whole, from 1 ms to 2^53 ms. Raises BadValue as `parse_duration`."""
    ns = parse_duration(value, longest_ns=LONGEST_LEASE_MS * MS)
    if ns == 0:
        raise BadValue(f"{shown(value)} is no lease", hint="at least 1ms")
    if ns % MS:
        raise BadValue(f"{shown(value)} is not in whole milliseconds", hint=f"say {max(1, round(ns / MS))}ms")
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
        hint = f"say for example {_EXAMPLE}" if a_second is None else _said("rates are a second: ", a_second)
        raise BadValue(f"{shown(value)} is not a rate", hint=hint)
    if (rate := _scaled(number)) is not None and _plain(number) is None:
        raise BadValue(f"{shown(value)} is not a usable rate", hint=_said("say ", rate))
    try:
        return parse_number(number.strip(), lowest=LOWEST_RATE_PER_S, highest=HIGHEST_RATE_PER_S)
    except BadValue as problem:
        raise BadValue(
            f"{shown(value)} is not a usable rate",
            hint=(problem.hint or "say for example 5000") + "/s",
        ) from None


_LASTS_S = {"ms": 0.001, "min": 60, "minute": 60, "m": 60, "h": 3600, "hour": 3600, "d": 86_400, "day": 86_400}
_LASTS_S |= {"": 1, "s": 1, "sec": 1, "second": 1}
_EXAMPLE = "5000/s"
_SCALES = {"": 1, "k": 1_000, "M": 1_000_000}
_WRITTEN_OUT = re.compile(
    r"(?P<number>[\d.,_ ]+[kKM]?) ?(?:(?:r|q|t|req|requests?|op|ops|locks?|acquires?|grants?)? ?(?:per|p|a) ?"
    r"(?P<unit>s|sec|second|m|min|minute|h|hour|d|day)|hz|ops?|req|requests?)?",
    re.IGNORECASE,
)
"""`1k`, `100rps`, `60 rpm`, `30 per minute`."""


def _rate_meant(text: str) -> str:
    """What to say instead of a rate without a slash."""
    match = _WRITTEN_OUT.fullmatch(text)
    rate = None if match is None else _a_second(match["number"], match["unit"] or "s")
    return f"say for example {_EXAMPLE}" if rate is None else _said("say ", rate)


def _a_second(number: str, unit: str) -> float | None:
    """`number` of each `unit` as so many a second; None where that says nothing."""
    count, lasts_s = _scaled(number), _LASTS_S.get(unit.strip().lower())
    return None if count is None or lasts_s is None else count / lasts_s


def _scaled(number: str) -> float | None:
    """Of `1k`, `2.5M`, `1,000`; None: it is no number."""
    match = re.fullmatch(r"(\d+(?:[,_ ]\d{3})*(?:\.\d+)?) ?([kM]?)", number.strip().replace("K", "k"))
    return None if match is None else float(re.sub("[,_ ]", "", match[1])) * _SCALES[match[2]]


def _said(words: str, rate: float) -> str:
    """`words` and the rate; the nearest one where it is out of range."""
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
