"""What is wrong with a text that is no YAML, and what to write instead; its parser speaks of its own insides."""

from __future__ import annotations

import re

_SAID = (
    (r"mapping values are not allowed here", "a colon cannot stand here; quote the value, or is one missing above?"),
    (r"expected ',' or '(.)', but got '<stream end>'", "an opening bracket above is never closed; close it with {0}"),
    (r"expected ',' or '(.)', but got '(.*)'", "a comma is missing here, or a {0}"),
    (r"expected <block end>, but found '\?'", "a name stands among the items of a list; indent it"),
    (r"expected <block end>, but found '-'", "an item of a list stands among names; indent it"),
    (r"expected <block end>, but found '([\]}},])'", "a {0} that nothing opened; leave it out"),
    (r"expected <block end>, but found '<.*>'", "the indentation fits no line above; align it"),
    (r"found character '(.)' that cannot start any token", "a value cannot begin with {0}; put it in quotes"),
    (r"could not find expected ':'", "a name without a colon behind it; write NAME: VALUE"),
    (r"expected the node content, but found '(.*)'", "a value is missing here"),
    (r"found unknown escape character '(.)'", "no escape \\{0} in double quotes; use single quotes"),
    (r"expected alphabetic or numeric character, but found .*", "* and & begin aliases and anchors; use quotes"),
    (r"found duplicate anchor (.*);.*", "the anchor {0} is given twice"),
)


def explained(problem: str) -> str:
    """`problem` as ruamel.yaml says it, in plain words where they are known."""
    for said, meant in _SAID:
        found = re.fullmatch(said, problem, re.DOTALL)
        if found:
            return meant.format(*found.groups())
    return f"it is not YAML: {problem}"
