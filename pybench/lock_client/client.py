"""`LockClient`: the locks of a program on one set of servers.

    client = pybench.LockClient("mutex", redis="redis://localhost")
    with client.lock("orders:17", ttl="5s", wait="2s") as held:
        ...

Promises: nothing is sent before the first lock; one native thread for all locks, whatever their number.
"""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable, Iterable
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from pybench import _core
from pybench.lock_client.errors import ClientUnusable
from pybench.lock_client.lock import Lock, Request
from pybench.lock_client.servers import MEASURED, core_spec
from pybench.matrix.durations import parse_duration, parse_lease
from pybench.matrix.values import Retry
from pybench.notation import BadValue

if TYPE_CHECKING:
    from pybench._core import LockPort, LockRetry, LockTicket
    from pybench.core_specs import LockClientSpec

LONGEST_NAME: Final = 1024
"""Bytes."""
_PARSED_MOST = 1_000

Length = str | timedelta


class LockClient:
    """The locks of one strategy, on given servers. All threads and event loops of a process may share it."""

    def __init__(
        self,
        strategy: str = "mutex",
        *,
        redis: str | Iterable[str] | None = None,
        postgres: str | None = None,
        connections: int = 8,
    ) -> None:
        """Parse the arguments; connect at the first lock.

        `strategy` is written as in a matrix, `redlock(nodes=3)`. `redis` and `postgres` are the URLs of its servers.
        `connections` limits the locks at once of a strategy that needs a connection for each lock (`fair-queue`,
        `pg-advisory`). Raises ValueError for a strategy or a URL that cannot be used, TypeError for a wrong type,
        Unreachable for a host whose name cannot be resolved.
        """
        self._set_up(strategy, core_spec(strategy, redis, postgres, connections))

    def _set_up(self, strategy: str, spec: LockClientSpec) -> None:
        self._core = _core.LockClient(spec)
        self.strategy = strategy
        self.extends = self._core.extends
        """Whether `held.extend()` works."""
        self._ttls: dict[Length, int] = {}
        self._waits: dict[Length, int] = {}
        self._retries: dict[str, LockRetry] = {}
        _OPEN.add(self)

    def __repr__(self) -> str:
        return f"LockClient({self.strategy!r})"

    def lock(
        self,
        name: str | bytes,
        *,
        ttl: Length = "10s",
        wait: Length = "10s",
        shared: bool = False,
        retry: str | None = None,
    ) -> Lock:
        """The lock `name`, a text or bytes, at most 1,024 bytes in UTF-8. Sends nothing yet.

        `ttl` is how long the server keeps the lock without a renewal; session locks ignore it. `wait` is how long to
        try; `"0"` tries once. `shared` asks for a share that others may hold too, of a strategy that has readers.
        `retry` is the policy of the attempts, as in a matrix: `fixed(base=5ms)`, `none`; by default full jitter from
        1 ms to 50 ms. Its `max_wait` is `wait`. A lock that is woken, as of `notify`, uses it after failures only.
        Raises ValueError or TypeError.
        """
        raw = name.encode() if isinstance(name, str) else name
        if not isinstance(raw, bytes):
            raise TypeError(f"the name of a lock is a str or bytes, not {type(name).__name__}")
        if len(raw) > LONGEST_NAME:
            raise ValueError(f"the name of a lock has at most {LONGEST_NAME} bytes, this one has {len(raw)}")
        ttl_ms = self._ttls.get(ttl)
        if ttl_ms is None:
            ttl_ms = self._parse_ttl(ttl)
        wait_ns = self._waits.get(wait)
        if wait_ns is None:
            wait_ns = self._parse_wait(wait)
        if shared and not self._core.shares:
            raise ValueError(f"{self.strategy} has no shared locks: read-write and pg-advisory have")
        policy = None if retry is None else self._retries.get(retry) or self._parse_retry(retry)
        return Lock(self, name, (raw, ttl_ms, wait_ns, shared, policy))

    def close(self) -> None:
        """Release all locks, close the connections and end the thread; at most some seconds if a server is silent."""
        self._core.close()
        _OPEN.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ticket(self, request: Request, port: LockPort | None) -> LockTicket:
        """For `Lock`: a ticket of the core. Raises ClientUnusable when the client is closed."""
        try:
            return self._core.ticket(*request, port)
        except ValueError as error:
            raise ClientUnusable(str(error)) from None
        except OSError as error:
            hint = "Linux 5.11 or later is needed"
            raise ClientUnusable(f"the kernel refuses what the client needs: {error}", hint=hint) from None

    def _parse_ttl(self, ttl: Length) -> int:
        parsed = _parsed(parse_lease, ttl)
        self._core.check_lease(parsed)
        _keep(self._ttls, ttl, parsed)
        return parsed

    def _parse_wait(self, wait: Length) -> int:
        parsed = _parsed(parse_duration, wait)
        _keep(self._waits, wait, parsed)
        return parsed

    def _parse_retry(self, text: str) -> LockRetry:
        if not isinstance(text, str):
            raise TypeError(f"a retry policy is a text such as 'fixed(base=5ms)', not {type(text).__name__}")
        try:
            spec = Retry.parse(text).to_core()
        except BadValue as problem:
            raise ValueError(str(problem)) from None
        if len(self._retries) >= _PARSED_MOST:
            self._retries.clear()
        parsed = self._retries[text] = _core.LockRetry(spec)
        return parsed


class MeasuredLockClient(LockClient):
    """The locks that pybench measures, also those that a program should not use: to show what they do.

    Not offered: what keeps nobody out and repeats the work instead, `pg-optimistic` and `pg-serializable`.
    """

    def __init__(
        self,
        strategy: str,
        *,
        redis: str | Iterable[str] | None = None,
        postgres: str | None = None,
        connections: int = 8,
        table: str | None = None,
    ) -> None:
        """As `LockClient`.

        `table` is the table of locks that are rows (`pg-row`, `pg-lease`, `layered`), its name quoted as in SQL; it has
        the rows 0 to `_core.lock_rows` - 1 and belongs to `servers.postgres.schema`. Two names may have one row: then
        their locks keep each other out.
        """
        self._set_up(strategy, core_spec(strategy, redis, postgres, connections, offered=MEASURED, table=table))


_OPEN: weakref.WeakSet[LockClient] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Locks that are held when the interpreter ends are released, and not left to their ttl."""
    for client in list(_OPEN):
        client.close()


def _parsed(parse: Callable[[object], int], length: Length) -> int:
    """Raises ValueError with the hint of the parser, TypeError for what is no length at all."""
    if isinstance(length, timedelta):
        length = f"{length // timedelta(microseconds=1)}us"
    if not isinstance(length, str):
        raise TypeError(f"a length is a text such as '5s', or a timedelta, not {type(length).__name__}")
    try:
        return parse(length)
    except BadValue as problem:
        raise ValueError(str(problem)) from None


def _keep(parsed: dict[Length, int], text: Length, value: int) -> None:
    if len(parsed) >= _PARSED_MOST:
        parsed.clear()
    parsed[text] = value
