"""What is told of the errors with which servers answered."""

from __future__ import annotations

import pandas as pd
import pytest

from pybench.analysis import error_replies
from pybench.analysis.error_replies import refusals
from pybench.servers.postgres.endpoint import PostgresEndpoint
from pybench.servers.postgres.refusals import refused, refused_calls
from pybench.servers.redis import refusals as redis_refusals
from pybench.servers.redis.conversation import Refusal
from pybench.servers.redis.endpoint import Endpoint
from pybench.servers.rights import redis_rights


def row(phase="release", code="NOPERM", server=0, count=93, warmup=0, first="NOPERM no permissions"):
    return {"phase": phase, "code": code, "server": server, "count": count, "warmup": warmup, "first": first}


def trials(*texts: object):
    return pd.DataFrame(
        {"cell": [f"c{n}" for n in range(len(texts))], "strategy": "mutex", "error_replies": list(texts)}
    )


def test_replies_of_one_kind_are_added_up_over_trials_and_the_first_text_stays():
    first = error_replies.encode([row(count=90, warmup=2)], ["redis 7.0.15"])
    later = error_replies.encode([row(count=3, first="NOPERM another"), row(phase="renew", count=1)], ["redis 7.0.15"])
    found = refusals(trials(first, later))
    assert [refusal.sentence for refusal in found] == [
        'mutex: redis 7.0.15 refused 93 release calls (2 of them before the window): "NOPERM no permissions"',
        'mutex: redis 7.0.15 refused 1 renewal call: "NOPERM no permissions"',
    ]
    assert found[0].cells == {"c0", "c1"}


def test_of_several_servers_the_one_that_refused_is_named():
    text = error_replies.encode([row(server=2, code="OOM", phase="acquire")], ["valkey 9.1.2"] * 5)
    assert refusals(trials(text))[0].sentence.startswith("mutex: valkey 9.1.2 (server 3) refused 93 acquire calls: ")


def test_a_record_of_before_and_a_trial_without_errors_tell_of_none():
    assert refusals(pd.DataFrame({"cell": ["c"], "strategy": ["mutex"]})) == []
    assert refusals(trials(None, float("nan"), error_replies.encode([], ["redis"]))) == []


def test_no_password_that_a_server_repeats_is_kept():
    rows = [{"first": "ERR unknown command, args: `lab`, `s3 cret`", "code": "s3", "phase": "release"}]
    error_replies.mask(rows, {"s3 cret", "s3"})
    assert rows[0] == {"first": "ERR unknown command, args: `lab`, `***`", "code": "***", "phase": "release"}


@pytest.mark.parametrize(
    ("first", "what", "hint"),
    [
        ("out of memory", "is out of memory", "lower its max_connections"),
        ("out of shared memory", "has no room for another lock in its shared memory", "max_locks_per_transaction"),
        ("You might need to increase max_locks_per_transaction.", "has no room for another lock", "max_locks"),
    ],
)
def test_a_database_that_is_out_of_memory_has_two_causes_and_a_hint_for_each(first, what, hint):
    where = PostgresEndpoint("u", "db", host="h")
    in_a_trial = refused_calls(where, "3 acquire calls", "53200", first, strategy="pg-advisory")
    assert in_a_trial.message.startswith(f"postgresql://h:5432/db {what}")
    assert in_a_trial.message.endswith(f': it refused 3 acquire calls of pg-advisory: "{first}"')
    of_ours = refused(where, "53200", first)
    assert of_ours.message.startswith(f"{where} {what}")
    assert of_ours.message.endswith(f": {first}")
    for error in (in_a_trial, of_ours):
        assert hint in (error.hint or "")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('too many connections for role "lab"', "CONNECTION LIMIT"),
        ('too many connections for database "db"', "CONNECTION LIMIT"),
        ("remaining connection slots are reserved for roles with the SUPERUSER attribute", "max_connections"),
    ],
)
def test_a_limit_of_a_role_or_a_database_is_not_taken_for_that_of_the_server(text, hint):
    assert hint in (refused(PostgresEndpoint("u", "db", host="h"), "53300", text).hint or "")


IN_A_SCRIPT = "ERR The user executing the script can't run this command or subcommand script: 1f3, on @user_script:1."
"""What Redis 7.0 says; 7.2 and later say `ACL failure in script`."""


@pytest.mark.parametrize(("code", "text"), [("ERR", IN_A_SCRIPT), ("NOPERM", "NOPERM User lab has no permissions")])
def test_a_right_that_redis_misses_is_known_in_all_its_words_and_the_hint_names_the_user(code, text):
    where = Endpoint.parse("redis://lab:pw@h")
    in_a_trial = redis_refusals.refused_calls(where, "3 release calls", code, text, strategy="fenced")
    assert "does not let this user do what fenced needs" in in_a_trial.message
    assert in_a_trial.hint == f"ACL SETUSER lab {redis_rights('fenced')}"
    of_ours = redis_refusals.refused(where, Refusal(text))
    assert (of_ours.hint or "").startswith("ACL SETUSER lab +ping +info")
    unnamed = redis_refusals.refused_calls(Endpoint.parse("redis://h"), "1 call", code, text, strategy="mutex")
    assert (unnamed.hint or "").startswith("ACL SETUSER default ")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "permission denied for function pg_backend_pid",
            'GRANT EXECUTE ON FUNCTION pg_backend_pid TO "u", in the database "db"',
        ),
        (
            "permission denied for function pg_try_advisory_lock",
            'GRANT EXECUTE ON FUNCTION pg_try_advisory_lock(bigint) TO "u", in the database "db"',
        ),
        ("permission denied for view pg_stat_activity", 'GRANT SELECT ON pg_stat_activity TO "u", in the'),
        ("permission denied for database db", 'GRANT CONNECT, CREATE ON DATABASE "db" TO "u"; pg-advisory needs'),
    ],
)
def test_a_right_that_postgres_misses_is_named_with_what_it_is_for_and_whom(text, hint):
    where = PostgresEndpoint("u", "db", host="h")
    for error in (refused(where, "42501", text), refused_calls(where, "1 call", "42501", text, strategy="pg-row")):
        assert text in error.message
        assert (error.hint or "").startswith(hint)


def test_no_hint_sends_a_user_of_the_doctor_to_the_doctor():
    """The doctor shows these hints, too."""
    odd = redis_refusals.refused(Endpoint.parse("redis://h"), Refusal("ODD something"))
    also = refused(PostgresEndpoint("u", "db", host="h"), "XX000", "something")
    for error in (odd, also):
        assert "doctor" not in (error.hint or "doctor")
        assert "words" in (error.hint or "")


@pytest.mark.parametrize(
    ("code", "first", "remedy"),
    [
        ("NOPERM", "NOPERM no permissions", f"ACL SETUSER NAME {redis_rights('mutex')}"),
        ("ERR", IN_A_SCRIPT, f"ACL SETUSER NAME {redis_rights('mutex')}"),
        ("42501", "permission denied for function pg_advisory_unlock", "GRANT EXECUTE ON FUNCTION pg_advisory_unlock"),
        ("OOM", "OOM command not allowed", None),
    ],
)
def test_the_report_of_a_missing_right_says_what_to_grant(code, first, remedy):
    [found] = refusals(trials(error_replies.encode([row(code=code, first=first)], ["redis 7.0.15"])))
    assert found.remedy == remedy if remedy is None else (found.remedy or "").startswith(remedy)
