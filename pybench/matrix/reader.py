"""YAML text parsed into plain values, with the line and column of each value.

Promises: an unusable document is refused quickly, with the line of the problem, whatever its size or nesting.
The reader works on the node tree of YAML. There an alias is the same node as its anchor, so recursive and exploding
aliases are found before any values are built.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.scanner import Scanner

from pybench.errors import InputError
from pybench.matrix.file import HINT, Position, end_of
from pybench.matrix.problems import Path, Problem, raise_all
from pybench.matrix.yaml_errors import explained
from pybench.notation import is_text, shortened, shown

MOST_VALUES = 5_000
MOST_NESTED = 50

_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = (f"{_TAG}map", f"{_TAG}seq")
_TOO_DEEP = "the file is nested too deeply"
_TOO_MANY = f"the file has more than {MOST_VALUES:,} values"


class _BoundedScanner(Scanner):
    """Limits nested brackets here, since the scanner takes quadratic time on them before the composer sees them."""

    def fetch_flow_collection_start(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - passed on unchanged
        if len(self.flow_context) >= MOST_NESTED:
            raise MarkedYAMLError(problem=_TOO_DEEP, problem_mark=self.reader.get_mark())
        super().fetch_flow_collection_start(*arguments, **named)


class _BoundedComposer(Composer):
    """Stops at once in a document that is too large or too deeply nested."""

    def __init__(self, **arguments: Any) -> None:  # noqa: ANN401 - passed on unchanged
        super().__init__(**arguments)
        self._depth = 0
        self._count = 0

    def compose_node(self, parent: Node | None, index: object) -> Node:
        self._count += 1
        self._depth += 1
        if self._depth > MOST_NESTED or self._count > MOST_VALUES:
            problem = _TOO_DEEP if self._depth > MOST_NESTED else _TOO_MANY
            raise MarkedYAMLError(problem=problem, problem_mark=self.parser.peek_event().start_mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return cast("Node", node)


class Document:
    """The plain values of one file, with the position of each."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[str, object] = {}
        self.problems: list[Problem] = []
        self._keys: dict[Path, Position] = {}
        self._values: dict[Path, Position] = {}
        self._open: set[int] = set()
        self._count = 0

    @classmethod
    def parse(cls, name: str, text: str) -> Document:
        """The document in `text`, the content of the file `name`.

        Raises InputError, with the line if it is known, where the text is not one YAML mapping.
        """
        document = cls(name)
        node = document._compose(text)
        document.values = cast("dict[str, object]", document._build(node, ()))
        raise_all(document.problems, document.line, hint=HINT)
        return document

    def line(self, problem: Problem) -> str:
        """`problem` with the `file:line:column` of the faulty key or value, or of the nearest one around it."""
        line, column = self.position(problem)
        return f"{self.name}:{line}:{column}: {problem.sentence}"

    def position(self, problem: Problem) -> Position:
        """The line and column of the faulty key or value, or of the nearest one around it."""
        for length in range(len(problem.path), 0, -1):
            path = problem.path[:length]
            tables = (self._keys, self._values) if problem.of_key else (self._values, self._keys)
            for table in tables:
                if path in table:
                    return table[path]
        return 1, 1

    def _compose(self, text: str) -> Node:
        yaml = YAML(typ="safe", pure=True)
        yaml.Scanner = _BoundedScanner
        yaml.Composer = _BoundedComposer  # type: ignore[assignment]
        try:
            node = yaml.compose(text)
        except ReaderError as error:
            line, column = end_of(text[: error.position])
            code = f"U+{ord(text[error.position]):04X}"
            message = f"{self.name}:{line}:{column}: the file contains the control character {code}"
            raise InputError(message, hint="delete the character, or write it in quotes as an escape") from None
        except MarkedYAMLError as error:
            raise InputError(self._syntax(error, text), hint=HINT) from None
        except YAMLError as error:
            raise InputError(f"{self.name}: the file is not YAML: {error}", hint=HINT) from None
        if node is None:
            raise InputError(f"{self.name}:1:1: the file is empty", hint=HINT)
        if not isinstance(node, MappingNode):
            content = "a list" if isinstance(node, SequenceNode) else shown(node.value)
            message = f"a matrix is a mapping with keys such as axes and trials, and this file is {content}"
            raise InputError(f"{self.name}:1:1: {message}", hint=HINT)
        return cast("Node", node)

    def _syntax(self, error: MarkedYAMLError, text: str) -> str:
        problem = error.problem or error.context or "the file cannot be read"
        # An unclosed quote is reported where it opens, not at the end of the file.
        opening = problem == "found unexpected end of stream"
        mark = error.context_mark if opening else error.problem_mark or error.context_mark
        if mark is None:
            return f"{self.name}: the file is not YAML: {problem}"
        lines = text.splitlines()
        line = lines[mark.line] if mark.line < len(lines) else ""
        if "\t" in line[: len(line) - len(line.lstrip())]:
            problem = "a tab cannot indent YAML; use spaces"
        elif problem.startswith("found character '\\t'"):
            problem = "a tab is not allowed here; use spaces"
        elif opening:
            problem = "a quote opens here and is never closed"
        elif "found undefined alias" in problem:
            problem = f"{problem.removeprefix('found ')}; an anchor must come before its aliases"
        elif problem in (_TOO_DEEP, _TOO_MANY):
            pass
        elif line[mark.column : mark.column + 1] == "[" and line[mark.column - 1 : mark.column].isalnum():
            problem = "within braces or brackets a value that has brackets needs quotes, as in 'redis[0]'"
        elif "another document" in problem:
            problem = "a second document begins here; a file may hold one matrix only"
        else:
            problem = explained(problem)
        return f"{self.name}:{mark.line + 1}:{mark.column + 1}: {problem}"

    def _build(self, node: Node, path: Path) -> object:
        self._count += 1
        position = (node.start_mark.line + 1, node.start_mark.column + 1)
        if self._count > MOST_VALUES:
            message = f"{_TOO_MANY}, counting each use of an alias"
            raise InputError(f"{self.name}:{position[0]}:{position[1]}: {message}", hint=HINT)
        self._values.setdefault(path, position)
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if node.tag not in _PLAIN_TAGS:
            return self._unreadable(path, _unknown_tag(node), "delete the tag")
        if id(node) in self._open:
            return self._unreadable(path, "an alias refers to a value that contains the alias")
        self._open.add(id(node))
        try:
            if isinstance(node, MappingNode):
                return self._mapping(node, path)
            return [self._build(item, (*path, index)) for index, item in enumerate(node.value)]
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, object]:
        values: dict[str, object] = {}
        merged: list[Node] = []
        for key_node, value_node in node.value:
            position = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            if key_node.tag == f"{_TAG}merge":
                self._keys[(*path, "<<")] = position
                merged.append(value_node)
                continue
            key = key_node.value if isinstance(key_node, ScalarNode) else None
            if key is None:
                self._values[(*path, "?")] = position
                self.problems.append(
                    Problem((*path, "?"), "a key must be one word, not a list or a mapping", of_key=True)
                )
            elif (strange := _invisible(key)) is not None:
                self._values[(*path, "?")] = position
                message = f"a key contains the invisible character U+{ord(strange):04X}"
                self.problems.append(
                    Problem((*path, "?"), message, "replace the character by a plain space", of_key=True)
                )
            elif not is_text(key):
                self._values[(*path, "?")] = position
                self.problems.append(Problem((*path, "?"), f"the key {shown(key)} is not UTF-8", of_key=True))
            elif key in values:
                first = self._keys[(*path, key)][0]
                self._keys[(*path, key)] = position
                message = f"the key {shortened(key)} is given twice, first in line {first}"
                self.problems.append(Problem((*path, key), message, "keep one of them", of_key=True))
            else:
                self._keys[(*path, key)] = position
                values[key] = self._build(value_node, (*path, key))
        for part in merged:
            self._merge(part, path, values)
        return values

    def _merge(self, node: Node, path: Path, values: dict[str, object]) -> None:
        parts = node.value if isinstance(node, SequenceNode) else [node]
        for part in parts:
            built = self._build(part, path)
            if not isinstance(built, dict):
                self.problems.append(Problem((*path, "<<"), "<< merges mappings only", of_key=True))
                continue
            for key, value in built.items():
                values.setdefault(key, value)

    def _scalar(self, node: ScalarNode, path: Path) -> object:
        kind, text = str(node.tag).removeprefix(_TAG), str(node.value)
        try:
            match kind:
                case "null":
                    return None
                case "bool":
                    return text.lower() == "true"
                case "int" if re.fullmatch(r"[+-]?0\d+", text):
                    hint = "write a number without a comma: 1024; commas separate numbers"
                    return self._unreadable(path, f"{text} begins with a zero", hint)
                case "int":
                    return _whole(text)
                case "float":
                    return float(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
                case "str" | "timestamp":
                    return text if is_text(text) else self._unreadable(path, f"{shown(text)} is not UTF-8")
        except ValueError:
            return self._unreadable(path, f"{shown(text)} cannot be read as a number")
        return self._unreadable(path, _unknown_tag(node), "delete the tag")

    def _unreadable(self, path: Path, message: str, hint: str | None = None) -> object:
        """Note why a value cannot be read, and return None in its place."""
        self.problems.append(Problem(path, message, hint))
        return None


def _invisible(key: str) -> str | None:
    """The first character of `key` that is invisible or looks like a space; such characters come with copied text."""
    return next((one for one in key if one != " " and unicodedata.category(one) in ("Zs", "Zl", "Zp", "Cf")), None)


def _whole(text: str) -> int:
    digits = text.replace("_", "").lower()
    return int(digits, 0) if digits.lstrip("+-")[:2] in ("0x", "0o", "0b") else int(digits)


def _unknown_tag(node: Node) -> str:
    return f"the tag {shortened(str(node.tag))} is not supported"
