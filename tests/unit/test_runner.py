"""What the runner holds against a machine whose clock does not run steadily."""

from __future__ import annotations

import math

import pytest

from pybench.running.aftermath import step_of_clock


@pytest.mark.parametrize(("jumped_s", "ttl_ms"), [(0.09, 60), (-0.09, 60), (5.0, 3_600_000)])
def test_a_pause_between_two_readings_and_a_step_within_the_drift_allowance_are_no_step(jumped_s, ttl_ms):
    assert step_of_clock(jumped_s, ttl_ms) is None


@pytest.mark.parametrize(("jumped_s", "ttl_ms"), [(0.2, 10_000), (-3.0, 10_000), (40.0, 3_600_000)])
def test_a_step_of_the_clock_ends_the_run_instead_of_blaming_a_lock(jumped_s, ttl_ms):
    step = step_of_clock(jumped_s, ttl_ms)
    assert step is not None
    assert "the clock of this machine moved by" in step.error.message
    assert step.intact_ns == -math.inf, "violations of such a trial blame nobody"
