"""Questions to something that may or may not be a Redis server, or no longer be one, within a deadline.

Promises: ends by its deadline whatever the other side does or sends, and keeps a bounded number of bytes: a length
that is merely announced allocates nothing, and a byte now and then does not put the deadline off.
"""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from pybench.errors import ServerError
from pybench.servers.endpoint import Endpoint

Reply = bytes | int | list["Reply"] | None

MOST_BYTES = 4_000_000
"""Of what answers the questions that were asked together; INFO is some thousands."""

MOST_ELEMENTS = 65_536
"""Of one array; a step of SCAN is some thousand."""

_RESP3_MAP = b"%"


class Refusal(Exception):
    """An error reply: the server answers, and says no."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.code = text.partition(" ")[0]


class Conversation:
    """One connection. Every method raises ServerError when there is no sense to be had from the other side."""

    def __init__(self, endpoint: Endpoint, *, seconds: float) -> None:
        self._endpoint = endpoint
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._received = bytearray()
        self._bytes = 0
        self._answered = False
        self._socket = self._connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    @property
    def peer(self) -> str | None:
        """The numeric address that answered; None for a Unix socket."""
        return None if self._endpoint.unix is not None else str(self._socket.getpeername()[0])

    def allow(self, seconds: float) -> None:
        """Set the deadline anew: `seconds` from now."""
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def log_in(self) -> None:
        """Say the user and password of the address, and choose its database. Raises Refusal."""
        where = self._endpoint
        if where.password is not None or where.username is not None:
            password = "" if where.password is None else where.password.get_secret_value()
            self.ask("AUTH", *([where.username] if where.username is not None else []), password)
        if where.db:
            self.ask("SELECT", str(where.db))

    def ask(self, *words: str | bytes) -> Reply:
        """Send one command and read its answer. Raises Refusal for an error reply."""
        [reply] = self.ask_all([words])
        return reply

    def ask_all(self, commands: Sequence[Sequence[str | bytes]]) -> list[Reply]:
        """Send all of `commands` at once and read their answers.

        Raises Refusal for the first error reply, after which nothing else can be asked.
        """
        self._send(b"".join(_encoded(words) for words in commands))
        replies: list[Reply] = []
        for _ in commands:
            replies.append(self._read())
            self._answered = True
        return replies

    def _send(self, data: bytes) -> None:
        self._bytes = len(self._received)
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(data)
        except OSError as error:
            raise self._silence(error) from None

    def _connect(self) -> socket.socket:
        where = self._endpoint
        try:
            if where.unix is not None:
                return self._connect_to(socket.AF_UNIX, where.unix)
            found = self._resolve()
            for index, (family, address) in enumerate(found):
                try:
                    return self._connect_to(family, address, share=len(found) - index)
                except OSError:
                    if index == len(found) - 1:
                        raise
        except socket.gaierror as error:
            raise ServerError(f"{where}: no such host ({error.strerror})", hint="check the name in the URL") from None
        except OSError as error:
            raise self._unreachable(error) from None
        raise AssertionError("a name resolves to at least one address")

    def _resolve(self) -> list[tuple[int, object]]:
        # In a thread because the resolver knows no deadline of ours; a late answer falls on the floor.
        found: list[tuple[int, object]] = []
        failed: list[OSError] = []

        def ask() -> None:
            try:
                answers = socket.getaddrinfo(self._endpoint.host, self._endpoint.port, type=socket.SOCK_STREAM)
                found.extend((family, address) for family, _, _, _, address in answers)
            except OSError as error:
                failed.append(error)

        resolver = threading.Thread(target=ask, daemon=True)
        resolver.start()
        resolver.join(self._left())
        if failed:
            raise failed[0]
        if not found:
            raise TimeoutError
        return found

    def _connect_to(self, family: int, address: object, *, share: int = 1) -> socket.socket:
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            # A name may stand for several addresses: the first that hangs must leave time for the next.
            connection.settimeout(self._left() / share)
            connection.connect(address)  # type: ignore[arg-type]
        except BaseException:
            connection.close()
            raise
        return connection

    def _unreachable(self, error: OSError) -> ServerError:
        where = self._endpoint
        if isinstance(error, TimeoutError):
            return ServerError(
                f"{where} does not answer within {self._seconds:g} s", hint="check host, port and firewalls"
            )
        if error.errno == errno.ENOENT:
            return ServerError(f"{where}: no such socket", hint="start the server, or check the path")
        if error.errno == errno.ECONNREFUSED:
            return ServerError(
                f"{where} refuses connections: nothing listens there", hint="start the server, or check the address"
            )
        if error.errno == errno.EACCES:
            return ServerError(
                f"{where}: permission denied", hint="the socket belongs to another user: see unixsocketperm"
            )
        return ServerError(f"{where} cannot be reached: {error.strerror or error}", hint="check the address")

    def _silence(self, error: OSError) -> ServerError:
        where = self._endpoint
        if isinstance(error, TimeoutError):
            if self._received:
                return ServerError(
                    f"{where} sent only part of a reply within {self._seconds:g} s{self._shown(self._received)}",
                    hint="is this a Redis server, and is it healthy?",
                )
            return ServerError(
                f"{where} accepts connections but does not answer within {self._seconds:g} s",
                hint="is this a Redis server, and is it busy or stopped?",
            )
        return ServerError(
            f"{where} closed the connection" + ("" if self._answered else " without an answer"),
            hint="is this a Redis server? a server that asks for TLS cannot be used yet",
        )

    def _left(self) -> float:
        # Zero would mean "do not block", an error of another kind.
        return max(self._deadline - time.monotonic(), 0.001)

    def _more(self) -> None:
        try:
            if time.monotonic() >= self._deadline:
                raise TimeoutError
            self._socket.settimeout(self._left())
            got = self._socket.recv(65536)
            if not got:
                raise ConnectionResetError
        except OSError as error:
            raise self._silence(error) from None
        self._bytes += len(got)
        if self._bytes > MOST_BYTES:
            raise self._not_redis(self._received)
        self._received += got

    def _line(self) -> bytes:
        while (end := self._received.find(b"\r\n")) < 0:
            self._look_at_the_first_bytes()
            self._more()
        line = bytes(self._received[:end])
        del self._received[: end + 2]
        return line

    def _look_at_the_first_bytes(self) -> None:
        # Told at once and not at the deadline: no reply of ours is a line of this length or of such a beginning.
        if self._received and (self._received[:1] not in b"+-:$*%" or len(self._received) > 1024):
            raise self._not_redis(self._received)

    def _read(self, depth: int = 0) -> Reply:
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest
        if kind == b"-":
            raise Refusal(rest.decode("utf-8", "replace"))
        if kind == _RESP3_MAP:
            return rest  # Only the last question, HELLO 3, is answered so: what follows stays unread.
        try:
            number = int(rest)
        except ValueError:
            raise self._not_redis(line) from None
        if kind == b":":
            return number
        if kind == b"$" and -1 <= number <= MOST_BYTES:
            return None if number < 0 else self._bulk(number)
        if kind == b"*" and -1 <= number <= MOST_ELEMENTS and depth < 4:
            return None if number < 0 else [self._read(depth + 1) for _ in range(number)]
        raise self._not_redis(line)

    def _bulk(self, length: int) -> bytes:
        while len(self._received) < length + 2:
            self._more()
        value = bytes(self._received[:length])
        del self._received[: length + 2]
        return value

    def _not_redis(self, begins: bytes | bytearray) -> ServerError:
        where = self._endpoint
        if begins[:15].lower().startswith((b"http/", b"<!doctype html", b"<html")):
            return ServerError(f"{where} is a web server, not Redis", hint="check the port")
        if begins.startswith(b"\x15\x03"):
            return ServerError(f"{where} asks for TLS, which comes in a later step", hint="give its port without TLS")
        return ServerError(f"{where} does not speak the Redis protocol{self._shown(begins)}", hint="check the port")

    def _shown(self, data: bytes | bytearray) -> str:
        # Something that sends back what it gets, whole or in pieces, would have us print the password.
        if self._endpoint.password is not None:
            return ""
        return f": {bytes(data[:40])!r}".replace("b", "", 1) + (" ..." if len(data) > 40 else "")


def fields(info: Reply) -> dict[str, str]:
    """What INFO answered, by name; empty when it is no such answer."""
    text = info.decode("utf-8", "replace") if isinstance(info, bytes) else ""
    pairs = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, colon, value in pairs if colon}


def _encoded(words: Sequence[str | bytes]) -> bytes:
    parts = [word if isinstance(word, bytes) else word.encode("utf-8", "surrogateescape") for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
