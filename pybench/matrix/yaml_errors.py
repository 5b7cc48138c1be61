"""Syntax errors of YAML in plain words, with a correction: the parser's own messages name its internals."""

from __future__ import annotations

import re

_EXPLANATIONS = (
    (
        r"mapping values are not allowed here",
        "a colon is not allowed here; quote the value, or add a colon that is missing above",
    ),
    (r"expected ',' or '(.)', but got '<stream end>'", "an opening bracket above is never closed; close it with {0}"),
    (r"expected ',' or '(.)', but got '(.*)'", "a comma is missing here, or a {0}"),
    (r"expected <block end>, but found '\?'", "a key stands among the items of a list; indent the key"),
    (r"expected <block end>, but found '-'", "a list item stands among keys; indent the item"),
    (r"expected <block end>, but found '([\]}},])'", "this {0} closes no bracket; delete it"),
    (r"expected <block end>, but found '<.*>'", "the indentation matches no line above; align this line"),
    (r"found character '(.)' that cannot start any token", "a value cannot begin with {0}; put the value in quotes"),
    (r"could not find expected ':'", "a key needs a colon after it; write KEY: VALUE"),
    (r"expected the node content, but found '(.*)'", "a value is missing here"),
    (r"found unknown escape character '(.)'", "\\{0} is no escape in double quotes; use single quotes"),
    (
        r"expected alphabetic or numeric character, but found .*",
        "* and & begin aliases and anchors; put the value in quotes",
    ),
    (r"found duplicate anchor (.*);.*", "the anchor {0} is given twice"),
)


def explained(problem: str) -> str:
    """The `problem` of ruamel.yaml in plain words, if an explanation is known."""
    for pattern, explanation in _EXPLANATIONS:
        match = re.fullmatch(pattern, problem, re.DOTALL)
        if match:
            return explanation.format(*match.groups())
    return f"the file is not YAML: {problem}"
