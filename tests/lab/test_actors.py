"""Processes that play a role: what becomes of them when they, or the process that started them, end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pybench.errors import ServerError
from pybench.lab.actors import Actor
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pybench.lab.acting import Line

STARTER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from pybench.lab.actors import Actor
from tests.lab.test_actors import waits
actor = Actor(waits, {}, left_s=lambda: 60.0)
actor.hear()
print(actor.pid, flush=True)
time.sleep(60)
"""


def waits(line: Line) -> None:
    """A role that does nothing until it is killed."""
    line.say({"ready": True})
    time.sleep(60)


def test_a_role_that_has_ended_hides_no_error_behind_what_could_not_be_sent_to_it():
    actor = Actor(waits, {}, left_s=lambda: 60.0)
    actor.hear()
    os.kill(actor.pid, signal.SIGKILL)
    with pytest.raises(ServerError, match="ended with code -9"):
        actor.hear()
    actor.tell({"too": "late"})
    actor.end()


def test_an_interrupt_of_the_terminal_does_not_reach_a_role():
    actor = Actor(waits, {}, left_s=lambda: 60.0)
    try:
        # Ctrl-C goes to the group of processes in the foreground.
        assert os.getpgid(actor.pid) == actor.pid != os.getpgrp()
    finally:
        actor.end()


def test_a_role_that_is_stopped_ends_with_the_process_that_started_it():
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(Path(__file__).parents[2])], stdout=subprocess.PIPE, encoding="utf-8"
    )
    with starter:
        assert starter.stdout is not None
        role = int(starter.stdout.readline())
        os.kill(role, signal.SIGSTOP)
        starter.kill()
    wait_until(lambda: _has_ended(role), "the role has ended")


def _has_ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"
