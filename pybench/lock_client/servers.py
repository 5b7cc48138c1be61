"""The strategy and the servers of a lock client, as the core takes them.

Promises: no text of an error contains a password.
"""

from __future__ import annotations

import socket
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final, cast

from pybench.errors import InputError
from pybench.lock_client.errors import Unreachable
from pybench.notation import suggestion
from pybench.planning.trial_spec import session_arguments
from pybench.strategies import CATALOGUE, Arguments, ServerKind, Strategy, parse_strategy

if TYPE_CHECKING:
    from pybench.core_specs import LockClientSpec

REPLY_TIMEOUT_NS: Final = 1_000_000_000
"""How long a reply may take before its call is given up."""
CLIENT_NAME: Final = "pybench-locks"
CONNECT_S: Final = 0.5
"""How long each of several addresses of one name may take to accept a connection."""

OFFERED: Final = (
    "mutex",
    "watchdog",
    "fenced",
    "notify",
    "semaphore",
    "read-write",
    "fair-queue",
    "redlock",
    "pg-advisory",
)
"""The strategies for programs."""

MEASURED: Final = (
    *OFFERED,
    "none",
    "naive",
    "reentrant",
    "fair",
    "replicated",
    "redisson-redlock",
    "redisson-multilock",
    "multilock",
    "pg-row",
    "pg-lease",
    "layered",
)
"""The strategies that are offered to whoever measures a lock or shows what is wrong with it."""

_REFUSED: Final = {
    "none": "it takes no lock: it is there to be caught by the checker",
    "atomic": "it takes no lock: the work itself has to be one step on the server",
    "naive": "it loses its lock for ever when a client dies at the wrong moment: use mutex",
    "reentrant": "each `with` is a holder of its own, and a holder does not enter twice: use mutex",
    "fair": "it has the cost of a queue and not its order: use fair-queue",
    "replicated": "its servers need replicas to confirm each grant: it is measured, and not offered yet",
    "redisson-redlock": "it may return a lease that has ended: use redlock",
    "redisson-multilock": "a lock has one name here: use redlock",
    "multilock": "a lock has one name here: use redlock",
    "pg-row": "its locks are numbered rows of a table, and have no names: use pg-advisory",
    "pg-lease": "its locks are numbered rows of a table, and have no names: use pg-advisory",
    "pg-optimistic": "it keeps nobody out, and repeats the work instead",
    "pg-serializable": "it keeps nobody out, and repeats the work instead",
    "layered": "its locks are numbered rows of a table, and have no names: use fenced",
}


_POLLED: Final = {"pg-advisory": "try", "pg-row": "nowait"}
"""Locks whose clients would wait in the server's queue, and the argument that has them try again instead."""


def core_spec(
    strategy: str,
    redis: str | Iterable[str] | None,
    postgres: str | None,
    connections: int,
    *,
    offered: Collection[str] = OFFERED,
    table: str | None = None,
) -> LockClientSpec:
    """The arguments of a client, checked. Raises ValueError, TypeError, Unreachable.

    `table` is the table of locks that are rows, its name quoted as in SQL, with `_core.lock_rows` rows.
    """
    if not isinstance(strategy, str):
        raise TypeError(f"a strategy is a text such as 'mutex', not {type(strategy).__name__}")
    if isinstance(connections, bool) or not isinstance(connections, int):
        raise TypeError("connections is a number")
    if not 1 <= connections <= 1_000:
        raise ValueError("connections is a number from 1 to 1,000")
    try:
        name, arguments = _strategy(strategy, offered)
        servers = _servers(name, arguments, {ServerKind.REDIS: redis, ServerKind.POSTGRES: postgres}, table)
    except InputError as problem:
        # A program's argument, not a user's: what programs catch for it is ValueError.
        raise ValueError(str(problem)) from None
    spec = {
        "strategy": name,
        "args": dict(CATALOGUE[name].arguments_of_lock(arguments)),
        "servers": servers,
        "client_name": CLIENT_NAME,
        "reply_timeout_ns": REPLY_TIMEOUT_NS,
        "own_connections": connections,
    }
    return cast("LockClientSpec", spec)


