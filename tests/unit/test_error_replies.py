"""What is told of the errors with which servers answered."""

from __future__ import annotations

import pandas as pd
import pytest

from pybench import error_replies
from pybench.error_replies import refusals
from pybench.servers.postgres.refusals import refused_calls


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
    error = refused_calls("postgresql://h/db", "3 acquire calls", "53200", first, strategy="pg-advisory")
    assert error.message.startswith(f"postgresql://h/db {what}")
    assert error.message.endswith(f': it refused 3 acquire calls of pg-advisory: "{first}"')
    assert hint in (error.hint or "")
