"""The values of the axis `rtt`: the round-trip time that pybench adds between the clients and each server.

A list of a matrix has several values of an axis, each a cell of its own. So the times of several servers are one value
in the notation of all other values: `per-server(0.5ms, 1ms, 20ms)`, in the order in which the lock numbers its servers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pybench.matrix.durations import MS
from pybench.matrix.values import Distribution
from pybench.notation import BadValue, parse_call, shown, split_list

PER_SERVER = "per-server"
MOST_SERVERS = 32
"""As many servers as the largest quorum has."""
EXAMPLE = f"{PER_SERVER}(0.5ms, 1ms, 20ms)"


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """One time for all servers, or at least two times, one for each server."""

    times: tuple[Distribution, ...]

    @classmethod
    def parse(cls, value: object) -> RoundTrip:
        """Read any form of `Distribution`, or `per-server(0.5ms, exp(1ms), 20ms)`. Raises BadValue."""
        if isinstance(value, list | tuple):
            hint = f"one value for several servers is {PER_SERVER}({_inside(value)})"
            raise BadValue("a list in a list is not a round-trip time", hint=hint)
        if not isinstance(value, str) or not value.strip().startswith(PER_SERVER):
            return cls((Distribution.parse(value),))
        if value.count("(") != value.count(")"):
            # YAML splits a list in brackets at every comma, also inside of parentheses.
            hint = f'quote the value in a list in brackets: ["{EXAMPLE}"]'
            raise BadValue(f"the parentheses of {shown(value)} do not match", hint=hint)
        call = parse_call(value)
        if call.name != PER_SERVER or call.named:
            raise BadValue(f"{shown(value)} is not a round-trip time", hint=f"use for example {EXAMPLE}")
        if len(call.positional) < 2:
            alone = call.positional[0] if call.positional else "1ms"
            hint = f"one time for all servers is written {alone}"
            raise BadValue(f"{shown(value)} names fewer than two servers", hint=hint)
        if len(call.positional) > MOST_SERVERS:
            raise BadValue(f"{shown(value)} names {len(call.positional)} servers", hint=f"at most {MOST_SERVERS}")
        return cls(tuple(Distribution.parse(text) for text in call.positional))

    @property
    def text(self) -> str:
        """The canonical form."""
        first, *others = self.times
        return first.text if not others else f"{PER_SERVER}({', '.join(time.text for time in self.times)})"

    @property
    def is_zero(self) -> bool:
        """Whether nothing is added to any server."""
        return all(time == NOTHING for time in self.times)

    @property
    def servers_named(self) -> int | None:
        """How many servers the value names; None for one time for all servers."""
        return len(self.times) if len(self.times) > 1 else None

    def of(self, servers: int) -> tuple[Distribution, ...]:
        """The time of each of the first `servers` servers, of which the value names enough."""
        return self.times * servers if len(self.times) == 1 else self.times[:servers]

    def mean_ms(self, servers: int) -> float:
        """The mean over the draws and over the first `servers` servers, in milliseconds."""
        times = self.of(servers)
        return sum(time.mean() for time in times) / len(times) / MS

    def of_majority(self, servers: int, length: Callable[[Distribution], float]) -> float:
        """The `length` of a time, such as its mean, of the server whose reply completes a majority."""
        return sorted(length(time) for time in self.of(servers))[servers // 2]


NOTHING = Distribution("fixed", (0,))
NO_ROUND_TRIP = RoundTrip((NOTHING,))


def milliseconds(text: str) -> float | None:
    """The place of a value on the axis of a chart; None for a value that is not one length for all servers."""
    time, *others = RoundTrip.parse(text).times
    return None if others or time.kind != "fixed" else time.parameters[0] / MS


def _inside(values: list[object] | tuple[object, ...]) -> str:
    """The elements of a list as the arguments of `per-server`, or an example where they are no times."""
    try:
        given = ", ".join(str(value) for value in values)
        return given if values and all(Distribution.parse(part) for part in split_list(given)) else "0.5ms, 1ms, 20ms"
    except BadValue:
        return "0.5ms, 1ms, 20ms"
