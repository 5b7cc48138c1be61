"""Commands to a Redis server, with a deadline, at an address where something else may listen.

Promises: those of `connection`; an announced length allocates nothing. redis-py 8.1 does not keep them: its timeout
starts anew with each byte, and its parser keeps all that comes, 3.4 GB of an endless reply in 6 s. A socket that bounds
both can be put under redis-py only through its private classes, and that takes more lines than this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pybench.servers.connection import MOST_BYTES, Connection
from pybench.servers.redis.endpoint import Endpoint

Reply = bytes | int | list["Reply"] | None

MOST_ELEMENTS = 65_536
"""The longest array. A step of SCAN returns some thousand keys."""

_RESP3_MAP = b"%"


class Refusal(Exception):
    """An error reply of the server."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.code = text.partition(" ")[0]


class Conversation(Connection[Endpoint]):
    """One connection. Every method raises ServerError, as `connection` says."""

    expected: ClassVar[str] = "Redis"
    socket_hint: ClassVar[str] = "unixsocketperm"

    def log_in(self) -> None:
        """Log in with the user and password of the address, and choose its database. Raises Refusal."""
        where = self._where
        if where.password is not None or where.username is not None:
            password = "" if where.password is None else where.password.get_secret_value()
            self.ask("AUTH", *([where.username] if where.username is not None else []), password)
        if where.db:
            self.ask("SELECT", str(where.db))

    def ask(self, *words: str | bytes) -> Reply:
        """Send one command and read its reply. Raises Refusal for an error reply."""
        [reply] = self.ask_all([words])
        return reply

    def ask_all(self, commands: Sequence[Sequence[str | bytes]]) -> list[Reply]:
        """Send all of `commands` at once and read their replies.

        Raises Refusal for the first error reply. The connection is of no use after that: other replies are unread.
        """
        self._send(b"".join(_encoded(words) for words in commands))
        replies: list[Reply] = []
        for _ in commands:
            replies.append(self._read())
            self._answered = True
        return replies

    def _line(self) -> bytes:
        while (end := self._received.find(b"\r\n")) < 0:
            self._look_at_the_first_bytes()
            self._more()
        line = bytes(self._received[:end])
        del self._received[: end + 2]
        return line

    def _look_at_the_first_bytes(self) -> None:
        # No reply to our commands is a line of this length or begins so: fail now, and not at the deadline.
        if self._received and (self._received[:1] not in b"+-:$*%" or len(self._received) > 1024):
            raise self._stranger(self._received)

    def _read(self, depth: int = 0) -> Reply:
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest
        if kind == b"-":
            raise Refusal(rest.decode("utf-8", "replace"))
        if kind == _RESP3_MAP:
            return rest  # Only HELLO 3, the last command, has such a reply. The rest of it stays unread.
        try:
            number = int(rest)
        except ValueError:
            raise self._stranger(line) from None
        if kind == b":":
            return number
        if kind == b"$" and -1 <= number <= MOST_BYTES:
            return None if number < 0 else self._bulk(number)
        if kind == b"*" and -1 <= number <= MOST_ELEMENTS and depth < 4:
            return None if number < 0 else [self._read(depth + 1) for _ in range(number)]
        raise self._stranger(line)

    def _bulk(self, length: int) -> bytes:
        while len(self._received) < length + 2:
            self._more()
        value = bytes(self._received[:length])
        del self._received[: length + 2]
        return value


def fields(info: Reply) -> dict[str, str]:
    """The fields of a reply to INFO by name; empty for any other reply."""
    text = info.decode("utf-8", "replace") if isinstance(info, bytes) else ""
    pairs = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, colon, value in pairs if colon}


def _encoded(words: Sequence[str | bytes]) -> bytes:
    parts = [word if isinstance(word, bytes) else word.encode("utf-8", "surrogateescape") for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
