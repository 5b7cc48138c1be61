"""The wall clock of a server that pybench starts, moved by libfaketime: the server alone sees the other time.

Promises: the clock is true until `move`. Monotonic clocks are never moved. The library reads an offset from a file in
the folder of the server at each look at the clock; the server itself looks only now and then.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from pybench.errors import ServerError

FOLDERS = (
    "/usr/lib/*/faketime",
    "/usr/lib64/faketime",
    "/usr/lib/faketime",
    "/usr/local/lib/faketime",
)
"""Where distributions install the library."""
LIBRARY = "libfaketime.so.1"
ENV = "/usr/bin/env"
"""Sets the variables for the server alone. A keeper under the library would have a moved clock, too."""
FILE = "clock"
COMPLAINT = "libfaketime: Cannot recover"
"""What the library prints in a server that cannot run under it; the server then hangs."""
_SHARED_MEMORY = Path("/dev/shm")
"""Where the C library keeps shared memory."""


def find_library() -> Path:
    """The library. Raises ServerError where this machine has none."""
    for pattern in FOLDERS:
        for folder in sorted(Path("/").glob(pattern.lstrip("/"))):
            if (library := folder / LIBRARY).is_file():
                return library
    raise ServerError("the fault clock needs libfaketime, and this machine has none", hint="apt install libfaketime")


class WallClock:
    """The clock of the server in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._library = find_library()
        self._file = folder / FILE
        self._file.write_text("+0s\n", encoding="ascii")

    def command(self, server: tuple[str, ...]) -> tuple[str, ...]:
        """The command that starts `server` under this clock. The process becomes the server and keeps its number."""
        variables = {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            # Two names of one setting, of older and newer versions of the library.
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        return (ENV, *(f"{name}={value}" for name, value in variables.items()), *server)

    def move(self, by_ns: int) -> None:
        """Let the clock be `by_ns` ahead of the true time, or behind it where negative."""
        # The server reads the file at any moment, so it is replaced as a whole.
        new = self._file.with_suffix(".new")
        new.write_text(f"{by_ns / 1e9:+.3f}s\n", encoding="ascii")
        new.replace(self._file)


def forget_shared_memory(pid: int) -> None:
    """Remove the names of the shared memory that the library made in process `pid`, which goes on using it.

    The library removes them at the end of the process, but not where the process is killed.
    """
    for name in (f"faketime_shm_{pid}", f"sem.faketime_sem_{pid}"):
        with contextlib.suppress(OSError):
            (_SHARED_MEMORY / name).unlink()
