"""The templates: Jinja with autoescape, where an undefined name is an error, and the filters of the page.

Everything that comes from a run is text here, never markup.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from pybench import numbers

HERE = Path(__file__).parent
VERDICT_SYMBOLS = {"SAFE": "✓", "UNSAFE": "✕", "UNDECIDED": "?", "VOID": "∅"}


def fill(template: str, **context: Any) -> Markup:  # noqa: ANN401 - whatever the template needs
    """The template of that name, filled. Raises `jinja2.UndefinedError` when the context lacks a name."""
    return Markup(_environment().get_template(template).render(**context))


def script_json(value: Any) -> Markup:  # noqa: ANN401 - whatever JSON can hold
    """`value` as JSON that can stand inside a script element: no character ends the element or starts another."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


@cache
def asset(name: str) -> str:
    """The text of a file of this package: style, script or vendored bundle."""
    return (HERE / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["script_json"] = script_json
    environment.filters["tight"] = _tight
    environment.filters["breakable"] = _breakable
    environment.globals["verdict_symbols"] = VERDICT_SYMBOLS
    environment.globals["plural"] = numbers.plural
    return environment


# Texts that stay on one line: the name of a lock with its arguments, with nested brackets at most once; a name with a
# hyphen; a figure with its unit. Punctuation that follows without a space belongs to them.
_WITH_ARGUMENTS = r"\(?[^\s(]+\([^()]*(?:\([^()]*\)[^()]*)*\)\S*"
_HYPHENATED = r"\S*[a-z]-[a-z]\S*"
_WITH_UNIT = r"\S*[0-9] (?:k|M|G|ns|µs|ms|s|%)(?![a-zA-Z])\S*"
_TOGETHER = re.compile(f"({_WITH_ARGUMENTS})|({_HYPHENATED}|{_WITH_UNIT})")
_SHORT = 30


def _breakable(text: str) -> Markup:
    """`text`, in which the name of a lock moves to the next line as a whole.

    A name that is longer than a line breaks before its arguments.
    """
    parts, end = [], 0
    for found in _TOGETHER.finditer(text):
        with_arguments, other = found.groups()
        parts.append(escape(text[end : found.start()]))
        if with_arguments:
            parts.append(Markup('<span class="term">{}<wbr>({}</span>').format(*with_arguments.split("(", 1)))
        else:
            parts.append(
                Markup('<span class="stem">{}</span>').format(other) if len(other) <= _SHORT else escape(other)
            )
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


def _tight(text: str) -> str:
    """`text` with spaces that do not break."""
    return text.replace(" ", "\u00a0")
