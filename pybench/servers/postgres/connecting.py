"""Sessions through psycopg for pybench itself, and not for the load, which the Rust core sends.

Promises: errors are ServerErrors; no call outlasts its seconds, even when the server hangs. The environment of libpq
(PGHOST, PGPASSWORD, a service file) has no effect, since the Rust core does not read it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any, Final

import psycopg

from pybench.errors import ServerError
from pybench.numbers import format_seconds
from pybench.servers.connection import ANSWER_S
from pybench.servers.postgres.endpoint import PostgresEndpoint
from pybench.servers.postgres.refusals import failed

NAME = "pybench"
"""The `application_name` of these sessions."""

LEAST_TIMEOUT_S = 2
"""The shortest timeout of libpq, which knows whole seconds only."""

Session = psycopg.Connection[tuple[Any, ...]]
AsyncSession = psycopg.AsyncConnection[tuple[Any, ...]]


def connect(
    endpoint: PostgresEndpoint, *, peer: str | None = None, name: str = NAME, seconds: float = ANSWER_S
) -> Session:
    """A new session, each statement a transaction of its own. Raises ServerError, within `seconds`.

    `peer` is the numeric address to go to, where it is known.
    """
    arrived: list[Session] = []
    failures: list[psycopg.Error] = []
    late = threading.Event()

    def go() -> None:
        try:
            with _without_variables():
                parameters = {**_defaults(), **_parameters(endpoint, peer, name, seconds)}
                session = psycopg.connect(**parameters, autocommit=True, prepare_threshold=None)
        except psycopg.Error as error:
            failures.append(error)
            return
        arrived.append(session)
        if late.is_set():
            session.close()

    # In a thread because psycopg takes no deadline below two seconds, and resolves names without any.
    thread = threading.Thread(target=go, name="pybench-postgres-login", daemon=True)
    thread.start()
    thread.join(seconds)
    if arrived:
        return arrived[0]
    if failures:
        raise failed(endpoint, failures[0]) from None
    late.set()
    for session in arrived:
        session.close()
    raise ServerError(
        f"{endpoint} accepts connections but does not complete the log-in within {format_seconds(round(seconds, 1))}",
        hint="is it busy or stopped? see its log",
    )


async def connect_async(endpoint: PostgresEndpoint, *, name: str = NAME, seconds: float = ANSWER_S) -> AsyncSession:
    """As `connect`, for an event loop: a new session, each statement a transaction. Raises ServerError."""
    try:
        with _without_variables():
            parameters = {**_defaults(), **_parameters(endpoint, None, name, seconds)}
            async with asyncio.timeout(seconds):
                return await psycopg.AsyncConnection.connect(**parameters, autocommit=True)
    except TimeoutError:
        message = f"{endpoint} does not complete the log-in within {format_seconds(round(seconds, 1))}"
        raise ServerError(message, hint="is it busy or stopped? see its log") from None
    except psycopg.Error as error:
        raise failed(endpoint, error) from None


@contextlib.contextmanager
def within(endpoint: PostgresEndpoint, session: Session, seconds: float) -> Iterator[None]:
    """Inside, errors of `session` become ServerErrors. After `seconds` its connection is cut."""
    cut = threading.Event()
    # A second file descriptor of the same socket: it cannot become another's while we hold it.
    own = socket.socket(fileno=os.dup(session.fileno()))

    def cut_off() -> None:
        cut.set()
        with contextlib.suppress(OSError):
            own.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut_off)
    timer.daemon = True
    timer.start()
    try:
        yield
    except psycopg.Error as error:
        if cut.is_set():
            within = format_seconds(round(seconds, 1))
            raise ServerError(
                f"{endpoint} does not answer within {within}", hint="is it busy or stopped? see its log"
            ) from None
        raise failed(endpoint, error) from None
    finally:
        timer.cancel()
        timer.join()
        own.close()


@contextlib.contextmanager
def session(
    endpoint: PostgresEndpoint, *, peer: str | None = None, name: str = NAME, seconds: float = ANSWER_S
) -> Iterator[Session]:
    """A session that is closed at the end, with the deadline of `within`."""
    opened = connect(endpoint, peer=peer, name=name, seconds=seconds)
    try:
        with within(endpoint, opened, seconds):
            yield opened
    finally:
        opened.close()


_UNSAID: Final = ("PGSERVICE", "PGSERVICEFILE", "PGSYSCONFDIR", "PGTZ", "PGDATESTYLE", "PGGEQO", "PGREQUIRESSL")
"""Variables of libpq that no parameter overrides."""

_NOT_EMPTY: Final = {
    b"sslcertmode": b"disable",
    b"min_protocol_version": b"3.0",
    b"max_protocol_version": b"3.0",
}
"""Values for parameters without a default, which must not be empty."""

_hidden: dict[str, str] = {}
_hiding = threading.Lock()
_users = 0


@contextlib.contextmanager
def _without_variables() -> Iterator[None]:
    """Inside, the environment has none of `_UNSAID`; the last of several threads puts them back."""
    global _users
    with _hiding:
        _users += 1
        _hidden.update({name: os.environ.pop(name) for name in _UNSAID if name in os.environ})
    try:
        yield
    finally:
        with _hiding:
            _users -= 1
            if not _users:
                os.environ.update(_hidden)
                _hidden.clear()


def _defaults() -> dict[str, str]:
    """The default of each parameter that a variable sets: libpq reads a variable for a missing parameter only."""
    return {
        option.keyword.decode(): (option.compiled or _NOT_EMPTY.get(option.keyword, b"")).decode()
        for option in psycopg.pq.Conninfo.get_defaults()
        if option.envvar and option.envvar.decode() in os.environ
    }


def _parameters(endpoint: PostgresEndpoint, peer: str | None, name: str, seconds: float) -> dict[str, Any]:
    """The parameters for libpq, with each one that the environment could change otherwise."""
    return {
        "host": endpoint.folder or endpoint.host,
        "hostaddr": peer or "",
        "port": endpoint.port,
        "user": endpoint.user,
        "dbname": endpoint.database,
        "password": "" if endpoint.password is None else endpoint.password.get_secret_value(),
        # A path that cannot be: an empty one would be that of the user's own file.
        "passfile": f"{os.devnull}/none",
        "sslmode": "disable",
        "gssencmode": "disable",
        "channel_binding": "prefer",
        # The Rust core knows no other ways to log in.
        "require_auth": "password,md5,scram-sha-256,none",
        "target_session_attrs": "any",
        "client_encoding": "utf8",
        "options": "",
        "application_name": name,
        "connect_timeout": max(LEAST_TIMEOUT_S, math.ceil(seconds)),
    }