def _strategy(text: str, offered: Collection[str]) -> tuple[str, Arguments]:
    name, arguments = parse_strategy(text)
    if name not in offered:
        why = _REFUSED.get(name) or suggestion(name, tuple(offered))
        raise ValueError(f"{name} is no lock for programs: {why}")
    given = dict(arguments)
    if given.get("session") == "shared":
        raise ValueError(f"{name}(session=shared) keeps nobody out: it is there to be measured")
    if given.get("nodes", 1) != 1 and CATALOGUE[name].spreads_keys:
        raise ValueError(f"{name} has its locks on one server here: leave out nodes")
    if name not in _POLLED:
        return name, arguments
    # The wait of each lock is its own, and the server's queue knows only a setting of the session.
    return name, tuple(sorted({**given, "wait": _POLLED[name]}.items()))


def _servers(
    name: str, arguments: Arguments, given: Mapping[ServerKind, str | Iterable[str] | None], table: str | None
) -> list[dict[str, object]]:
    entry = CATALOGUE[name]
    if entry.uses_rows and table is None:
        raise ValueError(f"{name} needs the table of its rows")
    kinds = entry.server_kinds or (ServerKind.REDIS,)
    for kind, urls in given.items():
        if urls is not None and kind not in kinds:
            wanted = " and ".join(f"{one.value}=URL" for one in kinds)
            raise ValueError(f"{name} uses no {kind.value} server: give {wanted} only")
    servers: list[dict[str, object]] = []
    for kind in kinds:
        urls = _urls(name, kind, given[kind], entry.servers_of_kind(kind, arguments) if entry.server_kinds else 1)
        if kind is ServerKind.REDIS:
            servers += [_redis(url) for url in urls]
        else:
            servers += [_postgres(url, entry, arguments, table) for url in urls]
    return servers


def _urls(name: str, kind: ServerKind, given: str | Iterable[str] | None, needed: int) -> list[str]:
    if given is None:
        raise ValueError(f"{name} needs a server: give {kind.value}=URL")
    urls = [given] if isinstance(given, str) else list(given)
    if not all(isinstance(url, str) for url in urls):
        raise TypeError(f"{kind.value} is a URL, or a list of URLs")
    if len(urls) != needed:
        raise ValueError(f"{name} needs {needed} server{'s' if needed > 1 else ''}, and was given {len(urls)}")
    return urls


def _redis(url: str) -> dict[str, object]:
    from pybench.servers.redis.endpoint import Endpoint

    endpoint = Endpoint.parse(url)
    host = None if endpoint.host is None else _numeric(endpoint.host, endpoint.port)
    # What every server understands: the client asks no server before it is used.
    return endpoint.core_spec(host, protocol=2, compare_and_delete="script")


def _postgres(url: str, entry: Strategy, arguments: Arguments, table: str | None) -> dict[str, object]:
    from pybench.servers.postgres.endpoint import PostgresEndpoint

    endpoint = PostgresEndpoint.parse(url)
    host = None if endpoint.host is None else _numeric(endpoint.host, endpoint.port)
    return endpoint.core_spec(
        host,
        kind="postgres",
        # No statement of an advisory lock names a table.
        table=table or "pybench_locks",
        settings={"application_name": CLIENT_NAME, **session_arguments(entry, arguments)},
        prepare="named",
    )


def _numeric(host: str, port: int) -> str:
    """The numeric address of `host`: of several, the first that accepts a connection."""
    try:
        found = [str(address[0]) for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except OSError as error:
        reason = error.strerror or str(error)
        raise Unreachable(f"{host}: no such host ({reason})", hint="check the name in the URL") from None
    if len(found) > 1:
        for address in found:
            try:
                socket.create_connection((address, port), timeout=CONNECT_S).close()
            except OSError:
                continue
            return address
    return found[0]
