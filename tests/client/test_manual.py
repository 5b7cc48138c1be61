"""The page of the manual about locks for a program is true: its examples run, its tables name what exists."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pybench
from pybench import lock_client
from pybench.lock_client import AsyncHeld, Held, LockError
from pybench.lock_client.servers import OFFERED

PAGE = (Path(__file__).parents[2] / "docs/lock-client.md").read_text(encoding="utf-8")
THREADS, TASKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_run(url, other):
    shipped = []

    async def ship_order(order: int) -> None:
        shipped.append(order)

    names = {"ship_order": shipped.append}
    exec(THREADS.replace("redis://localhost", url), names)
    with names["client"]:
        names["ship_order"] = ship_order
        exec("async def main():\n" + textwrap.indent(TASKS, "    "), names)
        asyncio.run(names["main"]())
    assert shipped == [17, 17]
    assert other.dbsize() == 0


def test_every_error_is_explained():
    errors = {
        name
        for name in lock_client.__all__
        if issubclass(getattr(lock_client, name), LockError) and name != "LockError"
    }
    assert errors == set(re.findall(r"^\| `([A-Z]\w+)` \|", PAGE, re.MULTILINE))


def test_every_attribute_of_a_held_lock_is_explained():
    told = set(re.findall(r"^\| `held\.(\w+)", PAGE, re.MULTILINE))
    for held in (Held, AsyncHeld):
        assert told == {name for name in dir(held) if not name.startswith("_")} - {"name"}


def test_every_strategy_for_programs_is_listed():
    rows = re.findall(r"^\| `([a-z-]+)(?:\([^)]*\))?` \| ", PAGE.partition("## Strategies")[2], re.MULTILINE)
    assert set(rows) == set(OFFERED)


def test_importing_the_package_does_not_load_it():
    script = "import sys, pybench; print([name for name in sys.modules if name.startswith('pybench.')])"
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert said.stdout == "[]\n"
    assert pybench.LockClient is lock_client.LockClient
    assert "LockClient" in dir(pybench)
