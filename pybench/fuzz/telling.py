"""Tells the steps of a world as lines, and follows which clients wait for the lock and hold it.

Promises: the same world gives the same lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pybench.errors import InputError
from pybench.fuzz.shortest import sentence_of
from pybench.fuzz.time_line import HOLDS, IDLE, LATE, WAITS, Hold, Line, TimeLine
from pybench.numbers import format_ns, plural

if TYPE_CHECKING:
    from pybench.core_results import Violation
    from pybench.fuzz.setting import Part, Worlds

STEPS = {
    "waiting": " asks for the lock",
    "waiting-shared": " asks to share the lock",
    "queued": " has a place in the queue",
    "gave-up": " gives up",
    "lost": " learns that it has lost the lock",
    "hung-up": " closes its session",
    "stopped": " stops its work without a release",
    "died": " dies with all that it knew",
    "released": " sends its release",
    "denied": " is told that it did not hold the lock",
}
"""The steps of clients that need no further word."""


def time_line(worlds: Worlds, seed: int, part: Part, command: str) -> TimeLine:
    """The time line of a part of a world, up to what went wrong.

    Raises InputError when the part names a client or a fault that the world does not have.
    """
    replay = worlds.core.replay(seed, part.spec())
    _must_have("--only-clients", "client", part.clients, replay["drawn_clients"])
    _must_have("--only-faults", "fault", part.faults, replay["drawn_faults"])
    found = replay["found"]
    line = TimeLine(
        lock=worlds.lock,
        seed=seed,
        clients=replay["clients"],
        servers=replay["servers"],
        ends_ns=replay["ended_ns"] if found is None else found["at_ns"],
        replay=replay,
        sentence=None if found is None else sentence_of(found),
        is_broken=found is not None and found["broken"],
        command=command,
    )
    teller = _Teller(line, None if found is None else found["violation"])
    line.lines = list(teller.lines())
    line.holds = teller.holds
    return line


def _must_have(option: str, what: str, numbers: tuple[int, ...] | None, drawn: int) -> None:
    """Raise InputError for the number of a client or of a fault that the seed did not draw."""
    for number in numbers or ():
        if number >= drawn:
            hint = f"it has {plural(drawn, what)}, numbered from 0" if drawn else f"it has no {what}s"
            raise InputError(f"{option}: this world has no {what} {number}", hint=hint)


class _Teller:
    """Tells the steps in order, and follows the state of each client."""

    def __init__(self, line: TimeLine, wrong: Violation | None) -> None:
        self.replay, self.clients, self.ends_ns = line.replay, line.clients, line.ends_ns
        self.wrong = None if wrong is None else (line.ends_ns, wrong["second_client"])
        """When and to whom the grant came that went wrong."""
        self.states = dict.fromkeys(line.clients, IDLE)
        self.until: dict[int, int] = {}
        """Until when each holder believes."""
        self.granted: dict[int, int] = {}
        self.late: dict[int, int] = {}
        """Since when each client has worked on past its belief."""
        self.holds: list[Hold] = []

    def lines(self) -> Iterator[Line]:
        """All lines up to the end."""
        seen: set[tuple[object, ...]] = set()
        for at_ns, tell, step in self._steps():
            if at_ns > self.ends_ns:
                break
            # A client that takes several keys is heard once for each of them.
            if step in seen:
                continue
            seen.add(step)
            yield from self._ends_of_leases(at_ns)
            told = tell(step)
            yield told
            if told.is_wrong:
                break
        yield from self._ends_of_leases(self.ends_ns)
        for client in list(self.granted):
            self._end(client, self.ends_ns)

    def _steps(self) -> Iterator[tuple[int, Callable[[Any], Line], tuple[object, ...]]]:
        """All steps by their times; at the same time a fault is told before what it does."""
        steps: list[tuple[int, int, Callable[[Any], Line], tuple[object, ...]]] = []
        steps += [(fault[1], 0, self._fault, fault) for fault in self.replay["faults"]]
        steps += [(served[0], 1, self._served, served) for served in self.replay["served"]]
        steps += [(heard[0], 2, self._heard, heard) for heard in self.replay["heard"]]
        return ((at, tell, step) for at, _, tell, step in sorted(steps, key=lambda step: step[:2]))

    def _line(self, at_ns: int, text: str, **more: Any) -> Line:  # noqa: ANN401 - the fields of a line
        return Line(at_ns, "".join(self.states[client] for client in self.clients), text, **more)

    def _ends_of_leases(self, now: int) -> Iterator[Line]:
        """The leases that ended before `now` while their holders worked on."""
        ended = sorted((until, client) for client, until in self.until.items() if until <= now)
        for until, client in ended:
            if self.states[client] == HOLDS:
                self._be_late(client, until)
                yield self._line(until, f"client {client}: its lease ends, and it works on", client=client)

    def _fault(self, fault: tuple[int, int, str, int | None, int | None, int]) -> Line:
        number, at_ns, kind, client, server, length_ns = fault
        text = f"FAULT {number}, {kind}: {_fault_text(kind, client, server, length_ns)}"
        return self._line(at_ns, text, client=client, server=server, is_fault=True)

    def _served(self, served: tuple[int, int, int, str, str]) -> Line:
        at_ns, client, server, command, reply = served
        return self._line(at_ns, f"server {server}: {command} of client {client} -> {reply}", server=server)

    def _heard(self, heard: tuple[int, str, int, int | None, int | None]) -> Line:
        at_ns, step, client, until, fence = heard
        text = self._step_text(at_ns, step, client, until, fence)
        is_wrong = step == "granted" and (at_ns, client) == self.wrong
        return self._line(at_ns, f"client {client}{text}", client=client, is_wrong=is_wrong)

    def _step_text(self, at_ns: int, step: str, client: int, until: int | None, fence: int | None) -> str:
        match step:
            case "waiting" | "waiting-shared":
                self.states[client] = WAITS
            case "granted":
                # Holders of a semaphore, and readers, may be several.
                is_wrong = (at_ns, client) == self.wrong
                others = [other for other, state in self.states.items() if state == HOLDS and is_wrong]
                self.states[client] = HOLDS
                self.granted[client] = at_ns
                self._believe(client, until)
                numbered = "" if fence is None else f", fence {fence}"
                return f" is granted the lock{_until_text(until)}{numbered}{_held_text(others)}"
            case "renewed":
                self._believe(client, until)
                return f" has its lease renewed{_until_text(until)}"
            case "lost":
                if self.states[client] == HOLDS:
                    self._be_late(client, at_ns)
            case "released" | "stopped" | "died" | "gave-up":
                self._end(client, at_ns)
                self.states[client] = IDLE
        return STEPS[step]

    def _believe(self, client: int, until: int | None) -> None:
        self.until.pop(client, None)
        if until is not None:
            self.until[client] = until

    def _be_late(self, client: int, at_ns: int) -> None:
        self.states[client] = LATE
        self.late[client] = at_ns
        self.until.pop(client, None)

    def _end(self, client: int, at_ns: int) -> None:
        granted = self.granted.pop(client, None)
        self.until.pop(client, None)
        believed = self.late.pop(client, at_ns)
        if granted is not None:
            self.holds.append(Hold(client, granted, believed, at_ns))


def _held_text(others: list[int]) -> str:
    if not others:
        return ""
    *first, last = others
    if not first:
        return f", while client {last} still holds it"
    return f", while clients {', '.join(map(str, first))} and {last} still hold it"


def _until_text(until: int | None) -> str:
    return "" if until is None else f" until {until / 1e6:,.6f}"


def _fault_text(kind: str, client: int | None, server: int | None, length_ns: int) -> str:
    length = format_ns(length_ns)
    match kind:
        case "delay":
            return f"messages to and from server {server} take up to {format_ns(length_ns / 2)}, for {length}"
        case "cut":
            return f"client {client} loses its connections to server {server}"
        case "pause":
            return f"client {client} stops for {length}"
        case "client-kill":
            return f"the database ends the session of client {client}"
        case "kill":
            return f"server {server} replies to nobody for {length}"
        case "restart":
            return f"server {server} restarts with its data"
        case "forget":
            return f"server {server} restarts without its data"
        case "failover":
            return f"a replica takes the place of server {server} without its last {length}"
        case _:
            return f"the clock of server {server} jumps {length} ahead"
