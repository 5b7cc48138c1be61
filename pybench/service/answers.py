"""What a request is answered: status, JSON, headers. Every refusal has one shape, `{"error": ..., "message": ...}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic_core import to_json

from pybench.errors import PybenchError

Header = tuple[bytes, bytes]

JSON_TYPE: Header = (b"content-type", b"application/json")


@dataclass(slots=True)
class Answer:
    """The status, the body and the headers besides its length and type."""

    status: int
    body: bytes
    headers: tuple[Header, ...] = ()
    type: Header = JSON_TYPE


class Problem(Exception):
    """A request that gets no result. `error` names the kind in few words, `message` says why."""

    def __init__(
        self, status: int, error: str, message: str | None = None, *, retry_s: int | None = None, **fields: object
    ) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.message = message
        self.retry_s = retry_s
        """Whole seconds for the header Retry-After."""
        self.fields = fields

    def answer(self) -> Answer:
        """In the one shape of refusals."""
        value: dict[str, object] = {"error": self.error, **self.fields}
        if self.message is not None:
            value["message"] = self.message
        headers = () if self.retry_s is None else ((b"retry-after", b"%d" % self.retry_s),)
        return Answer(self.status, encode(value), headers)


def encode(value: Mapping[str, object]) -> bytes:
    """As JSON: pydantic's encoder takes a fifth of the time of Python's own."""
    return to_json(value)


def result(value: Mapping[str, object]) -> Answer:
    """A result with status 200."""
    return Answer(200, encode(value))


def invalid(message: str) -> Problem:
    """For a request that cannot be understood, or asks for what is out of bounds."""
    return Problem(422, "Invalid request", message)


def refused_input(error: PybenchError) -> Problem:
    """For a text that cannot be parsed, with the hint of its parser."""
    return invalid(f"{error.message}; {error.hint}" if error.hint else error.message)


def busy(message: str) -> Problem:
    """For requests beyond a bound of the service."""
    return Problem(503, "Service busy", message, retry_s=1)


def ending() -> Problem:
    """For requests that still wait when the service ends."""
    return Problem(503, "Service stopping", "the service is stopping, and starts no more work", retry_s=1)


def unavailable(message: str, *, retry_s: int = 1) -> Problem:
    """For a server that is lost."""
    return Problem(503, "Server unavailable", message, retry_s=retry_s)
