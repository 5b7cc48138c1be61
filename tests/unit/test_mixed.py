from __future__ import annotations

from pybench.analysis.overload import overload
from pybench.planning.unlike_servers import ServerAccess, mixed

REDIS, POSTGRES = (
    ServerAccess("redis", given=True, transport="tcp"),
    ServerAccess("postgres", given=False, transport="unix"),
)


def test_a_given_server_beside_a_started_one_is_said():
    assert mixed([REDIS, POSTGRES]) == (
        "The servers of this run differ: pybench starts postgres, but not redis; TCP to redis; a Unix socket to "
        "postgres. A difference between locks may come from the servers."
    )
    assert mixed([REDIS, ServerAccess("postgres", given=False, transport=None)]) == (
        "The servers of this run differ: pybench starts postgres, but not redis. A difference between locks may come "
        "from the servers."
    )


def test_like_servers_say_nothing():
    assert mixed([]) is None
    assert mixed([REDIS]) is None
    assert mixed([REDIS, ServerAccess("postgres", given=True, transport="tcp")]) is None
    assert mixed([POSTGRES, ServerAccess("redis", given=False, transport="unix")]) is None


def test_overload_is_said_where_fewer_are_granted_than_offered():
    row = {"rate_per_s": 400.0, "grants_per_s": 350.0}
    assert overload(row) == "400/s offered, 350/s granted: waits grow without bound"
    assert overload({**row, "grants_per_s": 393.0}) is None
    assert overload({**row, "drops": 1_200.0}) == (
        "400/s offered, 350/s granted: waits grew until 1,200 arrivals were dropped"
    )


def test_a_closed_loop_is_offered_what_it_can_take():
    assert overload({"grants_per_s": 350.0}) is None
    assert overload({"rate": "none", "grants_per_s": 350.0}) is None
    assert overload({"rate_per_s": 400.0, "grants_per_s": float("nan")}) is None
