"""Postgres: which servers can be started, whether one starts, and the state of the given ones."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import psycopg
from pydantic import SecretStr

from pybench.doctor.finding import Finding, Level
from pybench.errors import PybenchError
from pybench.servers import postgres
from pybench.servers.local_processes import where_it_runs
from pybench.servers.postgres import PostgresServer, binaries, supervisor
from pybench.servers.postgres.schema import left_schemas
from pybench.servers.programs import Source

SUBJECT = "postgres"

FEW_SESSIONS = 20


def examine_postgres(urls: Sequence[str | SecretStr], source: Source) -> list[Finding]:
    """List the binaries found, start the first of `source`, and check every database of `urls`."""
    findings = [*_found(), *_started(source)]
    for url in urls:
        findings += _given(url)
    return findings


def _found() -> Iterator[Finding]:
    found, broken = binaries.find_all()
    for binary in found:
        yield Finding(Level.OK, SUBJECT, f"{binary.product} {binary.version}, {binary.source}")
    for error in broken:
        yield Finding(Level.WARN, SUBJECT, error.message, error.hint)


def _started(source: Source) -> Iterator[Finding]:
    begin = time.monotonic()
    try:
        server, facts = supervisor.start(binaries.find(source))
    except PybenchError as error:
        # A warning only: a run with Redis locks alone needs no Postgres.
        yield Finding(Level.WARN, SUBJECT, error.message, error.hint)
        return
    took_ms = (time.monotonic() - begin) * 1000
    server.stop()
    yield Finding(Level.OK, SUBJECT, f"postgres {facts.version} starts in {took_ms:.0f} ms")


def _given(url: str | SecretStr) -> Iterator[Finding]:
    try:
        server = postgres.given(SecretStr(url) if isinstance(url, str) else url)
    except PybenchError as error:
        yield Finding(Level.BAD, SUBJECT, error.message, error.hint)
        return
    facts = server.facts
    where = where_it_runs(server)
    pooler = ", behind a pooler" if facts.pooled else ""
    what = f"{server.endpoint} is {server.label}, {where}{pooler}"
    free = f"{facts.sessions_free:,} of its {facts.max_connections:,} sessions free"
    few = facts.sessions_free < FEW_SESSIONS
    hint = f"raise {facts.limit} of the server, or disconnect other clients" if few else None
    yield Finding(Level.WARN if few else Level.OK, SUBJECT, f"{what}, {free}", hint)
    if not facts.may_create:
        message = f"{server.endpoint} does not let {server.endpoint.user} create schemas, which locks with rows need"
        yield Finding(Level.WARN, SUBJECT, message, server.grant_to_create())
    if facts.settings.get("fsync") is False:
        yield Finding(
            Level.WARN, SUBJECT, f"{server.endpoint} runs with fsync off: faster, but a crash may corrupt its data"
        )
    yield from _left_on(server)


def _left_on(server: PostgresServer) -> Iterator[Finding]:
    try:
        with server.session() as session:
            left = left_schemas(session)
    except (PybenchError, psycopg.Error) as error:
        yield Finding(Level.WARN, SUBJECT, f"the schemas of {server.endpoint} cannot be listed: {error}")
        return
    for schema in left:
        if schema.over is not False:
            known = "left by a run that has ended" if schema.over else "of a run that may have ended"
            yield Finding(
                Level.OK,
                SUBJECT,
                f"{server.endpoint} has schema {schema}: {known}",
                f"DROP SCHEMA {schema.name} CASCADE",
            )
