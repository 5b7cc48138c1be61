"""The facts of a Postgres: its version, its free sessions, and the settings that matter to a lock.

Promises: facts or a ServerError within 2 s, whatever listens at the address; changes nothing on the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pybench.errors import ServerError
from pybench.notation import visible
from pybench.servers.answered import MOST_OF_VERSION
from pybench.servers.connection import PROBE_S
from pybench.servers.postgres.connecting import Session, session
from pybench.servers.postgres.endpoint import PostgresEndpoint
from pybench.servers.postgres.greeting import Greeting, Refused
from pybench.servers.postgres.refusals import refused

OLDEST = 12
"""The oldest major version with all views and settings that are read here."""

Setting = str | int | bool

_SETTINGS = (
    *("max_connections", "superuser_reserved_connections", "reserved_connections"),
    *("fsync", "synchronous_commit", "full_page_writes", "wal_level", "max_wal_size", "checkpoint_timeout"),
    *("shared_buffers", "huge_pages", "io_method", "autovacuum", "update_process_title"),
    *("deadlock_timeout", "lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"),
    *("idle_session_timeout", "client_connection_check_interval", "tcp_keepalives_idle", "max_locks_per_transaction"),
    *("default_transaction_isolation", "synchronous_standby_names", "data_checksums", "dynamic_shared_memory_type"),
    *("transaction_timeout", "jit", "wal_sync_method", "commit_delay", "commit_siblings"),
    *("log_statement", "log_duration", "log_min_duration_statement"),
)

_MEMORY = {"B": 1, "kB": 1024, "8kB": 8192, "MB": 1024**2, "GB": 1024**3}
_TIMES = {"ms", "s", "min"}

_SESSIONS = """
SELECT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
       (SELECT least(nullif(d.datconnlimit, -1) - (SELECT count(*) FROM pg_stat_activity
                                                   WHERE datid = d.oid AND pid <> pg_backend_pid()),
                     nullif(r.rolconnlimit, -1) - (SELECT count(*) FROM pg_stat_activity
                                                   WHERE usesysid = r.oid AND pid <> pg_backend_pid()))
        FROM pg_database d, pg_roles r WHERE d.datname = current_database() AND r.rolname = current_user),
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())
"""

_STATE = """
SELECT current_setting('server_version'), current_setting('server_version_num')::int, pg_is_in_recovery(),
       has_database_privilege(current_database(), 'CREATE'), current_setting('transaction_read_only')::bool,
       pg_backend_pid(),
       extract(epoch FROM pg_postmaster_start_time())::text
"""


@dataclass(frozen=True, slots=True)
class PostgresFacts:
    """Facts that a server reports."""

    version: str
    transport: Literal["unix", "tcp"]
    peer: str | None
    """The numeric address that answered; None for a Unix socket."""
    run_id: str
    """When it started: changes with each start."""
    pooled: bool
    """Whether a pooler, such as PgBouncer, stands in between: sessions there are not those of the server."""
    superuser: bool
    """Whether our user is a superuser, who may take the reserved sessions."""
    max_connections: int
    sessions_free: int
    """How many sessions our user could open now."""
    limit: str
    """The name of the limit that allows no more."""
    may_create: bool
    """Whether our user may create schemas: locks of rows have a table."""
    settings: Mapping[str, Setting]
    """Settings of a new session that matter to a lock. Their names end with their units."""

    def record(self) -> dict[str, Any]:
        """The facts for a record, without those that differ from start to start."""
        return {"version": self.version, "transport": self.transport, "pooled": self.pooled, **self.settings}


def probe(where: PostgresEndpoint | str, *, seconds: float = PROBE_S) -> PostgresFacts:
    """Connect, log in, ask. Raises InputError for a URL that cannot be read, ServerError for everything else."""
    endpoint = PostgresEndpoint.parse(where) if isinstance(where, str) else where
    with Greeting(endpoint, seconds=seconds) as greeting:
        try:
            greeting.greet()
        except Refused as refusal:
            raise refused(endpoint, refusal.code, str(refusal)) from None
        peer, left = greeting.peer, greeting.left
    with session(endpoint, peer=peer, seconds=left) as opened:
        return _facts(endpoint, opened, peer)


def _facts(endpoint: PostgresEndpoint, opened: Session, peer: str | None) -> PostgresFacts:
    version, number, standby, may_create, read_only, pid, started = _row(opened, _STATE)
    if number < OLDEST * 10_000:
        raise ServerError(f"{endpoint} is Postgres {version}, which is too old", hint=f"give one of {OLDEST} or later")
    if standby:
        raise ServerError(f"{endpoint} is a standby: it takes no locks", hint="give its primary")
    if read_only:
        raise ServerError(
            f"{endpoint} lets {endpoint.user} read only: default_transaction_read_only is on",
            hint=f'ALTER ROLE "{endpoint.user}" SET default_transaction_read_only = off',
        )
    superuser, limit, used = _row(opened, _SESSIONS)
    settings = read_settings(opened)
    most = int(settings["max_connections"])
    kept = ("superuser_reserved_connections", "reserved_connections")
    open_to_us = most - (0 if superuser else sum(int(settings.get(name, 0)) for name in kept))
    free = max(0, open_to_us - used)
    has_own_limit = not superuser and limit is not None and limit < free
    return PostgresFacts(
        version=visible(version.split()[0])[:MOST_OF_VERSION],
        transport="tcp" if endpoint.unix is None else "unix",
        peer=peer,
        run_id=started,
        pooled=pid != opened.info.backend_pid,
        superuser=superuser,
        max_connections=most,
        sessions_free=max(0, limit) if has_own_limit else free,
        limit="CONNECTION LIMIT of the user or the database" if has_own_limit else "max_connections",
        may_create=may_create,
        settings=settings,
    )


def read_settings(opened: Session) -> dict[str, Setting]:
    """The settings that matter, as far as this version has them, in basic units."""
    rows = opened.execute(
        "SELECT name, setting, unit, vartype FROM pg_settings WHERE name = ANY(%s) ORDER BY name", [list(_SETTINGS)]
    )
    return dict(_setting(*row) for row in rows)


def _setting(name: str, value: str, unit: str | None, kind: str) -> tuple[str, Setting]:
    if kind == "bool":
        return name, value == "on"
    if kind != "integer":
        return name, value
    if unit in _TIMES:
        return f"{name}_{unit}", int(value)
    if unit in _MEMORY:
        return f"{name}_bytes", int(value) * _MEMORY[unit]
    return name, int(value)


def _row(opened: Session, query: str) -> tuple[Any, ...]:
    row = opened.execute(query.encode()).fetchone()
    assert row is not None, "a SELECT without FROM gives one row"
    return row
