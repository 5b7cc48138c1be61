"""The values of the axis `guard`: the shared resource that each work reads and writes while its client holds the lock.

none             a hold is only time
counter          read a number, think, write the next one
stock(N)         read what is left of N, think, take one if there was one
transfer(N)      read two accounts that began with N, think, write both: some moves from the larger to the smaller
fenced-write     as counter, with the fence of the lock: the resource refuses a lower fence than any before
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pybench.notation import BadValue, parse_call, parse_choice, parse_count, shown

Kind = Literal["none", "counter", "stock", "transfer", "fenced-write"]

MOST = 1_000_000_000
"""The largest stock, and the largest balance of an account."""
_FORMS = {
    "none": "none",
    "counter": "counter",
    "stock": "stock(100)",
    "transfer": "transfer(100)",
    "fenced-write": "fenced-write",
}
GUARD: dict[str, Any] = {
    "type": "string",
    "pattern": r"^\s*(none|counter|fenced-write|(stock|transfer)\s*\(.*\))\s*$",
    "examples": ["none", "counter", "stock(100)", "stock(100, constraint=on)", "transfer(100)", "fenced-write"],
}
GUARD_ON: dict[str, Any] = {"type": "string", "examples": ["lock", "redis", "postgres"]}


@dataclass(frozen=True, slots=True)
class Guard:
    """The kind of the resource. `initial` is the value of each key before a trial."""

    kind: Kind = "none"
    initial: int = 0
    constraint: bool = False
    """Whether the table of a stock has a constraint that refuses values below 0."""

    @classmethod
    def parse(cls, value: object) -> Guard:
        """Read `none`, `counter`, `stock(100)`, `stock(100, constraint=on)`, `transfer(100)` or `fenced-write`.

        Raises BadValue.
        """
        forms = f"use one of {', '.join(_FORMS.values())}"
        if not isinstance(value, str):
            raise BadValue(f"{shown(value)} is not a guard", hint=forms)
        call = parse_call(value)
        match call.name, call.positional:
            case ("none" | "counter" | "fenced-write") as kind, () if not call.named:
                return cls(kind)
            case "transfer", (amount,) if not call.named:
                return cls("transfer", parse_count(amount, highest=MOST))
            case "stock", (amount,) if set(call.named) <= {"constraint"}:
                chosen = parse_choice(call.named.get("constraint", "off"), ("on", "off"))
                return cls("stock", parse_count(amount, highest=MOST), chosen == "on")
        known = _FORMS.get(call.name)
        raise BadValue(f"{shown(value)} is not a guard", hint=f"use for example {known}" if known else forms)

    def __bool__(self) -> bool:
        """Whether there is a resource at all."""
        return self.kind != "none"

    @property
    def text(self) -> str:
        """The canonical form."""
        if self.kind not in ("stock", "transfer"):
            return self.kind
        return f"{self.kind}({self.initial}{', constraint=on' if self.constraint else ''})"

    @property
    def decides(self) -> bool:
        """Whether it refuses late writers, so that it judges the works alone, whatever their holders believed."""
        return self.kind == "fenced-write"

    @property
    def keys(self) -> int:
        """How many keys one work concerns."""
        return 2 if self.kind == "transfer" else 1


NO_GUARD = Guard()


def recorded_guard(text: object) -> Guard:
    """The guard in the column of a record; no guard in records of older versions, and where the text is not known."""
    try:
        return Guard.parse(text)
    except BadValue:
        return NO_GUARD
