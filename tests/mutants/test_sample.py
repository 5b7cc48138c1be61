"""Three of the mistakes, and their locks without them: `make mutants` has all. Slow, for the core is built for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.build import build
from tests.mutants.hunt import LEAST_HONEST_SEEDS, hunt
from tests.mutants.table import CASES, Case

SAMPLE = (
    "script that releases without owner check",  # Only the late probe shows it, on a server with a command for it.
    "refused renewal taken for success",
    "no WAIT for replicas",
)
SAMPLED = [case for case in CASES if case.mutant in SAMPLE]


@pytest.fixture(scope="module")
def package() -> Path:
    return build()


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("case", SAMPLED, ids=[case.mutant for case in SAMPLED])
def test_a_mistake_is_caught_and_the_honest_lock_is_not_blamed(package: Path, tmp_path: Path, case: Case):
    caught = hunt(package, case, tmp_path / "mutant", honest=False)
    assert caught.is_caught, case
    if case.mutant == SAMPLE[0]:
        assert caught.what.startswith("late probe: ")
    seeds = max(LEAST_HONEST_SEEDS, caught.seeds or 0)
    honest = hunt(package, case, tmp_path / "honest", honest=True, seeds=seeds)
    assert not honest.is_caught, honest.what
