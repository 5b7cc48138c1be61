"""The values of the axis `faults`: what is done to the servers of a cell while its window is open.

    kill redis[0] at 1s for 500ms, pause redis[2] at 3s for 200ms

`at` counts from the opening of the window. `for` is how long a fault lasts; a fault of a server that may last without
`for` lasts to the end of the trial. `redis[0]` is the first Redis server of the lock, by the lock's own numbering.

Does not do: refusing faults that a cell has no server for, see `planning.fault_rules`; carrying faults out, see
`running.faults`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from pybench.matrix.durations import format_duration, parse_duration
from pybench.notation import BadValue, nearest, parse_call, parse_count, shown, split_list, suggestion
from pybench.strategies import ServerKind

EXAMPLE = "kill redis[0] at 1s for 500ms"
MOST_FAULTS = 100
MOST_SERVERS = 1_000

_NOTHING = "none"
_FORMS = f'use for example "{EXAMPLE}"'
_FAULT = re.compile(r"(?P<do>\S.*?)\s+(?P<target>[^\s()]+)\s+at\s+(?P<at>.+?)(?:\s+for\s+(?P<for>.+))?", re.DOTALL)
_TARGET = re.compile(r"(?P<kind>[A-Za-z]+)\s*(?:\[\s*(?P<index>\d{1,9})\s*\])?")


class Lasting(Enum):
    """Whether a fault has a length."""

    MOMENT = auto()
    """It happens at one moment: `for` is refused."""
    AT_ONCE = auto()
    """Without `for` it is over at once."""
    TO_THE_END = auto()
    """Without `for` it lasts to the end of the trial."""
    GIVEN = auto()
    """`for` is needed."""


class Does(Enum):
    """What a fault does to its server, as far as promises depend on it."""

    NOTHING = auto()
    """The server goes on, with its data and its connections."""
    CUTS = auto()
    """The server closes connections, and goes on with its data."""
    STOPS = auto()
    """The server does not reply for a while. It keeps data and connections."""
    ENDS = auto()
    """The server ends, and with it all connections. What it keeps depends on its settings and on the fault."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault."""

    meaning: str
    """What is done, as a sentence."""
    lasting: Lasting
    does: Does
    targets: tuple[ServerKind, ...] = tuple(ServerKind)
    data: tuple[str, ...] = ()
    """The values of its argument `data`, the default first; empty for a kind without this argument."""


