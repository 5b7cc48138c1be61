"""The page of the manual about Locust is true: every command of it runs, and its tables name what exists."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib

import pytest

import pybench
from pybench.swarm.options import add_options
from pybench.swarm.settings import AXES
from tests.swarm.swarming import ROOT, free_port, listens, swarm
from tests.waiting import wait_until

PAGE = (ROOT / "docs/locust.md").read_text(encoding="utf-8")
BLOCKS = [text.strip().splitlines() for text in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)]
INSTALL, *REST = [line for block in BLOCKS for line in block]
SECONDS = "1s"
"""How long a run takes here in place of the time in the manual."""
BEGIN = "locust -f locustfiles/native_locks.py "


def options_of(line: str) -> list[str]:
    """The options of a command of Locust in the manual, with the test's own time."""
    assert f"{line} ".startswith(BEGIN)
    words = shlex.split(line.removeprefix(BEGIN.strip()))
    return [SECONDS if before == "-t" else word for before, word in zip(["", *words], words, strict=False)]


def commands(*, having: str = "", lacking: tuple[str, ...] = ()) -> list[str]:
    return [line for line in REST if having in line and not any(word in line for word in lacking)]


def test_every_command_is_run_by_a_test_below():
    alone = commands(having="-u 4", lacking=("--strategy",))
    assert INSTALL == "pip install 'pybench[embedded,locust]'"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {"embedded", "locust"} <= set(extras)
    assert len(alone) == 1
    assert sorted(REST) == sorted(
        [
            BEGIN.strip(),
            *alone,
            *commands(having="--strategy"),
            *commands(having="pybench "),
            *commands(having="--processes"),
            *commands(having="--master --"),
            *commands(having="--worker"),
        ]
    )


def test_the_page_comes_up(tmp_path):
    assert BEGIN.strip() in REST
    port = free_port()
    with swarm(tmp_path, f"--web-port={port}", "--web-host=127.0.0.1") as one:
        wait_until(lambda: listens(port), "the page is there", seconds=60)
        one.process.send_signal(signal.SIGTERM)
        assert one.end() == 0, one.said


def test_a_run_in_the_terminal_ends_with_the_lines_that_the_manual_shows(tmp_path):
    (line,) = commands(having="-u 4", lacking=("--strategy",))
    with swarm(tmp_path, *options_of(line)) as one:
        assert one.end() == 0, one.said
    shown = re.findall(r"\n\n```\n(.*?)```", PAGE, re.DOTALL)[0].splitlines()
    for pattern in ("mutex: SAFE (", "grants/s; acquire p50 ", "run folder: "):
        assert any(pattern in text for text in shown)
        assert pattern in one.said


def test_another_lock_and_its_record(tmp_path):
    (line,) = commands(having="--strategy")
    with swarm(tmp_path, *options_of(line)) as one:
        assert one.end() == 0, one.said
    run = pybench.load(tmp_path / "results/fair")
    assert run.trials[["strategy", "keys", "hold"]].iloc[0].tolist() == ["fair-queue", 10, "1ms"]
    for line in commands(having="pybench "):
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(line)], cwd=tmp_path, env=environment(), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert "fair" in done.stdout


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.mark.slow
def test_the_processes_of_one_machine(tmp_path):
    (line,) = commands(having="--processes")
    port = free_port()
    with swarm(tmp_path, *options_of(line), f"--master-bind-port={port}", f"--master-port={port}", "--out=run") as one:
        assert one.end() == 0, one.said
    assert pybench.load(tmp_path / "run").workers["state"].tolist() == ["finished", "finished"]


def test_a_master_and_a_worker(tmp_path, url):
    (conducting,), (working,) = commands(having="--master --"), commands(having="--worker")
    port = free_port()
    given = [word.replace("redis://10.0.0.1:6379", url) for word in options_of(conducting)]
    there = [word.replace("10.0.0.1", "127.0.0.1") for word in options_of(working)]
    with (
        swarm(tmp_path, *given, f"--master-bind-port={port}", "--out=run", name="master") as one,
        swarm(tmp_path, *there, f"--master-port={port}", name="worker") as other,
    ):
        assert one.end() == 0, one.said
        assert other.end() == 0, other.said
    assert len(pybench.load(tmp_path / "run").workers) == 1


def test_every_option_is_in_the_table_with_its_default():
    rows = re.findall(r"^\| (`--.*?) \| (.*?) \| ", PAGE, re.MULTILINE)
    told = {name.strip("`-"): default.strip("`") for names, default in rows for name in names.split(", ")}
    assert told | {"redis": "", "postgres": ""} == {
        **{name: default for name, (default, _) in AXES.items()},
        "clients-per-user": "16",
        "redis": "",
        "postgres": "",
        "shared-keys": "off",
        "out": "results/locust-TIME",
    }
    parser = argparse.ArgumentParser()
    parser.add_argument = lambda name, **_: named.append(name.removeprefix("--"))
    named: list[str] = []
    add_options(parser)
    assert sorted(told) == sorted(named)


def test_the_locustfile_of_the_manual_is_that_of_the_repository():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    own = (ROOT / "locustfiles/native_locks.py").read_text(encoding="utf-8")
    assert [line for line in code.splitlines() if line.startswith(("from", "class"))] == [
        line for line in own.splitlines() if line.startswith(("from pybench", "class"))
    ]
