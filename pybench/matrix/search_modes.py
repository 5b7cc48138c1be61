"""The values of the axis `mode`: trials at the load of the cell, or a search for the rate that the lock sustains.

    measure
    saturate
    saturate(start=500/s, within=0.02)
    curve

`saturate` finds the limit. `curve` finds it, too, and then measures the latency at some shares of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pybench.matrix.durations import format_rate, parse_rate
from pybench.notation import BadValue, format_number, nearest, parse_call, parse_number, shown, suggestion

Kind = Literal["measure", "saturate", "curve"]

_KINDS: tuple[Kind, ...] = ("measure", "saturate", "curve")
_FIELDS = ("start", "within")
WITHIN = 0.05
"""How far the lowest rate that failed may lie above the highest that held at the end of a search, as a share."""
CURVE_SHARES = (0.3, 0.6, 0.8, 0.95)
"""The shares of the limit at which `curve` measures the latency."""


@dataclass(frozen=True, slots=True)
class SearchMode:
    """What a cell measures. `start_per_s` None: the plan chooses the first rate of the search."""

    kind: Kind = "measure"
    start_per_s: float | None = None
    within: float = WITHIN

    @property
    def is_search(self) -> bool:
        """Whether the cell searches for its limit, and so has no rate of its own."""
        return self.kind != "measure"

    @property
    def shares(self) -> tuple[float, ...]:
        """The shares of the limit at which the latency is measured after the search."""
        return CURVE_SHARES if self.kind == "curve" else ()

    @classmethod
    def parse(cls, value: object) -> SearchMode:
        """Read `measure`, `saturate` or `curve`; a search takes `start=500/s` and `within=0.02`. Raises BadValue."""
        if not isinstance(value, str) or not value.strip():
            raise BadValue(f"{shown(value)} is not a mode", hint=f"use one of {', '.join(_KINDS)}")
        call = parse_call(value)
        kind = next((one for one in _KINDS if one == call.name), None)
        if kind is None:
            near = nearest(call.name, _KINDS)
            hint = f"did you mean {near}?" if near else f"use one of {', '.join(_KINDS)}"
            raise BadValue(f"{shown(call.name)} is not a mode", hint=hint)
        if call.positional:
            hint = f"use {kind}(start=500/s)"
            raise BadValue(f"{shown(call.positional[0])} has no name in {shown(value)}", hint=hint)
        if kind == "measure" and call.named:
            raise BadValue("measure takes no arguments", hint="use saturate(start=500/s)")
        for name in call.named:
            if name not in _FIELDS:
                raise BadValue(f"the mode {kind} has no field {shown(name)}", hint=suggestion(name, _FIELDS))
        start = parse_rate(call.named["start"]) if "start" in call.named else None
        within = parse_number(call.named.get("within", str(WITHIN)), lowest=0.005, highest=0.5)
        return cls(kind, start, within)

    @property
    def text(self) -> str:
        """The canonical form: the kind, and the fields off their defaults."""
        given = [
            *([f"start={format_rate(self.start_per_s)}"] if self.start_per_s is not None else []),
            *([f"within={format_number(self.within)}"] if self.within != WITHIN else []),
        ]
        return f"{self.kind}({', '.join(given)})" if given else self.kind


MEASURE = SearchMode()


def recorded_mode(value: object) -> SearchMode:
    """The mode of a text of a record; `measure` where it has none, or a form that this version does not know."""
    try:
        return SearchMode.parse(value)
    except BadValue:
        return MEASURE
