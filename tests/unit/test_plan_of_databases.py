"""What a plan says of locks of a database: their sessions, their time, and what cannot be."""

from __future__ import annotations

import pytest

from pybench.matrix import expand, matrix_from_mapping, matrix_from_options
from pybench.matrix.cells import Cell
from pybench.planning.limits import Limits, Sessions
from pybench.planning.needs import Demand, Group, call_conditions_of, largest, parts_of, sessions_of
from pybench.planning.plan import make_plan
from pybench.planning.trial_spec import session_settings, trial_spec

GIVEN = {"postgres": "postgresql://h/d"}


def reasons(limits: Limits | None = None, **options: object) -> dict[str, str]:
    plan = make_plan(matrix_from_options(**options), limits or Limits())
    return {refused.cell.id: refused.reason for refused in plan.refused}


def cell_of(**options: object) -> Cell:
    (cell,) = expand(matrix_from_options(**options))
    return cell


def settings_for(strategy: str, **options: object) -> dict[str, str]:
    cell = cell_of(strategy=strategy, **options)
    return session_settings(cell, client_name="a-trial", pooled=False, checks_connections=True)


@pytest.mark.parametrize(
    ("strategy", "sessions"),
    [
        ("pg-advisory", 16),
        ("pg-advisory(session=shared, wait=try)", 4),
        ("pg-row", 16),
        ("pg-serializable", 16),
        ("pg-lease", 4),
        ("layered", 4),
    ],
)
def test_a_database_gets_the_sessions_that_its_locks_use(strategy, sessions):
    assert sessions_of(cell_of(strategy=strategy, concurrency="16"), "postgres") == sessions


def test_a_lock_of_two_servers_needs_a_group_of_each_kind():
    cell = cell_of(strategy="layered", concurrency="8", appendfsync="always")
    redis, postgres = Group("redis", "always", 0), Group("postgres", "none", 0)
    assert [(part.group, part.servers) for part in parts_of(cell)] == [(redis, 1), (postgres, 1)]
    assert call_conditions_of(cell) == [("redis", "always", "block"), ("postgres", "none", "block")]
    assert largest([cell]) == {redis: Demand(1, 4), postgres: Demand(1, 4)}


def test_the_servers_of_a_plan_are_those_of_each_kind():
    plan = make_plan(matrix_from_options(strategy="mutex,pg-row,layered", concurrency="16", appendfsync="off,always"))
    needs = [(need.backend, need.kind, need.appendfsync, need.servers, need.connections) for need in plan.servers]
    assert needs == [
        ("redis", "redis", "off", 1, 4),
        ("redis", "redis", "always", 1, 4),
        ("postgres", "postgres", "none", 1, 16),
    ]


def test_more_sessions_than_a_given_database_has_left_are_refused_with_both_numbers():
    few = Limits(sessions={"postgres": Sessions(free=19, most=25)})
    options = {"strategy": ["pg-row", "pg-lease"], "concurrency": "16,17", **GIVEN}
    assert reasons(few, **options) == {
        "pg-row concurrency=17": "one connection per client of pg-row: 17 sessions and 3 for monitoring wanted, 19 of "
        "25 are free on the server of postgres; raise max_connections, or lower concurrency"
    }
    assert reasons(Limits(), **options) == {}
    of_user = Limits(sessions={"postgres": Sessions(free=3, most=100, limit="CONNECTION LIMIT of the user")})
    assert reasons(of_user, strategy="pg-row", **GIVEN) == {
        "pg-row": "one connection per client of pg-row: 1 session and 3 for monitoring wanted, 3 of 100 are free on "
        "the server of postgres; raise CONNECTION LIMIT of the user, or lower concurrency"
    }


def test_where_no_table_can_be_made_locks_without_rows_can_be_measured_all_the_same():
    grant = 'GRANT CREATE ON DATABASE "d" TO "ann"'
    told = reasons(Limits(grants={"postgres": grant}), strategy="mutex,pg-advisory,pg-row,layered", **GIVEN)
    reason = f"needs a table in a new schema, and this user may not create a schema; {grant}"
    assert told == {"pg-row": f"pg-row {reason}", "layered": f"layered {reason}"}


def test_more_sessions_than_a_database_of_ours_takes_are_refused():
    assert reasons(strategy="pg-row", concurrency="1000,1001") == {
        "pg-row concurrency=1001": "one connection per client of pg-row: 1,001 sessions wanted, 1,000 available (the "
        "limit of a Postgres that pybench starts); lower concurrency"
    }


