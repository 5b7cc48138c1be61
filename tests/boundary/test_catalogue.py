"""The catalogue, which people read and plans are made by, says of each strategy what the core's lock does."""

from __future__ import annotations

import pytest

from pybench import _core
from pybench.impossible import drift_ns
from pybench.strategies import CATALOGUE
from tests.core_trials import MS, fixed


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_grant_that_nobody_contends_sends_what_the_catalogue_lists(make_spec, name):
    totals = _core.Trial(make_spec(strategy=name, concurrency=1, hold=fixed(1))).run().totals
    assert totals["grants"] > 5
    # The last grant may be cut off by the end of the trial.
    commands = len(CATALOGUE[name].commands) * totals["all_grants"]
    assert commands - 3 <= totals["all_commands"] <= commands + 3


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("ttl_ms", [1, 2, 3, 1_001])
def test_a_plan_refuses_the_leases_that_the_core_refuses(make_spec, name, ttl_ms):
    lease_ms = CATALOGUE[name].lease_ms(ttl_ms)
    if lease_ms is not None and lease_ms * MS <= drift_ns(lease_ms):
        with pytest.raises(ValueError, match="drift allowance"):
            _core.Trial(make_spec(strategy=name, ttl_ms=ttl_ms))
    else:
        _core.Trial(make_spec(strategy=name, ttl_ms=ttl_ms))


def test_the_core_knows_no_strategy_that_the_catalogue_lacks(make_spec):
    with pytest.raises(ValueError, match=f"known are {', '.join(CATALOGUE)}$"):
        _core.Trial(make_spec(strategy="no-such-strategy"))
