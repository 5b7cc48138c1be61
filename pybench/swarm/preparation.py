"""What is made ready before a native swarm starts: servers, plan, run folder, and the checks of checker and lock.

The checks are those of `pybench run`: without a control that was caught a verdict is VOID.

Promises: servers that pybench starts live on from test to test while the settings stay the same, and end with `close`.
The checks of the same lock on the same servers are made once.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench.errors import InputError, PybenchError, RecordError
from pybench.numbers import plural
from pybench.planning.needs import own_connections, servers_in
from pybench.planning.placement import Placement
from pybench.planning.plan import make_plan
from pybench.records import RunFolder, build_manifest
from pybench.running.interrupts import Interrupts
from pybench.running.job import RESULTS, plan_with_servers, require_core
from pybench.running.runner import Runner
from pybench.running.watch import Silent
from pybench.servers import ServerPool, clear_leftovers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell
    from pybench.planning.plan import Plan
    from pybench.running.observer import Observer, RunTrial
    from pybench.servers import AnyServer
    from pybench.swarm.settings import Settings

logger = logging.getLogger(__name__)

ROOM = 4
"""A trial has room for so many times the clients that a test starts with, so that users can be added while it runs."""
ROOM_AT_LEAST = 1_024
CHECKED = ("control", "probes", "baseline")
"""The entries of the manifest that the checks make."""


class Notes(Silent):
    """A watcher that logs the notes of a run, and keeps them."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        """Keep and log a message for the user."""
        self.texts.append(text)
        logger.info("%s", text)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A test that can start."""

    settings: Settings
    matrix: Matrix
    """With the clients of all processes together, as their servers meet them."""
    cell: Cell
    """The lock and its load, with room for the clients of one process."""
    plan: Plan
    placement: Placement
    servers: Sequence[AnyServer]


class Preparation:
    """The servers and checks of the tests of one process, one test after another."""

    def __init__(self, run: RunTrial, *, binds: bool, command: Sequence[str]) -> None:
        self._run = run
        self._binds = binds
        self._command = command
        self._pool: ServerPool | None = None
        self._prepared: Prepared | None = None
        self._asked: tuple[Settings, int, int] | None = None
        self._checked: tuple[Prepared, dict[str, Any], Observer] | None = None

    def prepare(self, settings: Settings, *, users: int, processes: int) -> Prepared:
        """Reach the servers, and start those that are missing; nothing changes while the settings are the same.

        `users` of Locust are spread over so many `processes`. Raises PybenchError for a lock that these servers cannot
        have, and for a server that cannot be reached.
        """
        require_core()
        clients = room(settings, -(-max(users, 1) // max(processes, 1)))
        asked, known = (settings, clients, processes), self._prepared
        if known is not None and self._pool is not None and self._asked == asked:
            self._pool.check()
            return known
        self.close()
        for leftover in clear_leftovers():
            logger.info("left by a killed run: %s", leftover)
        self._pool = ServerPool()
        try:
            # The servers have to bear the connections of all processes.
            matrix = settings.matrix(clients * max(processes, 1))
            require_possible(make_plan(matrix))
            plan, placement, servers = plan_with_servers(matrix, self._pool, binds=self._binds)
        except BaseException:
            self.close()
            raise
        cell = settings.cell(settings.matrix(clients))
        self._prepared = Prepared(settings, matrix, cell, plan, placement, servers)
        self._asked = asked
        return self._prepared

    def check(self, prepared: Prepared, watch: Notes) -> tuple[Observer, RunFolder]:
        """Make the run folder of a test, and check the checker and the lock.

        Raises ServerError where a server fails, and RecordError where the folder cannot be written.
        """
        assert self._pool is not None, "a test is prepared before it is checked"
        plan = prepared.plan
        for note in [*plan.warnings, *plan.notes, *prepared.placement.notes()]:
            watch.note(note)
        folder = self._new_folder(prepared)
        try:
            runner = Runner(plan, prepared.placement, self._pool, folder, watch, Interrupts(), self._run)
            if self._checked is not None and self._checked[0] is prepared:
                folder.update_manifest(**self._checked[1])
                runner.observer.baselines = self._checked[2].baselines
            else:
                runner.clear_leftovers()
                runner.check(plan.cells)
                entries = {name: folder.manifest[name] for name in CHECKED if name in folder.manifest}
                self._checked = (prepared, entries, runner.observer)
            folder.update_manifest(key_prefix=f"pybench:{runner.observer.run_id}:")
        except BaseException as error:
            folder.release()
            if isinstance(error, KeyboardInterrupt):
                raise PybenchError("a check before the test was stopped", hint="start the test again") from error
            raise
        return runner.observer, folder

    def servers_of(self, prepared: Prepared, observer: Observer, cell: Cell) -> list[AnyServer]:
        """The servers of `cell`, in the order in which its lock numbers them."""
        assert self._pool is not None, "a test is prepared before its servers are used"
        for group, demand in observer.demands.items():
            servers_in(self._pool, prepared.matrix, group, demand)
        return observer.servers(cell)

    def close(self) -> None:
        """End the servers that pybench started."""
        self._prepared = self._checked = None
        if self._pool is not None:
            pool, self._pool = self._pool, None
            pool.close()

    def _new_folder(self, prepared: Prepared) -> RunFolder:
        matrix = prepared.matrix
        manifest = build_manifest(
            name=matrix.name,
            seed=matrix.seed,
            matrix_given=None,
            matrix_expanded=matrix.to_dict(),
            cells=prepared.plan.cells,
            order=prepared.plan.order,
            servers=[server.manifest() for server in prepared.servers],
            placement=prepared.placement.manifest(),
            local_servers=[server.manifest() for server in prepared.placement.given],
            command=self._command,
            secrets=matrix.secrets,
        )
        folder = RunFolder.create(folder_path(prepared.settings.out), manifest)
        folder.claim()
        return folder


def require_possible(plan: Plan) -> None:
    """Raise InputError with the reason where the one cell of `plan` is refused."""
    for refused in plan.refused:
        raise InputError(f"this test is impossible: {refused.reason}", hint="change the options, and start again")


def room(settings: Settings, users: int) -> int:
    """How many clients the trial of a process with so many `users` at the start has room for.

    A lock whose clients have connections of their own opens all of them at once, so it has no spare room.
    """
    clients = users * settings.clients_per_user
    cell = settings.cell(settings.matrix(clients))
    return clients if own_connections(cell) else max(ROOM * clients, ROOM_AT_LEAST)


def room_sentence(prepared: Prepared, clients: int, where: str) -> str:
    """That users of a process stand for more clients than its trial has room for."""
    own = own_connections(prepared.cell)
    why = f", since {prepared.cell.strategy} opens a connection per client at the start" if own else ""
    return (
        f"{where} drives {plural(clients, 'client')}, fewer than its users stand for{why}; stop and start the test "
        "again with all users"
    )


def folder_path(out: str) -> Path:
    """The folder of the next test: `out`, or a new one under `results/`; with a number where that is taken."""
    first = Path(out) if out else RESULTS / f"locust-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    tries = (first, *(first.with_name(f"{first.name}-{number}") for number in range(2, 10_000)))
    try:
        return next(path for path in tries if not path.exists() or (path.is_dir() and not any(path.iterdir())))
    except OSError as error:
        raise RecordError(
            f"the run folder {first} cannot be made: {error.strerror}", hint="choose another --out"
        ) from None