KINDS = {
    "kill": Kind("The server is killed (SIGKILL), and started again.", Lasting.TO_THE_END, Does.ENDS),
    "restart": Kind(
        "The server is shut down in good order, and started again with its data, or without.",
        Lasting.AT_ONCE,
        Does.ENDS,
        data=("keep", "lose"),
    ),
    "pause": Kind("The server is stopped (SIGSTOP), and goes on later (SIGCONT).", Lasting.TO_THE_END, Does.STOPS),
    "slow": Kind("A script keeps the server busy.", Lasting.GIVEN, Does.STOPS, (ServerKind.REDIS,)),
    "client-kill": Kind("The server closes the connections of all clients.", Lasting.MOMENT, Does.CUTS),
    "script-flush": Kind("The server forgets all scripts.", Lasting.MOMENT, Does.NOTHING, (ServerKind.REDIS,)),
}
"""By the name that a matrix uses."""


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault. Times in nanoseconds, `at_ns` from the opening of the window."""

    at_ns: int
    do: str
    on: ServerKind
    server: int
    """The place of its server among the servers of this kind, from 0."""
    for_ns: int | None = None
    """None where the fault lasts to the end of the trial; 0 for a moment."""
    data: str | None = None
    """`lose` or `keep`; None for a kind without this argument."""

    @property
    def kind(self) -> Kind:
        """Its kind."""
        return KINDS[self.do]

    @property
    def until_ns(self) -> int | None:
        """When it is over; None where it lasts to the end of the trial."""
        return None if self.for_ns is None else self.at_ns + self.for_ns

    @property
    def target(self) -> str:
        """Its server, as a matrix names it."""
        return f"{self.on.value}[{self.server}]"

    @property
    def name(self) -> str:
        """What is done, and to which server: `kill redis[0]`."""
        shown_data = f"(data={self.data})" if self.kind.data and self.data != self.kind.data[0] else ""
        return f"{self.do}{shown_data} {self.target}"

    @property
    def text(self) -> str:
        """The canonical form."""
        usual = {Lasting.TO_THE_END: None, Lasting.MOMENT: 0, Lasting.AT_ONCE: 0}.get(self.kind.lasting, -1)
        length = "" if self.for_ns is None or self.for_ns == usual else f" for {format_duration(self.for_ns)}"
        return f"{self.name} at {format_duration(self.at_ns)}{length}"

    @classmethod
    def parse(cls, value: object) -> Fault:
        """Read `kill redis[0] at 1s for 500ms`, or a mapping with `do`, `target`, `at`, and `for` or `data`.

        Raises BadValue.
        """
        if isinstance(value, Mapping):
            return _of_fields({str(name): one for name, one in value.items()})
        match = _FAULT.fullmatch(value.strip()) if isinstance(value, str) else None
        if match is None:
            raise BadValue(f"{shown(value)} is not a fault", hint=f"{_FORMS}: what, which server, when, how long")
        try:
            return _of_fields({name: text for name, text in match.groupdict().items() if text is not None})
        except BadValue as problem:
            raise BadValue(problem.message, hint=problem.hint) from None


@dataclass(frozen=True, slots=True)
class Faults:
    """The plan of a cell: its faults, in the order of time. Without any, the servers are left alone."""

    faults: tuple[Fault, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.faults)

    @classmethod
    def parse(cls, value: object) -> Faults:
        """Read `none`, faults separated by commas, or a list of faults as texts or mappings. Raises BadValue."""
        if isinstance(value, str):
            if value.strip() == _NOTHING:
                return cls()
            listed: list[object] = [*split_list(value)]
        else:
            listed = list(value) if isinstance(value, list | tuple) else [value]
        if not listed:
            raise BadValue(f"{shown(value)} is not a plan of faults", hint=f"{_FORMS}, or none")
        if len(listed) > MOST_FAULTS:
            raise BadValue(f"{len(listed)} faults are too many", hint=f"at most {MOST_FAULTS}")
        found = []
        for place, one in enumerate(listed):
            try:
                found.append(Fault.parse(one))
            except BadValue as problem:
                at = (place, *problem.at) if isinstance(value, list | tuple) else problem.at
                raise BadValue(problem.message, hint=problem.hint, at=at) from None
        ordered = sorted(found, key=lambda fault: (fault.at_ns, fault.target, fault.do))
        _require_apart(ordered)
        return cls(tuple(ordered))

    @property
    def text(self) -> str:
        """The canonical form."""
        return ", ".join(fault.text for fault in self.faults) or _NOTHING

    @property
    def names(self) -> list[str]:
        """What is done to which server, each once."""
        return list(dict.fromkeys(fault.name for fault in self.faults))

    @property
    def end_ns(self) -> int:
        """When the last fault with a known end is over, or the last one begins; 0 without faults."""
        return max((fault.until_ns or fault.at_ns for fault in self.faults), default=0)


NO_FAULTS = Faults()


def recorded_faults(value: object) -> Faults:
    """The plan of a text of a record; none where it has none, or a form that this version does not know."""
    try:
        return Faults.parse(value) if isinstance(value, str) else NO_FAULTS
    except BadValue:
        return NO_FAULTS


def merged_texts(texts: Iterable[str]) -> list[str]:
    """The values of repeated options `--fault`: all faults together are one plan, and `none` is a plan of its own."""
    given = [text.strip() for text in texts]
    together = ", ".join(text for text in given if text != _NOTHING)
    return [*([_NOTHING] if _NOTHING in given else []), *([together] if together else [])]


_KEYS = ("at", "do", "target", "for", "data")


def _of_fields(fields: Mapping[str, Any]) -> Fault:
    for name in fields:
        if name not in _KEYS:
            raise BadValue(f"a fault has no field {shown(name)}", hint=suggestion(name, _KEYS), at=(name,))
    for name in ("do", "target", "at"):
        if name not in fields:
            raise BadValue(f"a fault needs {name}", hint="for example {at: 1s, do: kill, target: 'redis[0]'}")
    do, data = _do(fields)
    kind = KINDS[do]
    on, server = _reading("target", fields, _target)
    if on not in kind.targets:
        suited = " or ".join(f"{one.value}[0]" for one in kind.targets)
        raise BadValue(f"{do} is not for {on.value}", hint=f"it is for {suited}", at=("target",))
    at_ns = _reading("at", fields, parse_duration)
    return Fault(at_ns, do, on, server, _length(do, kind, fields), _data(do, kind, on, data))


def _reading(name: str, fields: Mapping[str, Any], parse: Any) -> Any:  # noqa: ANN401 - a parser of any field
    try:
        return parse(fields[name])
    except BadValue as problem:
        raise BadValue(f"{name}: {problem.message}", hint=problem.hint, at=(name,)) from None


def _do(fields: Mapping[str, Any]) -> tuple[str, object]:
    """The name of the kind, and the value of `data` in its parentheses or in a field of its own."""
    value = fields["do"]
    if not isinstance(value, str):
        raise BadValue(f"{shown(value)} is not a kind of fault", hint=f"known: {', '.join(KINDS)}", at=("do",))
    call = _reading("do", fields, parse_call)
    if call.name not in KINDS:
        near = nearest(call.name, KINDS)
        hint = f"did you mean {near}?" if near else f"known: {', '.join(KINDS)}"
        raise BadValue(f"{shown(call.name)} is not a kind of fault", hint=hint, at=("do",))
    others = [*call.positional, *(name for name in call.named if name != "data")]
    if others:
        raise BadValue(f"{call.name} has no argument {shown(others[0])}", hint="use restart(data=lose)", at=("do",))
    if "data" in fields and "data" in call.named:
        raise BadValue("data is given twice", hint="keep one of them", at=("data",))
    return call.name, call.named.get("data", fields.get("data"))


def _target(value: object) -> tuple[ServerKind, int]:
    match = _TARGET.fullmatch(value.strip()) if isinstance(value, str) else None
    kinds = {kind.value: kind for kind in ServerKind}
    if match is None:
        raise BadValue(f"{shown(value)} is not a server", hint="use for example redis[0] or postgres")
    if match["kind"] not in kinds:
        near = nearest(match["kind"], kinds)
        hint = f"did you mean {near}[0]?" if near else "faults are for redis[0], redis[1] and so on, or postgres"
        raise BadValue(f"{shown(value)} is not a server", hint=hint)
    return kinds[match["kind"]], parse_count(match["index"] or "0", lowest=0, highest=MOST_SERVERS)


def _length(do: str, kind: Kind, fields: Mapping[str, Any]) -> int | None:
    if "for" not in fields:
        if kind.lasting is Lasting.GIVEN:
            raise BadValue(f"{do} needs a length", hint=f"for example: {do} redis[0] at 1s for 500ms")
        return None if kind.lasting is Lasting.TO_THE_END else 0
    if kind.lasting is Lasting.MOMENT:
        raise BadValue(f"{do} happens at one moment", hint="leave for out", at=("for",))
    length_ns: int = _reading("for", fields, parse_duration)
    if length_ns == 0 and kind.lasting is not Lasting.AT_ONCE:
        raise BadValue(f"for: a {do} of 0 does nothing", hint="use for example 500ms", at=("for",))
    return length_ns


def _data(do: str, kind: Kind, on: ServerKind, value: object) -> str | None:
    if value is None:
        return kind.data[0] if kind.data else None
    if not kind.data:
        raise BadValue(f"{do} has no argument data", hint="restart(data=lose) has one", at=("data",))
    if value not in kind.data:
        hint = suggestion(str(value), kind.data)
        raise BadValue(f"data: {shown(value)} is not one of {', '.join(kind.data)}", hint=hint, at=("data",))
    if value == "lose" and on is ServerKind.POSTGRES:
        raise BadValue("a Postgres that is started again has its data", hint="leave data out", at=("data",))
    return str(value)


def _require_apart(ordered: list[Fault]) -> None:
    """Raise BadValue for two faults of one server at the same time: the second would meet a server that is gone."""
    busy: dict[tuple[ServerKind, int], Fault] = {}
    for fault in ordered:
        before = busy.get((fault.on, fault.server))
        if before is not None and (before.until_ns is None or fault.at_ns < before.until_ns):
            hint = "let the earlier one end first, or take another server"
            raise BadValue(f"{fault.text} begins while {before.text} lasts", hint=hint)
        if before is not None and fault.at_ns == before.at_ns:
            raise BadValue(f"{fault.text} and {before.text} begin together", hint="let one begin later")
        busy[fault.on, fault.server] = fault
