"""The first words to something that may or may not be Postgres, in its protocol.

Promises: those of `connection`. Does not log in: it goes as far as a server goes without a password, and psycopg, which
knows the rest, tells no error codes of a log-in that failed.
"""

from __future__ import annotations

import contextlib
import select
import struct
from typing import ClassVar

from pybench.errors import ServerError
from pybench.servers.connection import Connection
from pybench.servers.postgres.endpoint import PostgresEndpoint

PROTOCOL = 3 << 16
MOST_BYTES = 30_000
"""Of one message before the log-in; an error has some hundred."""

SOON_S = 0.25
"""Postgres answers in less; to web servers and Redis a greeting of its kind is no whole line."""

_KINDS = b"RESKNZ"
"""Of messages that come before a log-in is done."""

_TERMINATE = b"X\x00\x00\x00\x04"
_PASSWORDS = {3, 5, 10}
"""Plain, MD5 and SASL, as which SCRAM goes."""


class Refused(Exception):
    """An error message of the server, by the code that SQL has for it."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Greeting(Connection):
    """One connection that says who it is."""

    expected: ClassVar[str] = "Postgres"
    socket_hint: ClassVar[str] = "unix_socket_permissions"

    def __init__(self, endpoint: PostgresEndpoint, *, seconds: float) -> None:
        super().__init__(endpoint, seconds=seconds)
        self._endpoint = endpoint

    def greet(self) -> None:
        """Say user and database; returns when the server asks for a password that we have, or lets in without one.

        Raises Refused, ServerError.
        """
        names = {"user": self._endpoint.user, "database": self._endpoint.database, "application_name": "pybench"}
        pairs = b"".join(f"{name}\0{value}\0".encode() for name, value in names.items())
        self._send(struct.pack("!II", len(pairs) + 9, PROTOCOL) + pairs + b"\0")
        self._recognise_strangers()
        while True:
            kind, body = self._message()
            match kind:
                case b"E":
                    raise _refused(body)
                case b"R" if self._asks_for_password(body):
                    return
                case b"Z":
                    # It may have hung up already, over the line's end that it was sent while it was slow to answer.
                    with contextlib.suppress(ServerError):
                        self._send(_TERMINATE)
                    return
                case b"R" | b"S" | b"K" | b"N":
                    continue
            raise self._stranger(kind + body[:40])

    def _recognise_strangers(self) -> None:
        """Where no answer comes: give what is no Postgres something that it does answer."""
        if self._answers_soon():
            return
        # A web server has been waiting for the end of the line.
        self._send(b"\r\n\r\n")
        if self._answers_soon():
            return
        # Redis waits for ever, for it takes our zeros for the end of what has come.
        with contextlib.suppress(ServerError), Greeting(self._endpoint, seconds=min(SOON_S, self.left)) as beside:
            beside._send(b"PING / HTTP/1.0\r\n\r\n")
            beside._more()
            if beside._received[:1] not in _KINDS:
                self._received = beside._received

    def _answers_soon(self) -> bool:
        answers = select.poll()
        answers.register(self._socket, select.POLLIN)
        return bool(answers.poll(min(SOON_S, self.left) * 1000))

    def _asks_for_password(self, body: bytes) -> bool:
        way = int.from_bytes(body[:4], "big")
        if way == 0:
            return False
        if way not in _PASSWORDS:
            raise ServerError(
                f"{self._endpoint} asks for a log-in other than by password (kind {way})",
                hint="give this user a line with scram-sha-256 in its pg_hba.conf",
            )
        if self._endpoint.password is None:
            raise ServerError(
                f"{self._endpoint} asks for a password",
                hint="put it into the URL, postgresql://USER:PASSWORD@host/db, best by way of PYBENCH_POSTGRES_URL",
            )
        return True

    def _message(self) -> tuple[bytes, bytes]:
        """The next one: its kind, and what it says."""
        while len(self._received) < 5:
            if self._received and self._received[:1] not in _KINDS:
                raise self._stranger(self._received)
            self._more()
        length = int.from_bytes(self._received[1:5], "big")
        if self._received[:1] not in _KINDS or not 4 <= length <= MOST_BYTES:
            raise self._stranger(self._received)
        while len(self._received) < length + 1:
            self._more()
        kind, body = bytes(self._received[:1]), bytes(self._received[5 : length + 1])
        del self._received[: length + 1]
        self._answered = True
        return kind, body


def _refused(body: bytes) -> Refused:
    fields = {field[:1]: field[1:].decode("utf-8", "replace") for field in body.split(b"\0") if field}
    return Refused(fields.get(b"C", ""), fields.get(b"M", ""))
