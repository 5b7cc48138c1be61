"""Locks of a database whose sessions begin at a stricter level of isolation: conflicts are counted, no lease stays."""

from __future__ import annotations

import pytest

from pybench import _core
from pybench.servers.postgres import read_values
from tests.boundary.databases import SCHEMA, Database
from tests.core_trials import MS, trial_spec_of

LEVELS = ["read committed", "repeatable read", "serializable"]


def trial(postgres: Database, strategy: str, level: str, **fields: object) -> _core.TrialResult:
    """Eight clients on two keys, with a lease so long that a row that stays taken stands still for the whole trial."""
    postgres.make_table(2)
    server = postgres.core_spec(settings={"default_transaction_isolation": level})
    usual = {"keys": 2, "concurrency": 8, "duration_ns": 1_000 * MS, "ttl_ms": 60_000, "key_prefix": "conflicts:"}
    return _core.Trial(trial_spec_of([server], **{**usual, "strategy": strategy, **fields})).run()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("strategy", ["pg-lease", "pg-row", "pg-advisory", "pg-optimistic", "pg-serializable"])
def test_no_lock_of_a_database_stands_still_at_any_level_of_isolation(postgres, strategy, level):
    result = trial(postgres, strategy, level)
    totals = result.totals
    # A row whose release failed would be free again after a minute: then hardly anybody is granted anything.
    assert totals["grants"] > 50, (result.errors, totals)
    assert totals["errors"] == totals["unknown"] == totals["double_grants"] == 0, result.errors
    assert result.errors == [], "a conflict is no error reply"


def test_a_lease_under_serializable_meets_conflicts_and_counts_them(postgres):
    assert trial(postgres, "pg-lease", "serializable").totals["conflicts"] > 0
    assert trial(postgres, "pg-lease", "read committed").totals["conflicts"] == 0


@pytest.mark.parametrize("strategy", ["pg-optimistic", "pg-serializable"])
def test_writes_are_told_row_by_row_and_each_row_holds_what_was_written(postgres, strategy):
    result = trial(postgres, strategy, "read committed", keys=2)
    acknowledged, unknown = result.writes["acknowledged"], result.writes["unknown"]
    assert len(acknowledged) == len(unknown) == 2
    assert acknowledged.sum() == result.totals["acknowledged_writes"] > 0
    with postgres.connect() as session:
        values = read_values(session, SCHEMA, 2)
    assert _core.judge_rows(acknowledged, unknown, values)[:2] == (0, 0)
    # One write moved from a row to the other: the sum is the same, and both rows are wrong.
    values[0] += 1
    values[1] -= 1
    if not unknown.any():
        assert _core.judge_rows(acknowledged, unknown, values)[:2] == (1, 1)


def test_a_lock_that_writes_nothing_has_no_rows(postgres):
    assert len(trial(postgres, "pg-row", "read committed", duration_ns=50 * MS).writes["acknowledged"]) == 0
