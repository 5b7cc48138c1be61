"""The notation `name(argument, key=value)` for values in matrices and options, and its error.

Promises: all such texts are parsed here, so that distributions, retry policies and strategies have one notation.
Does not do: interpreting names.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pybench.errors import InputError
from pybench.masking import masked_word

_CALL = re.compile(r"(?P<name>[A-Za-z][\w-]*)\s*(?:\((?P<arguments>.*)\))?", re.DOTALL)
_NAMED = re.compile(r"(?P<key>[A-Za-z]\w*(?:\.\d+)?)\s*=\s*(?P<value>.*)", re.DOTALL)
_SHOWN_CHARACTERS = 60


class BadValue(InputError):
    """An invalid value; `at` is the path of the faulty part within the value, empty for the whole value."""

    def __init__(self, message: str, *, hint: str | None = None, at: tuple[str | int, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.at = at


@dataclass(frozen=True, slots=True)
class Call:
    """The parts of `name(first, second, key=value)` as texts."""

    name: str
    positional: tuple[str, ...]
    named: dict[str, str]


def parse_call(text: str) -> Call:
    """Parse `text`. Raises BadValue when it has another form or gives an argument twice."""
    match = _CALL.fullmatch(text.strip())
    if match is None:
        if text.count("(") != text.count(")"):
            raise BadValue(f"the parentheses of {shown(text)} do not match")
        raise BadValue(f"{shown(text)} is neither a name nor name(argument, ...)")
    positional: list[str] = []
    named: dict[str, str] = {}
    for part in split_list(match["arguments"] or ""):
        pair = _NAMED.fullmatch(part)
        if pair is None:
            positional.append(part)
        elif pair["key"] in named:
            raise BadValue(f"{pair['key']} is given twice in {shown(text)}")
        else:
            named[pair["key"]] = pair["value"]
    return Call(match["name"], tuple(positional), named)


def split_list(text: str) -> list[str]:
    """Split at the commas outside of parentheses; blank text gives an empty list.

    Raises BadValue for an empty part or parentheses that do not match.
    """
    if not text.strip():
        return []
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
        if character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    if depth != 0:
        raise BadValue(f"the parentheses of {shown(text)} do not match")
    if not all(parts):
        raise BadValue(f"{shown(text)} has a comma without a value beside it")
    return parts


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most similar to `word`; None without a similar one."""
    lowered = word.lower().replace("_", "-")
    by_form = {name.lower().replace("_", "-"): name for name in known}
    found = difflib.get_close_matches(lowered, by_form, n=1, cutoff=0.6)
    return by_form[found[0]] if found else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """The hint for an unknown `word`: the nearest known word, or all known words."""
    names = list(known)
    near = nearest(word, names)
    return f"did you mean {near}?" if near else f"known: {', '.join(names)}"


def shown(value: object) -> str:
    """`value` as quoted in messages: short, and on one line."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = shortened(value if isinstance(value, str) else str(value))
    return f'"{text}"' if isinstance(value, str) else text


def shortened(text: str) -> str:
    """`text` on one line, shortened, without passwords and without control characters."""
    text = masked_word(text)
    start = text[: 4 * _SHOWN_CHARACTERS]
    line = " ".join(start.split())
    whole = len(start) == len(text) and len(line) <= _SHOWN_CHARACTERS
    return visible(line) if whole else f"{visible(line[:_SHOWN_CHARACTERS])}..."


def visible(text: str) -> str:
    r"""`text` with each unprintable character except line ends written as an escape: `\x1b`, `\u202e`."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else _written_out(one) for one in text)


def _written_out(character: str) -> str:
    # Python represents a byte that is not UTF-8 in a file name or argument as half of a surrogate pair.
    byte = ord(character) - 0xDC00
    return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else character.encode("unicode_escape").decode("ascii")


def is_text(text: str) -> bool:
    """Whether `text` is valid Unicode, without bytes that were not UTF-8 and without half of a surrogate pair."""
    return not any("\ud800" <= one <= "\udfff" for one in text)


def parse_choice(value: object, choices: Iterable[str]) -> str:
    """One of `choices`. Raises BadValue with the nearest choice as the hint."""
    names = tuple(choices)
    if not isinstance(value, str):
        raise BadValue(f"{shown(value)} is not one of {', '.join(names)}")
    if value.strip() not in names:
        raise BadValue(f"{shown(value)} is not one of {', '.join(names)}", hint=_meant(value, names))
    return value.strip()


def refuse_leading_zero(value: object) -> None:
    """Raise BadValue for a text such as `024`."""
    if isinstance(value, str) and re.fullmatch(r"\s*0\d+\s*", value):
        # In `1,024` the comma separates two values, 1 and 024, and the user probably meant 1024.
        hint = "write a number without a comma: 1024; commas separate numbers"
        raise BadValue(f"{shown(value)} begins with a zero", hint=hint)


def parse_count(value: object, *, lowest: int = 1, highest: int) -> int:
    """A whole number, or the text of one. Raises BadValue outside `lowest` .. `highest`."""
    refuse_leading_zero(value)
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,30}\s*", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadValue(f"{shown(value)} is not a whole number", hint=f"use a number from {lowest} to {highest}")
    if not lowest <= value <= highest:
        bound, word = (lowest, "least") if value < lowest else (highest, "most")
        raise BadValue(f"{shown(value)} is out of range", hint=f"at {word} {bound}")
    return value


def parse_number(value: object, *, lowest: float, highest: float) -> float:
    """A finite number, or the text of one, from `lowest` to `highest`. Raises BadValue."""
    number = math.nan
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
    if math.isnan(number):
        raise BadValue(f"{shown(value)} is not a number")
    if not lowest <= number <= highest:
        bound, word = (lowest, "least") if number < lowest else (highest, "most")
        raise BadValue(f"{shown(value)} is out of range", hint=f"at {word} {format_number(bound)}")
    return number


def format_number(number: float) -> str:
    """The shortest text that reads back as the same number: 5, 0.8, 1.5."""
    return str(int(number)) if number == int(number) and abs(number) < 1e16 else repr(number)


def _meant(word: str, known: tuple[str, ...]) -> str | None:
    near = nearest(word, known)
    return f"did you mean {near}?" if near else None
