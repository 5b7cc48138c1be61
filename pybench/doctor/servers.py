"""Redis servers: which can be started, whether one starts, and the state of the given ones."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from pydantic import SecretStr

from pybench.doctor.finding import Finding, Level
from pybench.errors import PybenchError
from pybench.servers.answered import GIVEN
from pybench.servers.leftovers import clear_leftovers
from pybench.servers.local_processes import where_it_runs
from pybench.servers.redis import binaries, supervisor
from pybench.servers.redis.binaries import Source
from pybench.servers.redis.endpoint import Endpoint
from pybench.servers.redis.probe import probe
from pybench.servers.redis.server import Server

FEW_CONNECTIONS = 10_000
FEW_FREE = 9_000


def examine_servers(urls: Sequence[str | SecretStr], source: Source) -> list[Finding]:
    """Remove left-overs, list the binaries found, start the first of `source`, and check every server of `urls`."""
    findings = [Finding(Level.OK, "left-over", str(leftover)) for leftover in clear_leftovers()]
    findings += _found()
    findings += _started(source, Level.WARN if urls else Level.BAD)
    for url in urls:
        findings += _given(url)
    return findings


def _found() -> Iterator[Finding]:
    found, broken = binaries.find_all()
    for binary in found:
        yield Finding(Level.OK, "server binary", f"{binary.product} {binary.version}, {binary.source}")
    for error in broken:
        yield Finding(Level.WARN, "server binary", error.message, error.hint)


def _started(source: Source, level: Level) -> Iterator[Finding]:
    begin = time.monotonic()
    try:
        server, facts = supervisor.start(binaries.find(source))
    except PybenchError as error:
        yield Finding(level, "server start", error.message, error.hint)
        return
    took_ms = (time.monotonic() - begin) * 1000
    server.stop()
    what = f"{facts.product} {facts.version} starts in {took_ms:.0f} ms"
    few = facts.maxclients is not None and facts.maxclients < FEW_CONNECTIONS
    takes = "" if facts.maxclients is None else f", accepts {facts.maxclients:,} connections"
    hint = "raise the limit of open files: ulimit -Hn" if few else None
    yield Finding(Level.WARN if few else Level.OK, "server start", f"{what}{takes}", hint)


def _given(url: str | SecretStr) -> Iterator[Finding]:
    try:
        endpoint = Endpoint.parse(url)
        server = Server(endpoint, probe(endpoint), GIVEN)
    except PybenchError as error:
        yield Finding(Level.BAD, "server", error.message, error.hint)
        return
    facts = server.facts
    where = where_it_runs(server)
    disk = f", appendfsync {facts.appendfsync}" if facts.appendfsync is not None else ""
    what = f"{endpoint} is {server.label}, {where}{disk}"
    if facts.maxclients is not None and facts.connections_free is not None:
        free = f"{facts.connections_free:,} of its {facts.maxclients:,} connections free"
        # A server with the default limit and a few other clients has enough free connections.
        few = facts.maxclients < FEW_CONNECTIONS or facts.connections_free < FEW_FREE
        hint = "raise maxclients of the server (CONFIG SET maxclients), or disconnect other clients" if few else None
        yield Finding(Level.WARN if few else Level.OK, "server", f"{what}, {free}", hint)
    else:
        yield Finding(Level.OK, "server", what)
    if facts.maxmemory and facts.maxmemory_policy != "noeviction":
        yield Finding(
            Level.WARN,
            "server",
            f"{endpoint} evicts keys when full ({facts.maxmemory_policy}): a lock may vanish while it is held",
            "set maxmemory-policy to noeviction",
        )
