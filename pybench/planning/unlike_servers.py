"""A warning for a comparison of locks whose servers differ: given and started servers, or TCP and a Unix socket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TRANSPORTS = {"tcp": "TCP", "unix": "a Unix socket"}


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """The origin and transport of a server. `transport` is `tcp`, `unix`, or None where unknown."""

    name: str
    given: bool
    transport: str | None


def transport_of(given: Sequence[str] | None) -> str | None:
    """The transport to the servers at the addresses `given`; a Unix socket where pybench starts the servers (None)."""
    if given is None:
        return "unix"
    ways = {_transport(address) for address in given}
    return ways.pop() if len(ways) == 1 else None


def _transport(address: str) -> str:
    """`unix` for the scheme of Redis, or for a folder as the host: `postgresql:///shop?host=/run/postgresql`."""
    scheme, _, location = address.partition("://")
    folder = location.startswith("/") or "host=/" in location or "host=%2F" in location
    return "unix" if scheme.lower() == "unix" or (scheme.lower().startswith("postgres") and folder) else "tcp"


def mixed(places: Sequence[ServerAccess]) -> str | None:
    """The differences between `places` as a sentence; None where there are none."""
    by_origin = {given: _named([place for place in places if place.given is given]) for given in (True, False)}
    ways = sorted(str(place.transport) for place in places if place.transport in TRANSPORTS)
    differences = []
    if by_origin[True] and by_origin[False]:
        differences.append(f"pybench starts {by_origin[False]}, but not {by_origin[True]}")
    if len(set(ways)) > 1:
        for way in dict.fromkeys(ways):
            there = _named([place for place in places if place.transport == way])
            differences.append(f"{TRANSPORTS[way]} to {there}")
    if not differences:
        return None
    listed = "; ".join(differences)
    return f"The servers of this run differ: {listed}. A difference between locks may come from the servers."


def _named(places: Sequence[ServerAccess]) -> str:
    return " and ".join(dict.fromkeys(place.name for place in places))
