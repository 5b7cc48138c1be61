"""The gate of a scenario: all users act at once, on whichever worker they are."""

from __future__ import annotations

import subprocess
import sys

from tests.load.commands import LOCUSTFILES, environment

GATE = """
from types import SimpleNamespace
from locust import events
from _scenario import Scenario
gate = Scenario("a_scenario", users={"full": 1, "short": 1}).gate
print(gate.is_set())
events.spawning_complete.fire(user_count=1)
print(gate.is_set())
events.test_start.fire(environment=SimpleNamespace(runner=None))
print(gate.is_set())
"""


def test_the_gate_opens_when_all_users_are_there_and_closes_for_the_next_run():
    variables = environment(PYTHONPATH=str(LOCUSTFILES))
    done = subprocess.run([sys.executable, "-c", GATE], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]
