"""Servers of one comparison that differ in more than their locks.

Such are servers that were given beside those that pybench starts, and TCP beside a Unix socket.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TRANSPORTS = {"tcp": "TCP", "unix": "a Unix socket"}


@dataclass(frozen=True, slots=True)
class Place:
    """A server, as far as it may differ. `transport` is `tcp`, `unix`, or None where nobody knows."""

    name: str
    given: bool
    transport: str | None


def transport_of(given: Sequence[str] | None) -> str | None:
    """How servers are reached at the addresses `given`; those that pybench starts, without one, over a Unix socket."""
    if given is None:
        return "unix"
    ways = {_transport(address) for address in given}
    return ways.pop() if len(ways) == 1 else None


def _transport(address: str) -> str:
    """By the scheme of Redis, or by a folder in place of the host: `postgresql:///shop?host=/run/postgresql`."""
    scheme, _, rest = address.partition("://")
    folder = rest.startswith("/") or "host=/" in rest or "host=%2F" in rest
    return "unix" if scheme.lower() == "unix" or (scheme.lower().startswith("postgres") and folder) else "tcp"


def mixed(places: Sequence[Place]) -> str | None:
    """What makes `places` unlike each other, as a sentence; None where nothing does."""
    by_origin = {given: _named([place for place in places if place.given is given]) for given in (True, False)}
    ways = sorted(str(place.transport) for place in places if place.transport in TRANSPORTS)
    differences = []
    if by_origin[True] and by_origin[False]:
        differences.append(f"{by_origin[True]} was given, {by_origin[False]} is started by pybench")
    if len(set(ways)) > 1:
        for way in dict.fromkeys(ways):
            there = _named([place for place in places if place.transport == way])
            differences.append(f"{there} is reached over {TRANSPORTS[way]}")
    if not differences:
        return None
    return f"The locks of this run are not on like servers: {'; '.join(differences)}. A difference may be the server's."


def _named(places: Sequence[Place]) -> str:
    return " and ".join(dict.fromkeys(place.name for place in places))
