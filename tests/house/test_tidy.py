"""The style of the house, as far as a machine can see it: short files, short functions, nothing left lying about."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE_LINES = 400
FUNCTION_LINES = 70


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        # The owner of a checkout in CI is often somebody else.
        ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def python_functions(path: Path) -> list[tuple[str, int]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [(node.name, (node.end_lineno or node.lineno) - node.lineno + 1) for node in functions]


def rust_functions(path: Path) -> list[tuple[str, int]]:
    """Functions of formatted Rust: one begins at `fn`, and ends at the closing brace of the same indent."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = []
    for start, line in enumerate(lines):
        opened = re.match(r"( *)(?:pub(?:\([a-z]+\))? )?(?:const |unsafe |async )*fn (\w+)", line)
        if opened and not line.rstrip().endswith((";", "}")):
            closing = opened[1] + "}"
            end = next((i for i in range(start, len(lines)) if lines[i] == closing), start)
            found.append((opened[2], end - start + 1))
    return found


def test_no_file_is_too_long_to_read_in_one_sitting():
    long = {
        str(path.relative_to(ROOT)): count
        for path in tracked("*.py", "*.rs", "*.pyi")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > FILE_LINES
    }
    assert not long


@pytest.mark.parametrize(("pattern", "functions"), [("*.py", python_functions), ("*.rs", rust_functions)])
def test_no_function_is_longer_than_a_screen(pattern, functions):
    paths = tracked(pattern)
    assert sum(len(functions(path)) for path in paths) > 100, "the functions are found at all"
    long = [
        f"{path.relative_to(ROOT)}: {name} has {length} lines"
        for path in paths
        for name, length in functions(path)
        if length > FUNCTION_LINES
    ]
    assert not long


def test_every_module_of_the_package_is_imported_by_something():
    sources = {path: path.read_text(encoding="utf-8") for path in tracked("pybench/*.py")}
    entry_points = {"pybench/__main__.py"}
    unused = []
    for path in sources:
        relative = path.relative_to(ROOT)
        if path.name == "__init__.py" or str(relative) in entry_points:
            continue
        dotted = ".".join(relative.with_suffix("").parts)
        package, _, name = dotted.rpartition(".")
        module, parent = re.escape(dotted), re.escape(package)
        spellings = re.compile(
            rf"import {module}\b|from {module} import|[\"']{module}[\"']"
            rf"|from {parent} import [^\n(]*\b{name}\b|from {parent} import \([^)]*\b{name}\b"
        )
        if not any(spellings.search(text) for other, text in sources.items() if other != path):
            unused.append(str(relative))
    assert not unused


def test_nothing_is_left_open_in_the_code():
    marks = re.compile(r"\b(TODO|FIXME|XXX)\b|\btodo!|\bunimplemented!|NotImplementedError")
    here = Path(__file__)
    left = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked("*.py", "*.rs", "*.lua", "*.yaml", "Makefile")
        if path != here
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if marks.search(line)
    ]
    assert not left
