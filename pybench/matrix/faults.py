"""The values of the axis `faults`: what is done to servers, connections, clients and processes in the window.

    kill redis[0] at 1s for 500ms, delay(by=20ms) redis[2] at 3s for 200ms, crash client[0] at 4s

`at` counts from the opening of the window. `for` is how long a fault lasts; without it, many last to the end.
`redis[0]` is the first Redis server of the lock, by the lock's own numbering; for a fault of connections it means the
connections of all clients to that server, and `client[0]` those of that client to all servers.

Does not do: refusing faults that a cell has no server for, see `planning.fault_rules`; carrying faults out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pybench.matrix.durations import format_duration, parse_duration
from pybench.matrix.fault_kinds import KILLED_PROCESS, KINDS, Kind, Lasting, Target, kind_of
from pybench.notation import BadValue, nearest, parse_call, parse_count, shown, split_list, suggestion

EXAMPLE = "kill redis[0] at 1s for 500ms"
MOST_FAULTS = 100
HIGHEST_INDEX = 999_999

_NOTHING = "none"
_FORMS = f'use for example "{EXAMPLE}"'
_FAULT = re.compile(r"(?P<do>\S.*?)\s+(?P<target>[^\s()]+)\s+at\s+(?P<at>.+?)(?:\s+for\s+(?P<for>.+))?", re.DOTALL)
_TARGET = re.compile(r"(?P<kind>[A-Za-z]+)\s*(?:\[\s*(?P<index>\d{1,9})\s*\])?")
_USUAL_NS: Mapping[Lasting, int | None] = {Lasting.TO_THE_END: None, Lasting.MOMENT: 0, Lasting.AT_ONCE: 0}

T = TypeVar("T")
Value = int | str


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. Times in nanoseconds, `at_ns` from the opening of the window."""

    at_ns: int
    do: str
    on: Target
    index: int
    """The place of its server among the servers of this kind, or of its client or process, from 0."""
    for_ns: int | None = None
    """None where the fault lasts to the end of the window; 0 for a moment."""
    arguments: tuple[tuple[str, Value], ...] = ()
    """Its arguments that are off their defaults, by name."""

    @property
    def kind(self) -> Kind:
        """Its kind."""
        return kind_of(self.do, self.on)

    @property
    def until_ns(self) -> int | None:
        """When it is over; None where it lasts to the end of the window."""
        return None if self.for_ns is None else self.at_ns + self.for_ns

    @property
    def target(self) -> str:
        """What it is done to, as a matrix names it."""
        return f"{self.on.value}[{self.index}]"

    @property
    def name(self) -> str:
        """What is done, and to what: `kill redis[0]`."""
        texts = [f"{name}={self.kind.parameters[name].text(value)}" for name, value in self.arguments]
        arguments = f"({', '.join(texts)})" if texts else ""
        return f"{self.do}{arguments} {self.target}"

    @property
    def text(self) -> str:
        """The canonical form."""
        is_usual = self.for_ns == _USUAL_NS.get(self.kind.lasting, -1)
        length = "" if self.for_ns is None or is_usual else f" for {format_duration(self.for_ns)}"
        return f"{self.name} at {format_duration(self.at_ns)}{length}"

    def argument(self, name: str) -> Value | None:
        """The value of an argument: the given one, or the default of the kind."""
        return dict(self.arguments).get(name, self.kind.parameters[name].default)

    @property
    def kills_holders(self) -> bool:
        """Whether clients end that may hold locks."""
        return self.do == "crash" or self.kind is KILLED_PROCESS

    @property
    def loses_data(self) -> bool:
        """Whether the user wants the server to lose its data."""
        return ("data", "lose") in self.arguments

    @classmethod
    def parse(cls, value: object) -> Fault:
        """Read `kill redis[0] at 1s for 500ms`, or a mapping with `do`, `target`, `at`, `for` and arguments.

        Raises BadValue.
        """
        if isinstance(value, Mapping):
            return _of_fields({str(name): one for name, one in value.items()})
        match = _FAULT.fullmatch(value.strip()) if isinstance(value, str) else None
        if match is None:
            raise BadValue(f"{shown(value)} is not a fault", hint=f"{_FORMS}: what, to which server, when, how long")
        try:
            return _of_fields({name: text for name, text in match.groupdict().items() if text is not None})
        except BadValue as problem:
            raise BadValue(problem.message, hint=problem.hint) from None


@dataclass(frozen=True, slots=True)
class Faults:
    """The plan of a cell: its faults, in the order of time. Without any, all is left alone."""

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
        ordered = sorted(found, key=lambda fault: (fault.at_ns, fault.target, fault.name))
        _require_apart(ordered)
        return cls(tuple(ordered))

    @property
    def text(self) -> str:
        """The canonical form."""
        return ", ".join(fault.text for fault in self.faults) or _NOTHING

    @property
    def names(self) -> list[str]:
        """What is done to what, each once."""
        return list(dict.fromkeys(fault.name for fault in self.faults))

    @property
    def under(self) -> str:
        """For a verdict: `under kill redis[0] and crash client[0]`; empty without faults."""
        return f"under {' and '.join(self.names)}" if self.faults else ""

    def has(self, do: str, on: Target) -> bool:
        """Whether one of them does `do` to such a target."""
        return any((fault.do, fault.on) == (do, on) for fault in self.faults)

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


_KEYS = ("at", "do", "target", "for")


