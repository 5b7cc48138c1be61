"""What is done to real servers while a trial runs on them: one fault after another, drawn from a seed.

Promises: no fault takes a lock away that its server has granted, but with the session that holds it; so no lock that
promises exclusion may be blamed for what comes of it. Whatever was paused goes on again.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import redis

from pybench import _core
from pybench.servers import Server
from pybench.servers.postgres.connecting import Session
from tests.boundary.databases import Database
from tests.redis_client import connect

CLIENT = "pybench-test"
"""How the sessions and connections of the trials are named."""

Interfere = Callable[[random.Random], None]
"""One fault, drawn."""


@contextlib.contextmanager
def on_redis(servers: Sequence[Server]) -> Iterator[Interfere]:
    """Cut connections, flushed scripts, a pause: each time of one of the servers."""
    with contextlib.ExitStack() as stack:
        users = [stack.enter_context(connect(server.endpoint)) for server in servers]
        yield lambda chance: _hurt_redis(chance.choice(users), chance)


def _hurt_redis(user: redis.Redis, chance: random.Random) -> None:
    match chance.choice(["cut", "cut", "flush", "pause"]):
        case "cut":
            own = [entry["id"] for entry in user.client_list() if entry["name"] == CLIENT]
            for connection in chance.sample(own, k=min(len(own), chance.randint(1, 4))):
                user.client_kill_filter(_id=connection)
        case "flush":
            user.script_flush()
        case "pause":
            user.client_pause(chance.randint(1, 120), all=True)
            time.sleep(0.05)


@contextlib.contextmanager
def on_postgres(database: Database) -> Iterator[Interfere]:
    """Terminated sessions, cancelled statements, a backend that stands still."""
    with database.connect() as session:
        yield lambda chance: _hurt_postgres(session, chance)


def _hurt_postgres(session: Session, chance: random.Random) -> None:
    sql = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"
    own = [int(pid) for (pid,) in session.execute(sql, [CLIENT]).fetchall()]
    chosen = chance.sample(own, k=min(len(own), chance.randint(1, 4)))
    match chance.choice(["terminate", "terminate", "cancel", "pause"]):
        case "terminate":
            session.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) pid", [chosen])
        case "cancel":
            session.execute("SELECT pg_cancel_backend(pid) FROM unnest(%s::int[]) pid", [chosen])
        case "pause":
            for pid in chosen[:1]:
                _pause(pid, chance.uniform(0.01, 0.12))


def _pause(pid: int, seconds: float) -> None:
    """A process that has ended meanwhile is let be."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(pid, signal.SIGCONT)


def run_under(faults: Sequence[Interfere], spec: Any, chance: random.Random) -> _core.TrialResult:  # noqa: ANN401
    """A trial of `spec`; `faults`, each time one of them, from when all its connections stand until its end."""
    done = threading.Event()
    trial = _core.Trial(spec)

    def interfere() -> None:
        # A connection that is cut before the trial begins is no fault in the trial: it is refused.
        while trial.progress().phase == "connecting" and not done.wait(0.001):
            pass
        while not done.wait(chance.uniform(0.01, 0.06)):
            chance.choice(faults)(chance)

    thread = threading.Thread(target=interfere)
    thread.start()
    try:
        return trial.run()
    finally:
        done.set()
        thread.join()
