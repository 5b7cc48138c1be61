"""The first messages to an address where a Postgres, something else or nothing may listen, before psycopg logs in.

Promises: those of `connection`. psycopg 3.3 does the log-in, but cannot do this part: it has no SQLSTATE of a refused
session, whose text may be in any language, and waits in silence for a web server or a Redis to speak.
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
"""The longest message before the session is ready. An error has some hundred bytes."""

SOON_S = 0.25
"""Postgres answers in less. A web server or a Redis waits for more, since a startup message has no end of line."""

_KINDS = b"RESKNZ"
"""The kinds of messages that a server sends before a session is ready."""

_TERMINATE = b"X\x00\x00\x00\x04"
_AUTHENTICATED = bytes(4)


class Refused(Exception):
    """An error message of the server, with its SQLSTATE."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Greeting(Connection[PostgresEndpoint]):
    """One connection that names its user and database, and knows no password."""

    expected: ClassVar[str] = "Postgres"
    socket_hint: ClassVar[str] = "unix_socket_permissions"

    def greet(self) -> None:
        """Ask for a session. Returns when the server wants the client to prove who it is, or the session is ready.

        Raises Refused, ServerError.
        """
        names = {"user": self._where.user, "database": self._where.database, "application_name": "pybench"}
        pairs = b"".join(f"{name}\0{value}\0".encode() for name, value in names.items())
        self._send(struct.pack("!II", len(pairs) + 9, PROTOCOL) + pairs + b"\0")
        self._recognise_strangers()
        while True:
            kind, body = self._message()
            match kind:
                case b"E":
                    raise _refused(body)
                case b"R" if body[:4] != _AUTHENTICATED:
                    return
                case b"Z":
                    # A slow Postgres may have ended the session already: it took the end of line below for a message.
                    with contextlib.suppress(ServerError):
                        self._send(_TERMINATE)
                    return
                case b"R" | b"S" | b"K" | b"N":
                    continue
            raise self._stranger(kind + body[:40])

    def _recognise_strangers(self) -> None:
        """Make a server of another protocol answer, so that the error can name it."""
        if self._answers_soon():
            return
        # A web server waits for the end of a line.
        self._send(b"\r\n\r\n")
        if self._answers_soon():
            return
        # Redis takes the zeros of the startup message for the end of the text, and waits for ever.
        with contextlib.suppress(ServerError), Greeting(self._where, seconds=min(SOON_S, self.left)) as beside:
            beside._send(b"PING / HTTP/1.0\r\n\r\n")
            beside._more()
            if beside._received[:1] not in _KINDS:
                self._received = beside._received

    def _answers_soon(self) -> bool:
        answers = select.poll()
        answers.register(self._socket, select.POLLIN)
        return bool(answers.poll(min(SOON_S, self.left) * 1000))

    def _message(self) -> tuple[bytes, bytes]:
        """The next one: its kind and its body."""
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
