"""The HTTP protocol of a connection: uvicorn's, with a bound on the head of a request, which uvicorn has none of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pybench.service.answers import encode

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

MOST_HEAD: Final = 64 * 1024
"""Bytes of the request line and the headers."""
_BODY: Final = encode({"error": "Headers too large", "message": f"they have at most {MOST_HEAD} bytes"})
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(_BODY), _BODY)
)


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection over which a head comes that has no end."""

    def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - as uvicorn has them
        super().__init__(*arguments, **named)
        self._head = 0

    def data_received(self, data: bytes) -> None:
        """Count what comes before a request begins."""
        before = self._current()
        super().data_received(data)
        if self._current() is not before:
            self._head = 0
        elif before is None or before.response_complete:
            self._head += len(data)
            if self._head > MOST_HEAD and not self.transport.is_closing():
                self.transport.write(_TOO_LARGE)
                self.transport.close()

    def _current(self) -> RequestResponseCycle | None:
        """The last request whose head is complete; None before the first."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle
