"""What the sessions of a trial wait for, and what the server does, sampled ten times a second while the trial runs.

Promises: those of `sampling`; each sample is two short queries on a session of its own.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import psycopg

from pybench.errors import ServerError
from pybench.servers import sampling
from pybench.servers.postgres import cpu
from pybench.servers.postgres.connecting import Session
from pybench.servers.postgres.server import PostgresServer
from pybench.servers.sampling import EVERY_S, NAME, Sample

WORKING = "working"
"""The label of a session that works and waits for nothing."""
CLIENT = "Client"
"""The kind of waits for the client: a session that waits so does nothing, and blocks nobody but by its locks."""

# The function behind pg_stat_activity. The view also looks up the names of database and user of each session.
_QUERY = b"""
SELECT state, wait_event_type, wait_event, count(*) FROM pg_stat_get_activity(NULL)
WHERE starts_with(application_name, $1) AND pid <> pg_backend_pid() GROUP BY 1, 2, 3
"""
_WAL = b"SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8"


@dataclass(frozen=True, slots=True)
class Samples:
    """The sessions that were seen."""

    taken: int
    """How many samples."""
    seen: Mapping[str, int]
    """Sessions by what they waited for, all samples together: `Lock:transactionid`, `Client:ClientRead`; `working`.

    A session that waits for its client inside of a transaction is `Client:ClientRead (in transaction)`.
    """
    most_sessions: int
    """The most sessions in one sample."""
    error: str | None = None
    """What ended the sampling early."""

    def shares(self) -> dict[str, float]:
        """Of all sessions that were seen, the share that waited for each thing; the largest first."""
        total = sum(self.seen.values())
        ordered = sorted(self.seen.items(), key=lambda entry: (-entry[1], entry[0]))
        return {what: count / total for what, count in ordered}


class Sampler(sampling.Sampler):
    """Samples of `server` and of its sessions whose `application_name` begins with `application`."""

    expected = (ServerError, psycopg.Error)

    def __init__(self, server: PostgresServer, application: str, *, every_s: float = EVERY_S) -> None:
        assert application, "an empty name would count what is not ours"
        super().__init__(every_s=every_s)
        self._server = server
        self._application = application
        self._seen: Counter[str] = Counter()
        self._taken = 0
        self._most = 0
        self._main: int | None = None
        self._session: Session | None = None
        self._cursor: psycopg.RawCursor[tuple[object, ...]] | None = None

    @property
    def samples(self) -> Samples:
        """The sessions that were seen so far."""
        return Samples(self._taken, dict(self._seen), self._most, self.error)

    def open(self) -> None:
        """Open the session. Raises ServerError."""
        self._session = self._server.connect(name=NAME)
        self._main = self._server.pid or cpu.postmaster_of(self._server, self._session)
        self._cursor = psycopg.RawCursor(self._session)

    def sample(self) -> Sample:
        """Take one. Raises errors of psycopg."""
        assert self._cursor is not None, "it is opened first"
        # Prepared once: planning the queries takes longer than running them.
        prepare = not self._server.facts.pooled
        waits: dict[str, int] = {}
        for state, kind, event, count in self._cursor.execute(_QUERY, [self._application], prepare=prepare):
            label = _told(state, kind, event)
            waits[label] = waits.get(label, 0) + int(str(count))
        self._seen.update(waits)
        self._most = max(self._most, sum(waits.values()))
        self._taken += 1
        counters: dict[str, float] = {}
        with contextlib.suppress(psycopg.errors.ObjectNotInPrerequisiteState):  # A standby has no insert position.
            row = self._cursor.execute(_WAL, prepare=prepare).fetchone()
            counters |= {} if row is None else {"wal_bytes": float(str(row[0]))}
        spent_ns = None if self._main is None else cpu.running_ns(self._main)
        counters |= {} if spent_ns is None else {"cpu_us": spent_ns / 1e3}
        blocked = sum(n for label, n in waits.items() if label != WORKING and not label.startswith(f"{CLIENT}:"))
        return Sample(time.monotonic_ns(), counters, {"waiting": blocked}, waits)

    def cut(self) -> None:
        """Shut the socket of the session down."""
        if self._session is None:
            return
        with contextlib.suppress(OSError), socket.socket(fileno=self._session.fileno()) as own:
            own.shutdown(socket.SHUT_RDWR)
            own.detach()

    def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            self._session.close()


def _told(state: object, kind: object, event: object) -> str:
    if kind is None or event is None:
        return WORKING
    in_transaction = state is not None and str(state).startswith("idle in transaction")
    return f"{kind}:{event}" + (" (in transaction)" if in_transaction else "")
