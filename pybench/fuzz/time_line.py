"""The time line of one world: what clients, servers and faults did, line by line, and which clients held the lock."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pybench.numbers import format_ns, plural

if TYPE_CHECKING:
    from pybench.core_results import WorldReplay

WIDTH = 80
TIME = 13
"""The width of the column of times, in ms with all digits."""
IDLE, WAITS, HOLDS, LATE = ".", "?", "#", "!"
"""The state of a client: it does not want the lock, waits for it, holds it, or works on although the lock has ended."""
LEGEND = f"{WAITS} waits, {HOLDS} holds the lock, {LATE} still works although its lock has ended, {IDLE} neither"


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened."""

    at_ns: int
    states: str
    """The state of each client after it, in the order of `TimeLine.clients`."""
    text: str
    client: int | None = None
    server: int | None = None
    is_fault: bool = False
    is_wrong: bool = False
    """Whether this grant is the one that went wrong."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A grant as its client saw it; times in ns."""

    client: int
    granted: int
    believed: int
    """When the client stopped to believe: its release, or the end of its lease."""
    ended: int
    """When its work ended; the end of the time line if that came first."""


@dataclass(slots=True)
class TimeLine:
    """The whole world."""

    lock: str
    seed: int
    clients: list[int]
    servers: int
    ends_ns: int
    replay: WorldReplay
    sentence: str | None
    """What went wrong."""
    is_broken: bool
    command: str
    lines: list[Line] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)

    @property
    def setting(self) -> str:
        """The world in one sentence."""
        ttl = self.replay["ttl_ns"]
        lease = "" if ttl is None else f", ttl {format_ns(ttl)}"
        return (
            f"{plural(len(self.clients), 'client')}, {plural(self.servers, 'server')}{lease}, "
            f"hold up to {format_ns(self.replay['hold_ns'])}, {plural(len(self.replay['faults']), 'fault')}"
        )

    @property
    def verdict(self) -> str:
        """Whether the lock kept its promise."""
        if self.sentence is None:
            return "nothing went wrong"
        return "broken promise" if self.is_broken else "outside its promise"

    def text(self) -> str:
        """As text of 80 columns."""
        rows = [row for line in self.lines for row in _rows(line)]
        titles = "".join(str(client % 10) for client in self.clients)
        verdict = f"{self.verdict}: {self.sentence}" if self.sentence else self.verdict
        return "\n".join(
            [
                *textwrap.wrap(f"{self.lock}, seed {self.seed}: {self.setting}", WIDTH),
                *textwrap.wrap(LEGEND, WIDTH),
                "",
                f"{'ms':>{TIME}}  {titles}",
                *rows,
                "",
                *textwrap.wrap(verdict, WIDTH),
            ]
        )

    def to_json(self) -> dict[str, object]:
        """For scripts."""
        return {
            "strategy": self.lock,
            "seed": self.seed,
            "replay": self.command,
            "broken": self.is_broken,
            "sentence": self.sentence,
            "lines": [
                {"at_ns": line.at_ns, "states": line.states, "client": line.client, "server": line.server}
                | {"text": line.text}
                for line in self.lines
            ],
        }


def _rows(line: Line) -> list[str]:
    """The line, and further ones where it is too long for one."""
    first = f"{line.at_ns / 1e6:>{TIME},.6f}  {line.states}  "
    return textwrap.wrap(line.text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first))
