"""What README and the manual say of Redis beside Postgres is what the run that is kept for it found."""

from __future__ import annotations

import pytest

from tools import redis_vs_postgres

AGAIN = "python -m tools.redis_vs_postgres writes both pages anew"


@pytest.fixture(scope="module")
def found():
    return redis_vs_postgres.load()


def test_readme_shows_what_the_run_found(found):
    assert redis_vs_postgres.told(redis_vs_postgres.README) == redis_vs_postgres.in_readme(*found), AGAIN


def test_the_manual_shows_what_the_run_found(found):
    assert redis_vs_postgres.told(redis_vs_postgres.MANUAL) == redis_vs_postgres.in_manual(*found), AGAIN


def test_every_row_of_readme_has_a_figure_for_every_lock(found):
    rows = [
        line.strip("|").split("|")[1:] for line in redis_vs_postgres.in_readme(*found).splitlines() if line[:1] == "|"
    ][2:]
    assert len(rows) == len(redis_vs_postgres.ASPECTS)
    assert [cell for row in rows for cell in row if not any(letter.isdigit() for letter in cell)] == []


def test_the_run_is_whole_and_each_of_its_controls_was_caught(found):
    run, measured = found
    assert run.manifest["status"] == "complete"
    assert all(entry["caught"] for entry in run.manifest["control"])
    assert {entry["lock"] for entry in measured["locks"]} >= set(redis_vs_postgres.IN_README)
    assert run.manifest["command"] == ["pybench", "run", "examples/redis-vs-postgres.yaml"]
