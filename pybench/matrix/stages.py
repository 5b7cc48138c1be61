"""The values of the axis `stages`: a load that changes during the window, and how long each part of it takes.

    0 -> 256 over 5s, 256 for 10s, 0 over 1s

Within a stage the load goes linearly from one value to another. Values are clients in a closed loop, and arrivals per
second, with `/s`, in an open one. The window of a cell with stages is as long as its stages together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from pybench.matrix.durations import LONGEST_DURATION_NS, MS, format_duration, format_rate, parse_duration, parse_rate
from pybench.notation import BadValue, parse_count, shown, split_list

EXAMPLE = "0 -> 256 over 5s, 256 for 10s, 0 over 1s"
MOST_STAGES = 100
MOST_CLIENTS = 1_000_000
"""As many as the axis `concurrency` takes."""

_NOTHING = "none"
_CLIENTS, _ARRIVALS = "clients", "arrivals per second"
_STAGE = re.compile(r"(?P<values>.+?)\s+(?P<word>over|for)\s+(?P<length>.+)")
_NO_ARRIVALS = re.compile(r"0+(\.0*)?\s*/\s*s")
_WHOLE = re.compile(r"[+-]?\d{1,30}")
_FORMS = f'use for example "{EXAMPLE}"'


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: the load goes linearly from `begin` to `end`, clients or arrivals per second, in `length_ns`."""

    begin: float
    end: float
    length_ns: int

    @property
    def mean(self) -> float:
        """The mean load."""
        return (self.begin + self.end) / 2


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of a cell in their order. Without any, the load is the same during the whole window."""

    stages: tuple[Stage, ...] = ()
    is_open: bool = False
    """Whether the values are arrivals per second, which make the loop open, and not clients."""

    def __bool__(self) -> bool:
        return bool(self.stages)

    @classmethod
    def parse(cls, value: object) -> Stages:
        """Read `none`, or stages separated by commas: `A -> B over TIME`, `B over TIME`, `B for TIME`.

        Raises BadValue with what to type.
        """
        if isinstance(value, list | tuple):
            raise BadValue("a list in a list is not a value of stages", hint=f'one value is one text: "{EXAMPLE}"')
        if not isinstance(value, str) or not value.strip():
            raise BadValue(f"{shown(value)} is not a load in stages", hint=_FORMS)
        if value.strip() == _NOTHING:
            return cls()
        parts = split_list(value)
        if len(parts) > MOST_STAGES:
            raise BadValue(f"{len(parts)} stages are too many", hint=f"at most {MOST_STAGES}")
        stages: list[Stage] = []
        units: set[str] = set()
        for part in parts:
            stages.append(_parsed(part, stages[-1] if stages else None, units))
        if len(units) > 1:
            hint = "write all as clients (256), or all as rates (5000/s)"
            raise BadValue(f"{shown(value)} mixes clients and arrivals per second", hint=hint)
        parsed = cls(tuple(stages), is_open=units == {_ARRIVALS})
        if not parsed.highest:
            raise BadValue(f"{shown(value)} offers no load", hint=f"give a value above 0, as in {EXAMPLE}")
        if parsed.length_ns > LONGEST_DURATION_NS:
            hint = f"at most {format_duration(LONGEST_DURATION_NS)} together"
            raise BadValue(f"the stages of {shown(value)} are too long", hint=hint)
        return parsed

    @property
    def text(self) -> str:
        """The canonical form: each stage names its first value only where that is not the last of the stage before."""
        before: float | None = None
        texts = []
        for stage in self.stages:
            texts.append(self._text_of(stage, before))
            before = stage.end
        return ", ".join(texts) or _NOTHING

    @property
    def stage_texts(self) -> list[str]:
        """Each stage alone in words, with both of its values: `0 -> 256 over 5s`."""
        return [self._text_of(stage, None) for stage in self.stages]

    @property
    def highest(self) -> float:
        """The highest load, of clients or of arrivals per second; 0 without stages."""
        return max((value for stage in self.stages for value in (stage.begin, stage.end)), default=0.0)

    @property
    def mean(self) -> float:
        """The mean load over the window, of clients or of arrivals per second; 0 without stages."""
        return sum(stage.mean * stage.length_ns for stage in self.stages) / (self.length_ns or 1)

    @property
    def length_ns(self) -> int:
        """The length of the window; 0 without stages."""
        return sum(stage.length_ns for stage in self.stages)

    def shortened_to(self, length_ns: int) -> Stages:
        """The same values within about `length_ns`, each stage in whole milliseconds; `self` where it is no longer."""
        if self.length_ns <= length_ns:
            return self
        shares = (stage.length_ns * length_ns / self.length_ns for stage in self.stages)
        lengths = [max(1, round(share / MS)) * MS for share in shares]
        shorter = [replace(stage, length_ns=length) for stage, length in zip(self.stages, lengths, strict=True)]
        return replace(self, stages=tuple(shorter))

    def to_core(self) -> list[dict[str, float]]:
        """The form of the core."""
        return [{"from": stage.begin, "to": stage.end, "length_ns": stage.length_ns} for stage in self.stages]

    def _text_of(self, stage: Stage, before: float | None) -> str:
        begin, end = (format_rate(value) if self.is_open else str(int(value)) for value in (stage.begin, stage.end))
        length = format_duration(stage.length_ns)
        if stage.begin == stage.end:
            return f"{end} for {length}"
        return f"{end} over {length}" if stage.begin == before else f"{begin} -> {end} over {length}"


NO_STAGES = Stages()


def recorded_stages(value: object) -> Stages:
    """The stages of a text of a record; none where it has none, or a form that this version does not know."""
    try:
        return Stages.parse(value)
    except BadValue:
        return NO_STAGES


def _parsed(text: str, before: Stage | None, units: set[str]) -> Stage:
    """One stage; adds to `units` what its values are."""
    match = _STAGE.fullmatch(text)
    if match is None:
        raise BadValue(f"{shown(text)} is not a stage", hint=f"{_FORMS}; each stage is given over or for a time")
    length_ns = parse_duration(match["length"])
    if length_ns == 0:
        raise BadValue(f"the stage {shown(text)} takes no time", hint="give it a length, as in 256 over 5s")
    first, arrow, last = match["values"].partition("->")
    values = [_value(one, units) for one in ([first, last] if arrow else [first])]
    if match["word"] == "for":
        if arrow:
            hint = (
                f"use {first.strip()} -> {last.strip()} over {match['length']}, or {last.strip()} for {match['length']}"
            )
            raise BadValue(f"{shown(text)} holds two values: for keeps one value, and over goes to another", hint=hint)
        return Stage(values[0], values[0], length_ns)
    if arrow:
        return Stage(values[0], values[1], length_ns)
    if before is None:
        # YAML splits a list in brackets at every comma, also those between stages.
        hint = f"use 0 -> {text}, or {first} for {match['length']}; in a list in brackets, quote each value"
        raise BadValue(f"the first stage {shown(text)} does not say where it begins", hint=hint)
    return Stage(before.end, values[0], length_ns)


def _value(text: str, units: set[str]) -> float:
    """A number of clients or of arrivals per second; 0 is either, with or without `/s`."""
    text = text.strip()
    if _NO_ARRIVALS.fullmatch(text):
        units.add(_ARRIVALS)
        return 0.0
    if "/" in text:
        units.add(_ARRIVALS)
        return parse_rate(text)
    if not _WHOLE.fullmatch(text):
        hint = "clients are a whole number, as in 256; arrivals per second have /s, as in 5000/s"
        raise BadValue(f"{shown(text)} is not a load", hint=hint)
    clients = parse_count(text, lowest=0, highest=MOST_CLIENTS)
    if clients:
        units.add(_CLIENTS)
    return float(clients)
