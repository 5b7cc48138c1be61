"""A Postgres that pybench started, as the tests of the core use it: its table, its sessions, its end and its return."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from pybench import _core
from pybench.servers.postgres import (
    Effects,
    account,
    binaries,
    drop_schema,
    prepare_schema,
    read_effects,
    schema_name,
    supervisor,
    table_name,
)
from pybench.servers.postgres.connecting import Session, connect
from pybench.servers.postgres.supervisor import SupervisedPostgres
from tests.core_trials import MS, fixed, trial_spec_of
from tests.waiting import wait_until

SCHEMA = schema_name("0", "test")
TABLE = table_name(SCHEMA)
PATIENCE_S = 20.0
ENOUGH = 10
"""Grants that show that work goes on."""


class Database:
    """A server that runs. Its Unix socket asks for no password, its port asks for one by SCRAM-SHA-256."""

    def __init__(self, process: SupervisedPostgres) -> None:
        self.process = process
        self._again: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return (self.process.folder / "server.log").read_text(encoding="utf-8")

    @property
    def pid(self) -> int:
        return self.process.pid if self._again is None else self._again.pid

    @property
    def socket(self) -> str:
        """The path of its Unix socket."""
        return self.process.private.unix or ""

    def core_spec(self, *, tcp: bool = False, **fields: object) -> dict[str, Any]:
        """As the core takes it; any field can be said anew."""
        endpoint = self.process.endpoint
        assert endpoint.password is not None
        spec: dict[str, Any] = {
            "kind": "postgres",
            "unix": None if tcp else self.socket,
            "host": "127.0.0.1" if tcp else None,
            "port": endpoint.port,
            "user": endpoint.user,
            "password": endpoint.password.get_secret_value() if tcp else None,
            "database": endpoint.database,
            "table": TABLE,
            "settings": {},
            "prepare": "named",
        }
        return spec | fields

    def connect(self) -> Session:
        """A session of its own, each statement a transaction."""
        return connect(self.process.private, name="test")

    def make_table(self, keys: int) -> None:
        """The table of locks, new, with a row for each key."""
        with self.connect() as session:
            drop_schema(session, SCHEMA)
            prepare_schema(session, SCHEMA, keys)

    def effects(self) -> Effects:
        """What the work of a trial left in the table."""
        with self.connect() as session:
            return read_effects(session, SCHEMA)

    def advisory_locks(self) -> int:
        """Those that any session holds or waits for."""
        with self.connect() as session:
            [count] = session.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone() or [0]
        return int(count)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Break off what its clients do; SIGQUIT: without writing what it has in memory."""
        if self._again is None:
            os.kill(self.process.pid, number)
            wait_until(lambda: not self.process.is_running(), "the server ends")
        else:
            self._again.send_signal(number)
            self._again.wait(PATIENCE_S)

    def start(self) -> None:
        """Again on the same data, until it takes sessions."""
        runs_as = account.account()
        identity = {} if runs_as is None else {"user": runs_as.user, "group": runs_as.group, "extra_groups": []}
        data = self.process.folder / "data"
        with (self.process.folder / "server.log").open("ab") as log:
            self._again = subprocess.Popen(
                [self.process.binary.path, "-D", data], stdin=subprocess.DEVNULL, stdout=log, stderr=log, **identity
            )
        wait_until(lambda: "ready" in _lines(data / "postmaster.pid"), "the server starts again")

    def end(self) -> None:
        """Of its own and with all that it has."""
        if self._again is not None and self._again.poll() is None:
            self.stop(signal.SIGQUIT)
        self.process.stop()


def _lines(path: Any) -> list[str]:  # noqa: ANN401 - a path
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return []


@contextlib.contextmanager
def running(*, sessions: int = 0) -> Iterator[Database]:
    """One with room for so many sessions, at least 80."""
    process, _ = supervisor.start(binaries.find("auto"), transport="tcp", sessions=sessions)
    database = Database(process)
    try:
        with database.connect() as session:
            # Tables are made all the time, and this machine does not lose its power in the tests.
            session.execute("ALTER SYSTEM SET fsync = off")
            session.execute("SELECT pg_reload_conf()")
        yield database
    finally:
        database.end()


def sessions_of(database: Database, name: str, *, until: Callable[[set[int]], bool]) -> set[int]:
    """The processes of the sessions that are shown under `name`, once they are as wanted."""
    sql = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"
    pids: set[int] = set()

    def are_as_wanted() -> bool:
        pids.clear()
        pids.update(pid for (pid,) in session.execute(sql, [name]).fetchall())
        return until(pids)

    with database.connect() as session:
        wait_until(are_as_wanted, f"the sessions of {name} are as wanted")
    return pids


class Watched:
    """A trial in the background, on a table of its own and on eight sessions that are known by their name."""

    def __init__(self, database: Database, *, server: dict[str, Any] | None = None, **fields: object) -> None:
        fields = {"keys": 4, "key_prefix": "watched:", "hold": fixed(1), "duration_ns": 60_000 * MS, **fields}
        database.make_table(int(str(fields["keys"])))
        servers = [database.core_spec() if server is None else server]
        self.trial = _core.Trial(trial_spec_of(servers, client_name="watched", **fields))
        self.database = database
        self.result: _core.TrialResult | None = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever became of the test: its trial goes on for no longer."""
        self.trial.stop()
        self.thread.join()

    def _run(self) -> None:
        self.result = self.trial.run()

    def sessions(self) -> set[int]:
        """Their processes, once all stand and locks are granted."""
        wait_until(lambda: self.trial.progress().grants, "locks are granted")
        return sessions_of(self.database, "watched", until=lambda pids: len(pids) == 8)

    def await_grants(self) -> None:
        """Until there were grants that came after this call."""
        # Progress is told every 100 ms: what it tells first may be older.
        for _ in range(2):
            before = self.trial.progress().grants
            wait_until(lambda before=before: self.trial.progress().grants >= before + ENOUGH, "grants go on")

    def finish(self) -> _core.TrialResult:
        begin = time.monotonic()
        self.trial.stop()
        self.thread.join()
        assert time.monotonic() - begin < 2, "a stop is heeded at once"
        assert self.result is not None
        return self.result

    def totals(self) -> dict[str, int]:
        """What it came to, once it is ended."""
        return self.finish().totals


def number_of(name: str) -> str:
    """The SQL of the number that an advisory lock of this name is on."""
    return f"('x' || left(encode(sha256('{name}'), 'hex'), 16))::bit(64)::bigint"
