"""The rooms of the package: data falls from floor to floor, and no import climbs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.workspace import ROOT

FLOORS = (
    "ground",
    "strategies",
    "servers",
    "matrix",
    "planning",
    "lock_client",
    "analysis",
    "records",
    "report",
    "plots",
    "fuzz",
    "running",
    "gate",
    "service",
    "lab",
    "doctor",
    "swarm",
    "cli",
    "pytest_plugin",
)
"""The lowest first. The ground is the files that stand in `pybench/` itself."""
PACKAGE = ROOT / "pybench"
FRONT = ("__init__.py", "__main__.py")
"""What users import and call: above all floors."""


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE or path.name not in FRONT]


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "ground"


def imported(source: str) -> Iterator[tuple[int, str]]:
    """The line and the dotted name of everything of the package that `source` imports, inside of functions too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pybench":
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "pybench":
                    yield node.lineno, alias.name


def room_of_import(dotted: str) -> str:
    """Of what stands in `pybench/__init__.py` that is no room: what it passes on comes from the top."""
    name = dotted.removeprefix("pybench").lstrip(".").split(".")[0]
    if name in FLOORS:
        return name
    is_ground = (PACKAGE / f"{name}.py").is_file() or name == "_core"
    return "ground" if is_ground else "cli"


def climbs(room: str, source: str) -> list[str]:
    """The imports of `source`, a module of `room`, that lead to a higher floor."""
    here = FLOORS.index(room)
    return [f"line {line}: {name}" for line, name in imported(source) if FLOORS.index(room_of_import(name)) > here]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_import_climbs(path: Path):
    assert not climbs(room_of(path), path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "line", ["from pybench.report import facts", "import pybench.cli.app", "from pybench import run"]
)
def test_an_import_that_climbs_is_found_wherever_it_stands(line: str):
    assert climbs("matrix", f"def later():\n    {line}\n")
    assert not climbs("cli", line)


def test_every_room_has_a_floor():
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert rooms == set(FLOORS) - {"ground"}


def test_servers_of_one_kind_lean_on_none_of_the_other():
    for kind, other in (("redis", "postgres"), ("postgres", "redis")):
        for path in (PACKAGE / "servers" / kind).glob("*.py"):
            names = [name for _, name in imported(path.read_text(encoding="utf-8"))]
            assert not [name for name in names if name.startswith(f"pybench.servers.{other}")], path
