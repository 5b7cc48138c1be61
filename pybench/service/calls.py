"""One request under way: what it asks, the bounds of its parameters, and why it may be broken off."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError

from pybench.errors import InputError
from pybench.matrix.durations import format_duration, parse_duration
from pybench.matrix.values import Retry
from pybench.service.answers import Problem, ending, invalid, refused_input, unavailable
from pybench.service.models import explain

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
M = TypeVar("M", bound=BaseModel)

MOST_BODY: Final = 64 * 1024
"""Bytes."""
MOST_IDEMPOTENCY_KEY: Final = 255
LONGEST_NS: Final = 60_000_000_000
"""Of work and wait."""
SHORTEST_TTL_NS: Final = 10_000_000
LONGEST_TTL_NS: Final = 600_000_000_000
DEFAULT_TTL: Final = "10s"
SHORTEST_PAUSE_NS: Final = 1_000_000
"""Between two attempts by a policy that a request names."""
_QUERIES_KEPT = 1_000
_LONGEST_KEPT = 200
_MOST_PARAMETERS = 20

LENGTH: Final = r"^(0|[0-9]{1,8}us|[0-9]{1,5}ms|[0-9]{1,3}s)$"
"""The texts of lengths of time in a query."""


class Cut(Enum):
    """Why a request is broken off."""

    HUNG_UP = auto()
    STOPPING = auto()
    SERVER_LOST = auto()
    NO_BODY = auto()


@dataclass(frozen=True, slots=True)
class Limits:
    """The query parameters of a purchase or a lock; None for the default."""

    work_ns: int | None
    wait_ns: int | None
    ttl: str
    retry: str | None


NO_LIMITS: Final = Limits(None, None, DEFAULT_TTL, None)
_limits: dict[bytes, Limits] = {}


def limits_of(query: bytes) -> Limits:
    """The limits in a query; those of the last queries are kept. Raises Problem."""
    known = _limits.get(query)
    if known is None:
        known = _parsed(query.decode("latin-1"))
        if len(_limits) >= _QUERIES_KEPT:
            _limits.clear()
        if len(query) <= _LONGEST_KEPT:
            _limits[query] = known
    return known


def _parsed(query: str) -> Limits:
    given: dict[str, str] = {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise invalid(f"a query has at most {_MOST_PARAMETERS} parameters") from None
    for name, value in pairs:
        if name in given:
            raise invalid(f"{name} is given twice")
        given[name] = value
    ttl_ns = _length("ttl", given, lowest=SHORTEST_TTL_NS, highest=LONGEST_TTL_NS)
    if ttl_ns is not None and ttl_ns % 1_000_000:
        raise invalid("ttl is in whole milliseconds")
    return Limits(
        work_ns=_length("work", given, lowest=0, highest=LONGEST_NS),
        wait_ns=_length("wait", given, lowest=0, highest=LONGEST_NS),
        ttl=DEFAULT_TTL if ttl_ns is None else f"{ttl_ns}ns",
        retry=_retry(given.get("retry")),
    )


def _length(name: str, given: dict[str, str], *, lowest: int, highest: int) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if re.fullmatch(LENGTH, text) is None:
        raise invalid(f"{name} is a length of time such as 5ms, 2s or 0")
    ns = parse_duration(text)
    if not lowest <= ns <= highest:
        raise invalid(f"{name} is from {format_duration(lowest)} to {format_duration(highest)}")
    return ns


def _retry(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        policy = Retry.parse(text)
    except InputError as problem:
        raise refused_input(problem) from None
    if policy.kind != "none" and policy.base_ns < SHORTEST_PAUSE_NS:
        raise invalid(f"the base of retry is at least {format_duration(SHORTEST_PAUSE_NS)}")
    return policy.text


class Call:
    """A request under way."""

    __slots__ = (
        "cut",
        "given_id",
        "given_key",
        "has_body",
        "id",
        "is_writing",
        "length",
        "limits",
        "method",
        "path",
        "query",
        "receive",
        "resource",
        "route",
        "scope",
        "strategy",
        "task",
    )

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.receive = receive
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope["query_string"]
        self.task: asyncio.Task[Any] | None = asyncio.current_task()
        self.cut: Cut | None = None
        self.has_body = False
        """Whether the body was read to its end."""
        self.is_writing = False
        """While a write is under way, the request is not broken off: its lock must not be released before."""
        self.limits = NO_LIMITS
        self.given_id: bytes | None = None
        """The header X-Request-ID."""
        self.given_key: bytes | None = None
        """The header Idempotency-Key."""
        self.length: bytes | None = None
        """The header Content-Length."""
        for name, value in scope["headers"]:
            if name == b"x-request-id":
                self.given_id = value
            elif name == b"idempotency-key":
                self.given_key = value
            elif name == b"content-length":
                self.length = value
        self.id = ""
        self.route = "other"
        self.strategy: str | None = None
        self.resource: str | None = None

    @property
    def raw_path(self) -> bytes:
        """The path as it was sent, without the query."""
        raw: bytes = self.scope.get("raw_path") or self.path.encode()
        return raw.partition(b"?")[0]

    def break_off(self, why: Cut) -> None:
        """Cancel the task of this request; the first reason counts."""
        if self.cut is None and self.task is not None and not self.is_writing:
            self.cut = why
            self.task.cancel()

    async def body(self) -> bytes:
        """The whole body. Raises Problem when it is too long; the client that hangs up breaks the request off."""
        # The HTTP server has checked that it is a number.
        if self.length is not None and int(self.length) > MOST_BODY:
            raise _too_large()
        message = await self.receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            body: bytes = message.get("body", b"")
            if len(body) <= MOST_BODY:
                self.has_body = True
                return body
        parts = []
        length = 0
        while True:
            if message["type"] == "http.disconnect":
                self.cut = Cut.HUNG_UP
                raise asyncio.CancelledError
            parts.append(message.get("body", b""))
            length += len(parts[-1])
            if length > MOST_BODY:
                raise _too_large()
            if not message.get("more_body"):
                self.has_body = True
                return b"".join(parts)
            message = await self.receive()

    @property
    def idempotency_key(self) -> str | None:
        """The header Idempotency-Key, if there is one. Raises Problem for one that cannot be a key."""
        if self.given_key is None:
            return None
        key = str(self.given_key, "latin-1")
        if not (1 <= len(key) <= MOST_IDEMPOTENCY_KEY and key.isascii() and key.isprintable()):
            raise invalid(f"Idempotency-Key has 1 to {MOST_IDEMPOTENCY_KEY} printable ASCII characters")
        return key


def _too_large() -> Problem:
    return Problem(413, "Body too large", f"a body has at most {MOST_BODY} bytes")


def problem_of(cut: Cut) -> Problem:
    """What a client is told whose request was broken off."""
    match cut:
        case Cut.STOPPING | Cut.HUNG_UP:
            return ending()
        case Cut.SERVER_LOST:
            return unavailable("a server of this lock was lost while the request waited for the lock")
        case Cut.NO_BODY:
            return Problem(408, "Body missing", "the body did not come in time")


def parsed(model: type[M], body: bytes) -> M:
    """The body as `model`. Raises Problem with what is wrong."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise invalid(explain(error.errors(include_url=False, include_context=False, include_input=False))) from None
