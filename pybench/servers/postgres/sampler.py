"""What the sessions of a trial wait for, sampled ten times a second while it runs.

Promises: each sample is one short query on a session of its own. The sampler never ends or delays the trial, even when
the server dies or hangs.
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
"""Time for the last sample to end; after that its connection is cut."""

NAME = "pybench-sampler"

WORKING = "working"
"""The label of a session that works and waits for nothing."""

# The function behind pg_stat_activity. The view also looks up the names of database and user of each session.
_QUERY = b"""
SELECT state, wait_event_type, wait_event, count(*) FROM pg_stat_get_activity(NULL)
WHERE starts_with(application_name, $1) AND pid <> pg_backend_pid() GROUP BY 1, 2, 3
"""


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


class Sampler:
    """A context manager around a trial, which counts the sessions of `server` for `samples`.

    These are the sessions whose `application_name` begins with `application`. Raises nothing: an error goes into the
    samples.
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
        """End the sampling. May be called more than once."""
        self._over.set()
        thread, session = self._thread, self._session
        self._thread = self._session = None
        if thread is None or session is None:
            return
        thread.join(STOP_S)
        if thread.is_alive():
            # The server hangs. After the shutdown of its socket the thread ends at once.
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
                    self._sample(cursor)
                    due = max(due + self._every_s, time.monotonic())
                    self._over.wait(due - time.monotonic())
        except psycopg.Error as error:
            if not self._over.is_set():
                self._error = " ".join(str(error).split())

    def _sample(self, cursor: psycopg.RawCursor[tuple[str | None, str | None, str | None, int]]) -> None:
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
