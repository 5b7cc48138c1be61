"""The servers behind a service: given ones, or ones that pybench starts for it, and what is removed at its end.

Promises: a server that pybench did not start keeps nothing of the service: its keys and its schema are removed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import starmap, zip_longest
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from pybench.errors import ServerError
from pybench.servers import ServerPool, clear_leftovers, remove_keys
from pybench.servers.redis.binaries import Source
from pybench.service.settings import Place, Settings

if TYPE_CHECKING:
    from pybench.servers import AnyServer, Server
    from pybench.servers.postgres import PostgresServer

REDLOCK_SERVERS: Final = 5
"""How many pybench starts: the usual number, of which two may fail."""
STRATEGIES: Final = 6
"""That have sessions of their own in one Postgres: four kinds of locks, a stock, and some room."""
MOST_SESSIONS: Final = 900
"""Of a Postgres that pybench starts: each is a process."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The servers that the command line names."""

    redis: SecretStr | None
    redlock: Sequence[SecretStr]
    postgres: SecretStr | None
    source: Source
    """Where the binaries of those to start are looked for."""

    @property
    def names_none(self) -> bool:
        """Whether pybench starts all servers."""
        return self.redis is None and not self.redlock and self.postgres is None


@dataclass(frozen=True, slots=True)
class Group:
    """The servers of one role, for the pool; without URLs it starts them."""

    name: str
    urls: Sequence[SecretStr]
    source: Source


@contextmanager
def hosted(wanted: Wanted, settings: Settings, note: Callable[[str], None]) -> Iterator[Settings]:
    """The settings with the servers, each of which has answered; started ones are stopped at the end.

    Raises ServerError, InputError.
    """
    for leftover in clear_leftovers():
        note(f"left by a killed run: {leftover}")
    with ServerPool() as pool:
        redis: list[Server] = []
        redlock: list[Server] = []
        postgres: PostgresServer | None = None
        if wanted.redis is not None or wanted.names_none:
            redis = pool.redis(Group("redis", _listed(wanted.redis), wanted.source))
        if wanted.redlock or wanted.names_none:
            count = len(wanted.redlock) or REDLOCK_SERVERS
            redlock = pool.redis(Group("redlock", wanted.redlock, wanted.source), servers=count)
        if wanted.postgres is not None or wanted.names_none:
            postgres = _postgres(pool, wanted, settings, note)
        ready = replace(
            settings,
            redis=_place(redis[0], wanted.redis) if redis else None,
            redlock=tuple(starmap(_place, zip_longest(redlock, wanted.redlock))),
            postgres=None if postgres is None else _place(postgres, wanted.postgres),
        )
        try:
            with _schemas(postgres, ready, note) as complete:
                yield complete
        finally:
            for server in [*redis, *redlock]:
                if not server.started_by_us:
                    _remove_keys(server, settings.prefix, note)


def new_names() -> tuple[str, str, str]:
    """The prefix of the keys of a new service, and the names of its two schemas: of the stock, and of locks."""
    own = secrets.token_hex(4)
    # As `servers.postgres.schema.schema_name` has them, without psycopg, which takes 0.1 s to load.
    return f"pybench:serve-{own}:", f"pybench_{own}_stock", f"pybench_{own}_locks"


def _place(server: AnyServer, given: SecretStr | None) -> Place:
    replicas = getattr(server.facts, "replicas", None) or 0
    if given is not None:
        return Place(given.get_secret_value(), server.endpoint.address, replicas)
    # A server that pybench started listens on a socket in a private folder, and has no password.
    return Place(str(server.endpoint), None, replicas)


def _listed(url: SecretStr | None) -> list[SecretStr]:
    return [] if url is None else [url]


def _postgres(
    pool: ServerPool, wanted: Wanted, settings: Settings, note: Callable[[str], None]
) -> PostgresServer | None:
    urls = _listed(wanted.postgres)
    sessions = 0 if urls else min(MOST_SESSIONS, STRATEGIES * settings.connections * settings.workers)
    try:
        return pool.postgres(Group("postgres", urls, wanted.source), sessions=sessions)
    except ServerError as error:
        if urls or settings.stock == "postgres":
            raise
        note(f"no Postgres was started, so strategies of Postgres are refused: {error.message}")
        return None


@contextmanager
def _schemas(server: PostgresServer | None, settings: Settings, note: Callable[[str], None]) -> Iterator[Settings]:
    """The settings with the schemas: of the stock, where the stock is in Postgres, and of locks that are rows.

    Without the right to make the latter, those locks are refused, and others work.
    """
    if server is None:
        yield replace(settings, lock_schema="")
        return
    from pybench.service.schemas import create_lock_schema, create_stock_schema, drop_schemas

    try:
        if settings.stock == "postgres":
            create_stock_schema(server, settings)
        lock_schema = settings.lock_schema
        try:
            create_lock_schema(server, settings)
        except ServerError as error:
            lock_schema = ""
            note(f"locks that are rows of a table are refused: {error.message}")
        yield replace(settings, lock_schema=lock_schema)
    finally:
        try:
            drop_schemas(server, settings)
        except ServerError as error:
            note(f"the schemas {settings.schema} and {settings.lock_schema} were not dropped: {error.message}")


def _remove_keys(server: Server, prefix: str, note: Callable[[str], None]) -> None:
    try:
        remove_keys(server, prefix)
    except ServerError as error:
        note(f"the keys {prefix}* were not removed: {error.message}")
