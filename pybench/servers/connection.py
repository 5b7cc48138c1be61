"""One connection to an address where the expected server may listen, something else, or nothing, with a deadline.

Promises: ends by its deadline whatever the other side does or sends, and keeps a bounded number of bytes. A peer that
sends single bytes does not move the deadline. Subclasses know the protocols.
"""

from __future__ import annotations

import errno
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar

from pybench.errors import ServerError
from pybench.numbers import format_seconds

if TYPE_CHECKING:
    from pybench.servers.postgres.endpoint import PostgresEndpoint
    from pybench.servers.redis.endpoint import Endpoint

E = TypeVar("E", bound="Endpoint | PostgresEndpoint")

SocketAddress = str | tuple[Any, ...]

PROBE_S: Final = 2.0
"""Time for the first look at a server."""
ANSWER_S: Final = 5.0
"""Time for one reply in the middle of a run, with the connect."""

MOST_BYTES = 4_000_000
"""The largest replies to the commands of one send together. INFO has some thousand bytes."""

OWN_WORDS = "the server's own words say why; its log may say more"
"""The hint for an error that pybench does not know. It does not name the doctor, which shows the same error."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an error of a server means, to be read after the server's address, and what the user can do."""

    what: str
    hint: str


class Connection(Generic[E]):
    """Every method raises ServerError when the other side is not the expected server, or does not answer in time."""

    expected: ClassVar[str]
    """The product whose protocol is expected, such as `Redis`."""

    socket_hint: ClassVar[str]
    """The setting of the server that decides which users may open its Unix socket."""

    def __init__(self, where: E, *, seconds: float) -> None:
        self._where = where
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
        return None if self._where.unix is not None else str(self._socket.getpeername()[0])

    @property
    def left(self) -> float:
        """Seconds until the deadline. Never zero: a timeout of zero makes a socket non-blocking."""
        return max(self._deadline - time.monotonic(), 0.001)

    def allow(self, seconds: float) -> None:
        """Move the deadline to `seconds` from now."""
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def shut_down(self) -> None:
        """End the connection, from any thread: one that waits for a reply gets an error at once."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _send(self, data: bytes) -> None:
        self._bytes = len(self._received)
        try:
            self._socket.settimeout(self.left)
            self._socket.sendall(data)
        except OSError as error:
            raise self._silence(error) from None

    def _connect(self) -> socket.socket:
        where = self._where
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

    def _resolve(self) -> list[tuple[int, SocketAddress]]:
        # In a thread, because the resolver takes no deadline. A result that comes too late is dropped.
        found: list[tuple[int, SocketAddress]] = []
        failed: list[OSError] = []

        def ask() -> None:
            try:
                answers = socket.getaddrinfo(self._where.host, self._where.port, type=socket.SOCK_STREAM)
                found.extend((family, address) for family, _, _, _, address in answers)
            except OSError as error:
                failed.append(error)
            except UnicodeError:
                failed.append(socket.gaierror(socket.EAI_NONAME, "it is not the name of a host"))

        resolver = threading.Thread(target=ask, daemon=True)
        resolver.start()
        resolver.join(self.left)
        if failed:
            raise failed[0]
        if not found:
            raise TimeoutError
        return found

    def _connect_to(self, family: int, address: SocketAddress, *, share: int = 1) -> socket.socket:
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            # A name may have several addresses. One that does not answer leaves the others their share of the time.
            connection.settimeout(self.left / share)
            connection.connect(address)
        except BaseException:
            connection.close()
            raise
        return connection

    def _unreachable(self, error: OSError) -> ServerError:
        where = self._where
        if isinstance(error, TimeoutError):
            within = format_seconds(round(self._seconds, 1))
            return ServerError(f"{where} does not answer within {within}", hint="check host, port and firewalls")
        if error.errno == errno.ENOENT:
            return ServerError(f"{where}: no such socket", hint="start the server, or check the path")
        if error.errno == errno.ECONNREFUSED:
            return ServerError(
                f"{where} refuses connections: nothing listens there", hint="start the server, or check the address"
            )
        if error.errno == errno.EACCES:
            return ServerError(
                f"{where}: permission denied", hint=f"the socket belongs to another user: see {self.socket_hint}"
            )
        return ServerError(f"{where} cannot be reached: {error.strerror or error}", hint="check the address")

    def _silence(self, error: OSError) -> ServerError:
        where = self._where
        if isinstance(error, TimeoutError):
            if self._received:
                within = format_seconds(round(self._seconds, 1))
                return ServerError(
                    f"{where} sent only part of a reply within {within}{self._shown(self._received)}",
                    hint=f"is this a {self.expected} server, and is it healthy?",
                )
            return ServerError(
                f"{where} accepts connections but does not answer within {format_seconds(round(self._seconds, 1))}",
                hint=f"is this a {self.expected} server, and is it busy or stopped?",
            )
        return ServerError(
            f"{where} closed the connection" + ("" if self._answered else " without an answer"),
            hint=f"is this a {self.expected} server? a server that asks for TLS cannot be used yet",
        )

    def _more(self) -> None:
        try:
            if time.monotonic() >= self._deadline:
                raise TimeoutError
            self._socket.settimeout(self.left)
            got = self._socket.recv(65536)
            if not got:
                raise ConnectionResetError
        except OSError as error:
            raise self._silence(error) from None
        self._bytes += len(got)
        if self._bytes > MOST_BYTES:
            raise self._stranger(self._received)
        self._received += got

    def _stranger(self, begins: bytes | bytearray) -> ServerError:
        """The error for a first reply that is not of the expected protocol."""
        where = self._where
        if begins[:15].lower().startswith((b"http/", b"<!doctype html", b"<html")):
            return ServerError(f"{where} is a web server, not {self.expected}", hint="check the port")
        if begins.startswith(b"\x15\x03"):
            return ServerError(f"{where} asks for TLS, which comes in a later step", hint="give its port without TLS")
        return ServerError(
            f"{where} does not speak the {self.expected} protocol{self._shown(begins)}", hint="check the port"
        )

    def _shown(self, data: bytes | bytearray) -> str:
        # An echo server returns what it got, and the password is part of that.
        if self._where.has_secret:
            return ""
        return f": {bytes(data[:40])!r}".replace("b", "", 1) + (" ..." if len(data) > 40 else "")
