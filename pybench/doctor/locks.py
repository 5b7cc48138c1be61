"""The locks: which of them a client may acquire, renew and release on the given servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import SecretStr

from pybench.doctor.finding import Finding, Level
from pybench.errors import PybenchError, ServerError
from pybench.matrix import matrix_from_options
from pybench.numbers import plural
from pybench.running.preflight import try_locks
from pybench.strategies import CATALOGUE, ServerKind, Strategy

SUBJECT = "server locks"
SHOWN = 3
"""The number of refused locks that are reported in full."""


def examine_locks(redis: Sequence[str | SecretStr], postgres: Sequence[str | SecretStr]) -> Iterator[Finding]:
    """Try every lock that the given servers suffice for. Nothing if no server is given, or if one does not answer."""
    given = {ServerKind.REDIS: len(redis), ServerKind.POSTGRES: len(postgres)}
    names = [name for name, strategy in CATALOGUE.items() if _is_possible(strategy, given)]
    if not names:
        return
    try:
        matrix = matrix_from_options(
            name="doctor", strategy=names, redis=_texts(redis) or None, postgres=next(iter(_texts(postgres)), None)
        )
        tried = try_locks(matrix)
    except PybenchError:
        return  # Another finding reports the failed server.
    refused = [(name, error) for name, error in tried if error is not None]
    used = [name for name, error in tried if error is None]
    if used:
        yield Finding(
            Level.OK, SUBJECT, f"{plural(len(used), 'lock')} can be used on the given servers: {', '.join(used)}"
        )
    level = Level.WARN if used else Level.BAD
    yield from (_finding(level, name, error) for name, error in refused[:SHOWN])
    if len(refused) > SHOWN:
        others = ", ".join(name for name, _ in refused[SHOWN:])
        hint = "docs/troubleshooting.md lists the rights that each lock needs"
        yield Finding(level, SUBJECT, f"{others} cannot be used either", hint)


def _finding(level: Level, name: str, error: ServerError) -> Finding:
    return Finding(level, SUBJECT, f"{name} cannot be used: {error.message}", error.hint)


def _is_possible(strategy: Strategy, given: dict[ServerKind, int]) -> bool:
    """Whether `strategy` needs a server, and not more servers of a kind than are given."""
    return bool(strategy.server_kinds) and all(
        strategy.servers_of_kind(kind, ()) <= given[kind] for kind in strategy.server_kinds
    )


def _texts(urls: Sequence[str | SecretStr]) -> list[str]:
    return [url.get_secret_value() if isinstance(url, SecretStr) else url for url in urls]
