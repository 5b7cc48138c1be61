from __future__ import annotations

from pybench.analysis.overload import overload
from pybench.planning.unlike_servers import ServerAccess, mixed

REDIS, POSTGRES = (
    ServerAccess("redis", given=True, transport="tcp"),
    ServerAccess("postgres", given=False, transport="unix"),
)


def test_a_given_server_beside_a_started_one_is_said():
    assert mixed([REDIS, POSTGRES]) == (
        "The locks of this run are not on like servers: redis was given, postgres is started by pybench; redis is "
        "reached over TCP; postgres is reached over a Unix socket. A difference may be the server's."
    )
    assert mixed([REDIS, ServerAccess("postgres", given=False, transport=None)]) == (
        "The locks of this run are not on like servers: redis was given, postgres is started by pybench. A difference "
        "may be the server's."
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
        "400/s offered, 350/s granted: waits grow until arrivals are dropped, 1,200 were"
    )


def test_a_closed_loop_is_offered_what_it_can_take():
    assert overload({"grants_per_s": 350.0}) is None
    assert overload({"rate": "none", "grants_per_s": 350.0}) is None
    assert overload({"rate_per_s": 400.0, "grants_per_s": float("nan")}) is None
