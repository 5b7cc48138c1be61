"""The places of a strategy: the backends of the matrix that have the kinds of server that the strategy needs.

A place is a backend, or for a strategy that needs Redis and Postgres a pair of backends such as `redis+postgres`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from pybench.strategies import CATALOGUE, ServerKind

if TYPE_CHECKING:
    from pybench.matrix.backends import Backend

BOTH = "+"
"""The separator between the names of a pair."""


def default_place(strategy: str) -> str:
    """The place of `strategy` in a matrix without backends: `redis`, `postgres` or `redis+postgres`."""
    return BOTH.join(CATALOGUE[strategy].server_kinds or (ServerKind.REDIS,))


def parts_of_place(place: str) -> list[str]:
    """The names of the backends of `place`."""
    return place.split(BOTH)


def places(
    strategy: str, backends: Mapping[str, Backend], *, named: Sequence[str] | None, beside: Collection[str]
) -> list[str]:
    """The places on which `strategy` is measured, in the order of the matrix; empty where there are none.

    `named` are the places that the axis `backend` lists; None means all. `beside` has all strategies of the matrix: a
    strategy that needs no server is measured on the backends of one kind that the others use.
    """
    parts = backends if named is None else [part for place in named for part in parts_of_place(place)]
    alone = [name for name in dict.fromkeys(parts) if name in backends]
    kinds = CATALOGUE[strategy].server_kinds
    match kinds:
        case ():
            return [place for place in named or () if place in backends] or _of_one_kind(alone, backends, beside)
        case (kind,):
            return [name for name in alone if backends[name].kind is kind]
    pairs = [place for place in named or () if kinds_of_place(place, backends) == kinds]
    firsts = [name for kind in kinds for name in [n for n in alone if backends[n].kind is kind][:1]]
    return pairs or ([BOTH.join(firsts)] if len(firsts) == len(kinds) else [])


def kinds_of_place(place: str, backends: Mapping[str, Backend]) -> tuple[ServerKind, ...]:
    """The kinds of the backends of `place`; empty where the matrix lacks one of the backends."""
    parts = parts_of_place(place)
    return tuple(backends[part].kind for part in parts) if all(part in backends for part in parts) else ()


def _of_one_kind(names: Sequence[str], backends: Mapping[str, Backend], beside: Collection[str]) -> list[str]:
    used = {kind for strategy in beside for kind in CATALOGUE[strategy].server_kinds}
    there = [backends[name].kind for name in names]
    first = next((kind for kind in there if kind in used), next(iter(there), None))
    return [name for name in names if backends[name].kind is first]
