"""What a killed run left behind: servers without an owner, and their folders.

Promises: touches only folders of this user that are named like ours and whose lock nobody holds. Ends only the process
noted there, known by pid, start time and working folder, and processes of Postgres that work in the data folder there.
"""

from __future__ import annotations

import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

from pybench.servers import folder as folders
from pybench.servers import keeper, processes


@dataclass(frozen=True, slots=True)
class Leftover:
    """A folder without an owner, which is removed now."""

    folder: Path
    ended: int | None
    """The pid of the server, where it still ran."""

    def __str__(self) -> str:
        return f"removed {self.folder}" + (f", ended server process {self.ended}" if self.ended else "")


def clear_leftovers() -> list[Leftover]:
    """End and remove all that killed runs of this user left; at most about a second for each server."""
    cleared: list[Leftover] = []
    for folder in folders.all_of_this_user():
        if not folders.is_abandoned(folder):
            continue
        ended = _end_server(folder)
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            cleared.append(Leftover(folder, ended))
    return cleared


def _end_server(folder: Path) -> int | None:
    """End the server of `folder` with all its processes; its pid, when it still ran."""
    server = folders.noted_server(folder)
    data = folder / keeper.POSTGRES_DATA
    # After SIGTERM a Postgres waits for its clients to leave.
    signals = (signal.SIGINT, signal.SIGQUIT) if data.is_dir() else (signal.SIGTERM,)
    ended = server.pid if server is not None and processes.end(server, folder, signals=signals) else None
    for process in processes.working_in(data, "postgres"):
        processes.end(process, data, signals=())
    keeper.remove_shared_memory(folder)
    return ended