def _of_fields(fields: Mapping[str, Any]) -> Fault:
    for name in ("do", "target", "at"):
        if name not in fields:
            if misspelt := nearest(name, (field for field in fields if field not in _KEYS)):
                message = f"a fault has no field {shown(misspelt)}"
                raise BadValue(message, hint=f"did you mean {name}?", at=(misspelt,))
            raise BadValue(f"a fault needs {name}", hint="for example {at: 1s, do: kill, target: 'redis[0]'}")
    do, given = _do(fields["do"])
    on, index = _reading("target", fields, _target)
    kind = kind_of(do, on)
    for name in fields:
        if name not in _KEYS and name not in kind.parameters:
            hint = suggestion(name, (*_KEYS, *kind.parameters))
            raise BadValue(f"a fault {do} has no field {shown(name)}", hint=hint, at=(name,))
        if name in kind.parameters and name in given:
            raise BadValue(f"{name} is given twice", hint="keep one of them", at=(name,))
    if on not in kind.targets:
        suited = " or ".join(f"{one.value}[0]" for one in Target if one in kind_of(do, one).targets)
        why = f": {kind.why_only}" if kind.why_only else ""
        raise BadValue(f"{do} is not for {on.value}", hint=f"it is for {suited}{why}", at=("target",))
    at_ns = _reading("at", fields, parse_duration)
    values = {**given, **{name: value for name, value in fields.items() if name in kind.parameters}}
    arguments = _arguments(do, kind, on, values)
    return Fault(at_ns, do, on, index, _length(do, on, kind, fields), arguments)


def _reading(name: str, fields: Mapping[str, Any], parse: Callable[[object], T]) -> T:
    try:
        return parse(fields[name])
    except BadValue as problem:
        raise BadValue(f"{name}: {problem.message}", hint=problem.hint, at=(name,)) from None


def _do(value: object) -> tuple[str, dict[str, str]]:
    """The name of the kind, and the arguments in its parentheses."""
    known = f"known: {', '.join(KINDS)}"
    if not isinstance(value, str):
        raise BadValue(f"{shown(value)} is not a kind of fault", hint=known, at=("do",))
    call = _reading("do", {"do": value}, lambda text: parse_call(str(text)))
    if call.name not in KINDS:
        near = nearest(call.name, KINDS)
        hint = f"did you mean {near}?" if near else known
        raise BadValue(f"{shown(call.name)} is not a kind of fault", hint=hint, at=("do",))
    parameters = KINDS[call.name].parameters
    for name in (*call.positional, *call.named):
        if name not in parameters or name in call.positional:
            named = f"use {call.name}({next(iter(parameters))}=...)" if parameters else f"write {call.name} alone"
            raise BadValue(f"{call.name} has no argument {shown(name)}", hint=named, at=("do",))
    return call.name, call.named


def _target(value: object) -> tuple[Target, int]:
    match = _TARGET.fullmatch(value.strip()) if isinstance(value, str) else None
    kinds = {kind.value: kind for kind in Target}
    if match is None or match["kind"] not in kinds:
        near = nearest(match["kind"], kinds) if match else None
        hint = f"did you mean {near}[0]?" if near else "use redis[0], redis[1], ..., postgres, client[0], or process[0]"
        raise BadValue(f"{shown(value)} is not a target", hint=hint)
    return kinds[match["kind"]], parse_count(match["index"] or "0", lowest=0, highest=HIGHEST_INDEX)


def _length(do: str, on: Target, kind: Kind, fields: Mapping[str, Any]) -> int | None:
    if "for" not in fields:
        if kind.lasting is Lasting.GIVEN:
            raise BadValue(f"{do} needs a length", hint=f"for example: {do} {on.value}[0] at 1s for 500ms")
        return _USUAL_NS[kind.lasting]
    if kind.lasting is Lasting.MOMENT:
        why = ": a killed process is not started again" if kind is KILLED_PROCESS else ""
        raise BadValue(f"{do} happens at one moment", hint=f"remove `for`{why}", at=("for",))
    length_ns = _reading("for", fields, parse_duration)
    if length_ns == 0 and kind.lasting is not Lasting.AT_ONCE:
        raise BadValue(f"for: a {do} of 0 does nothing", hint="use for example 500ms", at=("for",))
    return length_ns


def _arguments(do: str, kind: Kind, on: Target, values: Mapping[str, Any]) -> tuple[tuple[str, Value], ...]:
    """The values of the arguments that are off their defaults, in the order of the kind."""
    found = []
    for name, parameter in kind.parameters.items():
        if name not in values:
            if parameter.needed:
                example = f"{do}({name}={_EXAMPLES[do]})"
                raise BadValue(f"{do} needs {name}", hint=f"for example {example} {on.value}[0] at 1s for 500ms")
            continue
        value = _reading(name, values, parameter.parse)
        if (value, on) == ("lose", Target.POSTGRES):
            raise BadValue("a Postgres that is started again has its data", hint="leave data out", at=("data",))
        if value != parameter.default:
            found.append((name, value))
    return tuple(found)


_EXAMPLES = {"delay": "20ms", "jitter": "20ms", "throttle": "10000", "clock": "+10s"}


def _require_apart(ordered: list[Fault]) -> None:
    """Raise BadValue for two faults of one server at the same time: the second would meet a server that is gone."""
    busy: dict[str, Fault] = {}
    for fault in ordered:
        if fault.kind.by_core:
            continue
        before = busy.get(fault.target)
        if before is not None and before.kind is KILLED_PROCESS:
            hint = "a killed process is not started again: let the kill come last"
            raise BadValue(f"{fault.text} comes after {before.text}", hint=hint)
        if before is not None and (before.until_ns is None or fault.at_ns < before.until_ns):
            hint = "let the earlier one end first, or take another server"
            raise BadValue(f"{fault.text} begins while {before.text} lasts", hint=hint)
        if before is not None and fault.at_ns == before.at_ns:
            raise BadValue(f"{fault.text} and {before.text} begin together", hint="let one begin later")
        busy[fault.target] = fault