@pytest.mark.parametrize(
    ("strategy", "reason"),
    [
        (
            "pg-advisory(session=shared)",
            "in a shared session one waiting client blocks all clients; use wait=try, or session=own",
        ),
        (
            "pg-advisory(session=shared, wait=try, scope=transaction)",
            "clients that share a session cannot have transactions of their own; use scope=session, or session=own",
        ),
        (
            "pg-row(wait=nowait, lock_timeout_ms=5)",
            "pg-row(lock_timeout_ms=5, wait=nowait) never waits for a lock; use wait=block, or drop lock_timeout_ms",
        ),
        (
            "pg-row(lock_timeout_ms=10001)",
            "max_wait of 10s is shorter than lock_timeout_ms=10001; lengthen max_wait",
        ),
        ("pg-lease", None),
        ("pg-row(lock_timeout_ms=10000)", None),
        ("pg-advisory(session=shared, wait=try)", None),
    ],
)
def test_what_a_lock_of_a_database_cannot_do_is_refused(strategy, reason):
    assert list(reasons(strategy=strategy).values()) == ([] if reason is None else [reason])


def test_axes_that_redis_locks_know_are_those_of_the_database_s_too():
    assert reasons(strategy="pg-advisory,pg-row", read_share="0,0.5") == {}
    assert reasons(strategy="pg-row", keys="5", keys_per_grant="2", key_order="random,sorted") == {}
    assert list(reasons(strategy="pg-lease", read_share="0.5").values()) == [
        "pg-lease has no shared mode for readers; use read_share: 0, or read-write or pg-advisory or pg-row"
    ]


def test_settings_that_a_pooler_would_drop_are_refused():
    told = reasons(Limits(pooled={"postgres"}), strategy=["pg-lease", "pg-lease(synchronous_commit=off)"], **GIVEN)
    assert told == {
        "pg-lease(synchronous_commit=off)": "postgres is behind a pooler, which refuses synchronous_commit for its "
        "sessions; drop it, or give the address of the database server"
    }
    mapping = {
        "axes": {"strategy": "pg-row(lock_timeout_ms=5)"},
        "backends": {"pg": {"url": GIVEN["postgres"], "prepare": "unnamed"}},
    }
    (refused,) = make_plan(matrix_from_mapping(mapping)).refused
    assert "refuses lock_timeout for its sessions" in refused.reason


def test_a_table_takes_time_before_and_after_each_trial():
    few, many = (
        make_plan(matrix_from_options(strategy="pg-lease", keys=keys, trials="3")).seconds for keys in ("1", "1000000")
    )
    none = make_plan(matrix_from_options(strategy="pg-advisory", keys="1000000", trials="3")).seconds
    assert none < few < many - 10


def test_a_backend_that_no_strategy_is_for_is_noted():
    plan = make_plan(matrix_from_options(strategy="mutex", **GIVEN))
    assert plan.notes == ["no cell uses the backend postgres"]
    assert make_plan(matrix_from_options(strategy="layered", **GIVEN)).notes == []


def test_the_settings_of_a_session_bound_its_waits_and_find_clients_that_have_gone():
    assert settings_for("pg-row") == {
        "application_name": "a-trial",
        "lock_timeout": "10000",
        "client_connection_check_interval": "100",
    }
    assert settings_for("pg-row", retry="fixed(base=1ms, max_wait=500us)")["lock_timeout"] == "1"
    assert settings_for("pg-row", retry="fixed(base=1ms, max_wait=1500us)")["lock_timeout"] == "2"


def test_the_settings_that_a_strategy_names_are_those_of_its_sessions():
    told = settings_for("pg-row(lock_timeout_ms=50, synchronous_commit=local)")
    assert (told["lock_timeout"], told["synchronous_commit"]) == ("50", "local")
    assert "synchronous_commit" not in settings_for("pg-row(synchronous_commit=server)")


def test_a_pooler_gets_the_name_alone_and_an_old_server_no_check():
    cell = cell_of(strategy="pg-row")
    pooled = session_settings(cell, client_name="a-trial", pooled=True, checks_connections=True)
    assert pooled == {"application_name": "a-trial"}
    old = session_settings(cell, client_name="a-trial", pooled=False, checks_connections=False)
    assert set(old) == {"application_name", "lock_timeout"}


def test_the_core_is_told_no_setting_of_a_session_as_an_argument_of_the_lock():
    cell = cell_of(strategy="pg-row(wait=nowait, synchronous_commit=off)")
    times = {"seed": 1, "warmup_ns": 0, "duration_ns": 1}
    spec = trial_spec(cell, [], cores=[], key_prefix="p", client_name="c", **times)
    assert spec["args"] == {"wait": "nowait"}
