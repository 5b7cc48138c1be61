"""What the sessions of a trial wait for, looked at ten times a second while it runs.

Promises: costs one short query each time, on a session of its own; never ends or delays the trial, also when the server
dies or hangs; `stop` returns within `STOP_S`.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import psycopg

from pybench.errors import ServerError
from pybench.servers.postgres.connecting import Session
from pybench.servers.postgres.server import PostgresServer

EVERY_S = 0.1
STOP_S = 0.5
"""For an answer that is on its way; the session is cut off then."""

NAME = "pybench-sampler"

WORKING = "working"
"""What is said of a session that has something to do and waits for nothing."""

# What the view pg_stat_activity looks at, without the names of databases and users that it looks up for each session.
_QUERY = b"""
SELECT state, wait_event_type, wait_event, count(*) FROM pg_stat_get_activity(NULL)
WHERE starts_with(application_name, $1) AND pid <> pg_backend_pid() GROUP BY 1, 2, 3
"""


@dataclass(frozen=True, slots=True)
class Samples:
    """What was seen."""

    taken: int
    """How many looks."""
    seen: Mapping[str, int]
    """Sessions by what they waited for, all looks together: `Lock:transactionid`, `Client:ClientRead`; `working`.

    A session that waits for its client inside of a transaction is `Client:ClientRead (in transaction)`.
    """
    most_sessions: int
    """At one look."""
    error: str | None = None
    """What ended the looking before its time."""

    def shares(self) -> dict[str, float]:
        """Of all sessions that were seen, the share that waited for each thing; the largest first."""
        total = sum(self.seen.values())
        ordered = sorted(self.seen.items(), key=lambda entry: (-entry[1], entry[0]))
        return {what: count / total for what, count in ordered}


class Sampler:
    """A context manager around a trial; `samples` are there afterwards.

    It looks at the sessions of `server` whose `application_name` begins with `application`. Raises nothing: what keeps
    it from looking stands in the samples.
    """

    def __init__(self, server: PostgresServer, application: str, *, every_s: float = EVERY_S) -> None:
        assert application, "an empty name would count what is not ours"
        self._server = server
        self._application = application
        self._every_s = every_s
        self._seen: Counter[str] = Counter()
        self._taken = 0
        self._most = 0
        self._error: str | None = None
        self._over = threading.Event()
        self._session: Session | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Open the session, before the trial begins."""
        try:
            self._session = self._server.connect(name=NAME)
        except ServerError as error:
            self._error = error.message
            return self
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def samples(self) -> Samples:
        """What was seen so far."""
        return Samples(self._taken, dict(self._seen), self._most, self._error)

    def stop(self) -> None:
        """End the looking. May be called more than once."""
        self._over.set()
        thread, session = self._thread, self._session
        self._thread = self._session = None
        if thread is None or session is None:
            return
        thread.join(STOP_S)
        if thread.is_alive():
            # A server that hangs: without its socket the thread comes back at once.
            with contextlib.suppress(OSError), socket.socket(fileno=session.fileno()) as own:
                own.shutdown(socket.SHUT_RDWR)
                own.detach()
            thread.join(STOP_S)
        session.close()

    def _run(self) -> None:
        session = self._session
        assert session is not None, "it was opened before the thread was started"
        due = time.monotonic()
        try:
            # Prepared once: planning it takes longer than running it.
            with psycopg.RawCursor(session) as cursor:
                while not self._over.is_set():
                    self._look(cursor)
                    due = max(due + self._every_s, time.monotonic())
                    self._over.wait(due - time.monotonic())
        except psycopg.Error as error:
            if not self._over.is_set():
                self._error = " ".join(str(error).split())

    def _look(self, cursor: psycopg.RawCursor[tuple[str | None, str | None, str | None, int]]) -> None:
        sessions = 0
        for state, kind, event, count in cursor.execute(
            _QUERY, [self._application], prepare=not self._server.facts.pooled
        ):
            self._seen[_told(state, kind, event)] += count
            sessions += count
        self._most = max(self._most, sessions)
        self._taken += 1


def _told(state: str | None, kind: str | None, event: str | None) -> str:
    if kind is None or event is None:
        return WORKING
    in_transaction = state is not None and state.startswith("idle in transaction")
    return f"{kind}:{event}" + (" (in transaction)" if in_transaction else "")
