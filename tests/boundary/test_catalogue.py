"""The catalogue, which people read and plans are made by, says of each strategy what the core's lock does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from pybench import _core
from pybench.impossible import why_impossible
from pybench.limits import NO_LIMITS
from pybench.matrix import expand, matrix_from_options
from pybench.servers import Server, ServerPool
from pybench.servers.binaries import Source
from pybench.strategies import CATALOGUE, Choice, Parameter, Scalar
from tests.core_trials import fixed


@dataclass(frozen=True)
class Backend:
    name: str = "here"
    urls: tuple[Any, ...] = ()
    source: Source = "auto"
    kind: Literal["redis"] = "redis"


@pytest.fixture(scope="module")
def pool() -> Iterator[ServerPool]:
    with ServerPool() as pool:
        yield pool


def servers_for(pool: ServerPool, name: str) -> list[Any]:
    strategy = CATALOGUE[name]
    found: list[Server] = pool.get(Backend(), servers=strategy.servers(()), replicas=strategy.replicas(()))
    return [server.core_spec() for server in found]


def edges(parameter: Parameter) -> list[Scalar]:
    """The values at which a range ends, or all words."""
    allowed = parameter.allowed
    return list(allowed.words) if isinstance(allowed, Choice) else [allowed.lowest, allowed.highest]


EDGES = [
    (name, parameter.name, value)
    for name, strategy in CATALOGUE.items()
    for parameter in strategy.parameters
    for value in edges(parameter)
]


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_grant_that_nobody_contends_sends_what_the_catalogue_lists(make_spec, pool, name):
    spec = make_spec(strategy=name, concurrency=1, hold=fixed(1), servers=servers_for(pool, name))
    totals = _core.Trial(spec).run().totals
    assert totals["grants"] > 5
    # The last grant may be cut off by the end of the trial, and a queue is made once.
    each = CATALOGUE[name].commands_per_grant
    commands = each * totals["all_grants"]
    assert commands - each <= totals["all_commands"] <= commands + each + 1


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("ttl_ms", [1, 2, 3, 1_001])
def test_a_plan_refuses_the_leases_that_the_core_refuses(make_spec, server, name, ttl_ms):
    matrix = matrix_from_options(strategy=name, ttl=f"{ttl_ms}ms")
    (cell,) = expand(matrix)
    servers = [server.core_spec()] * CATALOGUE[name].servers(())
    spec = make_spec(strategy=name, ttl_ms=ttl_ms, servers=servers)
    if why_impossible(cell, matrix, NO_LIMITS) is None:
        _core.Trial(spec)
    else:
        with pytest.raises(ValueError, match=r"drift allowance|shorter than the lease"):
            _core.Trial(spec)


@pytest.mark.parametrize(("name", "argument", "value"), EDGES)
def test_the_core_takes_every_argument_as_far_as_the_catalogue_does(make_spec, server, name, argument, value):
    servers = [server.core_spec()] * CATALOGUE[name].servers(((argument, value),))
    patient = {"patience_ns": 120_000_000_000, "ttl_ms": 120_000}
    _core.Trial(make_spec(strategy=name, args={argument: value}, servers=servers, **patient))


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_core_takes_no_argument_that_the_catalogue_lacks(make_spec, name):
    with pytest.raises(ValueError, match="no-such-argument"):
        _core.Trial(make_spec(strategy=name, args={"no-such-argument": 1}))


def test_the_core_knows_no_strategy_that_the_catalogue_lacks(make_spec):
    with pytest.raises(ValueError, match=f"known are {', '.join(CATALOGUE)}$"):
        _core.Trial(make_spec(strategy="no-such-strategy"))
