"""The parsed values of a matrix: distributions, key choices, connections and retry policies.

Each type has `.text`, the canonical form, `.to_core()`, the form of the core, and `parse`, which reads the text back to
an equal value. Durations, leases and rates are plain numbers after parsing; see `pybench.matrix.durations`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, cast

from pybench.matrix import quantiles
from pybench.matrix.durations import MS, S, format_duration, parse_duration
from pybench.notation import (
    BadValue,
    Call,
    format_number,
    nearest,
    parse_call,
    parse_count,
    parse_number,
    shortened,
    shown,
    suggestion,
)

if TYPE_CHECKING:
    from pybench.core_specs import ConnectionsSpec, DistributionSpec, KeyChoiceSpec, RetrySpec

RetryKind = Literal["none", "fixed", "exponential", "full-jitter", "equal-jitter", "decorrelated-jitter"]

_DISTRIBUTIONS = {
    "fixed": "2ms",
    "exp": "exp(2ms)",
    "lognormal": "lognormal(2ms, 0.8)",
    "uniform": "uniform(1ms, 3ms)",
    "quantiles": quantiles.EXAMPLE,
}
_KEY_CHOICES = {"uniform": "uniform", "zipf": "zipf(1.1)", "single": "single"}
_CONNECTIONS = {"shared": "shared(4)", "per-client": "per-client"}
_MOST_CONNECTIONS = 10_000
_SLICES = 2_000
"""How many slices the mean of a distribution by quantiles is computed from."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """`fixed(value_ns)`, `exp(mean_ns)`, `lognormal(median_ns, sigma)`, `uniform(low_ns, high_ns)` or `quantiles(...)`.

    The parameters of `quantiles` alternate between percent and nanoseconds, both ascending.
    """

    kind: Literal["fixed", "exp", "lognormal", "uniform", "quantiles"]
    parameters: tuple[float, ...]

    @classmethod
    def parse(cls, value: object) -> Distribution:
        """Read `0`, `2ms`, `exp(2ms)`, `lognormal(2ms, 0.8)`, `uniform(1ms, 3ms)` or `quantiles(p50=50ms, p99=2s)`.

        Raises BadValue.
        """
        if not isinstance(value, str) or not value.strip()[:1].isalpha():
            return cls("fixed", (parse_duration(value),))
        call = parse_call(value)
        match call.name, call.positional:
            case "exp", (mean,) if not call.named:
                return cls("exp", (_positive(mean),))
            case "lognormal", (median, sigma) if not call.named:
                return cls("lognormal", (_positive(median), parse_number(sigma, lowest=0.001, highest=10)))
            case "uniform", (low, high) if not call.named:
                bounds = parse_duration(low), parse_duration(high)
                if bounds[0] >= bounds[1]:
                    raise BadValue(f"{shown(value)} is an empty range", hint="put the lower bound first")
                return cls("uniform", bounds)
            case "quantiles", () if call.named:
                points = quantiles.parse_points(call.named)
                return cls("quantiles", tuple(number for point in points for number in point))
        raise _unknown_form("a distribution", value, call, _DISTRIBUTIONS)

    @property
    def text(self) -> str:
        """The canonical form."""
        first, *rest = self.parameters
        match self.kind:
            case "fixed":
                return format_duration(int(first))
            case "exp":
                return f"exp({format_duration(int(first))})"
            case "lognormal":
                return f"lognormal({format_duration(int(first))}, {format_number(rest[0])})"
            case "uniform":
                return f"uniform({format_duration(int(first))}, {format_duration(int(rest[0]))})"
            case "quantiles":
                return quantiles.text_of(self._points)

    def median(self) -> int:
        """The median of the draws in nanoseconds."""
        return round(self.quantile(0.5))

    def quantile(self, q: float) -> float:
        """The length in nanoseconds below which the share `q` of the draws lies, 0 < q < 1."""
        assert 0 < q < 1, "a quantile lies between 0 and 1"
        first, *rest = self.parameters
        match self.kind:
            case "fixed":
                return first
            case "exp":
                return -first * math.log1p(-q)
            case "lognormal":
                return first * math.exp(min(rest[0] * NormalDist().inv_cdf(q), 700.0))
            case "uniform":
                return first + q * (rest[0] - first)
            case "quantiles":
                return quantiles.length_at(self._points, q)

    def share_above(self, ns: float) -> float:
        """The share of the draws that are longer than `ns`."""
        first, *rest = self.parameters
        match self.kind:
            case "fixed":
                return float(first > ns)
            case "exp":
                return 1.0 if ns <= 0 else math.exp(-ns / first)
            case "lognormal":
                return 1.0 if ns <= 0 else NormalDist().cdf(-math.log(ns / first) / rest[0])
            case "uniform":
                return min(max((rest[0] - ns) / (rest[0] - first), 0.0), 1.0)
            case "quantiles":
                return quantiles.share_above(self._points, ns)

    @property
    def _points(self) -> list[tuple[float, float]]:
        return list(zip(self.parameters[::2], self.parameters[1::2], strict=True))

    def mean(self) -> float:
        """The mean of the draws in nanoseconds."""
        first, *rest = self.parameters
        match self.kind:
            case "fixed" | "exp":
                return first
            case "uniform":
                return (first + rest[0]) / 2
            case "lognormal":
                return first * math.exp(rest[0] ** 2 / 2)
            case "quantiles":
                # The average over slices of equal share, each taken at its middle.
                return sum(self.quantile((place + 0.5) / _SLICES) for place in range(_SLICES)) / _SLICES

    def to_core(self) -> DistributionSpec:
        """The form of the core."""
        first, *rest = self.parameters
        match self.kind:
            case "fixed":
                return {"kind": "fixed", "value_ns": int(first)}
            case "exp":
                return {"kind": "exp", "mean_ns": int(first)}
            case "lognormal":
                return {"kind": "lognormal", "median_ns": int(first), "sigma": float(rest[0])}
            case "uniform":
                return {"kind": "uniform", "low_ns": int(first), "high_ns": int(rest[0])}
            case "quantiles":
                return {"kind": "quantiles", "points": quantiles.deviates(self._points)}


@dataclass(frozen=True, slots=True)
class KeyChoice:
    """How clients choose keys. `s` is the exponent of `zipf`, None for the other kinds."""

    kind: Literal["uniform", "zipf", "single"]
    s: float | None = None

    @classmethod
    def parse(cls, value: object) -> KeyChoice:
        """Read `uniform`, `zipf(1.1)` or `single`. Raises BadValue."""
        call = _call(value, "a key choice", _KEY_CHOICES)
        match call.name, call.positional:
            case "uniform", () if not call.named:
                return cls("uniform")
            case "single", () if not call.named:
                return cls("single")
            case "zipf", (s,) if not call.named:
                return cls("zipf", parse_number(s, lowest=0.001, highest=10))
        raise _unknown_form("a key choice", value, call, _KEY_CHOICES)

    @property
    def text(self) -> str:
        """The canonical form."""
        return self.kind if self.s is None else f"{self.kind}({format_number(self.s)})"

    def to_core(self) -> KeyChoiceSpec:
        """The form of the core."""
        return {"kind": self.kind} if self.s is None else {"kind": self.kind, "s": self.s}


@dataclass(frozen=True, slots=True)
class Connections:
    """How clients connect. `count` is the number per server for `shared`, at most one for each client."""

    kind: Literal["shared", "per-client"]
    count: int | None = None

    @classmethod
    def parse(cls, value: object) -> Connections:
        """Read `shared(4)` or `per-client`. Raises BadValue."""
        call = _call(value, "a kind of connections", _CONNECTIONS)
        match call.name, call.positional:
            case "shared", (count,) if not call.named:
                return cls("shared", parse_count(count, highest=_MOST_CONNECTIONS))
            case "per-client", () if not call.named:
                return cls("per-client")
        raise _unknown_form("a kind of connections", value, call, _CONNECTIONS)

    @property
    def text(self) -> str:
        """The canonical form."""
        return self.kind if self.count is None else f"{self.kind}({self.count})"

    def used_by(self, clients: int) -> int:
        """How many connections `clients` clients open to each server: at most one for each client."""
        return clients if self.count is None else min(self.count, clients)

    def to_core(self, clients: int) -> ConnectionsSpec:
        """The form of the core for `clients` clients."""
        if self.count is None:
            return {"kind": "per-client"}
        return {"kind": "shared", "count": self.used_by(clients)}


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry policy. Without `max_attempts` (None), only `max_wait_ns` limits the attempts."""

    kind: RetryKind
    base_ns: int
    factor: float
    cap_ns: int
    max_attempts: int | None
    max_wait_ns: int

    @classmethod
    def parse(cls, value: object) -> Retry:
        """Read `full-jitter`, `fixed(base=1ms, max_wait=5s)`, `none`, or a mapping with `kind`. Raises BadValue.

        A field that the kind does not use is refused, since it would have no effect.
        """
        if isinstance(value, Mapping):
            fields = dict(value)
            kind = fields.pop("kind", "full-jitter")
        else:
            call = _call(value, "a retry policy", {name: name for name in _FIELDS})
            if call.positional:
                hint = f"name the fields: {call.name}(base=2ms)"
                raise BadValue(f"{shown(call.positional[0])} has no name in {shown(value)}", hint=hint)
            kind, fields = call.name, dict(call.named)
        if not isinstance(kind, str) or kind not in _FIELDS:
            at = ("kind",) if isinstance(value, Mapping) and "kind" in value else ()
            hint = suggestion(kind if isinstance(kind, str) else "", _FIELDS)
            raise BadValue(f"{shown(kind)} is not a retry policy", hint=hint, at=at)
        return _retry(cast("RetryKind", kind), fields)

    @property
    def text(self) -> str:
        """The canonical form: the kind, and the fields off their defaults."""
        default = _retry(self.kind, {})
        texts = {
            "base": format_duration(self.base_ns) if self.base_ns != default.base_ns else None,
            "factor": format_number(self.factor) if self.factor != default.factor else None,
            "cap": format_duration(self.cap_ns) if self.cap_ns != default.cap_ns else None,
            "max_attempts": str(self.max_attempts) if self.max_attempts != default.max_attempts else None,
            "max_wait": format_duration(self.max_wait_ns) if self.max_wait_ns != default.max_wait_ns else None,
        }
        given = ", ".join(f"{name}={texts[name]}" for name in _FIELDS[self.kind] if texts[name] is not None)
        return f"{self.kind}({given})" if given else self.kind

    def to_core(self) -> RetrySpec:
        """The form of the core."""
        return {
            "kind": self.kind,
            "base_ns": self.base_ns,
            "factor": self.factor,
            "cap_ns": self.cap_ns,
            "max_attempts": self.max_attempts,
            "max_wait_ns": self.max_wait_ns,
        }


