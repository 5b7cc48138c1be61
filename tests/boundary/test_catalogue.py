"""The catalogue, which people read and plans are made by, says of each strategy what the core's lock does."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from pybench import _core
from pybench.matrix import expand, matrix_from_options
from pybench.planning.impossible import why_impossible
from pybench.planning.limits import NO_LIMITS
from pybench.planning.needs import largest, parts_of, servers_in
from pybench.running.trial_servers import sides_of
from pybench.servers import ServerPool
from pybench.strategies import CATALOGUE, Choice, Parameter, Scalar
from tests.core_trials import fixed, run_for_grants

TRIALS = itertools.count(1)


@pytest.fixture(scope="module")
def pool() -> Iterator[ServerPool]:
    with ServerPool() as pool:
        yield pool


@contextlib.contextmanager
def servers_for(pool: ServerPool, strategy: str) -> Iterator[list[Any]]:
    """The servers that `strategy` is measured on, as the core takes them, with its table where it has one."""
    matrix = matrix_from_options(strategy=strategy)
    (cell,) = expand(matrix)
    demands = largest([cell])
    servers = [
        server for part in parts_of(cell) for server in servers_in(pool, matrix, part.group, demands[part.group])
    ]
    sides = sides_of(cell, servers, matrix.backends, run_id="0", trial=next(TRIALS))
    for side in sides:
        side.prepare()
    yield [side.spec() for side in sides]
    for side in sides:
        side.clear()


def edges(parameter: Parameter) -> list[Scalar]:
    """The values at which a range ends, or all words."""
    allowed = parameter.allowed
    return list(allowed.words) if isinstance(allowed, Choice) else [allowed.lowest, allowed.highest]


EDGES = [
    (name, parameter.name, value)
    for name, strategy in CATALOGUE.items()
    for parameter in strategy.parameters
    if not parameter.of_session
    for value in edges(parameter)
]


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_grant_that_nobody_contends_sends_what_the_catalogue_lists(make_spec, pool, name):
    # Five servers share this machine: one that had not had its turn would be given up, and the lock asked for again.
    has_timeout = any(parameter.name == "node_timeout_ms" for parameter in CATALOGUE[name].parameters)
    args = {"node_timeout_ms": 1_000} if has_timeout else {}
    # Each end of a stage may cut a request off, so there is but one. It lasts as long as ten grants take.
    asked = {"strategy": name, "args": args, "concurrency": 1, "hold": fixed(1), "warmup_ns": 0}
    with servers_for(pool, name) as servers:
        totals = run_for_grants(make_spec(**asked, servers=servers), 10).totals
    # The last request may be cut off, and a queue is made once.
    each = CATALOGUE[name].commands_per_grant
    commands = each * totals["all_grants"]
    assert commands - each <= totals["all_commands"] <= commands + each + 1


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("ttl_ms", [1, 2, 3, 1_001])
def test_a_plan_refuses_the_leases_that_the_core_refuses(make_spec, pool, name, ttl_ms):
    guard = "counter" if CATALOGUE[name].needs_guard else "none"
    matrix = matrix_from_options(strategy=name, ttl=f"{ttl_ms}ms", guard=guard)
    (cell,) = expand(matrix)
    with servers_for(pool, name) as servers:
        spec = make_spec(strategy=name, ttl_ms=ttl_ms, servers=servers)
        if why_impossible(cell, matrix, NO_LIMITS) is None:
            _core.Trial(spec)
        else:
            with pytest.raises(ValueError, match=r"clock-skew margin|shorter than the lease"):
                _core.Trial(spec)


@pytest.mark.parametrize(("name", "argument", "value"), EDGES)
def test_the_core_takes_every_argument_as_far_as_the_catalogue_does(make_spec, pool, name, argument, value):
    # Clients of one session cannot wait there.
    args = {argument: value} | ({"wait": "try"} if (argument, value) == ("session", "shared") else {})
    patient = {"reply_timeout_ns": 120_000_000_000, "ttl_ms": 120_000}
    with servers_for(pool, name) as servers:
        if CATALOGUE[name].argument("nodes", ()) is not None:
            servers = servers[:1] * CATALOGUE[name].servers(tuple(args.items()))
        _core.Trial(make_spec(strategy=name, args=args, servers=servers, **patient))


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_core_takes_no_argument_that_the_catalogue_lacks(make_spec, name):
    with pytest.raises(ValueError, match="no-such-argument"):
        _core.Trial(make_spec(strategy=name, args={"no-such-argument": 1}))


def test_the_core_knows_no_strategy_that_the_catalogue_lacks(make_spec):
    with pytest.raises(ValueError, match=f"known are {', '.join(CATALOGUE)}$"):
        _core.Trial(make_spec(strategy="no-such-strategy"))
