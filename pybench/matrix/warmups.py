"""The values of `warmup`: a fixed time, or until the figures are steady.

500ms
steady
steady(at_most=5s)
"""

from __future__ import annotations

from dataclasses import dataclass

from pybench.matrix.durations import MS, S, format_duration, parse_duration
from pybench.notation import BadValue, parse_call, shown, suggestion

LONGEST_NS = 10 * S
SHORTEST_NS = 3 * S
"""The rule for steadiness needs 20 steps of 100 ms, and some more where the first ones still change."""
MOST_NS = 300 * S
"""As many steps as the time line keeps of 100 ms each."""
USUAL_NS = 2_200 * MS
"""About how long a warm-up until steady takes, for the time of a plan."""
_EXAMPLE = "steady(at_most=10s)"


@dataclass(frozen=True, slots=True)
class Warmup:
    """How long clients work before the window opens: `longest_ns`, or less if the figures are steady before."""

    longest_ns: int
    until_steady: bool = False

    @classmethod
    def parse(cls, value: object) -> Warmup:
        """Read `500ms`, `0`, `steady` or `steady(at_most=5s)`. Raises BadValue."""
        if not isinstance(value, str) or not value.strip()[:1].isalpha():
            return cls(parse_duration(value))
        call = parse_call(value)
        if call.name != "steady" or call.positional:
            raise BadValue(f"{shown(value)} is not a warm-up", hint=f"use for example 500ms or {_EXAMPLE}")
        for name in call.named:
            if name != "at_most":
                raise BadValue(f"steady has no field {shown(name)}", hint=suggestion(name, ["at_most"]))
        longest_ns = parse_duration(call.named["at_most"]) if "at_most" in call.named else LONGEST_NS
        if not SHORTEST_NS <= longest_ns <= MOST_NS:
            hint = f"from {format_duration(SHORTEST_NS)} to {format_duration(MOST_NS)}"
            raise BadValue(f"{shown(value)} is out of range", hint=hint)
        return cls(longest_ns // (100 * MS) * (100 * MS), until_steady=True)

    @property
    def usual_ns(self) -> int:
        """About how long it takes."""
        return min(self.longest_ns, USUAL_NS) if self.until_steady else self.longest_ns

    @property
    def text(self) -> str:
        """The canonical form."""
        if not self.until_steady:
            return format_duration(self.longest_ns)
        return "steady" if self.longest_ns == LONGEST_NS else f"steady(at_most={format_duration(self.longest_ns)})"

    def shortened_to(self, fixed_ns: int, steady_ns: int) -> Warmup:
        """The warm-up within `fixed_ns`, or within `steady_ns` if it waits for steady figures."""
        return Warmup(min(self.longest_ns, steady_ns if self.until_steady else fixed_ns), self.until_steady)