def _positive(value: object) -> int:
    ns = parse_duration(value)
    if ns == 0:
        raise BadValue(f"{shown(value)} is out of range", hint="use a duration above 0")
    return ns


def _call(value: object, what: str, forms: Mapping[str, str]) -> Call:
    if not isinstance(value, str):
        raise BadValue(f"{shown(value)} is not {what}", hint=f"use one of {', '.join(forms.values())}")
    return parse_call(value)


def _unknown_form(what: str, value: object, call: Call, forms: Mapping[str, str]) -> BadValue:
    """The error for an unknown name, or for a known name with other arguments."""
    near = nearest(call.name, forms)
    hint = f"use for example {forms[near]}" if near else f"use one of {', '.join(forms.values())}"
    return BadValue(f"{shown(value)} is not {what}", hint=hint)


_GROWING = ("base", "factor", "cap", "max_attempts", "max_wait")
_FIELDS: dict[str, tuple[str, ...]] = {
    "none": (),
    "fixed": ("base", "max_attempts", "max_wait"),
    "exponential": _GROWING,
    "full-jitter": _GROWING,
    "equal-jitter": _GROWING,
    "decorrelated-jitter": ("base", "cap", "max_attempts", "max_wait"),
}
"""The fields that each kind of retry uses."""


def _retry(kind: RetryKind, fields: Mapping[str, object]) -> Retry:
    known = _FIELDS[kind]
    given: dict[str, int | float] = {}
    for name, value in fields.items():
        if name not in known:
            hint = suggestion(str(name), known) if known else "none makes one attempt and has no fields"
            raise BadValue(f"the retry policy {kind} has no field {shortened(str(name))}", hint=hint, at=(str(name),))
        try:
            given[name] = _RETRY_READERS[name](value)
        except BadValue as problem:
            raise BadValue(f"{name}: {problem.message}", hint=problem.hint, at=(name,)) from None
    if kind == "none":
        return Retry("none", 0, 1.0, 0, 1, 10 * S)
    base_ns, cap_ns = int(given.get("base", 1 * MS)), int(given.get("cap", 50 * MS))
    if kind != "fixed" and base_ns == 0:
        raise BadValue(f"{kind} with a base of 0 never pauses", hint="use fixed(base=0)", at=("base",))
    if "cap" in known and base_ns > cap_ns:
        message = f"the base of {format_duration(base_ns)} is longer than the cap of {format_duration(cap_ns)}"
        raise BadValue(message, hint=f"use cap={format_duration(base_ns)} or more", at=("base",))
    attempts = int(given["max_attempts"]) if "max_attempts" in given else None
    return Retry(kind, base_ns, float(given.get("factor", 2.0)), cap_ns, attempts, int(given.get("max_wait", 10 * S)))


_RETRY_READERS: dict[str, Callable[[object], int | float]] = {
    "base": parse_duration,
    "factor": lambda value: parse_number(value, lowest=1, highest=1_000),
    "cap": _positive,
    "max_attempts": lambda value: parse_count(value, highest=2**31),
    "max_wait": _positive,
}
